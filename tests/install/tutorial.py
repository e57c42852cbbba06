#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Follows a tutorial word by word, in a clean folder, with an installed tree.

usage: tutorial.py --page FILE.md --source FOLDER --build FOLDER --compiler CC...
       tutorial.py --self-test

The page's own words say what to do with each block of it; a block without such words is a problem,
so nothing on a page is unchecked:

    a block marked `sh`                    is run; all share one shell's folder and variables
    Write `FILE`:                          the block is the file
    At the end of `FILE`, add:             the block is appended
    In `FILE`, after `LINE`, add:          the block goes behind the line that reads so, once
    In `FILE`, replace `LINE` by:          the block takes the place of that line
    You should see:                        what the last commands print has these lines, in that
                                           order; `...` stands for anything, other lines may be
                                           between
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from tree import Tree, build_install, own_meson

ACTIONS = [
    ("write", re.compile(r"Write `(?P<file>[^`]+)`[^`]*:$")),
    ("append", re.compile(r"At the end of `(?P<file>[^`]+)`, add:$")),
    ("after", re.compile(r"In `(?P<file>[^`]+)`, after `(?P<line>[^`]+)`, add:$")),
    ("replace", re.compile(r"In `(?P<file>[^`]+)`, replace `(?P<line>[^`]+)` by:$")),
    ("see", re.compile(r"[Yy]ou should see:$")),
]


class Step:
    def __init__(self, number, kind, text, match=None):
        self.number, self.kind, self.text = number, kind, text
        self.file = match.groupdict().get("file") if match else None
        self.line = match.groupdict().get("line") if match else None


def kind_of(words, language):
    if language == "sh":
        return "sh", None
    for kind, pattern in ACTIONS:
        match = pattern.search(words)
        if match:
            return kind, match
    return None, None


def read_page(text):
    """(steps, problems)"""
    steps, problems, block, paragraph = [], [], None, []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```") and block is None:
            block, start, language = [], number, line[3:].strip()
        elif line.startswith("```"):
            kind, match = kind_of(" ".join(paragraph), language)
            if kind is None:
                problems.append(f"line {start}: no words say what to do with this block: "
                                f"'{' '.join(paragraph)[-60:]}'")
            else:
                steps.append(Step(start, kind, "".join(f"{b}\n" for b in block), match))
            block, paragraph = None, []
        elif block is not None:
            block.append(line)
        elif line.strip() == "":
            paragraph = paragraph if paragraph and paragraph[-1].endswith(":") else []
        else:
            paragraph = [] if paragraph and paragraph[-1].endswith(":") else paragraph
            paragraph.append(line.strip())
    if not any(s.kind == "sh" for s in steps):
        problems.append("there is nothing to run")
    return steps, problems


def edit(text, step):
    """(new text, problem)"""
    if step.kind == "append":
        return text + "\n" + step.text, None
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if line.strip() == step.line.strip()]
    if len(places) != 1:
        return text, f"{step.file} has {len(places)} lines that read `{step.line}`"
    at = places[0]
    lines[at + (step.kind == "after"):at + 1] = step.text.rstrip("\n").split("\n")
    return "\n".join(lines), None


def unseen(said, expected):
    """The first expected line that the output does not have, or None."""
    squeeze = [" ".join(line.split()) for line in said.split("\n")]
    at = 0
    for line in expected.split("\n"):
        words = " ".join(line.split())
        if not words or words == "...":
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in words.split("...")))
        while at < len(squeeze) and not pattern.fullmatch(squeeze[at]):
            at += 1
        if at == len(squeeze):
            return line
        at += 1
    return None


