#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What shared objects export.

usage: symbols.py --library FILE --list NAME   exports of a library = tests/abi/NAME.symbols
       symbols.py --plugin FILE                a plugin exports exactly burn_plugin_query
       symbols.py --declared                   lists together = BURN_API functions of the headers
       symbols.py --write --build FOLDER       writes the lists anew (./dev golden)
       symbols.py --self-test
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/abi"
LIBRARIES = ("libburn-core", "libburn-train")
QUERY = "burn_plugin_query"
# Made by compilers and sanitizers for every shared object.
TOOLS = re.compile(r"^(__|_init$|_fini$|_edata$|_end$)")


def exports(library):
    out = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True,
                         capture_output=True, text=True).stdout
    names = {line.split()[-1].split("@")[0] for line in out.splitlines()
             if line.split()[-2] not in ("A", "a")}
    return {name for name in names if not TOOLS.match(name)}


def declared(include=ROOT / "abi"):
    """Names of BURN_API functions, as the preprocessor sees them: op lists declare many at once."""
    headers = sorted(pathlib.Path(include, "burn").glob("*.h"))
    text = "".join(f"#include <burn/{header.name}>\n" for header in headers)
    plain = subprocess.run(["gcc", "-std=c11", "-E", "-P", "-I", str(include), "-"],
                           input=text, check=True, capture_output=True, text=True).stdout
    api = r'__attribute__\(\(visibility\("default"\)\)\)'
    return set(re.findall(api + r"[^;{}()]*?\b(burn_\w+)\s*\(", plain)) - {QUERY}


def read_list(name):
    path = FOLDER / f"{name}.symbols"
    if not path.exists():
        print(f"{path.relative_to(ROOT)} is not there yet; ./dev golden writes it")
        return set()
    return set(path.read_text().split())


def report(what, expected, found, why, fix):
    missing, more = sorted(expected - found), sorted(found - expected)
    if missing or more:
        print(f"what:  {what}: missing {missing or 'nothing'}, not expected {more or 'nothing'}\n"
              f"why:   {why}\nfix:   {fix}")
        return 1
    print(f"{what}: {len(found)} symbols, as expected")
    return 0


def check_library(path, name):
    return report(f"exports of {name}", read_list(name), exports(path),
                  "a symbol that vanishes breaks applications, one that appears becomes a promise",
                  "hide it, or, if the public API was meant to change: ./dev golden")


def check_plugin(path):
    return report(f"exports of plugin {pathlib.Path(path).name}", {QUERY}, exports(path),
                  "symbols of two plugins in one process must never meet",
                  "build it with hidden visibility and a version script (see plugins/flex)")


def check_declared():
    lists = [read_list(name) for name in LIBRARIES]
    twice = set.intersection(*lists)
    if twice:
        print(f"what:  exported by both libraries: {sorted(twice)}")
        return 1
    return report("functions declared in abi/burn", declared(), set.union(*lists),
                  "what a header promises must be there, and what is there must be promised",
                  "define it, or take it out of the header; then ./dev golden")


def write(build):
    for name in LIBRARIES:
        files = [p for p in pathlib.Path(build).rglob(f"{name}.so*")
                 if p.is_file() and not p.is_symlink() and not p.name.endswith(".symbols")
                 and ".so.p" not in str(p)]
        if len(files) != 1:
            print(f"what:  {name}.so is there {len(files)} times under {build}\nfix:   ./dev build")
            return 1
        found = sorted(exports(files[0]))
        (FOLDER / f"{name}.symbols").write_text("\n".join(found) + "\n")
        print(f"written: tests/abi/{name}.symbols, {len(found)} symbols")
    return 0


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        def build(text):
            path = pathlib.Path(folder, "x.so")
            subprocess.run(["gcc", "-shared", "-fPIC", "-fvisibility=hidden", "-x", "c", "-", "-o",
                            str(path)], input=text, text=True, check=True)
            return exports(path)

        api = '__attribute__((visibility("default"))) int %s(void) { return 0; }\n'
        cases = [
            (build(api % QUERY) == {QUERY}, "a good plugin"),
            (build(api % QUERY + api % "helper") != {QUERY}, "one symbol too many"),
            (build("int burn_plugin_query(void) { return 0; }\n") != {QUERY}, "a hidden entry"),
            (build('__attribute__((visibility("default"))) int data = 1;\n') == {"data"}, "data"),
            (report("sample", {"a", "b"}, {"a"}, "", "") == 1, "missing"),
            (report("sample", {"a"}, {"a", "b"}, "", "") == 1, "more"),
            ({"burn_version", "burn_add"} <= declared() and QUERY not in declared(), "declared"),
        ]
    wrong = [name for fine, name in cases if not fine]
    print(f"self-test: {len(cases)} cases, wrong: {wrong}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library")
    parser.add_argument("--list")
    parser.add_argument("--plugin")
    parser.add_argument("--declared", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    if args.write:
        return write(args.build)
    if args.library and args.list:
        return check_library(args.library, args.list)
    if args.plugin:
        return check_plugin(args.plugin)
    if args.declared:
        return check_declared()
    parser.error("nothing to do")
    return 2


if __name__ == "__main__":
    sys.exit(main())
