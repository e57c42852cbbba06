#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Core and loader know no backend by name: the names are those of the plugin folders."""
import re

from check_lib import Problem, is_c, line_of, run, strip_c

KNOWN = {"flex", "cuda", "hip", "vulkan", "mock"}
# Also a kind of device, so the bare word says nothing; with a selector it is the backend.
AMBIGUOUS = {"remote"}


def backend_names(tree):
    found = {m.group(1) for p in tree for m in [re.match(r"plugins/(\w+)/\1\.json$", p)] if m}
    return KNOWN | found


def check(tree):
    problems = []
    names = "|".join(sorted(backend_names(tree) - AMBIGUOUS))
    selected = "|".join(sorted(AMBIGUOUS))
    word = re.compile(r"(?<![A-Za-z0-9_])(" + names + r"|(?:" + selected + r")(?=:))"
                      r"(?![A-Za-z0-9_])", re.I)
    for path, text in tree.items():
        if not is_c(path) or not path.startswith(("core/", "loader/")):
            continue
        for literal in re.finditer(r'"(?:\\.|[^"\\\n])*"', strip_c(text, strings=False)):
            line = text[text.rfind("\n", 0, literal.start()) + 1:literal.start()]
            match = word.search(literal.group(0))
            if match and not line.lstrip().startswith("#"):
                problems.append(Problem(
                    f"a string names the backend '{match.group(1)}'",
                    f"{path}:{line_of(text, literal.start())}",
                    "a new backend must not need an edit of the trunk",
                    "ask for what is needed: a limit, a flag, a priority of the manifest"))
    return problems


GOOD = {"core/a.c": '/* "flex" */ f("hipster", "flexible", "remote"); // "cuda"\n',
        "plugins/flex/a.c": '"flex"\n', "tests/a.c": '"flex"\n'}
BAD = [("plain", {"core/a.c": 'x == "flex"\n'}),
       ("device string", {"loader/a.c": 'f("cuda:0");\n'}),
       ("remote", {"core/a.c": 'f("remote:host");\n'}),
       ("in a sentence", {"core/a.c": '"try the Vulkan backend"\n'}),
       ("a new plugin", {"plugins/npu/npu.json": "{}", "core/a.c": 'f("npu");\n'})]

if __name__ == "__main__":
    run(check, GOOD, BAD)
