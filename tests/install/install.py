#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Installs a build into a temporary folder: what is there, and do applications find it?

usage: install.py --source FOLDER --build FOLDER --compiler CC... [--sizes]
       install.py --self-test

Applications are built with pkg-config alone and find the installed plugins without a variable.
Then: which files are there, what the plugins need, how large the libraries are. projects.py has
what third parties make of it. To add a check: a function that returns problems, and its name in
`main`.
"""
import argparse
import json
import pathlib
import sys
import tempfile

from tree import Tree, build_install, core_among

# Stripped bytes, release build.
LIMITS = {"libburn-core.so.0": 1 << 20, "burn/0/flex.so": 4 << 20}
PLUGINS = ("flex", "mock")
MODULES = ("burn-core", "burn-train", "burn-plugin")


def missing(there, expected):
    return [f"{name} is not installed" for name in expected if name not in there]


def check_files(tree, source):
    there = {str(p.relative_to(tree.prefix)) for p in tree.prefix.rglob("*") if p.is_file()}
    lib = tree.lib.relative_to(tree.prefix)
    expected = [f"include/burn/{p.name}" for p in (source / "abi/burn").glob("*.h")]
    expected += [f"include/burn_sdk/{p.name}" for p in (source / "sdk/burn_sdk").glob("*.h")]
    expected += [f"{lib}/pkgconfig/{name}.pc" for name in MODULES]
    expected += [f"{lib}/burn/0/{name}{end}" for name in PLUGINS for end in (".so", ".json")]
    expected += [f"{lib}/{name}" for name in ("libburn-core.so", "libburn-core.so.0",
                                              "libburn-train.so", "libburn-train.so.0")]
    expected += ["bin/burn-conformance", "bin/burn"]
    templates = "share/burn/templates"
    expected += [f"{templates}/backend/{p.name}" for p in (source / "sdk/mock").glob("*.[ch]")
                 if p.stem != "inject"]
    expected += [f"{templates}/{kind.name}/{p.name}"
                 for kind in (source / "sdk/template").iterdir() if kind.is_dir()
                 for p in kind.iterdir()]
    return missing(there, expected)


def check_plugins(tree, source):
    """A plugin that links the core would bring a second one along."""
    problems = []
    for manifest in sorted((tree.lib / "burn/0").glob("*.json")):
        plugin = manifest.parent / json.loads(manifest.read_text())["file"]
        for name in core_among(tree.needed(plugin)):
            problems.append(f"{plugin.name} needs {name}; a plugin gets the host as a table")
    return problems


def too_large(sizes, limits):
    return [f"{name} has {sizes[name]} bytes when stripped, the limit is {limits[name]}"
            for name in limits if sizes[name] > limits[name]]


def check_sizes(tree, source):
    sizes = {}
    for name in LIMITS:
        stripped = tree.top / "stripped"
        tree.call("strip", "-o", stripped, tree.lib / name)
        sizes[name] = stripped.stat().st_size
    print("stripped: " + ", ".join(f"{name} {size // 1024} KiB" for name, size in sizes.items()))
    return too_large(sizes, LIMITS)


def check_application(tree, source):
    """Built and run with what pkg-config says; the plugins are those beside the library."""
    problems = []
    for name, text, module, runs in [
            ("hello", source / "examples/hello/main.c", "burn-core",
             [({}, "3.000 -2.000"), ({"BURN_DEVICE": "flex"}, "3.000 -2.000"),
              ({"BURN_DEVICE": "mock:1"}, "3.000 -2.000")]),
            ("train", source / "tests/install/train.c", "burn-train",
             [({"BURN_DEVICE": "flex"}, "learned on flex:0: ")])]:
        program = tree.compile(text, tree.top / name, module)
        for env, expected in runs:
            said = tree.call(program, **env)
            if not said.startswith(expected):
                problems.append(f"{name} with {env or 'no variable'} says '{said}', "
                                f"not '{expected}'")
    return problems


def self_test():
    cases = [
        (missing({"a"}, ["a", "b"]) == ["b is not installed"], "a missing file"),
        (missing({"a", "b"}, ["a"]) == [], "more files"),
        (core_among(["libc.so.6", "libburn-core.so.0"]) == ["libburn-core.so.0"], "needs the core"),
        (core_among(["libc.so.6"]) == [], "needs no core"),
        (len(too_large({"a": 11}, {"a": 10})) == 1, "too large"),
        (too_large({"a": 10}, {"a": 10}) == [], "just fits"),
    ]
    wrong = [name for fine, name in cases if not fine]
    print(f"self-test: {len(cases)} cases, wrong: {wrong}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path)
    parser.add_argument("--build")
    parser.add_argument("--compiler", nargs="+", default=["cc"])
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    problems = []
    with tempfile.TemporaryDirectory() as top:
        build_install(args.build, top)
        tree = Tree(top, args.compiler)
        checks = [check_files, check_plugins, check_application]
        for check in checks + ([check_sizes] if args.sizes else []):
            problems += check(tree, args.source)
    for problem in problems:
        print(f"what:  {problem}")
    print(f"install: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
