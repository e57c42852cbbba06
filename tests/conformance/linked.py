#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Backends that work but were linked as they should not be: burn-conformance must say so.

usage: linked.py BURN-CONFORMANCE FOLDER-OF-STUBS
The stubs are those of tests/loader/test_links.c. Each is run alone on one sample; what else fails
there is of no interest, since they have one row.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

# library: what the line of the check begins with, and what it holds
CASES = {
    "exports": ("FAIL", "it exports 2 symbols beside burn_plugin_query"),
    "needs_core": ("FAIL", "its library is linked with libburn-core.so"),
    "hostile": ("pass", "it exports its entry only and needs no library of this project; build "),
}


def run(tool, stubs, name):
    with tempfile.TemporaryDirectory(prefix="burn-linked-") as folder:
        shutil.copy(pathlib.Path(stubs, f"{name}.so"), pathlib.Path(folder, f"{name}.so"))
        manifest = {"format": 1, "id": name, "name": "a stub", "kind": "backend",
                    "file": f"{name}.so", "version": "1.2.3", "license": "MIT",
                    "abi": {"oldest": "0.1", "newest": "0.1"}, "devices": "cpu"}
        pathlib.Path(folder, f"{name}.json").write_text(json.dumps(manifest))
        report = pathlib.Path(folder, "report.json")
        done = subprocess.run(
            [tool, "--device", name, "--op", "add", "--dtype", "f32", "--sample", "0",
             "--no-modes", "--verbose", "--json", str(report)],
            env={"BURN_PLUGIN_PATH": folder}, capture_output=True, text=True, timeout=100,
            check=False)
        return done, report.read_text() if report.exists() else ""


def main():
    tool, stubs = sys.argv[1:3]
    problems = 0
    for name, (verdict, words) in CASES.items():
        done, report = run(tool, stubs, name)
        lines = [line for line in done.stdout.splitlines() if " plugin" in line]
        told = words in done.stdout + report
        wrong = (verdict == "FAIL") != any(line.startswith("FAIL") for line in lines)
        # The command repeats just this.
        wrong |= verdict == "FAIL" and f"--device {name}:0 --no-ops --seed 1" not in done.stdout
        if wrong or not told or (verdict == "FAIL" and done.returncode != 1):
            problems += 1
            print(f"{name}: ended with {done.returncode}, {lines}; it said:\n"
                  f"{done.stdout[:1500]}{done.stderr[:500]}")
    print(f"{len(CASES)} plugins, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
