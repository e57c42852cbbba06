/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * place.h - where environments lie, and how their files are read and replaced.
 *
 * Owns names, folders and files, not what is in them. Folder: BURN_ENVIRONMENT_PATH, else
 * <data home>/burn/environments. Folder and files must belong to the user or to root and must not
 * be writable by everybody. A file is replaced as a whole: scratch file, sync, rename, sync of the
 * folder. Two processes that replace one file take turns by a lock file beside it. [any]
 */
#ifndef BURN_CORE_TUNE_PLACE_H
#define BURN_CORE_TUNE_PLACE_H

#include "tune/benv.h"

#define BURNI_ENVIRONMENT_NAME 65 /* its end included */
#define BURNI_PLACE_BYTES      768

/* BURN_OK for [a-z0-9_-]{1,64}; else BURN_E_INVALID. */
int32_t burni_place_check_name(const char *name, burn_err *err);
/* The folder; BURN_E_INVALID when the variable is wrong, BURN_E_NOT_FOUND when there is none. It
 * need not exist. */
int32_t burni_place_folder(char *out, size_t size, burn_err *err);
/* What is wrong with BURN_ENVIRONMENT_PATH, if anything. */
int32_t burni_place_check_option(burn_err *err);
/* The same, and whether something could be saved there: in the folder, or in the one that is there
 * of those above it. */
int32_t burni_place_check_saving(burn_err *err);
/* "<folder>/<name>.benv". */
int32_t burni_place_file(const char *name, char *out, size_t size, burn_err *err);
/* Makes the folder, and those above it, for this user only. */
int32_t burni_place_make(burn_err *err);

/* A whole file, checked and decoded; BURN_E_NOT_FOUND when there is none. */
int32_t burni_place_read(const char *path, burni_benv **out, uint64_t *size, burn_err *err);
/* Puts the bytes in the file's place. On failure the file is as it was. */
int32_t burni_place_write(const char *path, const void *bytes, uint64_t size, burn_err *err);

/* Waits for other processes' turns, some seconds at most. The handle, -1 on failure. */
int burni_place_lock(const char *path, burn_err *err);
void burni_place_unlock(int handle);

#endif /* BURN_CORE_TUNE_PLACE_H */
