#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of docs/abi.md: each of the 25 rules names tests that exist, or says why it waits.

usage: rules.py --build FOLDER     FOLDER: the build folder whose tests are meant
       rules.py --self-test
In the column of tests, "loader: `open` (`wrong_magic`)": a word outside of parentheses is a test of
the suite that stands before it (its name, or the name without the suite in front; * stands for
anything), or a command of ./dev. Words in parentheses say what in that test: a function that the
test's own sources define, a row of a table there, or an option of a compiler (begins with -) that
its script passes. That a word stands somewhere, in a call or in a comment, does not count.
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


def tests_named(word, suite, world):
    """Names of the tests of that suite which the word means."""
    return [name for name, (suites, _) in world["tests"].items() if suite in suites and
            (fnmatch.fnmatchcase(name, word) or fnmatch.fnmatchcase(name, f"{suite} {word}"))]


def is_inside(word, sources):
    """1 when these sources define a function of that name, have a row of it, or pass the option."""
    if word.startswith("-"):
        return f'"{word}"' in sources or f"'{word}'" in sources
    stem = re.escape(word).replace(r"\*", r"\w*")
    patterns = (rf"^(?:static )?[\w ]+[ *]{stem}\([^;]*?\)\n\{{",  # a function in C
                rf"^ *def {stem}\(", rf"\{{\s*\"{stem}\"", rf"^ *\"{stem}\": ", rf"ROW\({stem}\)")
    return any(re.search(pattern, sources, flags=re.M) for pattern in patterns)


def check_part(part, world):
    """What is wrong with "suite: `test` (`function`, `row`), `test`"."""
    suite, _, words = part.partition(":")
    suite = suite.strip()
    inside, named = False, []
    for token in re.findall(r"`[^`]+`|[()]", words if words else part):
        word = token.strip("`")
        if token in "()":
            inside = token == "("
        elif word.startswith("./dev "):
            if word.split()[1] not in world["commands"]:
                yield f"there is no command `{word}`"
        elif inside:
            if not any(is_inside(word, world["tests"][name][1]) for name in named):
                yield f"`{word}` is no function, row or option of {named or 'a test'}"
        else:
            named = tests_named(word, suite, world)
            if not named:
                yield f"suite {suite or '(none)'} has no test `{word}`"


def check(text, world):
    problems = []
    rows = read_rows(text)
    if [number for number, _, _ in rows] != list(range(1, RULES + 1)):
        problems.append(f"the table has the rules {[n for n, _, _ in rows]}, not 1 to {RULES}")
    for number, held, waits in rows:
        if "`" not in held and not waits:
            problems.append(f"rule {number} names no test and gives no reason to wait")
        for part in held.split(";"):
            problems += [f"rule {number}: {wrong}" for wrong in check_part(part, world)]
    return problems


def self_test():
    row = ("| {} | a rule | abi: `layout` (`some_function`, `some_row`, `-fsome`), `open*`; "
           "dev: `./dev asan` | |\n")
    good = "".join(row.format(i) for i in range(1, RULES + 1))
    code = ("/* a_comment */\nstatic void some_function(void)\n{\n    called(declared);\n}\n"
            "int declared(void);\nstatic row rows[] = {{\"some_row\", 1, \"a_value\"}};\n"
            "more = [\"-fsome\"]\n")
    world = {"tests": {"layout": ({"abi"}, code), "abi opened": ({"abi", "other"}, ""),
                       "elsewhere": ({"loader"}, "void far_away(void)\n{\n}\n")},
             "commands": {"asan"}}
    bad = {
        "a test that is gone": ("`layout`", "`lay-out`"),
        "a test of another suite": ("`open*`", "`elsewhere`"),
        "a pattern without match": ("`open*`", "`headers-*`"),
        "a function in the place of a test": ("`open*`", "`some_function`"),
        "a function that is gone": ("`some_function`", "`other_function`"),
        "a function of another test": ("`some_function`", "`far_away`"),
        "a function that is only called": ("`some_function`", "`called`"),
        "a function that is only declared": ("`some_function`", "`declared`"),
        "a word of a comment": ("`some_function`", "`a_comment`"),
        "a row that is gone": ("`some_row`", "`other_row`"),
        "a row's value": ("`some_row`", "`a_value`"),
        "a test's name for what is in it": ("`some_row`", "`layout`"),
        "an option that is not passed": ("`-fsome`", "`-fother`"),
        "a command that is gone": ("`./dev asan`", "`./dev tsan`"),
        "a suite that is not named": ("abi: ", ""),
        "a rule that is missing": (row.format(7), ""),
        "a rule without test and reason": (row.format(3), "| 3 | a rule | | |\n"),
    }
    wrong = [name for name, (old, new) in bad.items()
             if old not in good or not check(good.replace(old, new, 1), world)]
    for fine in (good, good.replace(row.format(3), "| 3 | a | | later |\n"),
                 good.replace("`some_function`", "`some_*`")):
        if check(fine, world):
            wrong.append(f"a good sample: {check(fine, world)}")
    nothing = {"tests": {}, "commands": set()}
    if len(check(good, nothing)) != good.count("`") // 2:
        wrong.append("a table where no test is: each word is wrong")
    print(f"self-test: {len(bad) + 1} bad tables, passed wrongly: {wrong}")
    return 1 if wrong else 0


def read_world(build):
    """Tests by name: their suites and the text of their own sources; and the commands of ./dev."""
    info = pathlib.Path(build, "meson-info")
    programs = {}
    for target in json.loads((info / "intro-targets.json").read_text()):
        sources = [s for group in target["target_sources"] for s in group.get("sources", [])]
        for file in target["filename"]:
            programs[file] = sources
    tests = {}
    for test in json.loads((info / "intro-tests.json").read_text()):
        files = {s for word in test["cmd"] for s in programs.get(word, [])}
        files |= {word for word in test["cmd"] if word.endswith(".py")}
        paths = sorted({pathlib.Path(build, file).resolve() for file in files})
        text = "\n".join(p.read_text(errors="replace") for p in paths
                         if p.is_relative_to(ROOT / "tests") and p.exists())
        suites = {suite.split(":")[-1] for suite in test["suite"]}
        tests[test["name"]] = (suites, text)
    commands = re.findall(r"^cmd_([\w-]+)\(\)", (ROOT / "dev").read_text(), flags=re.M)
    return {"tests": tests, "commands": set(commands)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    text = (ROOT / "docs/abi.md").read_text()
    problems = check(text, read_world(args.build))
    for line in problems:
        print(f"what:  {line}\nwhy:   a rule that nothing holds is a wish\n"
              "fix:   correct docs/abi.md, or write the test")
    waiting = sum(1 for _, _, waits in read_rows(text) if waits)
    print(f"{len(read_rows(text))} rules, {waiting} with something that waits, "
          f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
