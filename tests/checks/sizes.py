#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files that grew too large and lines that grew too long. `sizes.py --top` shows the largest."""
import re
import sys

from check_lib import Problem, is_code, read_tree, run

FILE_LINES, ABI_LINES, COLUMNS = 1200, 400, 100
# One row per op, each on one line: a table, read across.
WIDE_TABLES = {"abi/burn/op_list.h"}
# Numbers that a script beside them wrote; nobody reads them from top to bottom.
# Headers of earlier minors stay as they were.
VALUES = re.compile(r"tests/data/\w+\.h$|tests/abi/frozen/")


def check(tree):
    problems = []
    for path, text in tree.items():
        if not is_code(path) or VALUES.match(path):
            continue
        lines = text.split("\n")
        n = len(lines) - 1
        limit = ABI_LINES if path.startswith("abi/") and path.endswith(".h") else FILE_LINES
        if n > limit:
            problems.append(Problem(f"{n} lines, the limit is {limit}", path,
                                    "a file has one job and can be read in one sitting",
                                    "split it by job; do not squeeze it"))
        if path in WIDE_TABLES:
            continue
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS:
                problems.append(Problem(f"{len(line)} columns, the limit is {COLUMNS}",
                                        f"{path}:{number}", "two files fit side by side",
                                        "break the line, or give a long expression a name"))
    return problems


GOOD = {"core/a.c": "x\n" * 1200, "abi/burn/a.h": "x\n" * 400, "core/b.c": "x" * 100 + "\n",
        "abi/burn/op_list.h": "x" * 150 + "\n", "docs/long.md": "x" * 500,
        "tests/data/values.h": "x" * 120 + "\n" * 1300}
BAD = [("long file", {"core/a.c": "x\n" * 1201}),
       ("long abi header", {"abi/burn/a.h": "x\n" * 401}),
       ("long line", {"core/a.c": "ok\n" + "x" * 101 + "\n"}),
       ("long generator", {"tests/data/make.py": "x" * 101 + "\n"}),
       ("long script", {"dev": "x\n" * 1201})]

if __name__ == "__main__":
    if sys.argv[1:] == ["--top"]:
        sizes = [(t.count("\n"), p) for p, t in read_tree().items() if is_code(p)]
        for lines, path in sorted(sizes, reverse=True)[:25]:
            print(f"{lines:6} {path}")
        sys.exit(0)
    run(check, GOOD, BAD)
