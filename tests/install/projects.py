#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""`burn new` from an installed tree: the projects build, pass their tests, and are used.

usage: projects.py --source FOLDER --build FOLDER --compiler CC...
       projects.py --self-test

Everything happens in a temporary folder whose path has a space, with the installed tree and
pkg-config as all that is known of Burn-C. To add a check: a function that takes the place and
returns problems, and its name in CHECKS; they run in that order and later ones use what earlier
ones left.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

from tree import Tree, build_install, core_among, own_meson


C_HEADERS = set("assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp "
                "signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn "
                "string tgmath threads time uchar wchar wctype".split())


class Place:
    """The installed tree, a folder for projects, and the meson to build them with."""

    def __init__(self, args, top):
        self.source, self.build = args.source, args.build
        self.tree = Tree(top / "installed", args.compiler)
        self.meson = own_meson(args.build)
        self.work = top / "a place"
        self.work.mkdir()
        self.compiler = " ".join(args.compiler)

    def new(self, *args, cwd=None):
        return self.tree.run("burn", "new", *args, cwd=cwd or self.work)

    def make(self, folder, *options, build="build", cc=None):
        """Configures and builds a project, warnings being errors."""
        self.tree.call(*self.meson, "setup", build, "--werror", *options, cwd=folder,
                       CC=cc or self.compiler)
        self.tree.call("ninja", "-C", build, cwd=folder)

    def strays(self, folder):
        """Files that an installation would put elsewhere than into the installed tree."""
        said = self.tree.call(*self.meson, "introspect", "build", "--installed", cwd=folder)
        inside = os.path.realpath(self.tree.top)
        return [f"{name} would be installed outside of the tree" for name in
                json.loads(said).values()
                if not os.path.realpath(name).startswith(inside + os.sep)]

    def test(self, folder):
        code, said = self.tree.run(*self.meson, "test", "-C", "build", "--no-rebuild",
                                   "--print-errorlogs", cwd=folder)
        if code != 0 or counted(said) == 0:
            return [f"the tests of {folder.name} fail:\n{said[-3000:]}"]
        return []


def counted(said):
    """How many tests passed, as meson says."""
    count = re.search(r"^Ok:\s*([0-9]+)", said, re.M)
    return int(count.group(1)) if count else 0


def other_compilers(used):
    names = {"gcc": "gcc", "clang": "clang-14" if shutil.which("clang-14") else "clang"}
    return [cc for kind, cc in names.items() if kind not in used and shutil.which(cc)]


def left_over(folder, word):
    """Names about `word` that have no place in a project made from it."""
    problems = []
    for path in sorted(folder.iterdir()):
        if re.search(word, path.name, re.I):
            problems.append(f"{path.name} has the template's name")
        if path.is_file():
            for number, line in enumerate(path.read_text().split("\n"), 1):
                if re.search(rf"{word}(?!.*decomposition)|@[A-Z]+@|_INJECT", line, re.I):
                    problems.append(f"{path.name}:{number} speaks of the template: {line.strip()}")
    return problems


def own_header(path, line):
    return line == f'#include "{path.stem}.h"'


def unsorted(folder):
    """Includes that stand as .clang-format would not have them: in each block a file's own header
    first, then the project's, then those in <>, by name; whatever the project's name is."""
    problems = []
    for path in sorted([*folder.glob("*.c"), *folder.glob("*.h")]):
        for block in re.findall(r"(?:^#include .*\n)+", path.read_text(), re.M):
            lines = block.splitlines()
            wanted = sorted(lines, key=lambda x: (not own_header(path, x), "<" in x, x))
            if lines != wanted:
                problems.append(f"{path.name} includes {lines}; the order is {wanted}")
    return problems


def check_variables(place):
    """pkg-config says where everything is that a plugin's build may ask for."""
    problems = []
    for name, inside in [("bindir", "burn-conformance"), ("datadir", "burn/templates"),
                         ("includedir", "burn/plugin.h"), ("plugindir", "flex.json"),
                         ("templatedir", "backend/plugin.c")]:
        where = place.tree.call("pkg-config", f"--variable={name}", "burn-plugin")
        if not pathlib.Path(where, inside).exists():
            problems.append(f"{name} of burn-plugin is '{where}'; {inside} is not there")
    return problems


