#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The environment is read in one place only."""
import re

from check_lib import Problem, is_c, line_of, run, strip_c

ALLOWED = "core/base/env.c"
# They start a program, and give that program a variable.
STARTS = {"cli/program.c": "setenv", "sdk/conformance/modes.c": "environ"}
PATTERN = re.compile(r"\b(secure_getenv|getenv|setenv|putenv|unsetenv|environ)\b")


def check(tree):
    problems = []
    for path, text in tree.items():
        if not is_c(path) or path == ALLOWED or path.startswith(("tests/", "bench/")):
            continue
        for match in PATTERN.finditer(strip_c(text)):
            if STARTS.get(path) == match.group(1):
                continue
            problems.append(Problem(
                f"{match.group(1)} outside {ALLOWED}", f"{path}:{line_of(text, match.start())}",
                "variables are ignored in privileged processes, and one list of them is documented",
                "core and loader call burni_env; plugins ask host->option; others use the API"))
    return problems


GOOD = {ALLOWED: "getenv(full);\n", "core/a.c": "/* getenv */ burni_env(\"getenv\");\n",
        "tests/t.c": "setenv(a, b, 1);\n", "cli/program.c": "setenv(a, b, 1);\n"}
BAD = [("reader", {"cli/program.c": "getenv(\"HOME\");\n"}),
       ("core", {"core/a.c": "x = getenv(\"HOME\");\n"}),
       ("secure", {"loader/a.c": "secure_getenv (\"X\");\n"}),
       ("plugin", {"plugins/flex/a.c": "char *(*f)(const char *) = getenv;\n"}),
       ("example", {"examples/a.c": "getenv(\"BURN_DEVICE\");\n"})]

if __name__ == "__main__":
    run(check, GOOD, BAD)
