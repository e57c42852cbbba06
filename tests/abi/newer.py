#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Headers of a simulated next minor: what we would do to add one, done to a copy.

usage: newer.py CC OUT_FOLDER
The minor is raised, structs get a field at their end, and the table of layout hashes the number of
the minor before. A plugin built with these is a newer plugin for today's host; a loader built with
them is a newer host for today's plugins (tests/loader/test_minors.c).
"""
import pathlib
import re
import subprocess
import sys

ABI = pathlib.Path(__file__).resolve().parents[2] / "abi"
HASH = """#include <burn/plugin.h>
#include <stdio.h>
int main(void) { printf("0x%llx", (unsigned long long)BURN_LAYOUT_HASH); return 0; }
"""
# The struct that gets a field, and its header.
APPENDED = {"burn_row": "row.h", "burn_device_api": "backend.h", "burn_op_def": "op_def.h",
            "burn_plugin": "plugin.h", "burn_host": "plugin.h", "burn_limits": "backend.h"}


def current_hash(compiler, folder):
    program = folder / "layout_hash"
    subprocess.run([*compiler, "-x", "c", "-std=c11", f"-I{ABI}", "-o", str(program), "-"],
                   input=HASH, text=True, check=True)
    return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout


def replace(text, pattern, by):
    changed, n = re.subn(pattern, by, text, flags=re.S)
    if n != 1:
        raise SystemExit(f"newer.py: {pattern!r} was found {n} times; adapt this script")
    return changed


def main():
    *compiler, out = sys.argv[1:]
    out = pathlib.Path(out)
    (out / "burn").mkdir(parents=True, exist_ok=True)
    texts = {h.name: h.read_text() for h in sorted((ABI / "burn").glob("*.h"))}
    minor = int(re.search(r"#define BURN_ABI_MINOR (\d+)", texts["version.h"]).group(1))
    texts["version.h"] = replace(texts["version.h"], r"#define BURN_ABI_MINOR \d+",
                                 f"#define BURN_ABI_MINOR {minor + 1}")
    known = current_hash(compiler, out)
    texts["plugin.h"] = replace(texts["plugin.h"],
                                r"(#define BURN_LAYOUTS_INIT \{.*?)BURN_LAYOUT_HASH\}",
                                rf"\1UINT64_C({known}), BURN_LAYOUT_HASH}}")
    for struct, header in APPENDED.items():
        texts[header] = replace(texts[header], rf"\n\}} {struct};",
                                f"\n    uint64_t simulated_next_field;\n}} {struct};")
    for name, text in texts.items():
        path = out / "burn" / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main()
