#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the conformance tool twice, with other settings, and compares the bits of all results.

usage: same_bits.py TOOL DEVICE NAME=VALUE NAME=VALUE

Each NAME=VALUE is the environment of one run. For one build and device, results may not depend on
how work is deferred or on how many threads do it.
"""

import os
import subprocess
import sys


def digest(tool, device, setting):
    name, _, value = setting.partition("=")
    environment = dict(os.environ, **{name: value})
    command = [tool, "--device", device, "--smoke", "--digest"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in run.stdout.splitlines() if line.startswith("digest ")]
    if not lines:
        sys.exit(f"{setting}: no digest\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return lines[0]


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    tool, device = sys.argv[1:3]
    first, second = (digest(tool, device, setting) for setting in sys.argv[3:5])
    print(f"{sys.argv[3]}: {first}\n{sys.argv[4]}: {second}")
    sys.exit(0 if first == second else 1)


if __name__ == "__main__":
    main()
