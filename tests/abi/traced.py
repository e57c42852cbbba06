#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""<burn/trace_calls.h> names every function of <burn/ops.h> that returns a tensor, and no other.

usage: traced.py [--self-test]
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FUNCTION = re.compile(r"burn_tensor \*(burn_\w+)\(")
LINE = re.compile(r"(?m)^#define (burn_\w+)\(\.\.\.\) BURN_TRACED\((burn_\w+)\(__VA_ARGS__\)\)$")


def functions(header):
    plain = subprocess.run(["gcc", "-std=c11", "-E", "-P", "-I", str(ROOT / "abi"), "-"],
                           input=f"#include <burn/{header}>\n", check=True, capture_output=True,
                           text=True).stdout
    return set(FUNCTION.findall(plain))


def problems(wanted, text):
    found = []
    for name, called in LINE.findall(text):
        found.append(name)
        if name != called:
            yield f"{name} calls {called}"
    for name in sorted(wanted - set(found)):
        yield f"{name} is not there; add its line to trace_calls.h"
    for name in sorted(set(found) - wanted):
        yield f"{name} is no function of ops.h"
    if len(found) != len(set(found)):
        yield "a name is there twice"


def self_test():
    line = "#define {0}(...) BURN_TRACED({1}(__VA_ARGS__))\n".format
    good = line("burn_a", "burn_a") + line("burn_b", "burn_b")
    wanted = {"burn_a", "burn_b"}
    assert not list(problems(wanted, good))
    for bad in (line("burn_a", "burn_a"), good + line("burn_c", "burn_c"), good + good,
                line("burn_a", "burn_b") + line("burn_b", "burn_b")):
        assert list(problems(wanted, bad)), bad


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        sys.exit(0)
    text = (ROOT / "abi/burn/trace_calls.h").read_text()
    wanted = functions("ops.h") - functions("tensor.h")
    bad = list(problems(wanted, text))
    for problem in bad:
        print(f"trace_calls.h: {problem}")
    print(f"{len(wanted)} functions, {len(bad)} problems")
    sys.exit(1 if bad or not wanted else 0)
