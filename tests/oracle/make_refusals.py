#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes refusals.json: which calls must be refused and which must not, as PyTorch judges them.

    python3 make_refusals.py

For every op: operands that are fine, and each of their sizes, ranks, dtypes and attributes changed
once (refusal_case.py). PyTorch 2.13.0 (CPU) says whether the changed call has a meaning. Where the
project decided otherwise, DECISIONS says so, with the place where that is written. To add an op: a
line that begins with `case(`, with a function that makes the call in PyTorch.
"""

import dataclasses
import json
import pathlib

import torch
import torch.nn.functional as F
from make_oracle import BINARY, BITS, COMPARE, UNARY
from oracle_case import DTYPES
from refusal_case import is_tensor, parts, shape_text, value_of, variants


@dataclasses.dataclass
class Case:
    op: str
    judge: object
    operands: list
    attrs: dict
    numbers: dict
    values: list


CASES = []


def case(op, judge, operands, attrs=None, numbers=None, values=()):
    CASES.append(Case(op, judge, operands, attrs or {}, numbers or {}, list(values)))


AXES = (7, -9, 1000)  # of tensors whose rank is at most 5
SIZES = (-1, -5, 0, 1)
ONCE = (0, -1)


# ---- pointwise -----------------------------------------------------------------------------------

UNARY_OPS = dict(UNARY, sign=(torch.sign, 0, 0), gelu=(F.gelu, 0, 0))
for name, (function, _, _) in UNARY_OPS.items():
    case(name, lambda x, f=function: f(x), ["f32[2,3]=0.5"])
for name, function in (("is_nan", torch.isnan), ("is_inf", torch.isinf),
                       ("is_finite", torch.isfinite), ("logical_not", torch.logical_not),
                       ("copy", torch.clone)):
    case(name, lambda x, f=function: f(x), ["f32[2,3]"])
case("bit_not", lambda x: torch.bitwise_not(x), ["i32[2,3]"])
for name, function in {**BINARY, **COMPARE}.items():
    case(name, lambda x, y, f=function: f(x, y), ["f32[2,3]", "f32[2,3]"])
    case(name, lambda x, y, f=function: f(x, y), ["f32[4,1,3]", "f32[2,1]"])
SHIFTS = {"shift_left": torch.bitwise_left_shift, "shift_right": torch.bitwise_right_shift}
for name, function in {**BITS, **SHIFTS}.items():
    case(name, lambda x, y, f=function: f(x, y), ["i32[2,3]", "i32[2,3]"])


def divided(x, y):
    """Of f32 and f64, anything divides; of integers, all but zero (semantics.md)."""
    z = torch.div(x, y, rounding_mode="trunc")
    if not z.is_floating_point() and not torch.all(torch.as_tensor(y) != 0):
        raise ZeroDivisionError
    return z


for name in ("div", "remainder", "fmod"):
    case(name, divided, ["i32[3]", "i32[3]"],
         values=[("divided by zero", 1, "i32[3]=0", ["zero", "0"])])
case("pow", torch.pow, ["i64[3]=2", "i64[3]=2"],
     values=[("a negative exponent", 1, "i64[3]=-2", ["-2", "negative"])])
case("where", torch.where, ["bool[2,3]", "f32[2,3]", "f32[3]"])
case("cast", lambda x, dtype: x.to(DTYPES[dtype]), ["f32[2,3]"], {"dtype": "f64"},
     {"dtype": ("i32", "bool", "f16")})
case("clamp", torch.clamp, ["f32[2,3]", "f32:0", "f32:2"])


def same_shape_grad(function):
    """A gradient op whose cotangent has the output's shape: autograd checks it."""
    def judge(x, g, **attrs):
        leaf = x.clone().requires_grad_(True)
        return torch.autograd.grad(function(leaf, **attrs), leaf, g)
    return judge


case("gelu_grad", same_shape_grad(lambda x: F.gelu(x)), ["f32[2,3]", "f32[2,3]"])
case("relu_grad", same_shape_grad(torch.relu), ["f32[2,3]", "f32[2,3]"])
for name, function in (("softmax_grad", torch.softmax), ("log_softmax_grad", torch.log_softmax)):
    case(name, same_shape_grad(lambda x, axis, f=function: f(x, axis)), ["f32[2,3]", "f32[2,3]"],
         {"axis": 1}, {"axis": AXES})

