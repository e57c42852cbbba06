/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * machine.h - what the numbers were measured on.
 */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stdint.h>

struct bench_machine {
    char cpu[96];
    char system[96]; /* kernel */
    char compiler[96];
    int cpus;   /* usable by this process */
    int64_t l2; /* bytes per core, 0 = not known */
    int64_t l3; /* bytes in all */
    int64_t memory;
    double round_trip; /* see bench_round_trip */
};

/* All but `round_trip`. */
void bench_machine_read(struct bench_machine *machine);

/* ns for a line to another core and an answer back, which no job of two threads does without; 0:
 * not known, as there is no other core, or one has other work. */
double bench_round_trip(void);

/* How many of the cores others keep busy, from 0 to the number of cores; sleeps for a moment. */
double bench_machine_others(void);

/* Elements of each of three arrays that live in the level-2 caches of that many cores, in level 3,
 * or in main memory only. */
int64_t bench_elements_l2(const struct bench_machine *machine, int threads);
int64_t bench_elements_l3(const struct bench_machine *machine);
int64_t bench_elements_dram(const struct bench_machine *machine);

#endif /* BENCH_MACHINE_H */
