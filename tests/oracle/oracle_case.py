# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a case of the oracle is and how it is written: operands, attributes, outputs, gradients.

A case has the op's inputs in the order of its roles, what another implementation computed from
them, and, where that can differentiate, the gradients of sum(output * seed). Files are JSON, one
per op; numbers are written so that they read back as the same bits.
"""

import json
import math

import torch

DTYPES = {
    "bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16,
    "i32": torch.int32, "i64": torch.int64, "f16": torch.float16, "bf16": torch.bfloat16,
    "f32": torch.float32, "f64": torch.float64, "u16": torch.uint16, "u32": torch.uint32,
    "u64": torch.uint64,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def number(x):
    """A JSON value that reads back exactly; JSON has no NaN and no infinities."""
    if isinstance(x, bool):
        return int(x)
    if isinstance(x, float) and not math.isfinite(x):
        return "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"
    return x


def tensor(t):
    """A tensor as JSON."""
    t = t.detach()
    if t.is_floating_point() and t.dtype != torch.float64:
        # The shortest number that reads back as the same f32 (f16 and bf16 are f32 as well).
        values = [number(float(str(v))) for v in t.float().reshape(-1).numpy()]
    else:
        values = [number(v) for v in t.reshape(-1).tolist()]
    return {"dtype": NAMES[t.dtype], "dims": list(t.shape), "values": values}


class Scalar:
    """An operand passed by value."""

    def __init__(self, value, dtype):
        self.value = value
        self.dtype = dtype

    def json(self):
        return {"scalar": number(self.value), "dtype": self.dtype}


def operand(x):
    if x is None:
        return None
    return x.json() if isinstance(x, Scalar) else tensor(x)


class Oracle:
    """The cases of all ops; `write` makes a file for each op."""

    def __init__(self):
        self.ops = {}

    def add(self, op, inputs, outputs, attrs=None, tolerance=4, grads=None, seed=None, name=""):
        """One case. `tolerance` is in units of the dtype's epsilon, relative to max(1, |y|)."""
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        case = {"name": name, "tolerance": tolerance, "attrs": attrs or {},
                "in": [operand(x) for x in inputs], "out": [operand(y) for y in outputs]}
        if grads is not None:
            case["seed"] = tensor(seed)
            case["grad"] = [operand(g) for g in grads]
        self.ops.setdefault(op, []).append(case)

    def call(self, op, function, inputs, attrs=None, tolerance=4, grad_tolerance=None, name=""):
        """One case of a function of PyTorch, with gradients by all its float tensors."""
        given = [x.value if isinstance(x, Scalar) else x for x in inputs]
        leaves = [x.clone().requires_grad_(True)
                  if torch.is_tensor(x) and x.is_floating_point() else x for x in given]
        y = function(*leaves)
        first = y[0] if isinstance(y, (list, tuple)) else y
        if not (torch.is_tensor(first) and first.requires_grad):
            self.add(op, inputs, y, attrs, tolerance, name=name)
            return
        seed = torch.linspace(-1.0, 1.5, max(first.numel(), 1))[:first.numel()]
        seed = seed.reshape(first.shape).to(first.dtype)
        wanted = [x for x in leaves if torch.is_tensor(x) and x.requires_grad]
        found = iter(torch.autograd.grad(first, wanted, seed, allow_unused=True))
        grads = [next(found) if torch.is_tensor(x) and x.requires_grad else None for x in leaves]
        tolerance = max(tolerance, grad_tolerance or 0)
        self.add(op, inputs, y, attrs, tolerance, grads, seed, name)

    def write(self, folder):
        for op, cases in sorted(self.ops.items()):
            rows = ",\n ".join(json.dumps(case) for case in cases)
            path = folder / f"{op}.json"
            path.write_text(f'{{"op": "{op}", "cases": [\n {rows}\n]}}\n', encoding="utf-8")
