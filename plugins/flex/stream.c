/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stream.c - streaming copies (stream.h), and from which size on they pay.
 *
 * Whole 64-byte lines are written at once, since a line that is written in pieces costs several
 * trips to memory; the bytes before and after are copied as usual. Every x86-64 CPU has these
 * stores. Elsewhere nothing streams: flex_stream_pays says no.
 */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include "stream.h"

#include "isa.h"
#include "threads.h"

#include <string.h>
#include <unistd.h>

uint64_t flex_stream_grain(uint64_t n, uint64_t grain, uint64_t longest)
{
    uint64_t share = n / (2 * (uint64_t)flex_thread_count());
    uint64_t wanted = longest < share ? longest : share;
    return wanted > grain ? wanted - wanted % grain : grain;
}

#if defined(__SSE2__)
#include <immintrin.h>

enum { LINE = 64 };

/*
 * A core's fair share of the last cache is not known: a virtual machine is told of one that it
 * shares with many others. Beyond this much, results were found in memory on every machine tried.
 */
static const uint64_t MOST = UINT64_C(48) << 20;

static uint64_t threshold = UINT64_MAX;

void flex_stream_init(void)
{
    long cache = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE)
    cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    threshold = cache > 0 && (uint64_t)cache < MOST ? (uint64_t)cache : MOST;
}

int flex_stream_pays(uint64_t bytes)
{
    return bytes > threshold;
}

/* Whole lines: `to` starts on one. */
static void stream_lines(char *to, const char *from, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i += LINE) {
        const __m128i *x = (const __m128i *)(const void *)(from + i);
        __m128i *z = (__m128i *)(void *)(to + i);
        __m128i a = _mm_loadu_si128(x);
        __m128i b = _mm_loadu_si128(x + 1);
        __m128i c = _mm_loadu_si128(x + 2);
        __m128i d = _mm_loadu_si128(x + 3);
        _mm_stream_si128(z, a);
        _mm_stream_si128(z + 1, b);
        _mm_stream_si128(z + 2, c);
        _mm_stream_si128(z + 3, d);
    }
}

#if defined(FLEX_HAS_X86_KERNELS)
__attribute__((target("avx512f"))) static void stream_lines_512(char *to, const char *from,
                                                                uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i += LINE) {
        _mm512_stream_si512((void *)(to + i), _mm512_loadu_si512(from + i));
    }
}
#endif

void flex_stream(void *out, const void *in, uint64_t bytes)
{
    char *z = out;
    const char *x = in;
    uint64_t head = (LINE - ((uintptr_t)z & (LINE - 1))) & (LINE - 1);
    head = head < bytes ? head : bytes;
    if (head > 0) {
        memcpy(z, x, head);
    }
    uint64_t lines = (bytes - head) / LINE * LINE;
#if defined(FLEX_HAS_X86_KERNELS)
    if (flex_isa == FLEX_ISA_AVX512) {
        stream_lines_512(z + head, x + head, lines);
    } else {
        stream_lines(z + head, x + head, lines);
    }
#else
    stream_lines(z + head, x + head, lines);
#endif
    if (head + lines < bytes) {
        memcpy(z + head + lines, x + head + lines, bytes - head - lines);
    }
}

void flex_stream_end(void)
{
    _mm_sfence();
}

#else

void flex_stream_init(void)
{
}

int flex_stream_pays(uint64_t bytes)
{
    (void)bytes;
    return 0;
}

void flex_stream(void *out, const void *in, uint64_t bytes)
{
    memcpy(out, in, bytes);
}

void flex_stream_end(void)
{
}

#endif
