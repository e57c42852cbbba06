#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The gates of the ABI, tried: breaking patches on a copy of the real headers must turn red.

usage: gates.py --library LIBBURN_CORE
Each patch is what a careless change would do: a field inserted, moved, retyped or dropped, a number
given to something else, an entry's arguments changed, a function gone. The layout check sees the
first kinds, the lists of symbols the last: copies of headers and libraries are read, as the tests
read the real ones. A patch that changes nothing binary (a comment, a line) stays green. To
add one: a row in PATCHES or FUNCTIONS.
"""
import argparse
import contextlib
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import layout
import symbols

# name: (header, pattern, replacement); the pattern must match once.
PATCHES = {
    "a field inserted in the middle of a row":
        ("row.h", r"(    uint64_t op;\n)(    uint16_t revision_min;)", r"\1    uint64_t more;\n\2"),
    "a field inserted at the start of the plugin's table":
        ("plugin.h", r"(typedef struct burn_plugin \{\n)", r"\1    uint64_t first;\n"),
    "two fields of a call reordered":
        ("call.h", r"(    uint32_t n_in;\n)(    uint32_t n_out;\n)", r"\2\1"),
    "two entries of the device table reordered":
        ("backend.h", r"(    int32_t\(BURN_CALL \*count\).*?;\n)(.*?)"
         r"(    int32_t\(BURN_CALL \*probe\).*?;\n)", r"\3\2\1"),
    "a field made narrower":
        ("row.h", r"uint64_t workspace_bytes;", "uint32_t workspace_bytes;"),
    "a field of the same size, but signed":
        ("row.h", r"int16_t priority;", "uint16_t priority;"),
    "a field dropped":
        ("op_def.h", r"    uint32_t fuse_opcode;\n", ""),
    "a field renamed, so that it can mean something else":
        ("op_def.h", r"const char \*no_vjp;", "const char *why_no_vjp;"),
    "an array made longer":
        ("status.h", r"char text\[232\];", "char text[256];"),
    "an entry with one more argument":
        ("backend.h", r"(void\(BURN_CALL \*close\)\(burn_backend_device \*dev)\)",
         r"\1, uint32_t how)"),
    "an entry with another result":
        ("backend.h", r"void\(BURN_CALL \*queue_destroy\)", "int32_t(BURN_CALL *queue_destroy)"),
    "the query with another result":
        ("plugin.h", r"typedef const burn_plugin \*\(BURN_CALL \*burn_plugin_query_fn\)",
         "typedef int32_t(BURN_CALL *burn_plugin_query_fn)"),
    "a constant renumbered":
        ("call.h", r"BURN_LAYOUT_SCALAR = 2", "BURN_LAYOUT_SCALAR = 32"),
    "an enumerator put into the middle":
        ("backend.h", r"BURN_MEMORY_PINNED = 2, BURN_MEMORY_UNIFIED = 3",
         "BURN_MEMORY_SHARED = 2, BURN_MEMORY_PINNED = 3, BURN_MEMORY_UNIFIED = 4"),
    "a status code used again":
        ("status.h", r"X\(-17, E_END", "X(-3, E_END"),
    "an op's id used again":
        ("op_list.h", r"X\(41, SUB, sub\)", "X(40, SUB, sub)"),
    "a dtype's code moved":
        ("dtype.h", r"X\(12, F32,", "X(14, F32,"),
    "a limit raised":
        ("base.h", r"#define BURN_MAX_RANK 8", "#define BURN_MAX_RANK 9"),
}
# They move nothing in a struct: the golden text sees them, the layout hash of plugins does not.
NOT_IN_HASH = {"a constant renumbered", "an enumerator put into the middle",
               "a status code used again", "an op's id used again", "a dtype's code moved"}
GREEN = {
    "a comment": ("row.h", r"/\* larger is tried first \*/", "/* the largest is tried first */"),
    "an inline comment more": ("call.h", r"(    uint32_t n_in;)", r"\1 /* inputs */"),
}
# What the headers declare against the stored lists.
FUNCTIONS = {
    "a function deleted":
        ("device.h", r"BURN_API void burn_memory_trim\(burn_device \*device\);\n", ""),
    "a function renamed":
        ("device.h", r"burn_memory_trim\(", "burn_memory_give_back("),
    "a function that is no longer exported":
        ("device.h", r"BURN_API void burn_memory_trim\(", "void burn_memory_trim("),
    "a function added":
        ("device.h", r"(BURN_API void burn_shutdown\(void\);)",
         r"\1\nBURN_API void burn_new_thing(void);"),
    "an op taken from the list of functions":
        ("op_list.h", r" +X\(41, SUB, sub\) +\\\n", ""),
}
GREEN_FUNCTIONS = {
    "a declaration on two lines":
        ("device.h", r"BURN_API void burn_shutdown", "BURN_API void\nburn_shutdown"),
    "a function of a comment":
        ("device.h", r"(BURN_API void burn_shutdown)", r"/* BURN_API void burn_x(void); */ \1"),
}


def replaced(text, pattern, by):
    changed, n = re.subn(pattern, by, text, flags=re.S)
    return changed if n == 1 else None


def patched(folder, header, pattern, by):
    """A copy of the headers with the patch; None when it does not fit."""
    copy = pathlib.Path(folder, "burn")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(layout.ROOT / "abi" / "burn", copy)
    text = replaced((copy / header).read_text(), pattern, by)
    if text is None:
        return None
    (copy / header).write_text(text)
    return folder


def layout_of(folder, header, pattern, by):
    """The layout of a patched copy; None when the patch does not fit, "" when it won't compile."""
    if patched(folder, header, pattern, by) is None:
        return None
    try:
        return layout.print_layout("gcc", [], folder)
    except (subprocess.CalledProcessError, ValueError):
        return ""