# ---- creation and random numbers -----------------------------------------------------------------

LENGTHS = ([-1, 3], [2, -4], [0, 3], [1, 1])


def created(make):
    def judge(*operands, n_dims, dims, dtype):
        assert n_dims == len(dims) <= 8
        if None in operands:
            raise TypeError("a number is not given")
        return make(dims, DTYPES[dtype], *operands)
    return judge


def shape(dtype, *dims):
    return {"n_dims": len(dims), "dims": list(dims), "dtype": dtype}


def drawn(dims, dtype, seed, counter):
    return torch.rand(dims, dtype=dtype)


def drawn_bits(dims, dtype, seed, counter):
    return torch.randint(0, 2, dims).to(dtype)


DRAW = ["u64:7", "u64:0"]
case("fill", created(lambda dims, dtype, v: torch.full(dims, v, dtype=dtype)), ["f32:1.5"],
     shape("f32", 2, 3), {"dims": LENGTHS, "n_dims": (9,)})
case("arange", created(lambda dims, dtype, a, b: torch.arange(dims[0], dtype=dtype) * b + a if
                       dims[0] >= 0 else torch.empty(dims)), ["f32:0.5", "f32:2"],
     shape("f32", 7), {"dims": ([-1], [-7], [0]), "n_dims": (9, 2)})
case("random_uniform", created(drawn), DRAW, shape("f32", 2, 3),
     {"dims": LENGTHS, "dtype": ("i32", "bool", "f64"), "n_dims": (9,)})
case("random_normal", created(drawn), DRAW, shape("f32", 2, 3),
     {"dims": LENGTHS, "dtype": ("i32", "bool", "f64"), "n_dims": (9,)})
case("random_bits", created(drawn_bits), DRAW,
     shape("u32", 2, 3), {"dims": LENGTHS, "dtype": ("f32", "i32", "u64"), "n_dims": (9,)})
case("bernoulli", created(lambda dims, dtype, p, seed, counter:
                          torch.empty(dims).bernoulli_(p).to(dtype)), ["f64:0.5"] + DRAW,
     shape("bool", 2, 3), {"dims": LENGTHS, "n_dims": (9,)},
     [("p above 1", 0, "f64:1.5", ["1.5"]), ("p below 0", 0, "f64:-0.25", ["-0.25"])])
case("dropout", lambda x, p, s, c: F.dropout(x, p) if None not in (s, c) else [][0],
     ["f32[2,3]", "f64:0.25"] + DRAW,
     values=[("p above 1", 1, "f64:1.5", ["1.5"]), ("p below 0", 1, "f64:-0.25", ["-0.25"])])

# ---- reductions ----------------------------------------------------------------------------------

REDUCE = {
    "sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin, "any": torch.any,
    "all": torch.all, "logsumexp": torch.logsumexp,
}


def reduced(function):
    def judge(x, n_axes, axes, keepdims=0, correction=None):
        assert n_axes == len(axes)
        more = {} if correction is None else {"correction": correction}
        return function(x, dim=tuple(axes), keepdim=bool(keepdims), **more)
    return judge


def product(x, dim, keepdim):
    torch.sum(x, dim)  # knows which lists of axes are right
    for axis in sorted((d + x.dim() if d < 0 else d for d in dim), reverse=True):
        x = torch.prod(x, axis, keepdim=keepdim)
    return x


AXIS_LISTS = ([1, 1], [0, 3], [0, 9], [-7, 1])
for name, function in {**REDUCE, "prod": product, "var": torch.var}.items():
    more = {"correction": 1} if name == "var" else {}
    case(name, reduced(function), ["f32[2,3,4]"], {"n_axes": 2, "axes": [0, 1], **more},
         {"axes": AXIS_LISTS})
for name in ("max", "min"):
    case(name, reduced(REDUCE[name]), ["f32[3,2]"], {"n_axes": 1, "axes": [0]},
         values=[("nothing to take from", 0, "f32[0,2]", ["[0,2]"])])
for name, function in (("argmax", torch.argmax), ("argmin", torch.argmin)):
    case(name, lambda x, axis, f=function: f(x, axis), ["f32[2,3]"], {"axis": 1}, {"axis": AXES},
         [("nothing to take from", 0, "f32[2,0]", ["[2,0]"])])
