/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plan_file.h - BURN_PLANS: the plans of a process as text, in a file of a folder, at its end.
 *
 * What `burn plans` shows. All streams of all devices, those of threads that ended as well. A
 * process that is killed, and a forked child, leave nothing. [any]
 */
#ifndef BURN_CORE_EXEC_PLAN_FILE_H
#define BURN_CORE_EXEC_PLAN_FILE_H

#include <burn/status.h>

/* What is wrong with BURN_PLANS, if anything. */
int32_t burni_plan_file_check(burn_err *err);
/* The same; where it is set, this process will write its file. */
int32_t burni_plan_file_start(burn_err *err);
/* Writes the file, once. A failure goes to the log. */
void burni_plan_file_finish(void);

#endif /* BURN_CORE_EXEC_PLAN_FILE_H */
