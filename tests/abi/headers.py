#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every public header, the SDK's and those of extensions among them, alone and twice, through one
compiler in one language.

usage: headers.py --compiler gcc-or-g++-or-clang... --std c11|c17|c++17|c++20
Each header is compiled with -pedantic-errors and every warning an error, as is and with
-fshort-enums; the structs of plugin-facing headers must have no hidden padding (-Wpadded). What
BURN_ERR_INIT expands to stands in the program's own code, so that has no old-style cast in C++. A
compiler that is not installed is a skip (77), never a pass. --self-test proves that bad headers
turn red.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wundef", "-Wpointer-arith", "-Werror",
            "-pedantic-errors"]
C_WARNINGS = ["-Wstrict-prototypes", "-Wmissing-prototypes", "-Wc++-compat"]
# What applications alone see may be padded; everything a plugin sees may not.
APPLICATION = {"device.h", "tensor.h", "grad.h", "registry.h", "data.h", "metric.h", "nn.h",
               "optim.h", "train.h", "api.h", "burn.h"}


# Folders whose headers are installed: the first is what all others include. In the SDK only the
# table that plugins share has no padding.
FOLDERS = [("abi", "burn"), ("sdk", "burn_sdk"), ("extensions/fused/include", "burn"),
           ("sdk/template/extension", "")]
SHARED_OF_SDK = {"burn_sdk/flex_kernel.h"}
# Header, type, macro: compiled as programs use them.
INITIALIZERS = [("burn/status.h", "burn_err", "BURN_ERR_INIT")]
# What is seen by the files of one plugin only.
PRIVATE = {"starter_plugin.h"}


def language_of(std):
    return "c++" if std.startswith("c++") else "c"


def compile_text(compiler, std, include, source, more):
    """What the compiler says against it, or nothing."""
    language = language_of(std)
    flags = WARNINGS + (C_WARNINGS if language == "c" else [])
    done = subprocess.run(
        [compiler, f"-std={std}", "-x", language, "-fsyntax-only", *flags, *more,
         *[f"-I{folder}" for folder in include], "-"], input=source, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr


def compile_header(compiler, std, include, name, more):
    """`include`: folders, the last of which has the header."""
    source = f"#include <{name}>\n#include <{name}>\nextern int burn_not_empty;\n"
    # clang lays a struct out, and sees its padding, only when its size is asked for.
    text = pathlib.Path(include[-1], name).read_text()
    for number, struct in enumerate(re.findall(r"\bstruct (\w+)\s*\{", text)):
        source += f"extern char burn_size_{number}[sizeof(struct {struct})];\n"
    return compile_text(compiler, std, include, source, more)


def check_initializer(compiler, std, include, name, type_name, macro):
    source = f"#include <{name}>\nextern {type_name} burn_one;\n{type_name} burn_one = {macro};\n"
    more = ["-Wold-style-cast"] if language_of(std) == "c++" else []
    text = compile_text(compiler, std, include, source, more)
    return [f"what:  {macro} does not compile with {compiler} -std={std} {' '.join(more)}\n"
            f"{text}"] if text else []


def compiles_at_all(compiler, std):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "empty.h").write_text("")
        return compile_header(compiler, std, [folder], "empty.h", []) == ""


def check(compiler, std, include, below, may_be_padded):
    """The headers in include[-1]/below; `may_be_padded` says of a name whether it may."""
    failures = []
    headers = sorted(p.relative_to(include[-1]).as_posix()
                     for p in pathlib.Path(include[-1], below).rglob("*.h"))
    headers = [name for name in headers if name not in PRIVATE]
    for name in headers:
        padded = [] if may_be_padded(name) else ["-Wpadded"]
        for more in ([], ["-fshort-enums"]):
            text = compile_header(compiler, std, include, name, padded + more)
            if text:
                failures.append(f"what:  <{name}> does not compile alone with "
                                f"{compiler} -std={std} {' '.join(padded + more)}\n{text}")
    return headers, failures


def may_be_padded(name):
    folder, _, rest = name.partition("/")
    return rest in APPLICATION if folder == "burn" else name not in SHARED_OF_SDK


def self_test(compiler, std):
    bad = {
        "unguarded.h": "typedef struct burn_a { int x; } burn_a;\nenum { BURN_A = 1 };\n",
        "incomplete.h": "uint32_t burn_x(void);\n",
        "padded.h": "struct burn_p { char a; long long b; };\n",
        "extension.h": "struct burn_z { int a; int b[0]; };\n",
    }
    wrong = []
    for name, text in bad.items():
        with tempfile.TemporaryDirectory() as folder:
            if name != "unguarded.h":
                text = f"#ifndef G\n#define G\n{text}#endif\n"
            pathlib.Path(folder, name).write_text(text)
            if not check(compiler, std, [folder], "", lambda name: False)[1]:
                wrong.append(name)
    with tempfile.TemporaryDirectory() as folder:
        # An old-style cast, which only C++ can complain of.
        size = "(unsigned)sizeof(int)" if language_of(std) == "c++" else "1, 2"
        pathlib.Path(folder, "init.h").write_text("struct burn_i { unsigned a; };\n"
                                                  f"#define BURN_I {{ {size} }}\n")
        if not check_initializer(compiler, std, [folder], "init.h", "struct burn_i", "BURN_I"):
            wrong.append("init.h")
    print(f"self-test: {len(bad) + 1} bad headers, passed wrongly: {wrong}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--std", required=True)
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if shutil.which(args.compiler) is None or not compiles_at_all(args.compiler, args.std):
        print(f"skipped: {args.compiler} is not installed, or knows no -std={args.std}")
        return 77
    if args.self_test:
        return self_test(args.compiler, args.std)
    headers, failures = [], []
    for folder, below in FOLDERS:
        include = [str(ROOT / path) for path in ("abi", "sdk", folder)]
        found, wrong = check(args.compiler, args.std, include, below, may_be_padded)
        if not found:
            wrong = [f"what:  no header in {folder}/{below}; adapt FOLDERS\n"]
        headers += found
        failures += wrong
    for name, type_name, macro in INITIALIZERS:
        failures += check_initializer(args.compiler, args.std, [str(ROOT / "abi")], name, type_name,
                                      macro)
    for text in failures:
        print(text + "why:   applications and plugins include any one header, in C or C++\n"
                     "fix:   include what it uses, and give padding a name (zero[n])\n")
    print(f"{len(headers)} headers, {len(failures)} failures")
    return 1 if failures or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
