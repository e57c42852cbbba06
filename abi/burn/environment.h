/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * environment.h - named tuning environments: which kernel is the fastest for what, on this machine.
 *
 * With an environment named (BURN_ENVIRONMENT, or burn_environment_load) the kernels that could
 * serve a matrix product or a convolution are run against each other the first time that its shape
 * is seen, and the answer is kept; without one nothing is measured or read. Kernels that won may
 * give other bits than those that serve otherwise, so saved models name the environment.
 *
 * An environment is one file, <folder>/<name>.benv; the folder is BURN_ENVIRONMENT_PATH, else
 * burn/environments below XDG_DATA_HOME or ~/.local/share. Names: 1 to 64 of a-z, 0-9, _ and -.
 * The file is replaced as a whole and may be shared by processes and shipped to other machines:
 * what was measured on other hardware, or for other kernels, is carried along and not used. All
 * functions: [any]. Codes: BURN_E_INVALID a bad name or argument, BURN_E_NOT_FOUND no such
 * environment or entry, BURN_E_FORMAT a damaged file (the text has the offset), BURN_E_IO and
 * BURN_E_DENIED of the file or its folder, BURN_E_STATE it is in use, BURN_E_NO_MEMORY.
 */
#ifndef BURN_ENVIRONMENT_H
#define BURN_ENVIRONMENT_H

#include <burn/base.h>
#include <burn/status.h>

BURN_BEGIN_DECLS

/* Names the environment of this process; NULL: none any more. What the former one had learnt is
 * saved first. A file that is not there is made when there is something to save. Choices that were
 * made before are made anew. */
BURN_API int32_t burn_environment_load(const char *name, burn_err *err);
/* "" when there is none. The text lives as long as the process. */
BURN_API const char *burn_environment_name(void);
/* Writes what was learnt, together with what other processes wrote meanwhile. burn_shutdown and the
 * end of the process do it as well. Without an environment, or without news, it does nothing. */
BURN_API int32_t burn_environment_save(burn_err *err);

/* Removes the file of an environment. If it is the one that is loaded, it stays loaded, empty. */
BURN_API int32_t burn_environment_clear(const char *name, burn_err *err);
/* Copies an environment to a file of any name. What is loaded is saved before. */
BURN_API int32_t burn_environment_export(const char *name, const char *path, burn_err *err);
/* Takes a file in under a name; where that environment is there already, the file's entries replace
 * those of the same key. BURN_E_STATE when it is loaded. */
BURN_API int32_t burn_environment_import(const char *name, const char *path, burn_err *err);

/* ---- looking ---- */

typedef struct burn_environment_info {
    uint32_t struct_size;
    uint32_t n_devices;
    uint32_t n_choices;
    uint32_t n_plans;
    uint64_t bytes; /* of the file */
    int32_t code;   /* why it cannot be used, BURN_OK when it can; burn_environment_list only */
    uint32_t zero;
    char name[72];
    char path[512];
    char problem[232];
} burn_environment_info;

/* A device that entries were made on. */
typedef struct burn_environment_device_info {
    uint32_t struct_size;
    uint32_t units; /* threads, compute units */
    uint32_t n_choices;
    uint32_t n_plans;
    uint64_t plan_bytes;
    double bytes_per_second; /* copies within the device; 0: not measured */
    double flops_f32;        /* per second, of the fastest product seen; 0: not measured */
    double flops_f64;
    uint32_t abi;
    uint32_t zero;
    char backend[64];
    char hardware[96];
    char isa[96];
    char driver[64];
    char version[64]; /* of the backend's plugin */
    uint32_t n_refused; /* plans that did not fit when they were wanted, and were made anew */
    uint32_t zero_two;
} burn_environment_device_info;

/* Which row serves a call. */
typedef struct burn_environment_choice_info {
    uint32_t struct_size;
    uint32_t revision; /* of the row */
    uint32_t n_candidates;
    uint32_t at_roof; /* 1: nothing better is possible by what the device was seen to reach */
    double seconds;
    double rival_seconds; /* 0: no other row was measured */
    char row[96];
    char rival[96]; /* the row that would serve otherwise, else the next best; "" */
    char call[512]; /* "matmul(f32[64,64], f32[64,64])" */
} burn_environment_choice_info;

/* The contents of a file at one moment. */
typedef struct burn_environment burn_environment;

/* The i-th environment of the folder, in order of names; BURN_E_NOT_FOUND after the last. One that
 * cannot be read is described with its code. Set out->struct_size first (BURN_INIT), here and
 * below. */
BURN_API int32_t burn_environment_list(uint32_t i, burn_environment_info *out, burn_err *err);
/* Opens an environment by name, or any file by a path with a slash in it. NULL on failure. */
BURN_API burn_environment *burn_environment_open(const char *name, burn_err *err);
/* NULL allowed. */
BURN_API void burn_environment_close(burn_environment *env);
BURN_API int32_t burn_environment_describe(const burn_environment *env, burn_environment_info *out,
                                           burn_err *err);
BURN_API int32_t burn_environment_device(const burn_environment *env, uint32_t device,
                                         burn_environment_device_info *out, burn_err *err);
BURN_API int32_t burn_environment_choice(const burn_environment *env, uint32_t device, uint32_t i,
                                         burn_environment_choice_info *out, burn_err *err);

BURN_END_DECLS

#endif /* BURN_ENVIRONMENT_H */
