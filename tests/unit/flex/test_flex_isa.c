/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_flex_isa.c - which instruction set flex uses (isa.c), from within: what may be asked for,
 * what texts say, and when the system is asked for the registers of the matrix unit.
 *
 * Owns nothing but the checks. What the system has granted a process it keeps, so each check runs
 * in a child of fork, before this process asks for anything. To add a check: a function that
 * returns 1 when all is well, and a line in `checks`.
 */
#include "../../../plugins/flex/isa.h"

#include "../../../plugins/flex/gemm_parts.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__aarch64__)
static const char *const names[] = {"neon"};
#else
static const char *const names[] = {"baseline", "avx2", "avx512", "amx"};
#endif
enum { N_NAMES = sizeof(names) / sizeof(names[0]) };

static int is(const char *name)
{
    return strcmp(flex_isa_name(), name) == 0;
}

/* Says which condition does not hold. */
#define HOLDS(condition) ((condition) || (printf("line %d: %s\n", __LINE__, #condition), 0))

/* All names up to what there is are taken; those above are refused, and the text says why. */
static int names_up_to_what_there_is(void)
{
    burn_err err = BURN_ERR_INIT;
    int refused = 0;
    for (int i = 0; i < N_NAMES; i++) {
        int32_t rc = flex_isa_init(names[i], &err);
        if (rc == BURN_OK) {
            if (!HOLDS(is(names[i])) || !HOLDS(refused == 0)) {
                return 0;
            }
            continue;
        }
        refused++;
        if (!HOLDS(rc == BURN_E_UNSUPPORTED) || !HOLDS(strstr(err.text, names[i]) != NULL)) {
            return 0;
        }
    }
    return HOLDS(flex_isa_init(NULL, &err) == BURN_OK) && HOLDS(is(names[N_NAMES - 1 - refused]));
}

static int baseline_is_always_there(void)
{
    burn_err err = BURN_ERR_INIT;
    return HOLDS(flex_isa_init("baseline", &err) == BURN_OK) && HOLDS(flex_isa == 0) &&
           HOLDS(is(names[0]));
}

static int unknown_names_get_the_list(void)
{
    burn_err err = BURN_ERR_INIT;
    static const char *const wrong[] = {"", "AVX2", "avx", "amx ", "avx5120", "sse"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (!HOLDS(flex_isa_init(wrong[i], &err) == BURN_E_INVALID)) {
            return 0;
        }
        for (int k = 0; k < N_NAMES; k++) {
            if (!HOLDS(strstr(err.text, names[k]) != NULL)) {
                return 0;
            }
        }
    }
    return 1;
}

#if defined(__x86_64__)

static int is_split(void)
{
    flex_gemm g = {.m = 512, .n = 512, .k = 512, .rows = 512};
    return flex_gemm_is_split(&g);
}

static int there_is_amx(void)
{
    burn_err err = BURN_ERR_INIT;
    return flex_isa_init("amx", &err) == BURN_OK;
}

/* Has the system granted this process the tiles' registers? */
static int may_use_tiles(void)
{
    enum { PERMITTED = 0x1022, TILE_DATA = 18 };
    uint64_t features = 0;
    return syscall(SYS_arch_prctl, PERMITTED, &features) == 0 && (features >> TILE_DATA & 1) != 0;
}

static int lower_than_amx_leaves_the_unit_alone(void)
{
    burn_err err = BURN_ERR_INIT;
    if (flex_isa_init("avx512", &err) != BURN_OK) {
        return 1;
    }
    return HOLDS(flex_isa == FLEX_ISA_AVX512) && HOLDS(!flex_isa_has_amx) && HOLDS(is("avx512")) &&
           HOLDS(!is_split()) && HOLDS(!may_use_tiles());
}

static int amx_is_avx512_and_more(void)
{
    if (!there_is_amx()) {
        return 1;
    }
    return HOLDS(flex_isa == FLEX_ISA_AVX512) && HOLDS(flex_isa_has_amx) && HOLDS(is("amx")) &&
           HOLDS(is_split()) && HOLDS(may_use_tiles());
}

/* A thread whose signal stack would be too small for the registers: the system refuses. */
static int refused_by_the_system_it_is_avx512(void)
{
    enum { SMALL = 4096 };
    burn_err err = BURN_ERR_INIT;
    stack_t small = {.ss_sp = malloc(SMALL), .ss_size = SMALL};
    if (small.ss_sp == NULL || sigaltstack(&small, NULL) != 0) {
        return 1; /* what there is needs more, or there is no memory */
    }
    if (flex_isa_init(NULL, &err) != BURN_OK || flex_isa != FLEX_ISA_AVX512) {
        return HOLDS(flex_isa != FLEX_ISA_AVX512);
    }
    int ok = HOLDS(is("avx512")) && HOLDS(!is_split()) && HOLDS(!may_use_tiles()) &&
             HOLDS(flex_isa_init("amx", &err) == BURN_E_UNSUPPORTED) &&
             HOLDS(strstr(err.text, "system") != NULL || strstr(err.text, "CPU has only") != NULL);
    small.ss_flags = SS_DISABLE;
    return ok && HOLDS(sigaltstack(&small, NULL) == 0);
}

/* ---- who may use the unit once it is granted ------------------------------------------------- */

enum { SIDE = 256 };

typedef struct product {
    float *a;
    float *b;
    float *c;
    void *memory;
    flex_gemm g;
} product;

