#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs of burn-conformance in which nothing was executed: each must fail and say why; those next to
them, in which something was, must not. Neither does a misspelled row look proven.

usage: nothing.py BURN-CONFORMANCE FOLDER-OF-THE-BACKEND-WITHOUT-ROWS
The plugin path has flex and mock; the backend without rows is mock, too, and stands alone.
"""
import os
import subprocess
import sys

NONE_FITS = "(device) none executed: nothing was executed: no sample fits what was asked for"
LACKS = "(device) none executed: nothing was executed: the device lacks what all "
# arguments: what the run says; None: it passes
CASES = {
    "eval --op add --dtype f32 --sample 100000": NONE_FITS,
    "flex --op neg --sample 99": NONE_FITS,
    "flex --op neg --dtype bool": NONE_FITS,
    "mock --op bit_not --dtype f32": NONE_FITS,
    "mock --op permute --dtype f32 --sample 99": NONE_FITS,
    # Nothing but the device was asked for, or a view, or a call that must fail.
    "flex --no-ops": None,
    "flex --op permute --dtype f32 --sample 0": None,
    "flex --op neg --dtype f32 --sample 0": None,
    "eval --op equal --dtype i32": None,
}
# Names that are none, and reports that cannot be written: the tool does not begin.
MISSPELLED = {
    "flex --op neg --row flex.nega": "flex:0 has no row flex.nega for neg",
    "flex --op add --row flex.neg": "flex:0 has no row flex.neg for add",
    "mock --row flex.neg": "mock:0 has no row flex.neg for any op",
    "eval --row flex.neg": "definitions have no rows",
    "eval --op neg --json /nowhere/at/all": "--json: cannot write /nowhere/at/all",
    "eval --op neg --junit /nowhere/at/all": "--junit: cannot write /nowhere/at/all",
}
WITHOUT_ROWS = {
    "mock --op exp": LACKS,
    "mock --op exp --smoke": LACKS,
    "mock --op add --dtype f32 --sample 0": LACKS,
    "mock --op sum --smoke": LACKS,
    # In all, some views need a copy when they are kept.
    "mock --smoke": "FAIL reshape f32 replay",
    "mock --op permute --dtype f32 --sample 0": None,
}


def check(tool, arguments, words, env, status=1):
    done = subprocess.run([tool, "--device", *arguments.split(), "--no-modes"], env=env,
                          capture_output=True, text=True, timeout=200, check=False)
    said = done.stdout + done.stderr
    if done.returncode == (0 if words is None else status) and (words is None or words in said):
        return 0
    print(f"--device {arguments}: ended with {done.returncode}; expected {words!r}:\n{said[:1500]}")
    return 1


def main():
    tool, without_rows = sys.argv[1:3]
    alone = dict(os.environ, BURN_PLUGIN_PATH=without_rows)
    problems = sum(check(tool, a, words, os.environ) for a, words in CASES.items())
    problems += sum(check(tool, a, words, os.environ, 2) for a, words in MISSPELLED.items())
    problems += sum(check(tool, a, words, alone) for a, words in WITHOUT_ROWS.items())
    print(f"{len(CASES) + len(MISSPELLED) + len(WITHOUT_ROWS)} runs, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
