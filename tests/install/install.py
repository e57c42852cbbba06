#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Installs a build into a temporary folder and uses it as a stranger would.

usage: install.py --source FOLDER --build FOLDER --compiler CC... [--sizes]
       install.py --self-test

An application is built with pkg-config alone and finds the installed plugins without a variable; a
backend is built out of tree from the installed headers, and the installed conformance tool loads
it. Then: which files are there, what the plugins need, how large the libraries are. To add a
check: a function that returns problems, and its name in `main`.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

# Stripped bytes, release build.
LIMITS = {"libburn-core.so.0": 1 << 20, "burn/0/flex.so": 4 << 20}
PLUGINS = ("flex", "mock")
MODULES = ("burn-core", "burn-train", "burn-plugin")


class Tree:
    """An installed tree: where its parts are, and how programs are built and run against it."""

    def __init__(self, top, compiler):
        self.top, self.compiler = pathlib.Path(top), compiler
        found = list(self.top.rglob("libburn-core.so.0"))
        if len(found) != 1:
            raise SystemExit(f"libburn-core.so.0 is there {len(found)} times under {top}")
        self.lib = found[0].parent
        self.prefix = next(p for p in self.lib.parents if (p / "include/burn").is_dir())
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("BURN_")}
        self.env.update(LD_LIBRARY_PATH=str(self.lib), PKG_CONFIG_LIBDIR=f"{self.lib}/pkgconfig")
        self.env.pop("PKG_CONFIG_PATH", None)

    def pkg_config(self, *args):
        place = f"--define-variable=prefix={self.prefix}"
        return shlex.split(self.call("pkg-config", place, *args))

    def call(self, *command, **env):
        run = subprocess.run([str(c) for c in command], capture_output=True, text=True,
                             env={**self.env, **env}, cwd=self.top)
        if run.returncode != 0:
            raise SystemExit(f"what:  {shlex.join(map(str, command))} ended with {run.returncode}\n"
                             f"{run.stdout}{run.stderr}")
        return run.stdout.strip()


def build_install(build, top):
    """The command is the build's own: another meson on the path might be of another version."""
    text = pathlib.Path(build, "build.ninja").read_text()
    match = re.search(r"^ COMMAND = (.*meson.*) install --no-rebuild$", text, re.M)
    command = shlex.split(match.group(1)) if match else ["meson"]
    subprocess.run([*command, "install", "-C", build, "--no-rebuild", "--destdir", top],
                   check=True, stdout=subprocess.DEVNULL)


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
    expected += ["bin/burn-conformance"]
    if any((source / "cli").glob("*.c")):
        expected += ["bin/burn"]
    return missing(there, expected)


def needed(tree, library):
    text = tree.call("readelf", "-d", library)
    return re.findall(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]", text)


def core_among(names):
    return [name for name in names if name.startswith("libburn")]


def check_plugins(tree, source):
    """A plugin that links the core would bring a second one along."""
    problems = []
    for manifest in sorted((tree.lib / "burn/0").glob("*.json")):
        plugin = manifest.parent / json.loads(manifest.read_text())["file"]
        for name in core_among(needed(tree, plugin)):
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
            ("train", source / "tests/install/train.c", "burn-train", [({}, "accuracy 0.75")])]:
        program = tree.top / name
        tree.call(*tree.compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", text, "-o", program,
                  *tree.pkg_config("--cflags", "--libs", module))
        for env, expected in runs:
            said = tree.call(program, **env)
            if said != expected:
                problems.append(f"{name} with {env or 'no variable'} says '{said}', "
                                f"not '{expected}'")
    return problems


def check_backend(tree, source):
    """The mock backend, copied out of the project and renamed, as a vendor begins."""
    folder = tree.top / "vendor"
    shutil.copytree(source / "sdk/mock", folder)
    folder.chmod(0o755)
    manifest = json.loads((folder / "mock.json").read_text())
    for file in folder.glob("*.[ch]"):
        file.write_text(file.read_text().replace('"mock"', '"acme"'))
    manifest.update(id="acme", file="acme.so")
    (folder / "acme.json").write_text(json.dumps(manifest))
    (folder / "mock.json").unlink()
    tree.call(*tree.compiler, "-std=c11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared",
              "-fvisibility=hidden", "-Wl,-z,defs", f"-Wl,--version-script={folder}/mock.map",
              *sorted(folder.glob("*.c")), "-o", folder / "acme.so",
              *tree.pkg_config("--cflags", "--libs", "burn-plugin"), "-lpthread", "-lm")
    problems = [f"the out-of-tree plugin needs {n}"
                for n in core_among(needed(tree, folder / "acme.so"))]
    said = tree.call(tree.prefix / "bin/burn-conformance", "--device", "acme", "--op", "add",
                     BURN_PLUGIN_PATH=str(folder))
    if not re.search(r"[1-9]\d* passed", said):
        problems.append(f"conformance of the out-of-tree plugin says:\n{said[-400:]}")
    variable = tree.pkg_config("--variable=plugindir", "burn-plugin")[0]
    if pathlib.Path(variable) != tree.lib / "burn/0":
        problems.append(f"plugindir of burn-plugin is {variable}, not {tree.lib}/burn/0")
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
        checks = [check_files, check_plugins, check_application, check_backend]
        for check in checks + ([check_sizes] if args.sizes else []):
            problems += check(tree, args.source)
    for problem in problems:
        print(f"what:  {problem}")
    print(f"install: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