def check_refusals(place):
    """A name that is wrong or taken, a folder that is there: a message, and nothing is written."""
    taken = place.work / "taken"
    taken.mkdir()
    broken = place.work / "templates/backend"
    broken.mkdir(parents=True)
    (broken / "a.c").write_text("fine\n")
    (broken / "b.c").write_text("mock " * 200 + "\n")
    before = sorted(os.listdir(place.work))
    cases = [(("backend", "9lives"), 1, "begin with a letter"), (("backend", "Acme"), 1, "letter"),
             (("backend", "a.b"), 1, "only"), (("backend", "auto"), 1, "meaning of its own"),
             (("backend", "x" * 25), 1, "1 to 24"), (("extension", "flex"), 1, "already"),
             (("backend", "taken"), 1, "is there already"), (("backend",), 2, "burn new backend"),
             (("plugin", "acme"), 2, "burn new backend"), ((), 2, "burn new backend"),
             (("backend", "acme", "--dir", "no/such/folder"), 1, "cannot be made"),
             (("backend", "acme", "--templates", "taken"), 1, "no template"),
             (("backend", "acme", "--templates", "templates"), 1, "cannot be written")]
    problems = []
    for args, status, text in cases:
        code, said = place.new(*args)
        if code != status or text not in said:
            problems.append(f"burn new {' '.join(args)}: status {code}, says '{said}'; expected "
                            f"{status} and '{text}'")
    if sorted(os.listdir(place.work)) != before:
        problems.append(f"refused calls left something: {sorted(os.listdir(place.work))}")
    return problems


def top_headers(place):
    """Headers of the system itself that C's and our own headers include, by any way."""
    own = sorted(place.tree.prefix.glob("include/burn/*.h"))
    text = "".join(f"#include <{name}.h>\n" for name in C_HEADERS)
    text += "".join(f"#include <burn/{path.name}>\n" for path in own)
    source = place.work / "headers.c"
    source.write_text(text)
    said = place.tree.call(*place.tree.compiler, "-std=c11", "-D_GNU_SOURCE", "-M", source,
                           *place.tree.pkg_config("--cflags", "burn-core"))
    source.unlink()
    used = {pathlib.Path(word) for word in said.split() if word.endswith(".h")}
    return sorted(C_HEADERS | {p.stem for p in used if p.parent == pathlib.Path("/usr/include") and
                               re.fullmatch("[a-z][a-z0-9_-]*", p.stem)})


def check_headers(place):
    """A project's NAME.h comes before the system's, so names of its headers are refused."""
    names = top_headers(place)
    problems = [] if len(names) > len(C_HEADERS) else ["no header was found by the compiler"]
    for name in names:
        code, said = place.new("extension", name)
        if code != 1 or not re.search("C header|meaning of its own", said):
            problems.append(f"burn new extension {name}: status {code}, says '{said}'")
    return problems


def check_backend(place):
    """acme builds with every compiler, links nothing of ours, and passes its tests."""
    code, said = place.new("backend", "acme", "--json")
    folder = place.work / "acme"
    if code != 0 or '"folder": "acme"' not in said:
        return [f"burn new backend acme: status {code}: {said}"]
    problems = left_over(folder, "mock") + unsorted(folder)
    place.make(folder)
    problems += place.strays(folder)
    problems += [f"acme.so needs {n}" for n in core_among(place.tree.needed(folder /
                                                                             "build/acme.so"))]
    for cc in other_compilers(place.compiler):
        place.make(folder, build=f"build-{cc}", cc=cc)
    return problems + place.test(folder)


def check_backend_used(place):
    """An application trains on acme: from its build folder, a user's, and the one of Burn-C."""
    tree, folder = place.tree, place.work / "acme"
    program = tree.compile(place.source / "tests/install/train.c", tree.top / "train", "burn-train")
    elsewhere = place.work / "elsewhere"
    elsewhere.mkdir()
    user = place.work / "my plugins"
    place.make(folder, f"-Dplugindir={user}", "--buildtype=plain", build="build-user")
    tree.call(*place.meson, "install", "-C", "build-user", cwd=folder)
    problems = []
    for path in (folder / "build", user):
        said = tree.call(program, cwd=elsewhere, BURN_DEVICE="acme:1", BURN_PLUGIN_PATH=str(path))
        if not said.startswith("learned on acme:1"):
            problems.append(f"with BURN_PLUGIN_PATH={path}: {said}")
    code, said = tree.run(program, cwd=elsewhere, BURN_DEVICE="acme")
    if code == 0 or "acme" not in said:
        problems.append(f"acme is found before it was installed: {said}")
    tree.call(*place.meson, "install", "-C", "build", cwd=folder)
    said = tree.call(program, cwd=elsewhere, BURN_DEVICE="acme")
    if not said.startswith("learned on acme:0"):
        problems.append(f"with acme installed: {said}")
    code, said = place.new("backend", "acme", "--dir", "acme2")
    if code != 1 or "already" not in said:
        problems.append(f"the name of an installed plugin is taken: {said}")
    return problems


