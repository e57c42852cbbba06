#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which folder may include which: the arrows of the architecture, read from #include lines."""
import posixpath
import re

from check_lib import Problem, is_c, line_of, run, strip_c

# layer -> layers that it may include, besides itself. The first matching prefix gives the layer.
PREFIXES = [
    ("abi/", "abi"), ("loader/", "loader"), ("train/", "train"), ("cli/", "cli"),
    ("examples/", "examples"), ("bench/bench_ops/", "extensions/bench_ops"), ("bench/", "bench"),
    ("tests/", "tests"),
    ("sdk/burn_sdk/", "sdk"), ("sdk/conformance/", "conformance"),
]
OWN_FOLDER = ("core/", "plugins/", "extensions/", "sdk/")  # each folder below is its own layer
CHAIN = ["core/base", "core/tensor", "core/ops", "core/graph",
         ("core/grad", "core/tune", "core/memory"), "core/exec",
         ("core/api", "core/nn", "core/store")]
# Single files that a layer may also include, and why: docs/adr/002-layers.md.
EXTRA = {
    "core/exec/emit.h": {"core/grad"},  # vjps emit ops like every other caller
    "core/exec/var.h": {"core/grad"},  # gradients of variables
    # arithmetic, no state
    "sdk/burn_sdk/half.h": {"core/api", "core/exec", "core/ops", "core/store"},
}
GPU = ("plugins/cuda", "plugins/hip", "plugins/vulkan")
WHY = {
    "core": "the core is a chain: api, nn, store -> exec -> grad, tune, memory -> graph -> ops -> "
            "tensor -> base; core (not base) -> loader",
    "loader": "the loader knows nothing of tensors: it sees core/base and abi only",
    "plugin": "plugins and extensions see abi and sdk only, so that a third party's can be built "
              "the same way",
    "user": "train, cli, examples and bench use the public API only, as every user does",
}


def layer_of(path):
    for prefix, layer in PREFIXES:
        if path.startswith(prefix):
            return layer
    if path.startswith(OWN_FOLDER) and path.count("/") >= 2:
        return "/".join(path.split("/")[:2])
    return None


def core_allows(layer):
    allowed = {"abi"}
    for step in CHAIN:
        steps = (step,) if isinstance(step, str) else step
        if layer in steps:
            break
        allowed.update(steps)
    else:
        return None  # a core folder that the chain does not know
    if layer != "core/base":
        allowed.add("loader")
    return allowed


def allows(layer):
    """(layers it may include, why)"""
    if layer.startswith("core/"):
        return core_allows(layer), WHY["core"]
    if layer == "loader":
        return {"abi", "core/base"}, WHY["loader"]
    if layer == "abi":
        return set(), "abi/ is the contract; it includes nothing of ours"
    if layer == "sdk":
        return {"abi"}, WHY["plugin"]
    if layer.startswith(("plugins/", "extensions/", "sdk/")) or layer == "conformance":
        more = {"plugins/gpu"} if layer in GPU else set()
        return {"abi", "sdk"} | more, WHY["plugin"]
    if layer == "cli":
        return {"abi", "conformance"}, WHY["user"]
    return {"abi"}, WHY["user"]


def resolve(tree, path, name, quoted):
    """The file that an #include means, or None (system headers, generated files)."""
    if name.startswith("burn/"):
        return "abi/" + name
    if name.startswith("burn_sdk/"):
        return "sdk/" + name
    places = ([posixpath.dirname(path)] if quoted else []) + ["", "core", "sdk", "abi"]
    for place in places:
        candidate = posixpath.normpath(posixpath.join(place, name))
        if candidate in tree:
            return candidate
    return None


