# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the checks share: the tree of source files, C text without comments, and the report.

A check is a function from a tree ({path: text}) to problems. `run` gives it the real tree, or with
--self-test samples: good ones must pass and every bad one must turn red. A problem says what is
wrong, where, why that matters and how to mend it. To add a check: <name>.py with `check`, `GOOD`,
`BAD` and `run(...)`, and its name in meson.build.
"""
import os
import re
import subprocess
import sys
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CODE = (".c", ".h", ".inc", ".def", ".comp", ".py", ".sh", ".cpp", ".hpp", ".map")
CODE_NAMES = ("meson.build", "meson_options.txt", "dev", ".ci/run")


class Problem(NamedTuple):
    what: str
    where: str
    why: str
    fix: str


def listed_files():
    """Paths of all files that are, or would be, tracked."""
    try:
        out = subprocess.run(
            ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"],
            check=True, capture_output=True).stdout.decode()
        paths = [p for p in out.split("\0") if p]
    except (OSError, subprocess.CalledProcessError):
        paths = []
        for folder, folders, names in os.walk(ROOT):
            folders[:] = [f for f in folders if f not in (".git", "__pycache__")
                          and not os.path.isdir(os.path.join(folder, f, "meson-private"))]
            paths += [os.path.relpath(os.path.join(folder, n), ROOT) for n in names]
    return sorted(set(p for p in paths if os.path.isfile(os.path.join(ROOT, p))))


def read_tree():
    """{path: text} of the project's text files; binary ones are left out."""
    tree = {}
    for path in listed_files():
        with open(os.path.join(ROOT, path), "rb") as file:
            data = file.read()
        if b"\0" not in data[:8192] and not path.endswith((".gz", ".png", ".bpk")):
            tree[path] = data.decode("utf-8", errors="replace")
    return tree


def is_code(path):
    return path.endswith(CODE) or path in CODE_NAMES or path.endswith("/meson.build")


def is_c(path):
    return path.endswith((".c", ".h"))


_TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def strip_c(text, strings=True):
    """C text with comments (and the insides of strings) blanked; lines and columns stay."""
    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            if not strings:
                return token
            return token[0] + re.sub(r"[^\n]", " ", token[1:-1]) + token[-1]
        return re.sub(r"[^\n]", " ", token)
    return _TOKENS.sub(blank, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def self_test(check, good, bad):
    wrong = []
    for problem in check(good):
        wrong.append(f"a good sample is refused: {problem}")
    for name, sample in bad:
        if not check(sample):
            wrong.append(f"the bad sample '{name}' passes")
    if not bad:
        wrong.append("there is no bad sample")
    for line in wrong:
        print(f"self-test: {line}")
    print(f"self-test: {len(bad)} bad samples, {len(wrong)} failures")
    return 1 if wrong else 0


def run(check, good, bad):
    """The main of every check."""
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test(check, good, bad))
    tree = read_tree()
    if len(tree) < 10:
        print(f"only {len(tree)} files found under {ROOT}: this check would see nothing")
        sys.exit(1)
    problems = check(tree)
    for p in problems:
        print(f"what:  {p.what}\nwhere: {p.where}\nwhy:   {p.why}\nfix:   {p.fix}\n")
    name = os.path.basename(sys.argv[0])
    print(f"{name}: {len(tree)} files, {len(problems)} problems")
    sys.exit(1 if problems else 0)
