/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * environment.h - the process's named tuning environment: one file, its contents in memory.
 *
 * Named by BURN_ENVIRONMENT at the first opening of a device, or by burn_environment_load. Without
 * a name nothing is kept and every question is answered with "no". One lock guards all of it; it is
 * never held while a plugin or a log callback runs. Devices are known by name ("flex:0") once their
 * identity was told; entries of a file that were made for another identity are carried along but
 * not used. What was added is written at burn_environment_save, at burn_shutdown, or when another
 * environment is named. [any]
 */
#ifndef BURN_CORE_TUNE_ENVIRONMENT_H
#define BURN_CORE_TUNE_ENVIRONMENT_H

#include "tune/benv.h"

#include <stdatomic.h>
#include <stddef.h>

/* 0 without an environment; else a number that grows with each that is named. */
extern _Atomic uint32_t burni_environment_current;
static inline uint32_t burni_environment_on(void)
{
    return atomic_load_explicit(&burni_environment_current, memory_order_acquire);
}

/* Names one, NULL: none. What the former one had learnt is saved first. A file that is damaged is
 * refused and nothing changes. */
int32_t burni_environment_load(const char *name, burn_err *err);
/* Reads BURN_ENVIRONMENT, the first time; what is wrong with it is told every time. */
int32_t burni_environment_start(burn_err *err);
/* What is wrong with the value of BURN_ENVIRONMENT, if anything. */
int32_t burni_environment_check_option(burn_err *err);
/* "" without one; the text lives as long as the process. */
const char *burni_environment_name(void);

/* Writes what is new, merged with what other processes wrote meanwhile. */
int32_t burni_environment_save(burn_err *err);
/* The same at the end of the process; a failure goes to the log. */
void burni_environment_finish(void);
/* Forgets everything that the loaded environment holds, in memory. */
void burni_environment_forget(void);

/* Tells what a device is. Once per device and environment; later calls cost little. */
void burni_environment_device(const char *device, const burni_identity *id);
/* 1 when that was done for the current environment. */
int burni_environment_knows(const char *device);

/* Copies the choice for a key to *out; its text and key stay NULL. 0 when there is none, or when it
 * was made from other candidates. */
int burni_environment_find(const char *device, const void *key, uint32_t key_size,
                           uint64_t candidates, burni_choice *out);
void burni_environment_keep(const char *device, const burni_choice *choice);

/* Highest throughput seen, 0 when not known; raises it. */
double burni_environment_roof(const char *device, uint32_t what);
void burni_environment_raise(const char *device, uint32_t what, double per_second);

/*
 * Plans: opaque bytes under a key, for whoever makes plans. The bytes come from a file: the reader
 * checks them as hostile. `get` gives a copy to be freed with burni_free, NULL when there is none.
 * `device` is a name whose identity was told.
 */
unsigned char *burni_environment_plan_get(const char *device, uint64_t key, size_t *size);
/* Shows all plans of the device; under the lock, so `see` must not ask for anything here. */
void burni_environment_plans(const char *device,
                             void (*see)(void *user, const void *bytes, size_t size), void *user);
void burni_environment_plan_put(const char *device, uint64_t key, const void *bytes, size_t size);

#endif /* BURN_CORE_TUNE_ENVIRONMENT_H */
