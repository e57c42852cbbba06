/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * unrolled.h - UNROLLED before a loop whose turns are all written out, up to 16 of them.
 *
 * Owns the spelling: accumulators in arrays become registers only by it, and Clang does not heed
 * GCC's pragma. Templates that are compiled once per ISA include it. A sanitizer checks every load,
 * so that what is written out would take minutes to compile: loops stay loops then. No other rules:
 * to add a compiler, add a case.
 */
#ifndef BURN_PLUGINS_FLEX_UNROLLED_H
#define BURN_PLUGINS_FLEX_UNROLLED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNROLLED
#elif defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

#endif /* BURN_PLUGINS_FLEX_UNROLLED_H */
