#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/cases.md tells which reported faults are guarded by which tests; it must not be wrong.

usage: cases.py            compares       cases.py --write   fills the column of tests in anew
       cases.py --self-test

An id counts as held by a test file when the id stands in it (`B222_...`, `..._b222_...`).
"""
import os
import re
import sys

from check_lib import ROOT, Problem, read_tree, run

DOC = "docs/cases.md"
ID = re.compile(r"(?<![A-Za-z0-9])[Bb](\d{3})(?![0-9A-Za-z])")
ROW = re.compile(r"^\| (B\d{3}) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.M)
FIX = "python3 tests/checks/cases.py --write; a case without test needs its reason"


def held(tree):
    """{id: test files that name it}"""
    found = {}
    for path, text in tree.items():
        if re.match(r"tests/(unit|loader|train|conformance|fuzz)/.*\.(c|h|py)$", path):
            for number in ID.findall(text):
                found.setdefault("B" + number, set()).add(path)
    return found


def short(paths):
    return ", ".join(f"`{p.removeprefix('tests/')}`" for p in sorted(paths))


def check(tree):
    problems, found = [], held(tree)
    rows = {m.group(1): m for m in ROW.finditer(tree.get(DOC, ""))}
    why = "whoever meets the fault again looks here first"
    for case in sorted(set(found) - set(rows)):
        problems.append(Problem(f"{case} has tests but no row", DOC, why, FIX))
    for case, row in rows.items():
        named = {"tests/" + p for p in re.findall(r"`([^`]+)`", row.group(3))}
        for path in sorted(named - found.get(case, set())):
            problems.append(Problem(f"{case}: {path} does not name it", DOC, why, FIX))
        if case in found and not named:
            problems.append(Problem(f"{case} has tests, the row names none", DOC, why, FIX))
        if not named and case not in found and not row.group(4).strip():
            problems.append(Problem(f"{case} has neither a test nor a reason", DOC, why, FIX))
    return problems


def write():
    found = held(read_tree())
    path = os.path.join(ROOT, DOC)
    with open(path, encoding="utf-8") as file:
        text = file.read()

    def fill(match):
        case, what, _, waits = match.groups()
        tests = short(found.get(case, set()))
        return f"| {case} | {what} | {tests} | {waits.strip()} |"

    with open(path, "w", encoding="utf-8") as file:
        file.write(ROW.sub(fill, text))
    print(f"written: {DOC}, {len(found)} cases have tests")


GOOD = {DOC: "| B001 | x | `unit/a.c` |  |\n| B003 | y |  | no sort yet |\n",
        "tests/unit/a.c": "void t_b001(void);\n"}
BAD = [("a file that does not name it", {**GOOD, "tests/unit/a.c": "\n"}),
       ("a test without row", {**GOOD, "tests/unit/b.c": "B222_x\n"}),
       ("a test behind a reason", {**GOOD, "tests/loader/b.c": "B003_x\n"}),
       ("no reason", {**GOOD, DOC: GOOD[DOC].replace("no sort yet", "")})]

if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
        sys.exit(0)
    run(check, GOOD, BAD)
