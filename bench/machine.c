/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * machine.c - reads what Linux tells about processor, caches and memory, and measures how far its
 * cores are apart. Unknown things stay empty.
 */
#include "machine.h"

#include "clock.h"

#include <ctype.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Copies printable characters only, so that the text can go into JSON as it is. */
static void copy_text(char *out, size_t size, const char *in)
{
    size_t n = 0;
    for (; *in != '\0' && n + 1 < size; in++) {
        if (isprint((unsigned char)*in) && *in != '"' && *in != '\\') {
            out[n] = *in;
            n++;
        }
    }
    out[n] = '\0';
}

static void read_cpu_name(char *out, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    copy_text(out, size, "unknown");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL && colon[1] != '\0') {
            copy_text(out, size, colon + 2);
            break;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

/* One file of the first core's caches; 0 when it is not there. */
static int read_cache_file(int index, const char *name, char *out, size_t size)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index,
                   name);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return 0;
    }
    int found = fgets(out, (int)size, file) != NULL;
    (void)fclose(file);
    return found;
}

static int64_t cache_size(int wanted_level)
{
    for (int i = 0; i < 8; i++) {
        char level[16];
        char size[32];
        int number = 0;
        long long kib = 0;
        if (read_cache_file(i, "level", level, sizeof(level)) &&
            read_cache_file(i, "size", size, sizeof(size)) && sscanf(level, "%d", &number) == 1 &&
            sscanf(size, "%lldK", &kib) == 1 && number == wanted_level) {
            return kib * 1024;
        }
    }
    return 0;
}

static int usable_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        return CPU_COUNT(&set);
    }
    return 1;
}

/* ---- between cores ----------------------------------------------------------------------- */

/* Few at a time: on a core that others use as well each may take as long as they may run. More than
 * so many ns are that. */
enum { ROUND_TRIPS = 16, MOST_ROUND_TRIP = 20000, OVER = -1 };

/* Two numbers on lines of their own, as far apart as CPUs fetch lines in pairs. */
static struct {
    _Alignas(128) _Atomic int there;
    _Alignas(128) _Atomic int back;
} ball;

/* From now on the calling thread runs on the nth of the CPUs only. */
static int stay_on(const cpu_set_t *cpus, int nth)
{
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, cpus) && nth-- == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            return sched_setaffinity(0, sizeof(one), &one);
        }
    }
    return -1;
}

/* On the second CPU. */
static void *answer(void *cpus)
{
    (void)stay_on(cpus, 1);
    int seen = 0;
    while (seen != OVER) {
        int now = atomic_load_explicit(&ball.there, memory_order_acquire);
        if (now != seen) {
            atomic_store_explicit(&ball.back, now, memory_order_release);
            seen = now;
        }
    }
    return NULL;
}

/* The best of what there is time for. */
static double best_trip(void)
{
    const double seconds = 0.02;
    double best = 0;
    int last = 0;
    double begin = bench_now();
    double start = begin;
    do {
        for (int n = 0; n < ROUND_TRIPS; n++) {
            last++;
            atomic_store_explicit(&ball.there, last, memory_order_release);
            while (atomic_load_explicit(&ball.back, memory_order_acquire) != last) {
            }
        }
        double end = bench_now();
        double each = (end - start) / ROUND_TRIPS * 1e9;
        best = best == 0 || each < best ? each : best;
        start = end;
    } while (start - begin < seconds);
    return best;
}

double bench_round_trip(void)
{
    pthread_t thread;
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0 || CPU_COUNT(&cpus) < 2 ||
        pthread_create(&thread, NULL, answer, &cpus) != 0) {
        return 0;
    }
    (void)stay_on(&cpus, 0);
    double best = best_trip();
    atomic_store(&ball.there, OVER);
    (void)pthread_join(thread, NULL);
    (void)sched_setaffinity(0, sizeof(cpus), &cpus);
    atomic_store(&ball.there, 0);
    atomic_store(&ball.back, 0);
    return best <= MOST_ROUND_TRIP ? best : 0;
}

/* ---- all of it -------------------------------------------------------------------------- */

void bench_machine_read(struct bench_machine *machine)
{
    struct utsname system;
    memset(machine, 0, sizeof(*machine));
    read_cpu_name(machine->cpu, sizeof(machine->cpu));
    if (uname(&system) == 0) {
        char text[160];
        (void)snprintf(text, sizeof(text), "%.64s %.64s %.16s", system.sysname, system.release,
                       system.machine);
        copy_text(machine->system, sizeof(machine->system), text);
    }
#if defined(__clang__)
    copy_text(machine->compiler, sizeof(machine->compiler), "clang " __clang_version__);
#elif defined(__GNUC__)
    copy_text(machine->compiler, sizeof(machine->compiler), "gcc " __VERSION__);
#endif
    machine->cpus = usable_cpus();
    machine->l2 = cache_size(2);
    machine->l3 = cache_size(3);
    machine->memory = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
}

/* ---- other users ------------------------------------------------------------------------- */

/* Ticks that all cores together spent working, or for other virtual machines; -1 when not known. */
static double busy_ticks(void)
{
    FILE *file = fopen("/proc/stat", "r");
    double user = 0;
    double nice = 0;
    double kernel = 0;
    double irq = 0;
    double soft_irq = 0;
    double steal = 0;
    int n = file != NULL ? fscanf(file, "cpu %lf %lf %lf %*f %*f %lf %lf %lf", &user, &nice,
                                  &kernel, &irq, &soft_irq, &steal)
                         : 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    return n == 6 ? user + nice + kernel + irq + soft_irq + steal : -1;
}

double bench_machine_others(void)
{
    const double seconds = 0.3;
    double before = busy_ticks();
    struct timespec pause = {0, (long)(seconds * 1e9)};
    (void)nanosleep(&pause, NULL);
    double after = busy_ticks();
    if (before < 0 || after < before) {
        return 0;
    }
    return (after - before) / (double)sysconf(_SC_CLK_TCK) / seconds;
}

/* ---- sizes of the bandwidth rows --------------------------------------------------------- */

enum { KIB = 1024, MIB = 1024 * KIB, BYTES_PER_ELEMENT = 12 };

static int64_t whole_lines(int64_t bytes)
{
    return bytes / BYTES_PER_ELEMENT / 1024 * 1024;
}

/* Half of what there is, so that other data do not push it out. */
int64_t bench_elements_l2(const struct bench_machine *machine, int threads)
{
    int64_t l2 = machine->l2 > 0 ? machine->l2 : 512 * KIB;
    return whole_lines(threads * l2 / 2);
}

/* Four times all level-2 caches, at most half of level 3: a virtual machine may be told of a cache
 * that it shares with many others. */
int64_t bench_elements_l3(const struct bench_machine *machine)
{
    int64_t l3 = machine->l3 > 0 ? machine->l3 : 8 * MIB;
    int64_t bytes = bench_elements_l2(machine, machine->cpus) * BYTES_PER_ELEMENT * 8;
    return whole_lines(bytes < l3 / 2 ? bytes : l3 / 2);
}

/* Four times level 3, at least 384 MiB, at most 768 MiB and an eighth of the memory. */
int64_t bench_elements_dram(const struct bench_machine *machine)
{
    int64_t bytes = machine->l3 * 4;
    bytes = bytes < (int64_t)384 * MIB ? (int64_t)384 * MIB : bytes;
    bytes = bytes > (int64_t)768 * MIB ? (int64_t)768 * MIB : bytes;
    return whole_lines(bytes < machine->memory / 8 ? bytes : machine->memory / 8);
}