def check(tree):
    problems = []
    for path, text in tree.items():
        layer = layer_of(path)
        if not is_c(path) or layer in (None, "tests"):
            continue
        allowed, why = allows(layer)
        if allowed is None:
            problems.append(Problem(f"folder {layer} has no place in the chain of the core", path,
                                    why, "put it into CHAIN of tests/checks/layers.py"))
            continue
        for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">\n]+)[">]',
                                 strip_c(text, strings=False), re.M):
            target = resolve(tree, path, match.group(2), match.group(1) == '"')
            to = layer_of(target) if target else None
            if to is None or to == layer or to in allowed or layer in EXTRA.get(target, ()):
                continue
            problems.append(Problem(
                f"{layer} includes {target} of {to}", f"{path}:{line_of(text, match.start())}",
                why, f"move what is shared down to {', '.join(sorted(allowed)) or layer}, or pass "
                     "it in"))
    return problems


GOOD = {
    "abi/burn/a.h": "#include <stdint.h>\n", "sdk/burn_sdk/s.h": "#include <burn/a.h>\n",
    "core/base/b.h": "#include <burn/a.h>\n", "core/tensor/t.h": '#include "base/b.h"\n',
    "core/ops/o.c": '#include "tensor/t.h"\n', "core/exec/e.c": '#include "ops/o.h"\n',
    "core/ops/o.h": "", "loader/l.h": '#include "base/b.h"\n',
    "core/api/x.c": '#include "loader/l.h"\n', "train/t.c": '#include "train/t.h"\n',
    "train/t.h": "", "plugins/flex/p.c": '#include <burn_sdk/s.h>\n#include "q.h"\n',
    "plugins/flex/q.h": "", "plugins/gpu/g.h": "",
    "plugins/cuda/c.c": '#include "plugins/gpu/g.h"\n',
    "tests/unit/u.c": '#include "core/base/b.h"\n',
    "core/exec/emit.h": "", "sdk/burn_sdk/half.h": "", "core/grad/g.c": '#include "exec/emit.h"\n',
    "core/exec/half.c": "#include <burn_sdk/half.h>\n",
    "core/exec/comment.c": '/*\n#include "api/x.h"\n*/\n', "core/api/x.h": "",
}
BAD = [(name, {**GOOD, **sample}) for name, sample in [
    ("core looks up", {"core/ops/o.c": '#include "api/x.h"\n'}),
    ("ops to exec", {"core/ops/o.c": '#include "exec/e.h"\n', "core/exec/e.h": ""}),
    ("ops to emit", {"core/ops/o.c": '#include "exec/emit.h"\n'}),
    ("grad to the rest of exec", {"core/grad/g.c": '#include "exec/e.h"\n', "core/exec/e.h": ""}),
    ("core to the rest of sdk", {"core/exec/half.c": "#include <burn_sdk/s.h>\n"}),
    ("base to half", {"core/base/b.c": "#include <burn_sdk/half.h>\n"}),
    ("peers", {"core/grad/g.c": '#include "memory/m.h"\n', "core/memory/m.h": ""}),
    ("base to loader", {"core/base/b.c": '#include "loader/l.h"\n'}),
    ("loader to tensor", {"loader/l.c": '#include "tensor/t.h"\n'}),
    ("plugin to core", {"plugins/flex/p.c": '#include "base/b.h"\n'}),
    ("plugin to core by path", {"plugins/flex/p.c": '#include "../../core/base/b.h"\n'}),
    ("plugin to plugin", {"plugins/cuda/c.c": '#include "plugins/flex/q.h"\n'}),
    ("mock to core", {"sdk/mock/m.c": '# include "core/base/b.h"\n'}),
    ("train to core", {"train/t.c": '#include "core/base/b.h"\n'}),
    ("example to sdk", {"examples/e.c": "#include <burn_sdk/s.h>\n"}),
    ("sdk to core", {"sdk/burn_sdk/s.h": '#include "base/b.h"\n'}),
    ("abi to sdk", {"abi/burn/a.h": "#include <burn_sdk/s.h>\n"}),
    ("unknown core folder", {"core/misc/m.c": ""}),
]]

if __name__ == "__main__":
    run(check, GOOD, BAD)
