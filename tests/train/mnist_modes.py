#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The MNIST example gives the same losses, to the last bit, however its calls are run: at once, in
windows, known sequences by plans, a kept step run again (each epoch's last batch is a short one).

usage: mnist_modes.py PROGRAM DATA_FOLDER DEVICE IMAGES EPOCHS
"""
import os
import pathlib
import subprocess
import sys
import tempfile

MODES = [("1", []), ("64", []), ("auto", []), ("1", ["--replay"]), ("auto", ["--replay"])]
BATCH = 64


def losses(program, data, device, images, epochs, window, more):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "losses"
        done = subprocess.run(
            [program, "--data", data, "--images", images, "--epochs", epochs, "--losses", out,
             "--out", pathlib.Path(folder) / "model.bpk", *more],
            env=dict(os.environ, BURN_DEVICE=device, BURN_WINDOW=window), text=True,
            capture_output=True, timeout=500)
        if done.returncode != 0:
            sys.exit(f"window {window} {more}: exit {done.returncode}: {done.stderr.strip()}")
        return [float.fromhex(line) for line in out.read_text().split()]


def main():
    program, data, device, images, epochs = sys.argv[1:]
    batches = -(-int(images) // BATCH) * int(epochs)
    first = None
    for window, more in MODES:
        found = losses(program, data, device, images, epochs, window, more)
        first = first or found
        if len(found) != batches or not found[-2] < found[0]:
            sys.exit(f"window {window} {more}: {batches} falling losses expected: {found}")
        if found != first:
            at = next(i for i, pair in enumerate(zip(found, first)) if pair[0] != pair[1])
            sys.exit(f"window {window} {more}: loss {at} is {found[at].hex()}, called it is "
                     f"{first[at].hex()}")
    print(f"{batches} losses, equal in {len(MODES)} modes")


if __name__ == "__main__":
    main()
