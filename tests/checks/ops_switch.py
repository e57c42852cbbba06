#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""No switch over op ids: an op is one definition, and kernels are rows."""
import re

from check_lib import Problem, is_c, line_of, run, strip_c


def check(tree):
    problems = []
    for path, text in tree.items():
        if not is_c(path) or path.startswith("tests/"):
            continue
        for match in re.finditer(r"\bcase\s+\(?\s*BURN_OP_(?!FOREACH)\w+", strip_c(text)):
            problems.append(Problem(
                f"'{' '.join(match.group(0).split())}'", f"{path}:{line_of(text, match.start())}",
                "a switch over ops is a second list of ops, forgotten when one is added",
                "put what differs into the op's definition (core/ops) or into a kernel row"))
    return problems


GOOD = {"core/a.c": "/* case BURN_OP_ADD: */ case BURN_F32: x = BURN_OP_ADD;\n"}
BAD = [("core", {"core/a.c": "switch (op) {\ncase BURN_OP_ADD:\n}\n"}),
       ("plugin", {"plugins/flex/a.c": "    case  BURN_OP_MATMUL :\n"})]

if __name__ == "__main__":
    run(check, GOOD, BAD)
