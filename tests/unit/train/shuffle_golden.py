#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The order that test_shuffle.c expects, computed a second time and by other means (Python's big
integers): Philox4x32-10 with key = seed and counter = {draw / 2, epoch}, Fisher-Yates from the
back, j = high half of 64 random bits times the bound."""
import sys

MASK = 0xFFFFFFFF


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & MASK, (p0 >> 32) ^ c[3] ^ k[1], p0 & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def shuffle(n, seed, epoch):
    order = list(range(n))
    for draw, i in enumerate(range(n - 1, 0, -1)):
        at = draw // 2
        block = philox([at & MASK, at >> 32, epoch & MASK, epoch >> 32], [seed & MASK, seed >> 32])
        half = (draw % 2) * 2
        j = ((block[half] | block[half + 1] << 32) * (i + 1)) >> 64
        order[i], order[j] = order[j], order[i]
    return order


n, seed, epoch = (int(a) for a in sys.argv[1:4]) if len(sys.argv) == 4 else (12, 42, 5)
print(", ".join(str(i) for i in shuffle(n, seed, epoch)))
