#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The same program on two devices: its losses agree within a tolerance, and fall.

usage: same_losses.py TOLERANCE DEVICE DEVICE -- PROGRAM ARGS...
One device has kernels for an extension's ops, the other runs their decompositions.
"""
import os
import re
import subprocess
import sys


def losses(device, command):
    run = subprocess.run(command, env=dict(os.environ, BURN_DEVICE=device), capture_output=True,
                         text=True)
    if run.returncode != 0:
        sys.exit(f"{device}: exit status {run.returncode}\n{run.stdout}{run.stderr}")
    found = [float(x) for x in re.findall(r"loss ([-+0-9.einfa]+)", run.stdout)]
    if len(found) < 2:
        sys.exit(f"{device}: no losses in its output:\n{run.stdout}")
    return found


def main():
    at = sys.argv.index("--")
    tolerance, first, second = float(sys.argv[1]), sys.argv[2], sys.argv[3]
    command = sys.argv[at + 1:]
    a, b = losses(first, command), losses(second, command)
    if len(a) != len(b):
        sys.exit(f"{len(a)} losses on {first}, {len(b)} on {second}")
    for step, (x, y) in enumerate(zip(a, b), 1):
        if not abs(x - y) <= tolerance * max(1.0, abs(x)):
            sys.exit(f"step {step}: {x} on {first}, {y} on {second}, tolerance {tolerance}")
    if not a[-1] < a[0]:
        sys.exit(f"the loss went from {a[0]} to {a[-1]}")
    print(f"{len(a)} losses, {a[0]} to {a[-1]}, equal within {tolerance}")


if __name__ == "__main__":
    main()
