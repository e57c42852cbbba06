#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/cases.md tells which reported faults are guarded by which tests; it must not be wrong.

usage: cases.py            compares       cases.py --write   fills the column of tests in anew
       cases.py --against FILE   compares with the reports (### B001 - title, then their text), too
       cases.py --self-test

An id counts as held by a file when a test's name has it there: a C or Python function (`B222_...`,
`test_b222_...`), or a test's name in a meson.build. An id in a comment holds nothing.
"""
import os
import re
import sys

from check_lib import ROOT, Problem, read_tree, run

DOC = "docs/cases.md"
ID = re.compile(r"(?<![A-Za-z0-9])[Bb](\d{3})(?![0-9A-Za-z])")
FILES = re.compile(r"tests/(?!checks/|data/).*(\.c|\.py|/meson\.build)$")
# A function that is defined, in C or Python; in a meson.build, a word of several in quotes.
FUNCTION = re.compile(r"^(?:static \w+ | *def )(\w+)\(", re.M)
MESON_NAME = re.compile(r"'([^'\n]* [^'\n]*)'")
ROW = re.compile(r"^\| (B\d{3}) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.M)
REPORT = re.compile(r"^### (B\d{3}) - (.*\n(?:(?!###).*\n?)*)", re.M)
SOURCE = re.compile(r"\*\*src\*\*.*")
LACKS = re.compile(r"\b(GPUs?|f8|cuda|drivers?|ONNX|quantis\w+)\b")  # what 0.1 has not
FIX = "python3 tests/checks/cases.py --write; a case without test needs its reason"


def held(tree):
    """{id: files with a test that is named after it}"""
    found = {}
    for path, text in tree.items():
        if FILES.match(path):
            names = MESON_NAME if path.endswith("meson.build") else FUNCTION
            for number in ID.findall("\n".join(names.findall(text))):
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


def against(reports, doc):
    """Every report has a row; one that asks for what is lacking has a reason to wait."""
    problems = []
    rows = {m.group(1): m for m in ROW.finditer(doc)}
    why = "a test on the CPU does not show what a device does that nobody has yet"
    for case, text in REPORT.findall(reports):
        asked = LACKS.search(SOURCE.sub("", text))
        if case not in rows:
            problems.append(Problem(f"{case} has no row", DOC, why, "add a row"))
        elif asked and not rows[case].group(4).strip():
            problems.append(Problem(f"{case} asks for {asked.group(1)}, its row waits for nothing",
                                    DOC, why, "say in the last column what it waits for"))
    return problems


def compare_reports(path):
    with open(path, encoding="utf-8") as file:
        reports = file.read()
    problems = against(reports, read_tree().get(DOC, ""))
    for problem in problems:
        print(f"{problem.what}; {problem.fix}")
    print(f"{len(REPORT.findall(reports))} reports, {len(problems)} problems")
    return 1 if problems or not REPORT.search(reports) else 0


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


GOOD = {DOC: "| B001 | x | `unit/a.c`, `cli/b.py` |  |\n| B003 | y |  | no sort yet |\n"
             "| B005 | z | `conformance/meson.build` |  |\n",
        "tests/unit/a.c": "/* B003 is for later */\nstatic void test_b001(void **state)\n",
        "tests/cli/b.py": "def test_B001_too(x):\n",
        "tests/conformance/meson.build": "test('all of it, B005', exe)\n"}
A = "tests/unit/a.c"
BAD = [("a file that does not name it", {**GOOD, A: "\n"}),
       ("a comment is no test", {**GOOD, A: "/* B001 */\n"}),
       ("a call is no test", {**GOOD, A: "    test_b001(state);\n"}),
       ("a test without row", {**GOOD, "tests/unit/b.c": "static void B222_x(void **s)\n"}),
       ("a test behind a reason", {**GOOD, "tests/loader/b.c": "static int B003_x(void)\n"}),
       ("no reason", {**GOOD, DOC: GOOD[DOC].replace("no sort yet", "")})]

REPORTS = "### B001 - x\n- **src** a GPU\n- **in** 1\n\n### B003 - y\n- **in** a GPU\n"
BAD_REPORTS = [("no row", REPORTS + "\n### B009 - z\n- **in** 1\n"),
               ("waits for nothing", REPORTS.replace("**in** 1", "**in** f8"))]


def check_reports():
    """`against` is tried with each run."""
    assert not against(REPORTS, GOOD[DOC])
    for what, reports in BAD_REPORTS:
        assert len(against(reports, GOOD[DOC])) == 1, what


if __name__ == "__main__":
    check_reports()
    if sys.argv[1:2] == ["--against"]:
        sys.exit(compare_reports(sys.argv[2]))
    if sys.argv[1:] == ["--write"]:
        write()
        sys.exit(0)
    run(check, GOOD, BAD)