for name, function in (("cumsum", torch.cumsum), ("softmax", torch.softmax),
                       ("log_softmax", torch.log_softmax)):
    case(name, lambda x, axis, f=function: f(x, axis), ["f32[2,3]"], {"axis": 1}, {"axis": AXES})

# ---- movement and indices ------------------------------------------------------------------------


def counted(function, length="n_dims", items="dims"):
    """The list of an attribute and its length."""
    def judge(x, **attrs):
        assert attrs[length] == len(attrs[items]) <= 8
        return function(x, attrs[items])
    return judge


def plain_shape(*dims):
    return {"n_dims": len(dims), "dims": list(dims)}


def sliced(x, start, axis, size, step):
    if size < 0 or start is None or step == 0:
        raise ValueError("size, start or step")
    return torch.index_select(x, axis, start + step * torch.arange(size))


def assigned(x, y, start, axis, size, step):
    where = sliced(torch.arange(x.shape[axis]), start, 0, size, step)
    return torch.index_copy(x, axis, where, y)


def padded(x, value, n_dims, before, after):
    assert n_dims == len(before)
    if n_dims != x.dim() or value is None:
        raise ValueError("pads for each dim")
    flat = [n for pair in reversed(list(zip(before, after))) for n in pair]
    return F.pad(x, flat, value=value)


case("reshape", counted(torch.reshape), ["f32[2,6]"], plain_shape(4, 3),
     {"dims": ([4, 4], [0, 3], [-4, -3], [5, 3]), "n_dims": (9,)})
case("expand", counted(lambda x, dims: x.expand(dims)), ["f32[2,1]"], plain_shape(3, 2, 4),
     {"dims": ([3, 2, 0], [3, 3, 4], [3, 4, 2], [-3, 2, 4]), "n_dims": (1, 9)})
case("permute", counted(torch.permute, "n_axes", "perm"), ["f32[2,3,4]"],
     {"n_axes": 3, "perm": [2, 0, 1]},
     {"perm": ([2, 0, 0], [2, 0, 3], [2, 0, 9], [0, 1, 2]), "n_axes": (2, 9)})
case("flip", counted(torch.flip, "n_axes", "axes"), ["f32[2,3,4]"], {"n_axes": 2, "axes": [0, 2]},
     {"axes": AXIS_LISTS})
WINDOW = {"axis": 1, "size": 3, "step": 2}
case("slice", sliced, ["f32[2,7]", "i64:1"], WINDOW,
     {"axis": AXES, "size": (-1, 4, 0), "step": (0, 3, -1)},
     [("starts before 0", 1, "i64:-1", ["-1"]), ("ends after the axis", 1, "i64:3", ["3", "7"])])
case("slice_assign", assigned, ["f32[2,7]", "f32[2,3]", "i64:1"], WINDOW,
     {"axis": AXES, "size": (-1, 4, 0), "step": (0, 3)},
     [("starts before 0", 2, "i64:-1", ["-1"]), ("ends after the axis", 2, "i64:3", ["3", "7"])])
case("unfold", lambda x, axis, size, step, dilation: x.unfold(axis, size, step), ["f32[2,7]"],
     {**WINDOW, "dilation": 1}, {"axis": AXES, "size": (-1, 8, 7), "step": (0, -1, 9)})
case("cat", lambda *x, axis: torch.cat(x, axis), ["f32[2,3]", "f32[2,1]", "f32[2,2]"],
     {"axis": 1}, {"axis": AXES})
case("pad", padded, ["f32[2,3]", "f32:1"], {"n_dims": 2, "before": [0, 1], "after": [1, 2]},
     {"before": ([-3, 1], [0, -7], [0, 0]), "n_dims": (1, 3, 9)})
INDICES = [("index above the last", 1, "i64[2,5]=9", ["9"]),
           ("index below 0", 1, "i64[2,5]=-1", ["-1"])]
case("gather", lambda x, i, axis: torch.gather(x, axis, i), ["f32[2,4]", "i64[2,5]"], {"axis": 1},
     {"axis": AXES}, INDICES)
