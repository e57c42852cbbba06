#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of docs/abi.md: each of the 25 rules names tests that exist, or says why it waits.

usage: rules.py --build FOLDER     FOLDER: the build folder whose tests are meant
       rules.py --self-test
In the column of tests a word in backticks is the name of a test of the suite that stands before it
("loader: `open`"; * stands for anything), a function or a stub's name somewhere below tests/, an
option of a compiler (begins with -) or a command of ./dev.
"""
import argparse
import fnmatch
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = 25


def read_rows(text):
    """[(number, held by, waits)] of the table."""
    rows = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[0].isdigit():
            rows.append((int(cells[0]), cells[2], cells[3]))
    return rows


def is_known(word, suite, tests, sources, commands):
    if word.startswith("-"):
        return True
    if word.startswith("./dev "):
        return word.split()[1] in commands
    names = [word, f"{suite} {word}"]
    if any(fnmatch.fnmatchcase(test, name) for test in tests for name in names):
        return True
    stem = re.escape(word).replace(r"\*", r"\w+")
    return re.search(rf"\b{stem}\b", sources) is not None


def check(text, tests, sources, commands):
    problems = []
    rows = read_rows(text)
    if [number for number, _, _ in rows] != list(range(1, RULES + 1)):
        problems.append(f"the table has the rules {[n for n, _, _ in rows]}, not 1 to {RULES}")
    for number, held, waits in rows:
        if "`" not in held and not waits:
            problems.append(f"rule {number} names no test and gives no reason to wait")
        for part in held.split(";"):
            suite = part.split(":")[0].strip() if ":" in part else ""
            for word in re.findall(r"`([^`]+)`", part):
                if not is_known(word, suite, tests, sources, commands):
                    problems.append(f"rule {number}: there is no test `{word}` ({suite})")
    return problems


def self_test():
    row = "| {} | a rule | abi: `layout` (`some_function`) | |\n"
    good = "".join(row.format(i) for i in range(1, RULES + 1))
    world = (["layout"], "void some_function(void)", {"asan"})
    bad = {
        "a test that is gone": good.replace("`layout`", "`lay-out`", 1),
        "a function that is gone": good.replace("`some_function`", "`other_function`", 1),
        "a pattern without match": good.replace("`layout`", "`headers-*`", 1),
        "a command that is gone": good.replace("`layout`", "`./dev tsan`", 1),
        "a rule that is missing": good.replace(row.format(7), ""),
        "a rule without test and reason": good.replace(row.format(3), "| 3 | a rule | | |\n"),
    }
    wrong = [name for name, text in bad.items() if not check(text, *world)]
    if check(good, *world) or check(good.replace(row.format(3), "| 3 | a | | later |\n"), *world):
        wrong.append("the good samples")
    print(f"self-test: {len(bad)} bad tables, passed wrongly: {wrong}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    info = pathlib.Path(args.build, "meson-info", "intro-tests.json")
    tests = [test["name"] for test in json.loads(info.read_text())]
    files = [p for p in sorted((ROOT / "tests").rglob("*.[ch]")) if "frozen" not in p.parts]
    sources = "\n".join(p.read_text(errors="replace") for p in files)
    commands = set(re.findall(r"^cmd_([\w-]+)\(\)", (ROOT / "dev").read_text(), flags=re.M))
    text = (ROOT / "docs/abi.md").read_text()
    problems = check(text, tests, sources, commands)
    for line in problems:
        print(f"what:  {line}\nwhy:   a rule that nothing holds is a wish\n"
              "fix:   correct docs/abi.md, or write the test")
    waiting = sum(1 for _, _, waits in read_rows(text) if waits)
    print(f"{len(read_rows(text))} rules, {waiting} with something that waits, "
          f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