def check_extension(place):
    """sig builds with every compiler and passes its tests; its op works on acme, too."""
    code, said = place.new("extension", "sig")
    folder = place.work / "sig"
    if code != 0:
        return [f"burn new extension sig: status {code}: {said}"]
    problems = left_over(folder, "starter") + unsorted(folder)
    place.make(folder, "-Dfull=true")
    for cc in other_compilers(place.compiler):
        place.make(folder, build=f"build-{cc}", cc=cc)
    problems += place.strays(folder) + place.test(folder)
    said = place.tree.call(folder / "build/demo", BURN_DEVICE="acme:1",
                           BURN_PLUGIN_PATH=str(folder / "build"))
    if "acme:1" not in said or not said.endswith("fine"):
        problems.append(f"the demo on acme says:\n{said}")
    return problems


def check_names(place):
    """A name that is no C identifier, as long as names may be."""
    name = "a-name_of-24-characters-"
    code, said = place.new("backend", name, "--dir", "long")
    if code != 0:
        return [f"burn new backend {name}: status {code}: {said}"]
    place.make(place.work / "long", "--buildtype=plain")
    said = place.tree.call("burn-conformance", "--device", name, "--op", "add", "--smoke",
                           BURN_PLUGIN_PATH=str(place.work / "long/build"))
    problems = unsorted(place.work / "long")
    return problems + ([] if re.search(r"[1-9]\d* passed, 0 failed", said) else [said])


def check_moved(place):
    """The whole installed tree elsewhere: programs, plugins, templates and pkg-config follow."""
    moved = place.tree.top.parent / "moved"
    place.tree.top.rename(moved)
    tree = place.tree = Tree(moved, place.tree.compiler)
    said = tree.call("burn", "devices", LD_LIBRARY_PATH="")
    problems = [f"after the move: {said}"] if "acme:0" not in said or "flex:0" not in said else []
    code, said = place.new("backend", "zeta")
    if code != 0 or not (place.work / "zeta/zeta.h").is_file():
        problems.append(f"burn new after the move: status {code}: {said}")
    problems += unsorted(place.work / "zeta")
    program = tree.compile(place.source / "examples/hello/main.c", tree.top / "hello", "burn-core")
    said = tree.call(program)
    return problems + ([] if said.startswith("3.000") else [f"hello after the move: {said}"])


CHECKS = (check_variables, check_refusals, check_headers, check_backend, check_backend_used,
          check_extension, check_names, check_moved)


def self_test():
    """What looks at a project finds what is wrong with one."""
    files = {"acme.h": "#define ACME_ID \"acme\"\n", "README.md": "# acme\n"}
    bad = [("a line about mock", {"a.c": "mock_launch(call);\n"}), ("a guard", {"a.h": "MOCK_H\n"}),
           ("a name", {"mock.map": ""}), ("a place", {"meson.build": "@SOURCES@\n"}),
           ("a condition", {"a.c": "#ifdef ACME_INJECT\n"})]
    wrong = []
    for name, more in [("fine", {})] + bad:
        with tempfile.TemporaryDirectory() as top:
            for file, text in {**files, **more}.items():
                pathlib.Path(top, file).write_text(text)
            if bool(left_over(pathlib.Path(top), "mock")) != bool(more):
                wrong.append(name)
    orders = {'#include "z.h"\n#include "a.h"\n#include "m.h"\n\n#include <b.h>\n': False,
              '#include "m.h"\n#include "a.h"\n': True, '#include <a.h>\n#include "m.h"\n': True}
    for text, is_wrong in orders.items():
        with tempfile.TemporaryDirectory() as top:
            pathlib.Path(top, "z.c").write_text("int x;\n" + text)
            wrong += [] if bool(unsorted(pathlib.Path(top))) == is_wrong else [text]
    wrong += [] if counted("Ok:   0\n") == 0 and counted("Ok:  12\nFail: 0\n") == 12 else ["count"]
    print(f"self-test: {len(bad) + len(orders) + 2} cases, wrong: {wrong}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path)
    parser.add_argument("--build")
    parser.add_argument("--compiler", nargs="+", default=["cc"])
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    problems = []
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        build_install(args.build, top / "installed")
        place = Place(args, top)
        for check in CHECKS:
            found = check(place)
            print("\n".join([f"{check.__name__}: {len(found)} problems"] + found), flush=True)
            problems += found
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
