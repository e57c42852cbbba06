#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Library code never prints, exits, aborts, asserts or installs signal handlers."""
import re

from check_lib import Problem, is_c, line_of, run, strip_c

LIBRARY = ("core/", "loader/", "train/", "plugins/", "extensions/", "sdk/mock/", "sdk/burn_sdk/")
CALL = re.compile(r"\b(printf|vprintf|fprintf|vfprintf|puts|fputs|putchar|fputc|putc|perror|"
                  r"psignal|exit|_exit|_Exit|quick_exit|abort|assert|signal|sigaction|raise)\s*\(")
# The log's way to stderr, and only when BURN_LOG asks for it.
LOG, LOG_CALLS = "core/base/log.c", {"fprintf", "vfprintf", "fputs", "fputc"}


def check(tree):
    problems = []
    for path, text in tree.items():
        if not is_c(path) or not path.startswith(LIBRARY):
            continue
        plain = strip_c(text)
        for match in CALL.finditer(plain):
            name = match.group(1)
            before = plain[:match.start()].rstrip()
            if before.endswith(("->", ".")) or (path == LOG and name in LOG_CALLS):
                continue
            # A field or a pointer of that name: (*signal)(...).
            if before.endswith("*") and plain[match.end(1)] == ")":
                continue
            problems.append(Problem(
                f"{name}() in library code", f"{path}:{line_of(text, match.start())}",
                "a library that prints or ends the process takes the application's decisions",
                "return an error with its text (burni_fail), or log through burni_log"))
    return problems


GOOD = {"core/a.c": "snprintf(x); /* printf() */ _Static_assert(1, \"\"); api->signal(q, 1);\n"
                    "int32_t (*signal)(void); pthread_cond_signal(c);\n",
        LOG: "fprintf(stderr, \"x\");\n", "cli/main.c": "printf(\"x\"); exit(1);\n"}
BAD = [("print", {"core/a.c": "printf(\"x\");\n"}),
       ("stderr", {"loader/a.c": "fprintf(stderr, x);\n"}),
       ("exit", {"plugins/flex/a.c": "exit (1);\n"}), ("abort", {"train/a.c": "abort();\n"}),
       ("assert", {"sdk/mock/a.c": "assert(x > 0);\n"}),
       ("handler", {"core/a.c": "signal(SIGINT, h);\n"}),
       ("the log ends the process", {LOG: "abort();\n"})]

if __name__ == "__main__":
    run(check, GOOD, BAD)
