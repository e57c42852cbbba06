#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes data/<op>.json: what PyTorch computes for every op, with gradients, and what the published
definitions say where PyTorch has no such op. Made with torch 2.13.0 (CPU build):

    python3 make_oracle.py

To add an op: a function below whose name starts with `cases_`, with at least three cases.
"""

import math
import pathlib
import struct

import torch
import torch.nn.functional as F
from oracle_case import DTYPES, Oracle, Scalar

FLOATS = ("f32", "f64")
HALVES = ("f16", "bf16")
INTEGERS = ("i32", "u8", "i64")

torch.manual_seed(20261129)
oracle = Oracle()


def normal(*dims, dtype="f32", scale=1.0):
    return (torch.randn(*dims, dtype=torch.float64) * scale).to(DTYPES[dtype])


def uniform(lo, hi, *dims, dtype="f32"):
    return (torch.rand(*dims, dtype=torch.float64) * (hi - lo) + lo).to(DTYPES[dtype])


def whole(lo, hi, *dims, dtype="i64"):
    return torch.randint(lo, hi, dims).to(DTYPES[dtype])


def any_number(*dims, dtype):
    return normal(*dims, dtype=dtype) if dtype[0] == "f" else whole(-9, 9, *dims, dtype=dtype)


# ---- pointwise -----------------------------------------------------------------------------------

EDGES = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, -1e-40, 3e38, 1.0, -1.0, 0.5, -0.5]

UNARY = {
    "exp": (torch.exp, -8, 8), "expm1": (torch.expm1, -4, 4), "log": (torch.log, 0.01, 9),
    "log1p": (torch.log1p, -0.9, 9), "sqrt": (torch.sqrt, 0.01, 9),
    "rsqrt": (torch.rsqrt, 0.01, 9), "recip": (torch.reciprocal, 0.1, 9),
    "sin": (torch.sin, -9, 9), "cos": (torch.cos, -9, 9), "tan": (torch.tan, -1.4, 1.4),
    "asin": (torch.asin, -0.95, 0.95), "acos": (torch.acos, -0.95, 0.95),
    "atan": (torch.atan, -9, 9), "sinh": (torch.sinh, -4, 4), "cosh": (torch.cosh, -4, 4),
    "tanh": (torch.tanh, -4, 4), "erf": (torch.erf, -3, 3), "sigmoid": (torch.sigmoid, -8, 8),
    "floor": (torch.floor, -9, 9), "ceil": (torch.ceil, -9, 9), "round": (torch.round, -9, 9),
    "trunc": (torch.trunc, -9, 9), "silu": (F.silu, -8, 8), "log_sigmoid": (F.logsigmoid, -8, 8),
    "softplus": (F.softplus, -8, 8), "neg": (torch.neg, -9, 9), "abs": (torch.abs, -9, 9),
    "relu": (torch.relu, -9, 9),
}


def cases_unary():
    for op, (function, lo, hi) in UNARY.items():
        for dtype in FLOATS + HALVES:
            oracle.call(op, function, [uniform(lo, hi, 3, 5, dtype=dtype)], tolerance=8)
        edges = torch.tensor(EDGES, dtype=torch.float32)
        oracle.add(op, [edges], [function(edges)], tolerance=8, name="edges")
    for op in ("neg", "abs", "relu"):
        for dtype in ("i32", "i8"):
            x = whole(-9, 9, 7, dtype=dtype)
            oracle.add(op, [x], [UNARY[op][0](x)])
    for dtype in ("f32", "f64", "i16"):
        x = whole(-2, 3, 9, dtype=dtype)
        oracle.add("sign", [x], [torch.sign(x)])
    for tanh_form, approximate in ((0, "none"), (1, "tanh")):
        for dtype in FLOATS:
            oracle.call("gelu", lambda x, a=approximate: F.gelu(x, approximate=a),
                        [uniform(-5, 5, 9, dtype=dtype)], {"tanh_form": tanh_form}, 16)


def cases_tests_of_numbers():
    edges = torch.tensor(EDGES, dtype=torch.float32)
    for op, function in (("is_nan", torch.isnan), ("is_inf", torch.isinf),
                         ("is_finite", torch.isfinite)):
        for dtype in ("f32", "f64", "f16"):
            x = edges.to(DTYPES[dtype])
            oracle.add(op, [x], [function(x)])
    for dtype in ("bool", "i32", "f32"):
        x = whole(0, 2, 9, dtype=dtype)
        oracle.add("logical_not", [x], [torch.logical_not(x)])
    for dtype in ("i32", "u8", "bool"):
        x = whole(0, 2 if dtype == "bool" else 99, 9, dtype=dtype)
        oracle.add("bit_not", [x], [torch.bitwise_not(x)])


BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
    "remainder": torch.remainder, "fmod": torch.fmod, "pow": torch.pow,
    "maximum": torch.maximum, "minimum": torch.minimum, "atan2": torch.atan2,
}
NO_INTEGERS = ("div", "pow", "atan2")


def cases_binary():
    for op, function in BINARY.items():
        low = 0.3 if op == "pow" else -4
        for dtype in FLOATS + HALVES:
            x = uniform(low, 4, 3, 4, dtype=dtype)
            y = uniform(0.5, 3, 4, dtype=dtype)
            # The step of a quotient near a whole number shows as a jump of the remainder.
            oracle.call(op, function, [x, y], tolerance=8, name="broadcast")
        edges = torch.tensor(EDGES, dtype=torch.float32)
        if op not in ("remainder", "fmod", "pow"):
            other = edges.flip(0)
            oracle.add(op, [edges, other], [function(edges, other)], tolerance=8, name="edges")
        for dtype in () if op in NO_INTEGERS else ("i32", "i8", "i64"):
            x = whole(-60, 60, 9, dtype=dtype)
            y = torch.tensor([-7, 3, 5, -2, 1, 9, -4, 6, 2]).to(DTYPES[dtype])
            oracle.add(op, [x, y], [function(x, y)])
    x, y = whole(-60, 60, 9, dtype="i32"), torch.tensor([-7, 3, 5, -2, 1, 9, -4, 6, 2]).int()
    oracle.add("div", [x, y], [torch.div(x, y, rounding_mode="trunc")], name="integers truncate")
    x, y = whole(-5, 6, 9, dtype="i64"), whole(0, 5, 9, dtype="i64")
    oracle.add("pow", [x, y], [torch.pow(x, y)], name="integers")


COMPARE = {
    "equal": torch.eq, "not_equal": torch.ne, "less": torch.lt, "less_equal": torch.le,
    "greater": torch.gt, "greater_equal": torch.ge, "logical_and": torch.logical_and,
    "logical_or": torch.logical_or, "logical_xor": torch.logical_xor,
}
BITS = {"bit_and": torch.bitwise_and, "bit_or": torch.bitwise_or, "bit_xor": torch.bitwise_xor}


def cases_compare():
    for op, function in COMPARE.items():
        for dtype in ("i32", "f64", "u8"):
            x, y = whole(0, 3, 4, 3, dtype=dtype), whole(0, 3, 3, dtype=dtype)
            oracle.add(op, [x, y], [function(x, y)])
        edges = torch.tensor(EDGES, dtype=torch.float32)
        oracle.add(op, [edges, edges.flip(0)], [function(edges, edges.flip(0))], name="edges")
    for op, function in BITS.items():
        for dtype in ("i32", "u8", "bool"):
            high = 2 if dtype == "bool" else 100
            x, y = whole(0, high, 9, dtype=dtype), whole(0, high, 9, dtype=dtype)
            oracle.add(op, [x, y], [function(x, y)])
    for dtype in ("i32", "i64", "u8"):
        x = whole(-100 if dtype[0] == "i" else 0, 100, 9, dtype=dtype)
        y = whole(0, 6, 9, dtype=dtype)
        oracle.add("shift_left", [x, y], [torch.bitwise_left_shift(x, y)])
        oracle.add("shift_right", [x, y], [torch.bitwise_right_shift(x, y)])


def cases_select_values():
    for dtype in FLOATS + ("i32",):
        mask = whole(0, 2, 3, 4, dtype="bool")
        x = normal(3, 4, dtype=dtype) if dtype in FLOATS else whole(-9, 9, 3, 4, dtype=dtype)
        y = normal(4, dtype=dtype) if dtype in FLOATS else whole(-9, 9, 4, dtype=dtype)
        oracle.call("where", torch.where, [mask, x, y])
    for dtype in FLOATS:
        x = normal(3, 4, dtype=dtype, scale=2)
        oracle.call("clamp", torch.clamp, [x, Scalar(-0.75, dtype), Scalar(1.25, dtype)])
        oracle.call("clamp", lambda t, lo, hi: torch.clamp(t, min=lo),
                    [x, Scalar(-0.75, dtype), None])
        oracle.call("copy", torch.clone, [x])
        oracle.call("copy", torch.clone, [normal(2, 0, 3, dtype=dtype)])


def cases_cast():
    table = (("f64", "f32"), ("f32", "f16"), ("f32", "bf16"), ("i32", "f32"), ("f32", "i32"),
             ("i64", "u8"), ("bool", "f64"), ("f32", "bool"), ("u8", "i64"))
    for source, target in table:
        x = whole(-3, 200, 9, dtype=source) if source[0] in "iub" else normal(9, dtype=source) * 3
        oracle.add("cast", [x], [x.to(DTYPES[target])], {"dtype": target}, 0)


# ---- creation and random numbers -----------------------------------------------------------------


def shape_attrs(dtype, *dims):
    return {"n_dims": len(dims), "dims": list(dims), "dtype": dtype}


def cases_create():
    for dtype, value in (("f32", 1.5), ("i16", -7), ("bool", 1), ("f16", 0.25)):
        y = torch.full((2, 3), value, dtype=DTYPES[dtype])
        oracle.add("fill", [Scalar(value, dtype)], [y], shape_attrs(dtype, 2, 3), 0)
    for dtype, start, step, n in (("f32", 0.5, 0.25, 7), ("i64", 3, -2, 5), ("u8", 1, 3, 9)):
        y = (torch.arange(n, dtype=torch.float64) * step + start).to(DTYPES[dtype])
        oracle.add("arange", [Scalar(start, dtype), Scalar(step, dtype)], [y],
                   shape_attrs(dtype, n), 1)


def philox(counter, key):
    """Philox4x32-10 as its authors define it (Salmon et al., 2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def check_philox():
    """The published vectors."""
    ones = 0xFFFFFFFF
    pi = ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0])
    expected = ((([0] * 4, [0] * 2), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
                (([ones] * 4, [ones] * 2), [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
                (pi, [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]))
    for (counter, key), words in expected:
        assert philox(counter, key) == words


def words(seed, counter, n):
    out = []
    for block in range((n + 3) // 4):
        at = counter + block
        out += philox([at & 0xFFFFFFFF, at >> 32, 0, 0], [seed & 0xFFFFFFFF, seed >> 32])
    return out[:n]


def uniforms(seed, counter, n):
    return [(w >> 8) * 2.0 ** -24 for w in words(seed, counter, n)]


def as_float(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def cases_random():
    check_philox()
    for seed, counter, n in ((0, 0, 9), (1234567890123, 77, 16), (2 ** 62 + 5, 2 ** 40, 5)):
        draw = [Scalar(seed, "u64"), Scalar(counter, "u64")]
        bits = torch.tensor(words(seed, counter, n), dtype=torch.int64).to(torch.uint32)
        oracle.add("random_bits", draw, [bits], shape_attrs("u32", n), 0)
        u = uniforms(seed, counter, n + n % 2)
        oracle.add("random_uniform", draw, [torch.tensor(u[:n], dtype=torch.float32)],
                   shape_attrs("f32", n), 0)
        chance = as_float(0.375)
        taken = torch.tensor([x < chance for x in u[:n]])
        oracle.add("bernoulli", [Scalar(0.375, "f64")] + draw, [taken], shape_attrs("bool", n), 0)
        pairs = []
        for a, b in zip(u[0::2], u[1::2]):
            radius = math.sqrt(-2.0 * math.log(1.0 - a))
            pairs += [radius * math.cos(2 * math.pi * b), radius * math.sin(2 * math.pi * b)]
        oracle.add("random_normal", draw, [torch.tensor(pairs[:n], dtype=torch.float32)],
                   shape_attrs("f32", n), 16)
        x = normal(n)
        kept = torch.tensor([0.0 if v < as_float(0.25) else 1.0 for v in u[:n]])
        oracle.add("dropout", [x, Scalar(0.25, "f64")] + draw, [x * kept / 0.75], tolerance=4)


# ---- reductions ----------------------------------------------------------------------------------


def axes_attrs(axes, keepdims=0, correction=0):
    return {"n_axes": len(axes), "axes": list(axes), "keepdims": keepdims,
            "correction": correction}


REDUCE = {
    "sum": lambda x, a, k: torch.sum(x, a, keepdim=k),
    "mean": lambda x, a, k: torch.mean(x, a, keepdim=k),
    "max": lambda x, a, k: torch.amax(x, a, keepdim=k),
    "min": lambda x, a, k: torch.amin(x, a, keepdim=k),
    "logsumexp": lambda x, a, k: torch.logsumexp(x, a, keepdim=k),
    "var": lambda x, a, k: torch.var(x, a, correction=1, keepdim=k),
}


def cases_reduce():
    for op, function in REDUCE.items():
        for axes, keep in (((1,), 0), ((0, 2), 1), ((0, 1, 2), 0)):
            for dtype in FLOATS:
                oracle.call(op, lambda x, f=function, a=axes, k=keep: f(x, a, bool(k)),
                            [normal(3, 4, 2, dtype=dtype)],
                            axes_attrs(axes, keep, 1 if op == "var" else 0), 64)
    for axis in (0, 1):
        for dtype in FLOATS:
            oracle.call("prod", lambda x, a=axis: torch.prod(x, a),
                        [uniform(0.5, 2, 3, 4, dtype=dtype)], axes_attrs((axis,)), 64)
            oracle.call("cumsum", lambda x, a=axis: torch.cumsum(x, a), [normal(3, 4, dtype=dtype)],
                        {"axis": axis}, 64)
            x = normal(3, 4, dtype=dtype)
            oracle.add("argmax", [x], [torch.argmax(x, axis)], {"axis": axis})
            oracle.add("argmin", [x], [torch.argmin(x, axis, keepdim=True)],
                       {"axis": axis, "keepdims": 1})
    for dtype in ("bool", "i32", "f32"):
        x = whole(0, 2, 3, 4, dtype=dtype)
        oracle.add("any", [x], [torch.any(x, 1)], axes_attrs((1,)))
        oracle.add("all", [x], [torch.all(x, 0, keepdim=True)], axes_attrs((0,), 1))
    x = whole(-9, 9, 3, 4, dtype="i64")
    oracle.add("sum", [x], [torch.sum(x, 0)], axes_attrs((0,)), name="integers")
    x = torch.tensor([[0.0, 2.0, 3.0], [0.0, 0.0, 5.0]], dtype=torch.float64)
    oracle.call("prod", lambda t: torch.prod(t, 1), [x], axes_attrs((1,)), name="zeros")


# Where functions are steep, flat, or near the ends of their domains: no random numbers.
WIDE = [-700.0, -90.0, -20.0, -3.5, -1.25, -0.5, -1e-3, -1e-9, 1e-9, 1e-3, 0.5, 1.25, 3.5, 20.0,
        90.0, 700.0]
MIDDLE = WIDE[2:7] + [1e-9] + WIDE[10:14]
NARROW = [-0.99, -0.75, -0.5, -0.25, -1e-3, -1e-10, 1e-10, 1e-3, 0.25, 0.5, 0.75, 0.99]
POSITIVE = [1e-300, 1e-10, 0.01, 0.5, 1.0, 2.0, 10.0, 12345.0, 1e200]
FAR = {
    "neg": WIDE, "abs": WIDE, "sign": WIDE, "atan": WIDE, "floor": WIDE, "ceil": WIDE,
    "round": WIDE, "trunc": WIDE, "relu": WIDE, "softplus": WIDE, "log_sigmoid": WIDE,
    "log1p": NARROW, "tan": NARROW, "asin": NARROW, "acos": NARROW, "log": POSITIVE,
    "sqrt": POSITIVE, "rsqrt": POSITIVE[1:-1],
}
SIGNS_X = [[[-7.5, -3.0, -0.75, 0.25]], [[1.5, 2.0, 4.25, 9.0]], [[-1.0, 0.5, 3.0, 6.5]]]
SIGNS_Y = [[-2.25], [1.75]]


def softplus(x):
    """F.softplus is a line from 20 on."""
    return torch.logaddexp(x, torch.zeros_like(x))


def cases_far_out():
    for op, (function, _, _) in list(UNARY.items()) + [("sign", (torch.sign, 0, 0))]:
        function = softplus if op == "softplus" else function
        x = torch.tensor(FAR.get(op, MIDDLE), dtype=torch.float64)
        oracle.call(op, function, [x], tolerance=8, name="far out")
    x = torch.tensor(MIDDLE, dtype=torch.float64)
    for tanh_form, approximate in ((0, "none"), (1, "tanh")):
        oracle.call("gelu", lambda x, a=approximate: F.gelu(x, approximate=a), [x],
                    {"tanh_form": tanh_form}, 16, name="far out")
    for op, function in BINARY.items():
        x, y = (torch.tensor(t, dtype=torch.float64) for t in (SIGNS_X, SIGNS_Y))
        # A negative base has no gradient by its exponent.
        x = x.abs() + 0.1 if op == "pow" else x
        oracle.call(op, function, [x, y], tolerance=64, name="signs")
    x = torch.linspace(-1.75, 2.5, 24, dtype=torch.float64).reshape(3, 4, 2)
    oracle.call("prod", torch.prod, [x], axes_attrs((0, 1, 2)), 64, name="all")
    oracle.call("prod", lambda x: torch.prod(torch.prod(x, 2, True), 0, True), [x],
                axes_attrs((0, 2), 1), 64, name="outer")


# ---- movement and indices ------------------------------------------------------------------------


def cases_movement():
    for dtype in ("f32", "f64", "i32"):
        def make(*dims, dtype=dtype):
            return any_number(*dims, dtype=dtype)
        oracle.call("reshape", lambda x: x.reshape(4, 3), [make(2, 6)], shape_attrs("none", 4, 3))
        oracle.call("permute", lambda x: x.permute(2, 0, 1), [make(2, 3, 4)],
                    {"n_axes": 3, "perm": [2, 0, 1]})
        oracle.call("slice", lambda x, s: x[:, 1:6:2], [make(2, 7), Scalar(1, "i64")],
                    {"axis": 1, "size": 3, "step": 2})
        oracle.call("expand", lambda x: x.expand(3, 2, 4), [make(2, 1)[:, :1]],
                    shape_attrs("none", 3, 2, 4))
        oracle.call("flip", lambda x: x.flip((0, 2)), [make(2, 3, 2)], axes_attrs((0, 2)))
        oracle.call("unfold", lambda x: x.unfold(1, 3, 2), [make(2, 7)],
                    {"axis": 1, "size": 3, "step": 2, "dilation": 1})
        oracle.call("cat", lambda *t: torch.cat(t, 1), [make(2, 3), make(2, 1), make(2, 2)],
                    {"axis": 1})
        oracle.call("pad", lambda x, v: F.pad(x, (1, 2, 0, 1), value=v),
                    [make(2, 3), Scalar(2, dtype)],
                    {"n_dims": 2, "before": [0, 1], "after": [1, 2]})
        oracle.call("slice_assign", lambda x, y, s: torch.slice_scatter(x, y, 1, 1, 6, 2),
                    [make(2, 7), make(2, 3), Scalar(1, "i64")], {"axis": 1, "size": 3, "step": 2})


def cases_index():
    for dtype in ("f32", "f64", "i32"):
        def make(*dims, dtype=dtype):
            return any_number(*dims, dtype=dtype)
        index = whole(0, 4, 3, 5)
        oracle.call("gather", lambda x, i: torch.gather(x, 1, i), [make(3, 4), index], {"axis": 1})
        oracle.call("select", lambda x, i: torch.index_select(x, 0, i),
                    [make(4, 3), whole(0, 4, 6)], {"axis": 0})
        oracle.call("embedding", lambda t, i: t[i], [make(4, 3), whole(0, 4, 2, 3)])
        index = torch.stack([torch.randperm(4)[:3] for _ in range(3)])
        oracle.call("scatter", lambda x, i, v: x.scatter(1, i, v), [make(3, 4), index, make(3, 3)],
                    {"axis": 1, "mode": 0}, name="assign")
        index = whole(0, 4, 3, 6)
        oracle.call("scatter", lambda x, i, v: x.scatter_add(1, i, v),
                    [make(3, 4), index, make(3, 6)], {"axis": 1, "mode": 1}, 8, name="add")
        hot = F.one_hot(whole(0, 5, 4), 5)
        oracle.add("one_hot", [hot.argmax(1)], [hot.to(DTYPES[dtype])],
                   {"classes": 5, "dtype": dtype})


# ---- layers --------------------------------------------------------------------------------------


def cases_matmul():
    for dtype in FLOATS:
        for left, right in (((3, 5), (5, 4)), ((2, 3, 5), (5, 4)), ((2, 1, 3, 5), (3, 5, 2))):
            oracle.call("matmul", torch.matmul, [normal(*left, dtype=dtype),
                                                 normal(*right, dtype=dtype)], None, 64)
        # The weight is [in, out] here, [out, in] in PyTorch.
        x, w, b = (normal(4, 5, dtype=dtype), normal(5, 3, dtype=dtype), normal(3, dtype=dtype))
        oracle.call("linear", lambda x, w, b: F.linear(x, w.T, b), [x, w, b], None, 64)
        oracle.call("linear", lambda x, w, b: F.linear(x, w.T), [x, w, None], None, 64)


def conv_attrs(stride=1, padding=0, dilation=1, groups=1, output_padding=0, size=(0, 0)):
    attrs = {"groups": groups}
    for name, value in (("stride", stride), ("padding", padding), ("dilation", dilation),
                        ("output_padding", output_padding)):
        attrs[f"{name}[0]"] = attrs[f"{name}[1]"] = value
    attrs["size[0]"], attrs["size[1]"] = size
    return attrs


CONVOLUTIONS = ({}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": 2}, {"groups": 2})


def cases_conv():
    for dtype in FLOATS:
        for how in CONVOLUTIONS:
            groups = how.get("groups", 1)
            x, w = normal(1, 4, 6, 5, dtype=dtype), normal(4, 4 // groups, 3, 3, dtype=dtype)
            bias = normal(4, dtype=dtype)
            oracle.call("conv2d", lambda x, w, b, h=how: F.conv2d(x, w, b, **h), [x, w, bias],
                        conv_attrs(**how), 256)
            line, weight = normal(1, 4, 9, dtype=dtype), normal(4, 4 // groups, 3, dtype=dtype)
            oracle.call("conv1d", lambda x, w, b, h=how: F.conv1d(x, w, b, **h),
                        [line, weight, bias], conv1d_attrs(how), 256)
            leaf_x, leaf_w = x.clone().requires_grad_(True), w.clone().requires_grad_(True)
            y = F.conv2d(leaf_x, leaf_w, **how)
            g = torch.randn_like(y)
            gx, gw = torch.autograd.grad(y, (leaf_x, leaf_w), g)
            oracle.add("conv2d_grad_input", [w, g], [gx], conv_attrs(**how, size=(6, 5)), 256)
            oracle.add("conv2d_grad_weight", [x, g], [gw], conv_attrs(**how, size=(3, 3)), 256)
        for how in ({}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2}):
            groups = how.get("groups", 1)
            w = normal(4, 6 // groups, 3, 3, dtype=dtype)
            oracle.call("conv_transpose2d",
                        lambda x, w, b, h=how: F.conv_transpose2d(x, w, b, **h),
                        [normal(1, 4, 5, 4, dtype=dtype), w, normal(6, dtype=dtype)],
                        conv_attrs(**how), 256)


def conv1d_attrs(how):
    attrs = conv_attrs(**how)
    attrs.update({"stride[1]": 1, "padding[1]": 0, "dilation[1]": 1})
    return attrs


def pool_attrs(kernel, stride, padding=0, dilation=1, include=1, size=(0, 0)):
    attrs = {"ceil_mode": 0, "count_include_pad": include, "size[0]": size[0], "size[1]": size[1]}
    for name, value in (("kernel", kernel), ("stride", stride), ("padding", padding),
                        ("dilation", dilation)):
        attrs[f"{name}[0]"] = attrs[f"{name}[1]"] = value
    return attrs


def cases_pool():
    for dtype in FLOATS:
        for kernel, stride, padding, dilation in ((2, 2, 0, 1), (3, 2, 1, 1), (2, 1, 0, 2)):
            x = normal(2, 3, 6, 5, dtype=dtype)
            leaf = x.clone().requires_grad_(True)
            y, index = F.max_pool2d(leaf, kernel, stride, padding, dilation, return_indices=True)
            g = torch.randn_like(y)
            attrs = pool_attrs(kernel, stride, padding, dilation)
            oracle.add("max_pool2d", [x], [y, index], attrs, 0)
            (gx,) = torch.autograd.grad(y, leaf, g)
            oracle.add("max_pool2d_grad", [g, index], [gx],
                       pool_attrs(kernel, stride, padding, dilation, size=(6, 5)), 8)
        for kernel, stride, padding, include in ((2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 0)):
            oracle.call("avg_pool2d",
                        lambda x, k=kernel, s=stride, p=padding, i=include:
                        F.avg_pool2d(x, k, s, p, count_include_pad=bool(i)),
                        [normal(2, 3, 6, 5, dtype=dtype)],
                        pool_attrs(kernel, stride, padding, 1, include), 16)
        for size in ((1, 1), (3, 2), (4, 5)):
            attrs = {"size[0]": size[0], "size[1]": size[1]}
            x = normal(2, 3, 6, 5, dtype=dtype)
            oracle.call("adaptive_avg_pool2d", lambda x, s=size: F.adaptive_avg_pool2d(x, s), [x],
                        attrs, 32)
            oracle.call("adaptive_max_pool2d", lambda x, s=size: F.adaptive_max_pool2d(x, s), [x],
                        attrs, 32)


def grad_case(op, function, x, inputs, attrs, tolerance=64):
    """A gradient op: what autograd gives for `function` at x, from a cotangent."""
    leaves = [t.clone().requires_grad_(True) for t in x]
    y = function(*leaves)
    g = torch.randn_like(y)
    grads = torch.autograd.grad(y, leaves, g)
    oracle.add(op, inputs(x, y.detach(), g), grads, attrs, tolerance)


def cases_softmax():
    for dtype in FLOATS:
        for axis in (0, 1):
            x = normal(3, 5, dtype=dtype, scale=2)
            for op, function in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
                oracle.call(op, lambda x, f=function, a=axis: f(x, a), [x], {"axis": axis}, 32)
                grad_case(f"{op}_grad", lambda x, f=function, a=axis: f(x, a), [x],
                          lambda x, y, g: [y, g], {"axis": axis})
        for tanh_form, approximate in ((0, "none"), (1, "tanh")):
            grad_case("gelu_grad", lambda x, a=approximate: F.gelu(x, approximate=a),
                      [normal(9, dtype=dtype)], lambda x, y, g: [x[0], g],
                      {"tanh_form": tanh_form})


def cases_relu_grad():
    for dtype in ("f32", "f64", "f16"):
        x = torch.cat([normal(6, dtype=dtype), torch.zeros(1, dtype=DTYPES[dtype])])
        g = normal(7, dtype=dtype)
        oracle.add("relu_grad", [x, g], [torch.where(x > 0, g, torch.zeros_like(g))], None, 0)


def cases_norm():
    for dtype in FLOATS:
        for n_axes in (1, 2):
            x = normal(3, 4, 5, dtype=dtype)
            shape = x.shape[3 - n_axes:]
            gamma, beta = normal(*shape, dtype=dtype), normal(*shape, dtype=dtype)
            attrs = {"eps": 1e-5, "n_axes": n_axes}
            oracle.call("layer_norm", lambda x, g, b, s=shape: F.layer_norm(x, s, g, b, 1e-5),
                        [x, gamma, beta], attrs, 256)
            grad_case("layer_norm_grad",
                      lambda x, w, b, s=shape: F.layer_norm(x, s, w, b, 1e-5), [x, gamma, beta],
                      lambda t, y, g: [t[0], t[1], g], attrs, 256)
        for dims in ((6, 3), (4, 3, 5), (2, 3, 4, 2)):
            x = normal(*dims, dtype=dtype)
            gamma, beta = normal(3, dtype=dtype), normal(3, dtype=dtype)
            mean, var = normal(3, dtype=dtype), uniform(0.5, 2, 3, dtype=dtype)
            attrs = {"eps": 1e-5, "training": 1}
            axes = [d for d in range(len(dims)) if d != 1]
            y = F.batch_norm(x, None, None, gamma, beta, True, 0.1, 1e-5)
            oracle.add("batch_norm", [x, gamma, beta, None, None],
                       [y, x.mean(axes), x.var(axes, correction=0)], attrs, 256)
            grad_case("batch_norm_grad",
                      lambda x, w, b: F.batch_norm(x, None, None, w, b, True, 0.1, 1e-5),
                      [x, gamma, beta], lambda t, y, g: [t[0], t[1], g, None, None], attrs, 512)
            y = F.batch_norm(x, mean, var, gamma, beta, False, 0.1, 1e-5)
            oracle.add("batch_norm", [x, gamma, beta, mean, var], [y, mean, var],
                       {"eps": 1e-5, "training": 0}, 256)


def cases_attention():
    for dtype in FLOATS:
        for causal, masked in ((0, None), (1, None), (0, "bool"), (0, dtype)):
            q, k, v = (normal(2, 2, 5, 4, dtype=dtype) for _ in range(3))
            mask = None
            if masked == "bool":
                mask = whole(0, 2, 5, 5, dtype="bool") | torch.eye(5, dtype=torch.bool)
            elif masked:
                mask = normal(5, 5, dtype=dtype)
            attrs = {"scale": 0.0, "causal": causal}

            def function(q, k, v, m=mask, c=causal):
                return F.scaled_dot_product_attention(q, k, v, m, is_causal=bool(c))

            leaves = [t.clone().requires_grad_(True) for t in (q, k, v)]
            y = function(*leaves)
            g = torch.randn_like(y)
            grads = torch.autograd.grad(y, leaves, g)
            oracle.add("attention", [q, k, v, mask], [y], attrs, 128)
            oracle.add("attention_grad", [q, k, v, mask, g], grads, attrs, 256)


REDUCTIONS = ("mean", "sum", "none")
NO_INDEX = -(2 ** 63)


def cases_loss():
    for dtype in FLOATS:
        for number, reduction in enumerate(REDUCTIONS):
            attrs = {"reduction": number, "ignore_index": NO_INDEX, "label_smoothing": 0.0}
            oracle.call("mse_loss", lambda x, y, r=reduction: F.mse_loss(x, y, reduction=r),
                        [normal(3, 4, dtype=dtype), normal(3, 4, dtype=dtype)], attrs, 32)
            x, weight = normal(6, 5, dtype=dtype), uniform(0.5, 2, 5, dtype=dtype)
            target = whole(0, 5, 6)
            target[2] = 3
            ignoring = dict(attrs, ignore_index=3)
            smooth = dict(attrs, label_smoothing=0.1)

            def plain(x, t, r=reduction):
                return F.cross_entropy(x, t, reduction=r)

            def weighted(x, t, w, r=reduction):
                return F.cross_entropy(x, t, w, reduction=r, ignore_index=3)

            def smoothed(x, t, r=reduction):
                return F.cross_entropy(x, t, reduction=r, label_smoothing=0.1)

            entropy_case(plain, x, target, None, attrs)
            entropy_case(weighted, x, target, weight, ignoring)
            entropy_case(smoothed, x, target, None, smooth)


def entropy_case(function, x, target, weight, attrs):
    leaf = x.clone().requires_grad_(True)
    loss = function(leaf, target) if weight is None else function(leaf, target, weight)
    g = torch.randn_like(loss)
    (gx,) = torch.autograd.grad(loss, leaf, g)
    oracle.add("cross_entropy", [x, target, weight], [loss], attrs, 64)
    oracle.add("cross_entropy_grad", [x, target, weight, g], [gx], attrs, 64)


# ---- optimizers ----------------------------------------------------------------------------------


def step(make, param, grad, before):
    """Parameter after one step of a PyTorch optimizer; `before` prepares its state."""
    p = param.clone().requires_grad_(True)
    optimizer = make([p])
    p.grad = grad.clone()
    before(optimizer, p)
    optimizer.step()
    return p.detach(), optimizer.state[p]


def cases_optim():
    for dtype in FLOATS:
        param, grad, velocity = (normal(7, dtype=dtype) for _ in range(3))
        oracle.add("assign", [param, grad], [grad], None, 0)
        oracle.add("assign", [whole(0, 9, 4, dtype="i32"), torch.arange(4).int()],
                   [torch.arange(4).int()], None, 0)
        for nesterov, decay in ((0, 0.0), (1, 0.01)):
            def momentum(optimizer, p):
                optimizer.state[p]["momentum_buffer"] = velocity.clone()
            got, state = step(lambda ps: torch.optim.SGD(ps, 0.1, 0.9, 0.0, decay, bool(nesterov)),
                              param, grad, momentum)
            attrs = {"momentum": 0.9, "dampening": 0.0, "weight_decay": decay,
                     "nesterov": nesterov, "first": 0}
            oracle.add("sgd_step", [param, grad, velocity, Scalar(0.1, "f64")],
                       [got, state["momentum_buffer"]], attrs, 16)
        got, _ = step(lambda ps: torch.optim.SGD(ps, 0.1), param, grad, lambda o, p: None)
        oracle.add("sgd_step", [param, grad, None, Scalar(0.1, "f64")], [got, None],
                   {"momentum": 0.0}, 16)
        for decoupled in (0, 1):
            m, v = normal(7, dtype=dtype, scale=0.1), uniform(0.1, 1, 7, dtype=dtype)

            def moments(optimizer, p):
                optimizer.state[p].update(step=torch.tensor(4.0), exp_avg=m.clone(),
                                          exp_avg_sq=v.clone())
            kind = torch.optim.AdamW if decoupled else torch.optim.Adam
            got, state = step(lambda ps: kind(ps, 0.05, (0.9, 0.99), 1e-8, weight_decay=0.02),
                              param, grad, moments)
            attrs = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0.02,
                     "decoupled": decoupled}
            oracle.add("adam_step", [param, grad, m, v, Scalar(0.05, "f64"), Scalar(5.0, "f64")],
                       [got, state["exp_avg"], state["exp_avg_sq"]], attrs, 32)


# ---- extensions: after all others, so that those keep their numbers ------------------------------

LION_ATTRS = {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1}


def lion(param, grad, m, rate):
    """Algorithm 2 of the paper, as written there; PyTorch has no such optimizer."""
    mixed = LION_ATTRS["beta1"] * m + (1 - LION_ATTRS["beta1"]) * grad
    param = param - rate * (torch.sign(mixed) + LION_ATTRS["weight_decay"] * param)
    return param, LION_ATTRS["beta2"] * m + (1 - LION_ATTRS["beta2"]) * grad


def cases_z_fused():
    for dtype in FLOATS + HALVES:
        x, y = (normal(3, 4, 5, dtype=dtype) for _ in range(2))
        gamma, beta = normal(5, dtype=dtype), normal(5, dtype=dtype)
        oracle.call("fused.add_layer_norm",
                    lambda x, y, g, b: F.layer_norm((x.float() + y.float()).to(x.dtype)
                                                    if x.dtype != torch.float64 else x + y,
                                                    (5,), g, b, 1e-5),
                    [x, y, gamma, beta], {"eps": 1e-5, "n_axes": 1}, 256)
        oracle.call("fused.swiglu", lambda g, u: F.silu(g) * u,
                    [uniform(-9, 9, 3, 7, dtype=dtype), normal(7, dtype=dtype)], None, 32)
        x, w, bias = normal(3, 5, dtype=dtype), normal(5, 4, dtype=dtype), normal(4, dtype=dtype)
        oracle.call("fused.matmul_bias_relu", lambda x, w, b: F.relu(x @ w + b), [x, w, bias],
                    None, 64)
        for tanh_form, approximate in ((0, "none"), (1, "tanh")):
            oracle.call("fused.matmul_bias_gelu",
                        lambda x, w, b, a=approximate: F.gelu(x @ w + b, approximate=a),
                        [x, w, bias], {"tanh_form": tanh_form}, 64)
        values = (normal(9, dtype=dtype), uniform(0.5, 2, 9, dtype=dtype),
                  normal(9, dtype=dtype, scale=0.01))
        param, m = lion(*(t.double() for t in values), 0.1)
        oracle.add("fused.lion_step", [*values, Scalar(0.1, "f64")],
                   [param.to(DTYPES[dtype]), m.to(DTYPES[dtype])], LION_ATTRS, 8)
    edges = torch.tensor(EDGES + [-3e38, -100.0, -1e30, 90.0], dtype=torch.float32)
    ones = torch.ones(1)
    oracle.add("fused.swiglu", [edges, ones], [F.silu(edges) * ones], None, 8, name="edges")
    column, zeros = edges.reshape(-1, 1), torch.zeros(1)
    for tanh_form, approximate in ((0, "none"), (1, "tanh")):
        oracle.add("fused.matmul_bias_gelu", [column, ones.reshape(1, 1), zeros],
                   [F.gelu(column.double(), approximate=approximate).float()],
                   {"tanh_form": tanh_form}, 16, name="edges")
    oracle.add("fused.lion_step", [torch.ones(4), torch.tensor([1.0, -8.0, 0.0, 0.25]),
                                   torch.zeros(4), Scalar(0.1, "f64")],
               [torch.tensor([0.89, 1.09, 0.99, 0.89]), torch.tensor([0.01, -0.08, 0.0, 0.0025])],
               LION_ATTRS, 8, name="B212")
    far = torch.tensor([[1e20, -1e20, 2e20, -2e20]])
    oracle.add("fused.add_layer_norm", [far, torch.zeros_like(far), torch.ones(4), torch.zeros(4)],
               [F.layer_norm(far.double(), (4,), eps=1e-5).float()],
               {"eps": 1e-5, "n_axes": 1}, 64, name="squares beyond f32")


def main():
    for name, function in sorted(globals().items()):
        if name.startswith("cases_"):
            function()
    short = {op for op, cases in oracle.ops.items() if len(cases) < 3}
    assert not short, f"fewer than three cases: {sorted(short)}"
    oracle.write(pathlib.Path(__file__).parent / "data")
    print(f"{len(oracle.ops)} ops, {sum(len(c) for c in oracle.ops.values())} cases")


if __name__ == "__main__":
    main()
