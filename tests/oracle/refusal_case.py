# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a violation is: operands and attributes that are fine, one thing in them changed.

An operand is a text, as it stands in refusals.json: "f32[2,3]" is a tensor of ones, "i64[3]=7" one
of sevens, "f64:0.5" a scalar by value, None an operand that is not given. `variants` makes the
changes; nothing here knows whether a change is refused.
"""

import dataclasses
import re

import torch
from oracle_case import DTYPES

TENSOR = re.compile(r"^(\w+)\[([\d,]*)\](?:=(.+))?$")
SCALAR = re.compile(r"^(\w+):(.+)$")


@dataclasses.dataclass
class Row:
    kind: str  # valid, dim, rank, dtype, scalar, missing, extra, attr or value
    what: str
    operands: list
    attrs: dict
    changed: dict  # attributes that differ from the group's
    names: list  # the text must hold one of these
    at: int = -1  # which operand was changed


def parts(text):
    """dtype, dims, fill of a tensor's text."""
    dtype, dims, fill = TENSOR.match(text).groups()
    return dtype, [int(d) for d in dims.split(",") if d], fill


def tensor_text(dtype, dims, fill=None):
    shape = ",".join(str(d) for d in dims)
    return f"{dtype}[{shape}]" + (f"={fill}" if fill is not None else "")


def shape_text(dims):
    return "[" + ",".join(str(d) for d in dims) + "]"


def is_tensor(text):
    return text is not None and TENSOR.match(text) is not None


def value_of(text):
    """What PyTorch is given for an operand."""
    if text is None:
        return None
    if is_tensor(text):
        dtype, dims, fill = parts(text)
        return torch.full(dims, float(fill) if fill else 1.0, dtype=torch.float64).to(DTYPES[dtype])
    dtype, value = SCALAR.match(text).groups()
    return float(value) if dtype[0] in "fb" else int(value)


def with_operand(operands, i, text):
    return operands[:i] + [text] + operands[i + 1:]


def shapes(operands):
    return [shape_text(parts(t)[1]) for t in operands if is_tensor(t)]


def axes(attrs):
    return [f"axis {a}" for a in [attrs.get("axis")] + attrs.get("axes", []) if a is not None]


def of_shapes(operands, attrs):
    """Each size one larger; one dim more in front and behind; one dim less."""
    for i, text in enumerate(operands):
        if not is_tensor(text):
            continue
        dtype, dims, fill = parts(text)
        changes = [("dim", f"operand {i}: dim {d} one larger", dims[:d] + [dims[d] + 1] +
                    dims[d + 1:]) for d in range(len(dims))]
        changes.append(("rank", f"operand {i}: a dim of 2 behind", dims + [2]))
        changes.append(("rank", f"operand {i}: a dim of 2 in front", [2] + dims))
        if dims:
            changes.append(("rank", f"operand {i}: without its last dim", dims[:-1]))
        for kind, what, new in changes:
            changed = with_operand(operands, i, tensor_text(dtype, new, fill))
            # What does not fit is a matter of the op: an operand's shape, a size, an axis.
            names = shapes(changed) + [f"rank {len(new)}"]
            names += [str(b) for a, b in zip(dims, new) if a != b and len(new) == len(dims)]
            names += axes(attrs)
            yield Row(kind, what, changed, attrs, {}, names, i)


def of_dtypes(operands, attrs):
    for i, text in enumerate(operands):
        if not is_tensor(text):
            continue
        dtype, dims, fill = parts(text)
        for other in ("f32", "f64", "i32", "u8", "bool"):
            if other != dtype:
                changed = with_operand(operands, i, tensor_text(other, dims, fill))
                yield Row("dtype", f"operand {i}: {other} instead of {dtype}", changed, attrs, {},
                          [other], i)


def of_counts(operands, attrs):
    for i, text in enumerate(operands):
        if is_tensor(text):
            changed = with_operand(operands, i, f"{parts(text)[0]}:1")
            yield Row("scalar", f"operand {i} is a scalar", changed, attrs, {},
                      ["tensor", "scalar", "rank"], i)
        if text is not None:
            changed = with_operand(operands, i, None)
            yield Row("missing", f"operand {i} is not given", changed, attrs, {},
                      ["missing", "required", "needs"], i)
    extra = operands + [next((t for t in operands if t is not None), "f32[2]")]
    yield Row("extra", "one operand too many", extra, attrs, {}, [str(len(extra))])


def of_attrs(operands, attrs, numbers):
    """`numbers`: for an attribute, the values that are tried in place of a good one."""
    for name, values in numbers.items():
        for value in values:
            names = ["rank", name.split("[")[0]] if isinstance(value, list) else [str(value)]
            if isinstance(value, list):
                names += [str(v) for v in value]
            if "size" in name or name == "step":
                names += ["start"] + shapes(operands) + [str(d) for t in operands if is_tensor(t)
                                             for d in parts(t)[1]]
            yield Row("attr", f"{name} is {value}", operands, {**attrs, name: value},
                      {name: value}, names)


def variants(operands, attrs, numbers, values):
    """Every change of operands and attributes. `values`: (what, operand, text, names)."""
    yield Row("valid", "nothing changed", operands, attrs, {}, [])
    yield from of_shapes(operands, attrs)
    yield from of_dtypes(operands, attrs)
    yield from of_counts(operands, attrs)
    yield from of_attrs(operands, attrs, numbers)
    for what, i, text, names in values:
        yield Row("value", what, with_operand(operands, i, text), attrs, {}, names, i)
