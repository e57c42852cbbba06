/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fuzz.h - what a fuzz target is: one function that takes bytes and must survive them.
 *
 * The same object serves two drivers: clang's libFuzzer (-fsanitize=fuzzer), and replay.c, which
 * runs a fixed number of seeded mutations of a corpus so that any compiler and CI can run it. To
 * add a target: fuzz_<parser>.c with this function, seeds in corpus/<parser>/, a row in
 * meson.build.
 */
#ifndef BURN_TESTS_FUZZ_FUZZ_H
#define BURN_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's entry; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#endif /* BURN_TESTS_FUZZ_FUZZ_H */
