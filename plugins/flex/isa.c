/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * isa.c - finds the vector instructions that both the CPU and the operating system support.
 *
 * On x86-64 CPUID says what the CPU has, XGETBV what the system saves on a thread switch; both are
 * asked directly, so no file or environment variable can make the answer wrong. The matrix unit's
 * registers are large, and Linux saves them only for a process that asked: it is, where they are to
 * be used. On 64-bit ARM every
 * CPU has NEON with fused multiply-adds, so there is one level. The lowest level of each
 * architecture may be called `baseline`, whatever it has. To add a level: extend the enum in isa.h,
 * `names`, and `detect`.
 */
#include "isa.h"

#include "flex.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(FLEX_HAS_AMX)
#include <sys/syscall.h>
#include <unistd.h>
#endif

flex_isa_level flex_isa = FLEX_ISA_BASELINE;
int flex_isa_has_amx = 0;

#if defined(__aarch64__)
static const char *const names[] = {"neon"};
#define NAMES_TEXT "neon, or baseline, which is the same here"
#else
static const char *const names[] = {"baseline", "avx2", "avx512", "amx"};
#define NAMES_TEXT "baseline, avx2, avx512 or amx"
#endif

/* What `names` has beyond the levels of vectors. */
enum { LEVEL_AMX = FLEX_ISA_AVX512 + 1 };

const char *flex_isa_name(void)
{
    return names[flex_isa_has_amx ? (int)LEVEL_AMX : (int)flex_isa];
}

#if defined(__x86_64__) && defined(FLEX_HAS_X86_KERNELS)

static uint64_t read_xcr0(void)
{
    uint32_t low;
    uint32_t high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

#if defined(FLEX_HAS_AMX)
/* The CPU has tiles and multiplies bf16 in them, and the system saves both parts of their state. */
static int has_amx(void)
{
    enum { BF16_TILES = 1u << 22, TILES = 1u << 24, BF16_VECTORS = 1u << 5 };
    enum { TILE_STATE = 3u << 17 };
    uint32_t a = 0;
    uint32_t b = 0;
    uint32_t c = 0;
    uint32_t d = 0;
    const uint32_t wanted = BF16_TILES | TILES;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & wanted) != wanted) {
        return 0;
    }
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) == 0 || (a & BF16_VECTORS) == 0) {
        return 0;
    }
    return (read_xcr0() & TILE_STATE) == TILE_STATE;
}

/* Lets the system this process use tiles? Its threads and children may then, too. */
static int is_granted_amx(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}
#else
static int has_amx(void)
{
    return 0;
}
#endif

static int detect(void)
{
    enum { FMA = 1u << 12, OSXSAVE = 1u << 27, AVX = 1u << 28, F16C = 1u << 29 };
    enum { AVX2 = 1u << 5, F = 1u << 16, DQ = 1u << 17, BW = 1u << 30 };
    const uint32_t vl = 1u << 31;
    uint32_t a = 0;
    uint32_t b = 0;
    uint32_t c = 0;
    uint32_t d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0) {
        return FLEX_ISA_BASELINE;
    }
    const uint32_t base = FMA | OSXSAVE | AVX | F16C;
    if ((c & base) != base || (read_xcr0() & 0x6) != 0x6) {
        return FLEX_ISA_BASELINE;
    }
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (b & AVX2) == 0) {
        return FLEX_ISA_BASELINE;
    }
    const uint32_t wide = (uint32_t)F | DQ | BW | vl;
    if ((b & wide) != wide || (read_xcr0() & 0xe6) != 0xe6) {
        return FLEX_ISA_AVX2;
    }
    return has_amx() ? (int)LEVEL_AMX : (int)FLEX_ISA_AVX512;
}

#else

static int detect(void)
{
    return FLEX_ISA_BASELINE;
}

#endif

#if !defined(FLEX_HAS_AMX)
static int is_granted_amx(void)
{
    return 0;
}
#endif

static void use(int level)
{
    flex_isa_has_amx = level == LEVEL_AMX;
    flex_isa = level > FLEX_ISA_AVX512 ? FLEX_ISA_AVX512 : (flex_isa_level)level;
}

/* The level of that name; -1: there is none. */
static int level_of(const char *name)
{
    for (uint32_t i = 0; i < FLEX_COUNT(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            return (int)i;
        }
    }
    return strcmp(name, "baseline") == 0 ? 0 : -1;
}

int32_t flex_isa_init(const char *wanted, burn_err *err)
{
    int found = detect();
    int level = wanted != NULL ? level_of(wanted) : found;
    if (level < 0) {
        return flex_fail(err, BURN_E_INVALID,
                         "flex: BURN_FLEX_ISA=%.40s is not known; use " NAMES_TEXT, wanted);
    }
    if (level > found) {
        return flex_fail(err, BURN_E_UNSUPPORTED,
                         "flex: BURN_FLEX_ISA=%s, but this CPU has only %s; unset it", wanted,
                         names[found]);
    }
    if (level == LEVEL_AMX && !is_granted_amx()) {
        if (wanted != NULL) {
            return flex_fail(err, BURN_E_UNSUPPORTED,
                             "flex: BURN_FLEX_ISA=%s, but the system refuses this process the "
                             "matrix unit, as it does where a thread has a small signal stack; "
                             "unset it",
                             wanted);
        }
        level = FLEX_ISA_AVX512;
    }
    use(level);
    return BURN_OK;
}
