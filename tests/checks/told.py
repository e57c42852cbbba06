#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What pages tell a reader to type is there: names burn_*, suites and tests of `./dev test`.

usage: told.py BUILD, or told.py --self-test

A name is there when the sources have it; the lists of suites and tests are those that meson made
for BUILD. Words in capitals (`./dev test NAME`) stand for any.
"""
import json
import pathlib
import re
import sys

from check_lib import Problem, line_of, run

TESTS = "(tests)"
# A page that shows how an op comes to be uses a name that no op has.
SHOWN = {"docs/howto_add_op.md": {"burn_square", "burn_b_square", "burn_op_def_square"}}


def missing_names(tree):
    known = {name for path, text in tree.items() if not path.endswith(".md")
             for name in re.findall(r"\bburn_\w+", text)}
    for path, text in tree.items():
        if path.endswith(".md"):
            for match in re.finditer(r"(?<![\w/-])burn_[a-z0-9_]+\b(?![*./])", text):
                if match[0] not in known | SHOWN.get(path, set()):
                    yield Problem(f"nothing is called {match[0]}",
                                  f"{path}:{line_of(text, match.start())}",
                                  "a reader looks for it in vain", "name what there is")


def missing_tests(tree):
    tests = json.loads(tree[TESTS])
    suites = {suite.split(":")[-1] for test in tests for suite in test["suite"]}
    names = {test["name"] for test in tests}
    for path, text in tree.items():
        if not path.endswith(".md") and path != "dev":
            continue
        for match in re.finditer(r"\./dev test((?: --suite [\w-]+| '[^']+'| [a-z][\w-]*)+)", text):
            for suite in re.findall(r"--suite ([\w-]+)", match[1]):
                if suite not in suites and suite != "NAME":
                    yield Problem(f"there is no suite {suite}",
                                  f"{path}:{line_of(text, match.start())}",
                                  "meson ends with an error", f"one of {sorted(suites)}")
            rest = re.sub(r"--suite [\w-]+", "", match[1])
            for words in re.findall(r"'([^']+)'|([a-z][\w-]*)", rest):
                name = words[0] or words[1]
                if name not in names:
                    yield Problem(f"there is no test '{name}'",
                                  f"{path}:{line_of(text, match.start())}",
                                  "meson says: no suitable tests", "a name of `meson test --list`")


def check(tree):
    return list(missing_names(tree)) + list(missing_tests(tree))


LIST = json.dumps([{"name": "loader open", "suite": ["burn-c:loader", "burn-c:threads"]}])
GOOD = {TESTS: LIST, "abi/burn/a.h": "int burn_read(void);\n",
        "docs/a.md": "`burn_read` of burn_*; `./dev test --suite NAME`, `./dev test NAME`\n",
        "dev": "(one suite: ./dev test --suite threads; one: ./dev test 'loader open')\n"
               "./dev test [arguments]\n"}
BAD = [("a name", {**GOOD, "docs/a.md": "`burn_to_host`\n"}),
       ("a suite", {**GOOD, "dev": "./dev test --suite load\n"}),
       ("a second suite", {**GOOD, "dev": "./dev test --suite loader --suite load\n"}),
       ("a test", {**GOOD, "docs/a.md": "`./dev test loader`\n"}),
       ("a quoted test", {**GOOD, "dev": "one test: ./dev test 'loader opens')\n"})]


def with_tests(tree):
    if TESTS in tree:
        return check(tree)
    text = pathlib.Path(sys.argv[1], "meson-info/intro-tests.json").read_text()
    return check({**tree, TESTS: text})


if __name__ == "__main__":
    run(with_tests, GOOD, BAD)