class Shell:
    """Blocks run one after the other, as if typed into one shell; the first failure ends it."""

    def __init__(self, home, env):
        self.state = home / ".state"
        self.where = home
        self.env = {**env, "HOME": str(home)}
        self.state.write_text("")

    def run(self, block):
        """(exit status, output)"""
        script = (f"set -euo pipefail\n. '{self.state}'\n{block}\n"
                  f"export -p > '{self.state}'\npwd > '{self.state}.pwd'\n")
        run = subprocess.run(["bash", "-c", script], cwd=self.where, env=self.env, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if run.returncode == 0:
            self.where = pathlib.Path(f"{self.state}.pwd").read_text().strip()
        return run.returncode, run.stdout


def follow(steps, shell):
    said = ""
    for step in steps:
        problem = None
        path = pathlib.Path(shell.where, step.file or "")
        if step.kind == "sh":
            code, said = shell.run(step.text)
            if code != 0:
                return [f"line {step.number}: exit status {code} of\n{step.text}{said}"]
        elif step.kind == "see":
            line = unseen(said, step.text)
            problem = f"does not print `{line}`; it prints\n{said}" if line is not None else None
        elif step.kind == "write":
            path.write_text(step.text)
        else:
            text, problem = edit(path.read_text(), step)
            path.write_text(text)
        if problem:
            return [f"line {step.number}: {problem}"]
    return []


def reader_env(tree):
    """A reader has no LD_LIBRARY_PATH: programs find the library by what the page says."""
    return {k: v for k, v in tree.env.items() if k != "LD_LIBRARY_PATH"}


def follow_page(args):
    steps, problems = read_page(args.page.read_text())
    if problems:
        return problems
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        build_install(args.build, top / "installed")
        tree = Tree(top / "installed", args.compiler)
        home = top / "home"
        home.mkdir()
        tools = top / "tools"
        tools.mkdir()
        meson = tools / "meson"
        meson.write_text(f"#!/bin/sh\nexec {' '.join(own_meson(args.build))} \"$@\"\n")
        meson.chmod(0o755)
        env = {**reader_env(tree), "PATH": f"{tools}:{tree.env['PATH']}",
               "CC": " ".join(args.compiler), "MNIST": f"{args.source}/examples/data/mnist"}
        found = follow(steps, Shell(home, env))
    print(f"{len(steps)} steps: " + ", ".join(
        f"{sum(s.kind == kind for s in steps)} {kind}"
        for kind in ("sh", "see", "write", "append", "after", "replace")))
    return found


GOOD = """# Page

Some words with `code`.

```sh
echo one; mkdir sub; cd sub; export WORD=two
```

You should see:

```text
o...
```

Write `a.txt`:

```
first
last
```

In `a.txt`, after `first`, add:

```
middle
```

In `a.txt`, replace `last` by:

```
end
```

```sh
cat a.txt; echo $WORD
```

You should see:

```text
first
middle
end
two
```
"""
BAD = [("a block without words", GOOD.replace("Write `a.txt`:", "Look at this:")),
       ("another output", GOOD.replace("end\ntwo", "last\ntwo")),
       ("another order", GOOD.replace("middle\nend\ntwo", "end\nmiddle\ntwo")),
       ("a command that fails", GOOD.replace("echo one;", "false;")),
       ("a line that is not there", GOOD.replace("after `first`", "after `fist`")),
       ("a file that differs", GOOD.replace("first\nlast", "first\nfirst\nlast")),
       ("nothing to run", "# Page\n\nWords.\n")]


def try_page(text):
    with tempfile.TemporaryDirectory() as name:
        steps, problems = read_page(text)
        return problems or follow(steps, Shell(pathlib.Path(name), dict(os.environ)))


def self_test():
    wrong = [f"the good page: {p}" for p in try_page(GOOD)]
    wrong += [f"not found: {name}" for name, text in BAD if not try_page(text)]
    print(f"self-test: {1 + len(BAD)} pages, wrong: {wrong}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--source")
    parser.add_argument("--build")
    parser.add_argument("--compiler", nargs="+", default=["cc"])
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    problems = follow_page(args)
    for problem in problems:
        print(f"what:  {args.page.name}, {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
