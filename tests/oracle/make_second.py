#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes second/<op>.json: what NumPy and SciPy compute, beside PyTorch's values in data/. Forward
only: they do not differentiate. Made with NumPy 2.4.6 and SciPy 1.17.1:

    python3 make_second.py

Operands are rounded to f32 or are f64; values are computed in f64 from them, so that an f32 result
is the right one, rounded once. To add an op: a row of a table, or a function `cases_<something>`,
with at least three cases of an op.
"""

import json
import pathlib

import numpy as np
from scipy import signal, special

FLOATS = ("f32", "f64")
TYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "bool": np.bool_}
random = np.random.default_rng(20261130)
ops = {}


def number(x):
    """A JSON value that reads back exactly; JSON has no NaN and no infinities."""
    x = x.item()
    if isinstance(x, bool):
        return int(x)
    if isinstance(x, float) and not np.isfinite(x):
        return "nan" if np.isnan(x) else "inf" if x > 0 else "-inf"
    return x


def tensor(x, dtype):
    x = np.asarray(x).astype(TYPES[dtype])
    # The shortest decimal of an f32, not of the same number in f64.
    values = [float(str(v)) if dtype == "f32" and np.isfinite(v) else number(v)
              for v in x.reshape(-1)]
    return {"dtype": dtype, "dims": list(x.shape), "values": values}


def add(op, inputs, output, dtype, attrs=None, tolerance=4, name=""):
    """`inputs` are arrays of the dtype, or (array, its dtype), or None."""
    given = [None if x is None else tensor(*x) if isinstance(x, tuple) else tensor(x, dtype)
             for x in inputs]
    out = tensor(*output) if isinstance(output, tuple) else tensor(output, dtype)
    ops.setdefault(op, []).append({"name": name, "tolerance": tolerance, "attrs": attrs or {},
                                   "in": given, "out": [out]})


def draw(dtype, *dims, lo=-3.0, hi=3.0):
    """In f64, but numbers that the dtype has."""
    return random.uniform(lo, hi, dims).astype(TYPES[dtype]).astype(np.float64)


# ---- pointwise -----------------------------------------------------------------------------------

EDGES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.5, -1.5])
# Where a careless way loses its digits, or ends.
NEAR = np.array([1e-12, -1e-12, 1e-8, -1e-8, 1e-4, -1e-4, 2.0 ** -60, 0.25])
FAR = np.array([-745.0, -700.0, -104.0, -88.0, -40.0, -20.0, 20.0, 37.0, 88.0])

UNARY = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "floor": np.floor,
    "ceil": np.ceil, "round": np.rint, "trunc": np.trunc, "abs": np.abs, "recip": np.reciprocal,
    "erf": special.erf, "sigmoid": special.expit, "log_sigmoid": special.log_expit,
    "softplus": lambda x: np.logaddexp(x, 0.0),
}
NARROW = {"asin": (-1.0, 1.0), "acos": (-1.0, 1.0), "log": (0.001, 9.0), "log1p": (-0.99, 9.0),
          "sqrt": (0.0, 9.0), "recip": (0.1, 9.0)}


def cases_unary():
    for op, function in UNARY.items():
        lo, hi = NARROW.get(op, (-9.0, 9.0))
        for dtype in FLOATS:
            x = draw(dtype, 3, 11, lo=lo, hi=hi)
            add(op, [x], function(x), dtype, tolerance=8)
        add(op, [EDGES], function(EDGES), "f64", tolerance=8, name="edges")
        near = NEAR.astype(np.float32).astype(np.float64)
        add(op, [near], function(near), "f32", tolerance=8, name="near 0")
    for op in ("sigmoid", "log_sigmoid", "softplus", "tanh", "erf"):
        add(op, [FAR], UNARY[op](FAR), "f64", tolerance=8, name="far out")


BINARY = {"atan2": np.arctan2, "fmod": np.fmod, "remainder": np.mod, "maximum": np.maximum,
          "minimum": np.minimum}


def cases_binary():
    for op, function in BINARY.items():
        for dtype in FLOATS:
            x, y = draw(dtype, 4, 7), draw(dtype, 7, lo=0.25)
            add(op, [x, y], function(x, y), dtype, tolerance=8)
        x, y = random.integers(-40, 40, (2, 9)), random.integers(1, 7, 9)
        if op == "atan2":
            x, y = draw("f64", 9), -draw("f64", 9, lo=0.5)
        add(op, [x, y], function(x, y), "f64" if op == "atan2" else "i64", tolerance=8)
    for dtype in FLOATS:
        x, y = draw(dtype, 4, 7, lo=0.1), draw(dtype, 7)
        add("pow", [x, y], np.power(x, y), dtype, tolerance=16)
    add("pow", [np.array([-2.0, -1.5, 0.0, 3.0]), np.array([3.0, 2.0, 0.0, -2.0])],
        np.power(np.array([-2.0, -1.5, 0.0, 3.0]), np.array([3.0, 2.0, 0.0, -2.0])), "f64")


# ---- reductions and lines ------------------------------------------------------------------------

REDUCE = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "max": np.max, "min": np.min,
          "logsumexp": special.logsumexp}


def axes(along, keepdims=0, correction=0):
    return {"n_axes": len(along), "axes": list(along), "keepdims": keepdims,
            "correction": correction}


def cases_reduce():
    for op, function in REDUCE.items():
        for dtype in FLOATS:
            x = draw(dtype, 3, 5, 4)
            for along, keep in (((1,), 0), ((0, 2), 1), ((0, 1, 2), 0)):
                add(op, [x], function(x, axis=along, keepdims=bool(keep)), dtype,
                    axes(along, keep), 64)
    for dtype in FLOATS:
        for correction in (0, 1, 2):
            x = draw(dtype, 4, 9)
            add("var", [x], np.var(x, axis=1, ddof=correction), dtype, axes((1,), 0, correction),
                64)
    far = np.array([[1e8 + 1.0, 1e8 + 2.0, 1e8 + 4.0, 1e8 + 8.0]])
    add("var", [far], np.var(far, axis=1, ddof=1), "f64", axes((1,), 0, 1), 64, "far from 0")
    high = np.array([[1000.0, 1000.5, 999.0], [-1e4, -1e4 + 1.0, -1e4]])
    add("logsumexp", [high], special.logsumexp(high, axis=1), "f64", axes((1,)), 8, "far out")
    for op, function in (("argmax", np.argmax), ("argmin", np.argmin)):
        for axis in (0, 1, 2):
            x = draw("f32", 3, 5, 4)
            add(op, [x], (function(x, axis=axis), "i64"), "f32", {"axis": axis})


def cases_lines():
    for op, function in (("softmax", special.softmax), ("log_softmax", special.log_softmax),
                         ("cumsum", np.cumsum)):
        for dtype in FLOATS:
            for axis in (0, 1):
                x = draw(dtype, 4, 9)
                add(op, [x], function(x, axis=axis), dtype, {"axis": axis}, 64)
        if op != "cumsum":
            x = np.array([[900.0, 901.0, -900.0], [-1e4, 0.0, 5.0]])
            add(op, [x], function(x, axis=1), "f64", {"axis": 1}, 8, "far out")


# ---- products and places -------------------------------------------------------------------------


def conv_attrs(padding):
    pairs = {"stride": (1, 1), "padding": padding, "dilation": (1, 1), "output_padding": (0, 0),
             "size": (0, 0)}
    flat = {f"{name}[{i}]": pair[i] for name, pair in pairs.items() for i in (0, 1)}
    return {"groups": 1, **flat}


def cases_products():
    for dtype in FLOATS:
        for left, right in (((3, 5), (5, 4)), ((2, 3, 7), (7, 2)), ((4, 1, 2, 3), (3, 3, 5))):
            x, y = draw(dtype, *left), draw(dtype, *right)
            add("matmul", [x, y], np.matmul(x, y), dtype, tolerance=64)
        for padding in ((0, 0), (1, 2)):
            x, w = draw(dtype, 1, 2, 6, 7), draw(dtype, 3, 2, 3, 2)
            wide = np.pad(x[0], ((0, 0), (padding[0],) * 2, (padding[1],) * 2))
            planes = [sum(signal.correlate(wide[c], w[o, c], "valid", "direct")
                          for c in range(2)) for o in range(3)]
            add("conv2d", [x, w, None], np.array(planes)[None], dtype, conv_attrs(padding), 256)


def cases_places():
    for axis in (0, 1):
        x = draw("f64", 5, 4)
        index = random.integers(0, x.shape[axis], (3, 4) if axis == 0 else (5, 6))
        add("gather", [x, (index, "i64")], np.take_along_axis(x, index, axis), "f64",
            {"axis": axis}, 0)
    x = np.arange(12).reshape(3, 4)
    index = np.array([[2, 0, 1, 1]])
    add("gather", [x, (index, "i64")], np.take_along_axis(x, index, 0), "i32", {"axis": 0}, 0)
    for axis in (0, 1, 2):
        x = draw("f32", 3, 4, 5)
        index = random.integers(0, x.shape[axis], 7)
        add("select", [x, (index, "i64")], np.take(x, index, axis), "f32", {"axis": axis}, 0)
    for axis, size, step in ((0, 3, 1), (0, 2, 3), (1, 4, 2)):
        x = draw("f32", 9, 8)
        windows = np.lib.stride_tricks.sliding_window_view(x, size, axis)
        windows = np.take(windows, np.arange(0, windows.shape[axis], step), axis)
        add("unfold", [x], windows, "f32", {"axis": axis, "size": size, "step": step,
                                            "dilation": 1}, 0)


def main():
    np.seterr(all="ignore")
    folder = pathlib.Path(__file__).parent / "second"
    folder.mkdir(exist_ok=True)
    for name, make in list(globals().items()):
        if name.startswith("cases_"):
            make()
    for op, cases in sorted(ops.items()):
        rows = ",\n ".join(json.dumps(case) for case in cases)
        path = folder / f"{op}.json"
        path.write_text(f'{{"op": "{op}", "cases": [\n {rows}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