SCATTER = [lambda x, axis, i, v: x.scatter(axis, i, v),
           lambda x, axis, i, v: x.scatter_add(axis, i, v),
           lambda x, axis, i, v: x.scatter_reduce(axis, i, v, "prod"),
           lambda x, axis, i, v: x.scatter_reduce(axis, i, v, "amin"),
           lambda x, axis, i, v: x.scatter_reduce(axis, i, v, "amax")]
case("scatter", lambda x, i, v, axis, mode: SCATTER[mode](x, axis, i, v),
     ["f32[2,4]", "i64[2,5]", "f32[2,5]"], {"axis": 1, "mode": 1},
     {"axis": AXES, "mode": (0, 2, 3, 4, 5, 77)}, INDICES)
case("select", lambda x, i, axis: torch.index_select(x, axis, i), ["f32[4,3]", "i64[6]"],
     {"axis": 0}, {"axis": AXES},
     [("index above the last", 1, "i64[6]=4", ["4"]), ("index below 0", 1, "i64[6]=-1", ["-1"])])
case("embedding", lambda table, i: F.embedding(i, table), ["f32[4,3]", "i64[2,3]"], values=[
    ("index above the last", 1, "i64[2,3]=4", ["4"]), ("index below 0", 1, "i64[2,3]=-1", ["-1"])])
case("one_hot", lambda i, classes, dtype: F.one_hot(i, classes).to(DTYPES[dtype]), ["i64[4]"],
     {"classes": 5, "dtype": "f32"}, {"classes": (-2, 1)},
     [("class above the last", 0, "i64[4]=5", ["5"]), ("class below 0", 0, "i64[4]=-1", ["-1"])])

# ---- products, convolutions, pools ---------------------------------------------------------------

case("matmul", torch.matmul, ["f32[3,5]", "f32[5,4]"])
case("matmul", torch.matmul, ["f32[2,1,3,5]", "f32[4,5,2]"])
case("linear", lambda x, w, b: F.linear(x, w.transpose(0, 1), b),
     ["f32[2,4,5]", "f32[5,3]", "f32[3]"])


def geometry(groups=1, stride=1, padding=0, dilation=1, output_padding=0, size=None):
    attrs = {"groups": groups}
    for d in (0, 1):
        attrs |= {f"stride[{d}]": stride, f"padding[{d}]": padding, f"dilation[{d}]": dilation,
                  f"output_padding[{d}]": output_padding}
        if size:
            attrs[f"size[{d}]"] = size[d]
    return attrs


GEOMETRY = {"groups": (0, -2, 3), "stride[0]": ONCE, "stride[1]": ONCE, "dilation[0]": ONCE,
            "dilation[1]": ONCE, "padding[0]": (-1, 2), "padding[1]": (-1, 2)}


def pair(attrs, name):
    return attrs[f"{name}[0]"], attrs[f"{name}[1]"]


def conv2d(x, w, b, attrs):
    return F.conv2d(x, w, b, pair(attrs, "stride"), pair(attrs, "padding"),
                    pair(attrs, "dilation"), attrs["groups"])


def conv2d_grad(x, w, g, attrs, by):
    leaves = [t.clone().requires_grad_(True) for t in (x, w)]
    return torch.autograd.grad(conv2d(*leaves, None, attrs), leaves[by], g)


def grad_input(w, g, **attrs):
    x = torch.ones(g.shape[0], w.shape[1] * attrs["groups"], *pair(attrs, "size"), dtype=g.dtype)
    return conv2d_grad(x, w, g, attrs, 0)


