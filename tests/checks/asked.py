#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Functions of plugins that fill what the host lends are called where guards are, only."""
import re

from check_lib import Problem, is_c, line_of, run, strip_c

DEFINITION = re.compile(r"\b(?:d|def)\s*(?:\.|->)\s*(infer|view|vjp|decompose|eval|samples)\s*\(")
DEVICE = re.compile(r"\b(?:api|device)\s*->\s*(count|probe|open|limits|memory_info|alloc|"
                    r"import_host|map|queue_create|reached)\s*\(")
ROW = re.compile(r"\brow\s*->\s*(prepare|prepack)\s*\(")
CLOCK = re.compile(r"\bclock\s*->\s*(read)\s*\(")
# What may call which: each of these puts guard bytes behind what it lends (loader/lent.h).
RULES = [
    (DEFINITION, {"core/ops/ask.c": None}),
    (DEVICE, {"loader/ask.c": None, "loader/devices.c": {"count", "probe"},
              "core/exec/device.c": {"limits"}}),
    (ROW, {"core/exec/resolve.c": {"prepare"}}),
    (CLOCK, {"core/exec/profile.c": {"read"}}),
]


def check(tree):
    problems = []
    for path, text in tree.items():
        if not is_c(path) or not path.startswith(("core/", "loader/")):
            continue
        plain = strip_c(text)
        for pattern, places in RULES:
            for match in pattern.finditer(plain):
                allowed = places.get(path, set())
                if allowed is None or match.group(1) in allowed:
                    continue
                problems.append(Problem(
                    f"{match.group(1)} of a plugin is called without guards",
                    f"{path}:{line_of(text, match.start())}",
                    "a plugin that writes past what it was given must be an error, not a crash",
                    f"call it through {' or '.join(places)}"))
    return problems


GOOD = {"core/ops/ask.c": "rc = op->def.infer(&lent);\n", "loader/ask.c": "api->alloc(dev);\n",
        "core/exec/a.c": "rc = burni_ask_infer(op, &a); /* op->def.infer(&a) */\n",
        "core/exec/resolve.c": "row->prepare(probe, &out->it);\n",
        "sdk/conformance/a.c": "def->samples(i, &s);\n"}
BAD = [(name, {"core/exec/a.c": text}) for name, text in {
    "infer": "rc = e->op->def.infer(&a);\n", "samples": "def->samples(i, &s);\n",
    "eval": "return d->eval(&a);\n", "open": "device->api->open(0, NULL, &handle, &err);\n",
    "reached": "api->reached(queue, &value, NULL);\n", "clock": "clock->read(q, 0, &a, &b);\n",
    "prepare": "row->prepare(probe, &out);\n",
}.items()] + [("count", {"loader/ops.c": "table->device->count(&n, NULL);\n"}),
              ("limits", {"core/api/a.c": "device->api->limits(handle, &limits, &err);\n"})]

if __name__ == "__main__":
    run(check, GOOD, BAD)
