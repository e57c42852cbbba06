#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A run of burn-conformance with hundreds of failures: 20 of each op and check are printed, and how
many more there were; the verdict and the JSON file have them all, and so has a verbose run.

usage: many.py BURN-CONFORMANCE CLAIMS
The claims are another backend's, so each line of them that mock lacks, and the other way round, is
a failure of its op. What is asked for by its sample is printed whole.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

MOST = 20
LINE = re.compile(r"^FAIL (\S+) (\S+) claims: (.*)", re.M)
MORE = re.compile(r"^and ([0-9]+) more of (\S+) claims, which --verbose prints$", re.M)


def run(tool, claims, *arguments):
    """What it printed, and how many it says have failed."""
    done = subprocess.run([tool, "--device", "mock", "--no-ops", "--claims", claims, *arguments],
                          capture_output=True, text=True, timeout=200, check=False)
    verdict = re.search(r"([0-9]+) failed", done.stdout)
    return done.stdout, int(verdict.group(1)) if verdict and done.returncode == 1 else 0


def check(tool, claims, path):
    said, failed = run(tool, claims, "--json", path)
    printed = collections.Counter(op for op, _, _ in LINE.findall(said))
    more = {op: int(n) for n, op in MORE.findall(said)}
    results = json.loads(pathlib.Path(path).read_text())["results"]
    kept = collections.Counter(r["op"] for r in results if r["outcome"] == "fail")
    whole, failed_whole = run(tool, claims, "--verbose")
    of_sample, _ = run(tool, claims, "--sample", "0")
    problems = []
    if max(kept.values()) <= MOST or min(kept.values()) > MOST:
        problems.append("no op has more failures than are printed, or each has")
    for op, n in kept.items():
        if (printed[op], more.get(op, 0)) != (min(n, MOST), max(n - MOST, 0)):
            problems.append(f"{op} failed {n} times: {printed[op]} printed, {more.get(op)} told")
    if not failed == failed_whole == sum(kept.values()) == len(LINE.findall(whole)):
        problems.append(f"failures: {failed} by the verdict, {failed_whole} by that of --verbose, "
                        f"{sum(kept.values())} in JSON, {len(LINE.findall(whole))} lines")
    if MORE.search(whole) or LINE.findall(of_sample) != LINE.findall(whole):
        problems.append("a verbose run, or one of a sample, leaves lines out")
    return problems


def main():
    with tempfile.TemporaryDirectory() as folder:
        problems = check(*sys.argv[1:3], str(pathlib.Path(folder, "report.json")))
    print("\n".join(problems[:20] + [f"{len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
