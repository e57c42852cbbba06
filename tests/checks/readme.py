#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The program in the README is the one in examples/hello, which is built and run."""
import re

from check_lib import Problem, run

README, PROGRAM = "README.md", "examples/hello/main.c"
LINES = 35


def code_blocks(text):
    return re.findall(r"^```c\n(.*?)^```$", text, re.M | re.S)


def without_head(text):
    """The program without its opening comments (licence, what the file is for)."""
    while text.startswith("/*"):
        text = text[text.index("*/") + 2:].lstrip("\n")
    return text


def check(tree):
    blocks = code_blocks(tree.get(README, ""))
    program = without_head(tree.get(PROGRAM, ""))
    where = f"{README}, {PROGRAM}"
    if len(blocks) != 1 or not program:
        return [Problem(f"{len(blocks)} C programs in the README, one is expected", where,
                        "a program that nothing builds rots", "one block, equal to the example")]
    problems = []
    if blocks[0] != program:
        pairs = zip(blocks[0].split("\n"), program.split("\n"))
        line = next((n for n, (a, b) in enumerate(pairs, 1) if a != b), "the shorter one's end")
        problems.append(Problem(f"the two differ from line {line} of the program on", where,
                                "newcomers copy the README's text", "copy one into the other"))
    if blocks[0].count("\n") > LINES:
        problems.append(Problem(f"the program has {blocks[0].count(chr(10))} lines", where,
                                f"the first thing one reads fits {LINES} lines", "shorten it"))
    return problems


TEXT = "int main(void)\n{\n    return 0;\n}\n"
GOOD = {README: "# A\n\n```sh\nls\n```\n\n```c\n" + TEXT + "```\n",
        PROGRAM: "/* licence */\n/*\n * what\n */\n" + TEXT}
BAD = [("differs", {**GOOD, PROGRAM: "/* licence */\n" + TEXT.replace("0", "1")}),
       ("shorter", {**GOOD, PROGRAM: "/* licence */\n" + TEXT[:-2]}),
       ("no program", {README: GOOD[README]}),
       ("no block", {**GOOD, README: "# A\n"}),
       ("two blocks", {**GOOD, README: GOOD[README] * 2}),
       ("long", {README: "```c\n" + "x\n" * 36 + "```\n", PROGRAM: "x\n" * 36})]

if __name__ == "__main__":
    run(check, GOOD, BAD)
