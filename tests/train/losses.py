#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs `losses` under several environments and compares what it prints.

usage: losses.py PROGRAM DATA_FOLDER CASE, with CASE one of
  bits    flex: windows 1, 2, 64 and auto, 1 and 2 threads: equal to the last bit, and falling
  memory  flex: what is reserved after epoch 1 is what is reserved after epoch 6
  mock    mock and flex: the same losses within tolerance
"""
import os
import subprocess
import sys


def run(program, data, steps, epochs, **env):
    full = dict(os.environ, **{key: str(value) for key, value in env.items()})
    done = subprocess.run([program, data, str(steps), str(epochs)], env=full, text=True,
                          capture_output=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{env}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def losses(lines):
    return [float.fromhex(line.split()[1]) for line in lines if line.startswith("loss")]


def case_bits(program, data):
    first = run(program, data, 40, 1, BURN_DEVICE="flex", BURN_THREADS=1, BURN_WINDOW=1)
    values = losses(first)
    if len(values) != 40 or not sum(values[-8:]) < 0.8 * sum(values[:8]):
        sys.exit(f"it does not learn: {values[:8]} ... {values[-8:]}")
    for window in (1, 2, 64, "auto"):
        for threads in (1, 2):
            other = run(program, data, 40, 1, BURN_DEVICE="flex", BURN_THREADS=threads,
                        BURN_WINDOW=window)
            if losses(other) != values:
                sys.exit(f"window {window}, {threads} threads: other losses: {losses(other)[:4]} "
                         f"instead of {values[:4]}")


def case_memory(program, data):
    for window in (1, 64, "auto"):
        lines = run(program, data, 25, 6, BURN_DEVICE="flex", BURN_WINDOW=window)
        reserved = [int(line.split()[1]) for line in lines if line.startswith("reserved")]
        if len(reserved) != 6 or reserved[-1] != reserved[0]:
            sys.exit(f"window {window}: memory is not flat: {reserved}")


def case_mock(program, data):
    flex = losses(run(program, data, 3, 1, BURN_DEVICE="flex", BURN_WINDOW=1))
    bits = None
    for window in (1, 64, "auto"):
        mock = losses(run(program, data, 3, 1, BURN_DEVICE="mock", BURN_WINDOW=window))
        far = [abs(a - b) for a, b in zip(flex, mock)]
        bits = bits if bits is not None else mock
        if mock != bits:
            sys.exit(f"window {window}: mock's losses {mock} are not those of window 1, {bits}")
        if len(mock) != 3 or max(far) > 2e-5:
            sys.exit(f"window {window}: mock's losses {mock} are not flex's {flex}")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    globals()["case_" + sys.argv[3]](sys.argv[1], sys.argv[2])


if __name__ == "__main__":
    main()