def grad_weight(x, g, **attrs):
    if x.shape[1] % attrs["groups"]:
        raise ValueError("groups")
    w = torch.ones(g.shape[1], x.shape[1] // attrs["groups"], *pair(attrs, "size"), dtype=x.dtype)
    return conv2d_grad(x, w, g, attrs, 1)


case("conv2d", lambda x, w, b, **a: conv2d(x, w, b, a), ["f32[1,4,6,5]", "f32[6,2,3,3]", "f32[6]"],
     geometry(2, 1, 1), GEOMETRY)
case("conv2d_grad_input", grad_input, ["f32[6,2,3,3]", "f32[1,6,6,5]"],
     geometry(2, 1, 1, size=(6, 5)), {**GEOMETRY, "size[0]": (-6, 7), "size[1]": (-5, 3)})
case("conv2d_grad_weight", grad_weight, ["f32[1,4,6,5]", "f32[1,6,6,5]"],
     geometry(2, 1, 1, size=(3, 3)), {**GEOMETRY, "size[0]": (-3, 4), "size[1]": (-3, 1)})
LINE = {name: values for name, values in GEOMETRY.items() if "[1]" not in name}
case("conv1d", lambda x, w, b, **a: F.conv1d(x, w, b, a["stride[0]"], a["padding[0]"],
                                             a["dilation[0]"], a["groups"]),
     ["f32[1,4,9]", "f32[6,2,3]", "f32[6]"], geometry(2, 1, 1) | {"padding[1]": 0}, LINE)
case("conv_transpose2d",
     lambda x, w, b, **a: F.conv_transpose2d(x, w, b, pair(a, "stride"), pair(a, "padding"),
                                             pair(a, "output_padding"), a["groups"],
                                             pair(a, "dilation")),
     ["f32[1,4,5,4]", "f32[4,3,3,3]", "f32[6]"], geometry(2, 2, 1, 1, 1),
     {**GEOMETRY, "output_padding[0]": (-1, 2), "output_padding[1]": (-1, 2)})


def pool(kernel, stride, padding=0, size=None):
    attrs = {}
    for d in (0, 1):
        attrs |= {f"kernel[{d}]": kernel, f"stride[{d}]": stride, f"padding[{d}]": padding,
                  f"dilation[{d}]": 1}
        if size:
            attrs[f"size[{d}]"] = size[d]
    return attrs


def max_pool(x, a, **more):
    return F.max_pool2d(x, pair(a, "kernel"), pair(a, "stride"), pair(a, "padding"),
                        pair(a, "dilation"), return_indices=True, **more)


def max_pool_grad(g, index, **a):
    x = torch.ones(*g.shape[:2], *pair(a, "size"), dtype=g.dtype, requires_grad=True)
    y, found = max_pool(x, a)
    if found.shape != index.shape or found.dtype != index.dtype or x.dim() != 4:
        raise ValueError("the index is not what max_pool2d gave")
    if int(index.max()) >= x.shape[2] * x.shape[3] or int(index.min()) < 0:
        raise IndexError("outside of the plane")
    return torch.autograd.grad(y, x, g)


POOL = {"kernel[0]": (0, -2, 9), "kernel[1]": (0, -2, 9), "stride[0]": ONCE, "stride[1]": ONCE,
        "padding[0]": (-1, 1, 2), "padding[1]": (-1, 1)}
DILATION = {"dilation[0]": ONCE, "dilation[1]": ONCE}
case("max_pool2d", lambda x, **a: max_pool(x, a), ["f32[2,3,6,5]"], pool(2, 2), POOL | DILATION)
case("avg_pool2d", lambda x, **a: F.avg_pool2d(x, pair(a, "kernel"), pair(a, "stride"),
                                               pair(a, "padding")), ["f32[2,3,6,5]"],
     pool(2, 2), POOL)
case("max_pool2d_grad", max_pool_grad, ["f32[2,3,3,2]", "i64[2,3,3,2]"], pool(2, 2, 0, (6, 5)),
     POOL | DILATION | {"size[0]": (-6, 1, 9), "size[1]": (-5, 1, 9)},
     [("index after the plane", 1, "i64[2,3,3,2]=30", ["30"]),
      ("index below 0", 1, "i64[2,3,3,2]=-1", ["-1"])])
for name, function in (("adaptive_avg_pool2d", F.adaptive_avg_pool2d),
                       ("adaptive_max_pool2d", F.adaptive_max_pool2d)):
    case(name, lambda x, f=function, **a: f(x, pair(a, "size")), ["f32[2,3,6,5]"],
         {"size[0]": 3, "size[1]": 2}, {"size[0]": (-1, 4), "size[1]": (-3, 9)})

# ---- normalisation, attention, losses ------------------------------------------------------------


def layer_norm(x, gamma, beta, eps, n_axes):
    assert 0 < n_axes <= x.dim()
    return F.layer_norm(x, x.shape[x.dim() - n_axes:], gamma, beta, eps)


def layer_norm_grad(x, gamma, g, eps, n_axes):
    leaf = x.clone().requires_grad_(True)
    return torch.autograd.grad(layer_norm(leaf, gamma, None, eps, n_axes), leaf, g)


def batch_norm(x, gamma, beta, mean, var, eps, training):
    return F.batch_norm(x, mean, var, gamma, beta, bool(training), 0.1, eps)


def batch_norm_grad(x, gamma, g, mean, var, eps, training):
    leaf = x.clone().requires_grad_(True)
    return torch.autograd.grad(batch_norm(leaf, gamma, None, mean, var, eps, training), leaf, g)


NORM = {"eps": 1e-5, "n_axes": 2}
case("layer_norm", layer_norm, ["f32[3,4,5]", "f32[4,5]", "f32[4,5]"], NORM, {"n_axes": (0, 4, 9)})
case("layer_norm_grad", layer_norm_grad, ["f32[3,4,5]", "f32[4,5]", "f32[3,4,5]"], NORM,
     {"n_axes": (0, 4, 9)})
LEARN, INFER = ({"eps": 1e-5, "training": t} for t in (1, 0))
case("batch_norm", batch_norm, ["f32[4,3,5]", "f32[3]", "f32[3]", None, None], LEARN)
case("batch_norm", batch_norm, ["f32[4,3,5]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"], INFER)
case("batch_norm_grad", batch_norm_grad, ["f32[4,3,5]", "f32[3]", "f32[4,3,5]", None, None], LEARN)
case("batch_norm_grad", batch_norm_grad,
     ["f32[4,3,5]", "f32[3]", "f32[4,3,5]", "f32[3]", "f32[3]"], INFER)


def attention(q, k, v, mask=None, scale=0.0, causal=0):
    return F.scaled_dot_product_attention(q, k, v, mask, 0.0, bool(causal), scale=scale or None)


def attention_grad(q, k, v, mask, g, **attrs):
    leaf = q.clone().requires_grad_(True)
    return torch.autograd.grad(attention(leaf, k, v, mask, **attrs), leaf, g)


ATTENTION = ["f32[2,3,4,6]", "f32[2,3,5,6]", "f32[2,3,5,7]", "bool[4,5]"]
case("attention", attention, ATTENTION)
case("attention", attention, ATTENTION[:3] + ["f32[2,1,4,5]"])
case("attention_grad", attention_grad, ATTENTION + ["f32[2,3,4,7]"])
REDUCTIONS = ("mean", "sum", "none")


def entropy(x, target, weight, reduction, label_smoothing, ignore_index):
    return F.cross_entropy(x, target, weight, reduction=REDUCTIONS[reduction],
                           label_smoothing=label_smoothing)


def entropy_grad(x, target, weight, g, **attrs):
    leaf = x.clone().requires_grad_(True)
    if g is None:
        raise TypeError("g is not given")
    return torch.autograd.grad(entropy(leaf, target, weight, **attrs), leaf, g)


LOSS = {"reduction": 0, "ignore_index": -(2 ** 63), "label_smoothing": 0.0}
LOSSES = {"reduction": (1, 2, 3, 99), "label_smoothing": (-0.5, 1.5)}
TARGETS = [("class above the last", 1, "i64[6]=5", ["5"]),
           ("class below 0", 1, "i64[6]=-1", ["-1"])]
case("cross_entropy", entropy, ["f32[6,5]", "i64[6]", "f32[5]"], LOSS, LOSSES, TARGETS)
case("cross_entropy", entropy, ["f32[6,5]", "f32[6,5]", "f32[5]"], LOSS)
case("cross_entropy_grad", entropy_grad, ["f32[6,5]", "i64[6]", "f32[5]", "f32[]"], LOSS,
     {"reduction": (1, 3, 99), "label_smoothing": (-0.5, 1.5)}, TARGETS)
case("mse_loss", lambda x, y, reduction: F.mse_loss(x, y, reduction=REDUCTIONS[reduction]),
     ["f32[2,3]", "f32[2,3]"], {"reduction": 0}, {"reduction": (1, 2, 3, 99)})

# ---- optimizers ----------------------------------------------------------------------------------


def stepped(make, param, grad, state):
    """One step of an optimizer; a parameter refuses a gradient that is not like itself."""
    p = param.clone().requires_grad_(True)
    optimizer = make([p])
    if grad is None or any(torch.is_tensor(s) and s.dim() and s.shape != p.shape
                           for s in state.values()):
        raise ValueError("state of another shape")
    p.grad = grad.clone()
    optimizer.state[p].update(state)
    optimizer.step()


def sgd(param, grad, velocity, lr, momentum, dampening, weight_decay, nesterov, first):
    stepped(lambda ps: torch.optim.SGD(ps, lr, momentum, dampening, weight_decay, bool(nesterov)),
            param, grad, {"momentum_buffer": velocity})


def adam(param, grad, m, v, lr, t, beta1, beta2, eps, weight_decay, decoupled):
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    stepped(lambda ps: kind(ps, lr, (beta1, beta2), eps, weight_decay), param, grad,
            {"step": torch.tensor(t - 1), "exp_avg": m, "exp_avg_sq": v})


case("assign", lambda var, value: var.copy_(value), ["f32[2,3]", "f32[2,3]"])
case("sgd_step", sgd, ["f32[7]", "f32[7]", "f32[7]", "f64:0.5"],
     {"momentum": 0.9, "dampening": 0.0, "weight_decay": 0.0, "nesterov": 0, "first": 0})
case("adam_step", adam, ["f32[7]", "f32[7]", "f32[7]", "f32[7]", "f64:0.5", "f64:5"],
     {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0.0, "decoupled": 0})


# ---- what the project decided --------------------------------------------------------------------

STATE = ("assign", "sgd_step", "adam_step")  # a scalar cannot be a variable: no such call


def is_pointwise(op):
    return op in BINARY or op in COMPARE or op in BITS or op in SHIFTS or op == "where"


def is_tied(one, row):
    """Another operand had the dtype that this one lost."""
    if row.kind != "dtype":
        return False
    dtypes = [parts(t)[0] if is_tensor(t) else "" for t in one.operands]
    return dtypes.count(dtypes[row.at]) > 1


def gives(*dtypes):
    """The changed operand has one of these dtypes."""
    return lambda row: row.kind == "dtype" and parts(row.operands[row.at])[0] in dtypes


WHOLE = gives("i32", "u8", "bool")
NUMBER = gives("i32", "u8")
TRUTH = gives("bool")
TAKES_INT = ("neg", "abs", "sign", "relu", "logical_not", "copy", "cast", "clamp", "cumsum")
TAKES_TRUTH = ("logical_not", "bit_not", "copy", "cast", "any", "all", "reshape", "expand",
               "permute", "flip", "slice", "unfold", "pad", "gather", "select", "attention")
CHANCE = ("bernoulli", "dropout")

VECTORS = tuple((op, at, "its last dim") for op, at in
                (("matmul", 1), ("linear", 2), ("select", 1)))

# (where it is decided, refused?, the rows that it is about): the first that fits is taken, and only
# where PyTorch says otherwise.
DECISIONS = [
    ("semantics.md, dtype: scalars take the tensor's dtype; docs/ops.md: either side", False,
     lambda one, row: row.kind == "scalar" and is_pointwise(one.op)
     and not (one.op == "where" and row.at == 0)),
    ("semantics.md, dtype: no promotion between tensors", True,
     lambda one, row: is_tied(one, row) and not (one.op == "attention" and row.at == 3)),
    ("semantics.md, dtype: results keep the input's dtype, so what is no whole number takes none",
     True, lambda one, row: WHOLE(row) and one.op in UNARY and one.op not in TAKES_INT),
    ("docs/ops.md: logsumexp takes floats", True,
     lambda one, row: WHOLE(row) and one.op == "logsumexp"),
    ("docs/ops.md: a bool is no number; any, all and compares take it", True,
     lambda one, row: TRUTH(row) and one.op not in TAKES_TRUTH),
    ("semantics.md, index values: i64 or i32", False,
     lambda one, row: row.what.endswith("i32 instead of i64")
     and one.op.startswith(("one_hot", "cross_entropy"))),
    ("semantics.md, index values: i64 or i32", True,
     lambda one, row: row.what.endswith("u8 instead of i64")),
    ("docs/ops.md: the condition is bool", True,
     lambda one, row: one.op == "where" and row.what == "operand 0: u8 instead of bool"),
    ("semantics.md, dtypes of results: integer mean truncates", False,
     lambda one, row: NUMBER(row) and one.op == "mean"),
    ("docs/ops.md: the largest of integers is one", False,
     lambda one, row: NUMBER(row) and one.op == "adaptive_max_pool2d"),
    ("semantics.md, dtypes of results: integer pow with a negative exponent is an error", True,
     lambda one, row: row.kind == "value" and one.op == "pow"),
    ("burn/ops.h: bits are u32 or u64", True,
     lambda one, row: one.op == "random_bits" and row.changed.get("dtype") in ("f32", "i32")),
    ("core/ops/README.md: values have the index's shape", True,
     lambda one, row: one.op == "scatter" and row.kind == "dim" and row.at == 2),
    ("core/ops/README.md: the rank is fixed; a batch of one is a reshape away", True,
     lambda one, row: row.kind == "rank" and ("pool2d" in one.op or one.op == "attention"
                                              or (one.op, row.at, row.what[-12:]) in VECTORS)),
    ("core/ops/README.md: gradients of pointwise ops are pointwise, and broadcast", False,
     lambda one, row: row.what.endswith("in front") and one.op in ("gelu_grad", "relu_grad")),
    ("core/ops/README.md: x and y have one shape, a variable keeps its own", True,
     lambda one, row: row.kind == "rank" and one.op in ("mse_loss", "assign")),
    ("core/ops/README.md: a variable is given a tensor", True,
     lambda one, row: row.kind == "scalar" and one.op == "assign"),
    ("burn/op_attrs.h: a velocity is made by who owns it, first = 1 fills it", True,
     lambda one, row: row.kind == "missing" and one.op == "sgd_step"),
    ("F.cross_entropy's own page: a float in 0..1", True,
     lambda one, row: "label_smoothing" in row.changed),
    ("burn/ops.h: burn_bernoulli and burn_dropout refuse it; to an op, p is a number like any",
     False, lambda one, row: row.kind == "value" and one.op in CHANCE),
]

# ---- judging and writing -------------------------------------------------------------------------


def pytorch_refuses(one, row):
    """True or False; None where PyTorch has no kernel for a dtype of floats."""
    try:
        one.judge(*(value_of(t) for t in row.operands), **row.attrs)
    except AssertionError:
        return True
    except Exception as error:  # whatever it is, the call was refused
        if "'Half'" in str(error) or "'BFloat16'" in str(error):
            return None
        return True
    return False


def decide(one, row):
    """(refused, reason): PyTorch's word, or the project's with the place where it stands."""
    said = pytorch_refuses(one, row)
    for reason, refused, applies in DECISIONS:
        if said != refused and applies(one, row):
            return refused, reason
    return said, None


def rows_of(one):
    for row in variants(one.operands, one.attrs, one.numbers, one.values):
        if row.kind == "scalar" and one.op in STATE:
            continue
        refused, reason = decide(one, row)
        if row.kind == "dtype" and row.at == 1 and one.op.startswith("cross_entropy"):
            row.names.append(shape_text(parts(row.operands[1])[1]))  # a dtype says which shape
        if row.kind == "valid":
            assert refused is False, f"{one.op}: PyTorch refuses {row.operands} {row.attrs}"
        if refused is None or (not refused and row.kind == "dim" and len(one.operands) == 1):
            continue
        line = [int(refused), row.what, row.operands, row.changed, row.names if refused else []]
        yield json.dumps(line + ([reason] if reason else []))


def main():
    groups = []
    counts = {}
    for one in CASES:
        rows = list(rows_of(one))
        refused = sum(row.startswith("[1") for row in rows)
        counts[one.op] = counts.get(one.op, 0) + refused
        head = f'{{"op": "{one.op}", "attrs": {json.dumps(one.attrs)}, "rows": ['
        groups.append(head + "\n  " + ",\n  ".join(rows) + "]}")
    few = {op: n for op, n in counts.items() if n < 3}
    assert not few, f"fewer than three violations: {few}"
    path = pathlib.Path(__file__).parent / "refusals.json"
    path.write_text("[" + ",\n".join(groups) + "]\n", encoding="utf-8")
    total = sum(g.count("\n  [") for g in groups)
    print(f"{len(counts)} ops, {total} calls, {sum(counts.values())} of them refused")


if __name__ == "__main__":
    main()
