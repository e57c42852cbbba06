#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Headers in which somebody swapped two fields of a struct, of one size: a careless change, with
the number in plugin.h written anew as `./dev golden` would.

usage: swapped.py CC OUT_FOLDER
A plugin built with these states sizes and versions that are right; today's loader must refuse it by
its layout hash (tests/loader/test_minors.c).
"""
import pathlib
import sys

import gates
import layout


def main():
    *compiler, out = sys.argv[1:]
    out = pathlib.Path(out)
    (out / "burn").mkdir(parents=True, exist_ok=True)
    texts = {h.name: h.read_text() for h in sorted((layout.ROOT / "abi/burn").glob("*.h"))}
    header, pattern, by = gates.PATCHES["two fields of a call reordered"]
    texts[header] = gates.replaced(texts[header], pattern, by)
    if texts[header] is None:
        raise SystemExit(f"swapped.py: the patch does not fit {header} any more; adapt gates.py")
    now = layout.layout_of_texts(" ".join(compiler), texts)
    texts["plugin.h"] = layout.NUMBER.sub(
        lambda m: m.group(1) + layout.number_of(now) + m.group(3), texts["plugin.h"])
    for name, text in texts.items():
        path = out / "burn" / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main()