def check_layouts():
    wrong = []
    good = layout.print_layout("gcc", [], str(layout.ROOT / "abi"))
    with tempfile.TemporaryDirectory() as folder:
        for name, patch in PATCHES.items():
            now = layout_of(folder, *patch)
            if now is None:
                wrong.append(f"{name}: the patch does not fit {patch[0]} any more; adapt it")
            elif not layout.compare(good, now):
                wrong.append(f"{name}: not seen")
            elif (layout.number_of(now) == layout.number_of(good)) != (name in NOT_IN_HASH):
                wrong.append(f"{name}: the layout hash should "
                             f"{'stay' if name in NOT_IN_HASH else 'change'}")
        for name, patch in GREEN.items():
            if layout_of(folder, *patch) != good:
                wrong.append(f"{name}: seen as a break, or the patch does not fit")
    return wrong


def check_declared():
    """Patched copies, read as `symbols-declared` reads the real headers."""
    wrong = []
    listed = set.union(*[symbols.read_list(name) for name in symbols.LIBRARIES])
    with tempfile.TemporaryDirectory() as folder:
        for name, patch in (FUNCTIONS | GREEN_FUNCTIONS).items():
            if patched(folder, *patch) is None:
                wrong.append(f"{name}: the patch does not fit {patch[0]} any more; adapt it")
                continue
            with contextlib.redirect_stdout(io.StringIO()):
                red = symbols.report(name, symbols.declared(folder), listed, "-", "-") == 1
            if red != (name in FUNCTIONS):
                wrong.append(f"{name}: {'seen as a break' if red else 'not seen'}")
    return wrong


def check_exports(library):
    """A library that lost a function, and one that has a new one, built for this."""
    wrong = []
    listed = symbols.read_list("libburn-core")
    lists = {"as listed": sorted(listed), "a function gone": sorted(listed - {"burn_memory_trim"}),
             "a function more": sorted(listed | {"burn_new_thing"})}
    if symbols.exports(library) != listed:
        wrong.append("the library exports something else than its list; see symbols-libburn-core")
    with tempfile.TemporaryDirectory() as folder:
        for name, functions in lists.items():
            made = pathlib.Path(folder, "made.so")
            source = "".join(f"void {function}(void) {{ }}\n" for function in functions)
            subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", str(made)],
                           input=source, text=True, check=True)
            with contextlib.redirect_stdout(io.StringIO()):
                red = symbols.report(name, listed, symbols.exports(made), "-", "-") == 1
            if red != (name != "as listed"):
                wrong.append(f"exports, {name}: {'seen as a break' if red else 'not seen'}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    wrong = check_layouts() + check_declared() + check_exports(parser.parse_args().library)
    for line in wrong:
        print(f"what:  {line}\nwhy:   a gate that lets a break pass guards nothing\n"
              "fix:   mend tests/abi/layout.py or symbols.py, or the patch in gates.py")
    print(f"gates: {len(PATCHES) + len(FUNCTIONS) + 2} breaking patches, "
          f"{len(GREEN) + len(GREEN_FUNCTIONS) + 1} harmless ones, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