static int make_product(product *p)
{
    size_t bytes = sizeof(float) * SIDE * SIDE;
    p->g = (flex_gemm){.m = SIDE, .n = SIDE, .k = SIDE, .rows = SIDE};
    p->a = malloc(bytes);
    p->b = malloc(bytes);
    p->c = malloc(bytes);
    if (p->a == NULL || p->b == NULL || p->c == NULL ||
        posix_memalign(&p->memory, 64, (size_t)flex_gemm_bytes(&p->g, 1)) != 0) {
        return 0;
    }
    p->g.a = p->a;
    p->g.b = p->b;
    p->g.c = p->c;
    p->g.ars = p->g.brs = p->g.crs = SIDE;
    p->g.acs = p->g.bcs = 1;
    for (int64_t i = 0; i < SIDE * SIDE; i++) {
        p->a[i] = (float)(i % 7 - 3);
        p->b[i] = (float)(i % 5 - 2);
    }
    return 1;
}

/* Runs it by parts; small whole numbers are exact. Returns whether they are. */
static int is_right(product *p)
{
    memset(p->c, 0xff, sizeof(float) * SIDE * SIDE);
    flex_gemm_serial(&p->g, p->memory);
    for (int64_t i = 0; i < SIDE; i += 17) {
        for (int64_t j = 0; j < SIDE; j++) {
            float want = 0.0F;
            for (int64_t k = 0; k < SIDE; k++) {
                want += p->a[i * SIDE + k] * p->b[k * SIDE + j];
            }
            if (p->c[i * SIDE + j] != want) {
                return 0;
            }
        }
    }
    return 1;
}

static int child_is_right(product *p)
{
    pid_t child = fork();
    if (child == 0) {
        _exit(is_right(p) ? 0 : 1);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

static int children_may_use_it(void)
{
    product p;
    if (!there_is_amx()) {
        return 1;
    }
    return HOLDS(make_product(&p)) && HOLDS(child_is_right(&p)) && HOLDS(is_right(&p)) &&
           HOLDS(child_is_right(&p));
}

typedef struct early {
    pthread_barrier_t go;
    product p;
    int right;
} early;

static void *wait_and_multiply(void *user)
{
    early *e = user;
    (void)pthread_barrier_wait(&e->go);
    e->right = is_right(&e->p);
    return NULL;
}

/* A thread that was there before the system was asked. */
static int earlier_threads_may_use_it(void)
{
    static early e;
    pthread_t thread;
    if (pthread_barrier_init(&e.go, NULL, 2) != 0 ||
        pthread_create(&thread, NULL, wait_and_multiply, &e) != 0) {
        return HOLDS(0);
    }
    int wanted = there_is_amx();
    int made = make_product(&e.p);
    if (!wanted || !made) {
        return HOLDS(made);
    }
    (void)pthread_barrier_wait(&e.go);
    (void)pthread_join(thread, NULL);
    return HOLDS(e.right);
}

static product interrupting;
static volatile sig_atomic_t signals;
static volatile sig_atomic_t wrong;

/* A product inside of the handler, too, so that registers are lost if the system saves them not. */
static void on_signal(int number)
{
    (void)number;
    signals++;
    wrong |= !is_right(&interrupting);
}

/* Signals while tiles are computed, on a signal stack of the size that the system asks for. */
static int signals_may_come(void)
{
    enum { ROUNDS = 100, STACK = 1 << 20 };
    product p;
    if (!there_is_amx()) {
        return 1;
    }
    stack_t stack = {.ss_sp = malloc(STACK), .ss_size = STACK};
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART};
    if (!HOLDS(make_product(&p)) || !HOLDS(make_product(&interrupting)) ||
        !HOLDS(stack.ss_sp != NULL && sigaltstack(&stack, NULL) == 0) ||
        !HOLDS(sigaction(SIGALRM, &act, NULL) == 0)) {
        return 0;
    }
    int right = 1;
    for (int i = 0; i < ROUNDS && right; i++) {
        struct itimerval once = {{0, 0}, {0, 20 + 10 * i}};
        (void)setitimer(ITIMER_REAL, &once, NULL);
        right = is_right(&p);
    }
    for (int i = 0; i < 1000 && signals < ROUNDS; i++) {
        (void)usleep(1000); /* the last one may be late */
    }
    return HOLDS(right) && HOLDS(signals > 0) && HOLDS(wrong == 0);
}

#endif

typedef struct check {
    const char *name;
    int (*run)(void);
} check;

static const check checks[] = {
    {"names up to what there is", names_up_to_what_there_is},
    {"baseline is always there", baseline_is_always_there},
    {"unknown names get the list", unknown_names_get_the_list},
#if defined(__x86_64__)
    {"lower than amx leaves the unit alone", lower_than_amx_leaves_the_unit_alone},
    {"amx is avx512 and more", amx_is_avx512_and_more},
    {"refused by the system, it is avx512", refused_by_the_system_it_is_avx512},
    {"children may use it", children_may_use_it},
    {"earlier threads may use it", earlier_threads_may_use_it},
    {"signals may come", signals_may_come},
#endif
};

int main(void)
{
    int failed = 0;
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        (void)fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            int ok = checks[i].run();
            (void)fflush(stdout);
            _exit(ok ? 0 : 1);
        }
        int status = 0;
        int ok = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                 WEXITSTATUS(status) == 0;
        printf("%s: %s\n", ok ? "ok" : "FAILED", checks[i].name);
        failed |= !ok;
    }
    return failed;
}
