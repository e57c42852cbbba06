#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Layout of every struct, value of every constant and prototype of every function of the public
headers, against a golden text.

usage: layout.py [--cc COMPILER] [--flag FLAG]... [--write] [--self-test]
       layout.py --frozen        fields of the frozen headers are where they were
Structs and enums are read from the headers; a program made from them prints sizes, offsets, types
and values, so that the compiler, not this script, says where a field lies. `./dev golden` writes
the text anew; the diff of that is what a reviewer looks at.
"""
import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/abi/golden/v0.1.layout"
FROZEN = ROOT / "tests/abi/frozen"
PLUGIN_H = ROOT / "abi/burn/plugin.h"
# The number in plugin.h is made of these structs and of all that their fields speak of. Options
# (by an id with a revision) and the ops' attributes (with a size and revision) are not among them.
ROOTS = ["burn_plugin", "burn_plugin_query_fn", "burn_host", "burn_fault", "burn_attrs_head"]
NUMBER = re.compile(r"(#define BURN_LAYOUT_TEXT UINT64_C\()(0x[0-9a-f]{16})(\))")
LISTS = """
#define STATUS_ROW(number, name, text) printf("status %d %s\\n", number, #name);
#define DTYPE_ROW(code, NAME, name, bytes, klass) \\
    printf("dtype %d %s %d %s\\n", code, #name, bytes, #klass);
"""


def strip_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def parse_fields(body):
    """[(name, type)] of a struct's body; a type is the declaration without the name."""
    fields = []
    for declaration in body.split(";"):
        declaration = " ".join(declaration.split())
        if not declaration:
            continue
        pointer = re.search(r"\(\s*(?:BURN_CALL\s*)?\*\s*(\w+)\s*\)", declaration)
        if pointer:
            start, end = pointer.span(1)
            fields.append((pointer.group(1), declaration[:start] + declaration[end:]))
            continue
        first, *others = declaration.split(",")
        base = re.match(r"(.*?)((?:\*\s*(?:const\s+)?)*)(\w+)((?:\[[^\]]*\])*)$", first.strip())
        if not base:
            raise ValueError(f"cannot read the field '{declaration}'")
        kind = base.group(1).strip()
        fields.append((base.group(3), f"{kind} {base.group(2).strip()}{base.group(4)}".strip()))
        for other in others:
            match = re.match(r"((?:\*\s*)*)(\w+)((?:\[[^\]]*\])*)$", other.strip())
            fields.append((match.group(2), f"{kind} {match.group(1)}{match.group(3)}".strip()))
    return fields


def parse(text):
    """(structs {name: fields}, enumerators) of a header."""
    plain = strip_comments(text)
    structs = {m.group(1): parse_fields(m.group(2)) for m in
               re.finditer(r"typedef struct (\w+) \{([^{}]*)\} \1;", plain)}
    expected = re.findall(r"typedef struct (\w+)\s*\{", plain)
    if sorted(expected) != sorted(structs):
        raise ValueError(f"cannot read structs {sorted(set(expected) - set(structs))}")
    names = []
    for body in re.findall(r"\benum(?:\s+\w+)?\s*\{([^{}]*)\}", plain):
        if "#" not in body:  # lists of rows are printed as lists
            names += [row.split("=")[0].strip() for row in body.split(",") if row.strip()]
    return structs, names


def make_program(include):
    headers = sorted(pathlib.Path(include, "burn").glob("*.h"))
    lines = ["#include <stddef.h>", "#include <stdio.h>", "#include <string.h>"]
    lines += [f"#include <burn/{h.name}>" for h in headers] + [LISTS]
    lines += ["struct align_probe { char c; };", "int main(void)", "{"]
    for header in headers:
        structs, names = parse(header.read_text())
        if structs or names:
            lines.append(f'    printf("\\n# {header.name}\\n");')
        for name, fields in structs.items():
            lines.append(f'    printf("struct {name} %zu align %zu\\n", sizeof({name}), '
                         f"_Alignof({name}));")
            for field, kind in fields:
                text = kind.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
                lines.append(f'    printf("  %4zu %4zu {field}: {text}\\n", '
                             f"offsetof({name}, {field}), sizeof((({name} *)0)->{field}));")
        for name in names:
            lines.append(f'    printf("const {name} %lld\\n", (long long){name});')
    lines.append('    printf("\\n# lists\\n");')
    lines.append("#ifdef BURN_FOREACH_STATUS\n    BURN_FOREACH_STATUS(STATUS_ROW)\n#endif")
    lines.append("#ifdef BURN_FOREACH_DTYPE\n    BURN_FOREACH_DTYPE(DTYPE_ROW)\n"
                 "    BURN_FOREACH_RESERVED_DTYPE(DTYPE_ROW)\n#endif")
    ops = pathlib.Path(include, "burn", "op_list.h")
    if ops.exists():
        rows = re.findall(r"\bX\(\s*(\d+)\s*,\s*(\w+)", strip_comments(ops.read_text()))
        lines += [f'    printf("op %d {name}\\n", {number});' for number, name in rows]
    lines += ["    return 0;", "}"]
    return "\n".join(lines) + "\n"


def prototypes(compiler, include):
    """Functions and types of functions, as the preprocessor sees them: lists declare many."""
    headers = sorted(pathlib.Path(include, "burn").glob("*.h"))
    text = "".join(f"#include <burn/{header.name}>\n" for header in headers)
    plain = subprocess.run([*compiler.split(), "-std=c11", "-E", "-P", f"-I{include}", "-"],
                           input=text, check=True, capture_output=True, text=True).stdout
    api = r'__attribute__\(\(visibility\("default"\)\)\)'
    found = re.findall(api + r"([^;{}]*?\bburn_\w+\s*\([^;{}]*\))\s*;", plain)
    found += re.findall(r"\b(typedef [^;{}]*\(\s*\*\s*burn_\w+\s*\)\s*\([^;{}]*\))\s*;", plain)
    lines = sorted(re.sub(r"\s+", " ", row).strip() for row in found)
    return "\n# functions\n" + "".join(f"{line}\n" for line in lines)


def print_layout(compiler, flags, include):
    now = prototypes(compiler, include)
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
        pathlib.Path(source).write_text(make_program(include))
        subprocess.run([*compiler.split(), "-std=c11", "-w", *flags, f"-I{include}", source, "-o",
                        program], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout + now


def layout_of_texts(compiler, texts):
    """The layout of headers that are {name: text}."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "burn").mkdir()
        for name, text in texts.items():
            pathlib.Path(folder, "burn", name).write_text(text)
        return print_layout(compiler, [], folder)


def shared_structs(text):
    """Lines of a layout's text: the structs that host and plugins share, with their fields."""
    structs, lines = {}, []
    for line in text.splitlines():
        if line.startswith("struct "):
            lines = structs.setdefault(line.split()[1], [])
        elif not line.startswith("  "):
            function = re.match(r"typedef .*?\(\s*\*\s*(burn_\w+)\s*\)", line)
            lines = structs.setdefault(function.group(1), []) if function else []
        lines.append(" ".join(line.split()))
    reached, to_do = set(), list(ROOTS)
    while to_do:
        name = to_do.pop()
        if name in structs and name not in reached:
            reached.add(name)
            to_do += re.findall(r"\bburn_\w+", "\n".join(structs[name]))
    return [line for name in sorted(reached) for line in structs[name]]


def number_of(text):
    """FNV-1a of the shared structs: another order, type, name or size is another number."""
    number = 0xcbf29ce484222325
    for byte in "\n".join(shared_structs(text)).encode():
        number = (number ^ byte) * 0x100000001b3 % 2 ** 64
    return f"{number:#018x}"


def fields_of(text):
    """{(struct, offset): field} of a layout's text."""
    fields, struct = {}, None
    for line in text.splitlines():
        if line.startswith("struct "):
            struct = line.split()[1]
        elif line.startswith("  ") and struct:
            fields[struct, line.split()[0]] = " ".join(line.split()[1:])
        else:
            struct = None
    return fields


def not_kept(old, new):
    """Fields of an earlier layout that are not where they were; a reserved word may get a name."""
    now = fields_of(new)
    return [f"{struct} at {at}: {field}, now {now.get((struct, at), 'gone')}"
            for (struct, at), field in fields_of(old).items()
            if now.get((struct, at)) != field and
            not (re.match(r"\d+ zero", field) and (struct, at) in now)]


def check_frozen(compiler):
    """Headers of earlier minors as they were: what they had is where it was."""
    golden = GOLDEN.read_text()
    versions = sorted(path for path in FROZEN.iterdir() if path.is_dir())
    lines = [f"{path.name}: {line}" for path in versions
             for line in not_kept(print_layout(compiler, [], str(path)), golden)]
    for line in lines:
        print(f"what:  {line}\nwhy:   plugins that were built with these headers are still there\n"
              "fix:   append fields, and leave those that were there as they are")
    print(f"{len(versions)} earlier versions, {len(lines)} problems")
    return 1 if lines or not versions else 0


def check_number(golden):
    found = NUMBER.findall(PLUGIN_H.read_text())
    wanted = number_of(golden)
    if len(found) == 1 and found[0][1] == wanted:
        return 0
    print(f"what:  BURN_LAYOUT_TEXT of plugin.h is {[row[1] for row in found]}, the number of "
          f"{GOLDEN.relative_to(ROOT)} {wanted}\n"
          "why:   by it host and plugins see that their structs differ\n"
          "fix:   raise the ABI's minor (docs/abi.md says how); ./dev golden writes the number")
    return 1


def write_golden(now):
    text, n = NUMBER.subn(lambda m: m.group(1) + number_of(now) + m.group(3), PLUGIN_H.read_text())
    if n != 1:
        raise SystemExit(f"{PLUGIN_H.relative_to(ROOT)} has no line for BURN_LAYOUT_TEXT")
    PLUGIN_H.write_text(text)
    GOLDEN.write_text(now)
    print(f"written: {GOLDEN.relative_to(ROOT)}, {now.count('struct ')} structs, "
          f"{len(shared_structs(now))} lines of them in the number of {PLUGIN_H.name}")


def compare(golden, now):
    return list(difflib.unified_diff(golden.splitlines(), now.splitlines(), "golden", "now",
                                     lineterm="", n=1))


def self_test(compiler):
    before = ("typedef struct burn_s { uint32_t struct_size; uint32_t zero; uint64_t *a, b[2];\n"
              "int32_t(BURN_CALL *f)(int x); } burn_s;\nenum { BURN_ONE = 1, BURN_TWO = 2 };\n"
              "API int burn_f(const burn_s *s);\ntypedef int (BURN_CALL *burn_fn)(long n);\n")
    changes = {
        "field moved": before.replace("*a, b[2]", "b[2], *a"),
        "field widened": before.replace("uint32_t zero", "uint64_t zero"),
        "type changed": before.replace("uint32_t zero", "int32_t zero"),
        "signature changed": before.replace("int x", "long x"),
        "constant changed": before.replace("BURN_TWO = 2", "BURN_TWO = 3"),
        "field renamed": before.replace("zero", "other"),
        "argument changed": before.replace("const burn_s *s", "burn_s *s"),
        "function type changed": before.replace("(long n)", "(int n)"),
        "function gone": before.replace("API int burn_f(const burn_s *s);", ""),
    }

    def layout_of(text):
        head = ("#include <stdint.h>\n#define BURN_CALL\n"
                '#define API __attribute__((visibility("default")))\n')
        return layout_of_texts(compiler, {"s.h": head + text})

    good = layout_of(before)
    wrong = [name for name, text in changes.items() if not compare(good, layout_of(text))]
    if compare(good, layout_of("/* a comment */ " + before)) or "struct burn_s 40" not in good:
        wrong.append("the good sample")
    grown = before.replace("} burn_s;", "uint64_t more; } burn_s;").replace(" zero;", " count;")
    kept = {"field moved", "field widened", "type changed", "signature changed"}
    for name in kept:
        moved = changes[name].replace("uint32_t zero", "uint32_t count")
        if not not_kept(good.replace(" zero: ", " count: "), layout_of(moved)):
            wrong.append(f"{name}, in a later version")
    if not_kept(good, layout_of(grown)):
        wrong.append("a later version with a field more and a reserved word in use")
    print(f"self-test: {len(changes) + len(kept)} changes, not seen: {wrong}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--flag", action="append", default=[])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--frozen", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test(args.cc)
    if args.frozen:
        return check_frozen(args.cc)
    now = print_layout(args.cc, args.flag, str(ROOT / "abi"))
    if args.write:
        write_golden(now)
        return 0
    if sys.maxsize < 2 ** 32:
        print("skipped: the golden text is that of 64-bit machines")
        return 77
    diff = compare(GOLDEN.read_text(), now)
    if diff:
        print("\n".join(diff))
        print(f"\nwhat:  the layout differs from {GOLDEN.relative_to(ROOT)}\n"
              "why:   plugins that were built earlier read these structs\n"
              "fix:   only append, and raise the ABI's minor (abi/burn/version.h); if that is what "
              "was done: ./dev golden")
    return 1 if check_number(GOLDEN.read_text()) or diff else 0


if __name__ == "__main__":
    sys.exit(main())
