#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""flex with fewer instruction sets than this machine has; a set that it lacks is a skip (77).

usage: width.py ISA BURN-CONFORMANCE ARGUMENT...
Owns no check: it sets BURN_FLEX_ISA, runs the tool, and looks whether the tool says that flex
refused that set because of the CPU or the system. All else is the tool's own answer, so a name that
flex does not know fails.
"""
import os
import subprocess
import sys


def main():
    isa, command = sys.argv[1], sys.argv[2:]
    done = subprocess.run(command, env={**os.environ, "BURN_FLEX_ISA": isa}, text=True,
                          stderr=subprocess.PIPE, check=False)
    sys.stderr.write(done.stderr)
    refusals = (f"BURN_FLEX_ISA={isa}, but this CPU", f"BURN_FLEX_ISA={isa}, but the system")
    if done.returncode != 0 and any(text in done.stderr for text in refusals):
        return 77
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
