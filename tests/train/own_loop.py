#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The example with a loop of its own: a run that was stopped goes on with the bits of one that was
not, a kept step gives the bits of called ones, and a damaged checkpoint is told, not trained on.

usage: own_loop.py PROGRAM DATA_FOLDER DEVICE BATCHES
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

EPOCHS = 3
LINE = re.compile(r"^epoch (\d+): loss [\d.]+ \((0x[0-9a-f.]+p[+-]\d+)\), right ([\d.]+) %$", re.M)


def call(program, data, device, batches, epochs, checkpoint, *more):
    """(exit status, [(epoch, loss, share of right answers)], errors)"""
    done = subprocess.run(
        [program, "--data", data, "--batches", batches, "--tests", "2", "--epochs", str(epochs),
         "--checkpoint", checkpoint, *more],
        env=dict(os.environ, BURN_DEVICE=device), text=True, capture_output=True, timeout=300)
    rows = [(int(n), float.fromhex(loss), float(right))
            for n, loss, right in LINE.findall(done.stdout)]
    return done.returncode, rows, done.stderr


def numbers(file):
    """The bytes of all tensors: what stands before them also names each variable by a number."""
    metadata = int.from_bytes(file[6:10], "little")
    return file[-(-(10 + metadata) // 256) * 256:]


def main():
    program, data, device, batches = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def run(epochs, checkpoint, *more):
            code, rows, errors = call(program, data, device, batches, epochs, folder / checkpoint,
                                      *more)
            if code != 0:
                sys.exit(f"{epochs} epochs {more}: exit {code}: {errors.strip()}")
            return rows

        whole = run(EPOCHS, "whole.bpk")
        assert [row[0] for row in whole] == [1, 2, 3], whole
        assert whole[-1][1] < whole[0][1] and whole[-1][2] > 50, whole
        assert run(EPOCHS, "called.bpk", "--no-replay") == whole
        parts = run(1, "parts.bpk") + run(2, "parts.bpk", "--no-replay") + run(3, "parts.bpk")
        assert parts == whole, (parts, whole)
        assert run(EPOCHS, "parts.bpk") == []  # all is done
        good = (folder / "whole.bpk").read_bytes()
        for other in ("parts.bpk", "called.bpk"):
            assert numbers((folder / other).read_bytes()) == numbers(good), other
        for damaged in (good[:-1], good + b"x", b"no checkpoint"):
            (folder / "bad.bpk").write_bytes(damaged)
            code, rows, errors = call(program, data, device, batches, 4, folder / "bad.bpk")
            assert (code, rows) == (1, []) and "bad.bpk" in errors, (code, rows, errors)
            assert (folder / "bad.bpk").read_bytes() == damaged
    print(f"{device}: {len(whole)} epochs of {batches} batches, equal in one, in parts and called")


if __name__ == "__main__":
    main()
