# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes ops_values.h: what PyTorch computes in float64 for pointwise ops and reductions, with
gradients. Made with torch 2.13.0 (CPU):

    python3 make_ops_values.py > ops_values.h
"""

import torch
import torch.nn.functional as F

torch.manual_seed(20240611)
torch.set_default_dtype(torch.float64)

WIDE = [-700.0, -90.0, -20.0, -3.5, -1.25, -0.5, -1e-3, -1e-9, 1e-9, 1e-3, 0.5, 1.25, 3.5, 20.0,
        90.0, 700.0]
NARROW = [-0.99, -0.75, -0.5, -0.25, -1e-3, -1e-10, 1e-10, 1e-3, 0.25, 0.5, 0.75, 0.99]
POSITIVE = [1e-300, 1e-10, 0.01, 0.5, 1.0, 2.0, 10.0, 12345.0, 1e200]
MIDDLE = [-20.0, -3.5, -1.25, -0.5, -1e-3, 1e-9, 0.5, 1.25, 3.5, 20.0]

UNARY = {
    "neg": (torch.neg, WIDE), "abs": (torch.abs, WIDE), "sign": (torch.sign, WIDE),
    "exp": (torch.exp, MIDDLE), "expm1": (torch.expm1, MIDDLE), "log": (torch.log, POSITIVE),
    "log1p": (torch.log1p, NARROW), "sqrt": (torch.sqrt, POSITIVE),
    "rsqrt": (torch.rsqrt, POSITIVE[1:-1]), "recip": (torch.reciprocal, MIDDLE),
    "sin": (torch.sin, MIDDLE), "cos": (torch.cos, MIDDLE), "tan": (torch.tan, NARROW),
    "asin": (torch.asin, NARROW), "acos": (torch.acos, NARROW), "atan": (torch.atan, WIDE),
    "sinh": (torch.sinh, MIDDLE), "cosh": (torch.cosh, MIDDLE), "tanh": (torch.tanh, MIDDLE),
    "erf": (torch.erf, MIDDLE), "sigmoid": (torch.sigmoid, MIDDLE), "floor": (torch.floor, WIDE),
    "ceil": (torch.ceil, WIDE), "round": (torch.round, WIDE), "trunc": (torch.trunc, WIDE),
    "relu": (torch.relu, WIDE), "silu": (F.silu, MIDDLE),
    "softplus": (lambda x: torch.logaddexp(x, torch.zeros_like(x)), WIDE),
    "log_sigmoid": (F.logsigmoid, WIDE), "gelu": (F.gelu, MIDDLE),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), MIDDLE),
}

BINARY = {
    "add": (torch.add, False), "sub": (torch.sub, False), "mul": (torch.mul, False),
    "div": (torch.div, False), "remainder": (torch.remainder, False), "fmod": (torch.fmod, False),
    "pow": (torch.pow, True), "maximum": (torch.maximum, False),
    "minimum": (torch.minimum, False), "atan2": (torch.atan2, False),
}

AXES = {"all": ([0, 1, 2], 0), "last": ([2], 0), "outer": ([0, 2], 1)}

REDUCE = {
    "sum": lambda x, d, k: torch.sum(x, d, k),
    "prod": None,
    "max": lambda x, d, k: torch.amax(x, d, k),
    "min": lambda x, d, k: torch.amin(x, d, k),
    "mean": lambda x, d, k: torch.mean(x, d, k),
    "var": lambda x, d, k: torch.var(x, d, correction=1, keepdim=k),
    "logsumexp": lambda x, d, k: torch.logsumexp(x, d, k),
}


def numbers(name, values):
    if torch.is_tensor(values):
        values = values.detach().reshape(-1).tolist()
    text = [repr(float(x)).replace("inf", "HUGE_VAL").replace("nan", "NAN") for x in values]
    print(f"static const double {name}[] = {{")
    line = "   "
    for item in text:
        if len(line) + len(item) + 2 > 98:
            print(line)
            line = "   "
        line += f" {item},"
    print(line)
    print("};")


def prod(x, dims, keep):
    for d in sorted(dims, reverse=True):
        x = torch.prod(x, d, keepdim=True)
    return x if keep else x.squeeze(tuple(dims))


def unary():
    rows = []
    for name, (function, points) in UNARY.items():
        x = torch.tensor(points).requires_grad_(True)
        y = function(x)
        g = torch.linspace(0.5, 1.5, len(points))
        (gx,) = torch.autograd.grad(y, x, g)
        numbers(f"{name}_x", x)
        numbers(f"{name}_y", y)
        numbers(f"{name}_g", g)
        numbers(f"{name}_gx", gx)
        op = "gelu" if name == "gelu_tanh" else name
        rows.append(f'    {{"{op}", {len(points)}, {int(name == "gelu_tanh")}, {name}_x, {name}_y, '
                    f"{name}_g, {name}_gx}},")
    print("static const unary_value unary_values[] = {")
    print("\n".join(rows))
    print("};")


def binary():
    rows = []
    for name, (function, positive) in BINARY.items():
        x = torch.randn(3, 1, 4) * 3
        y = torch.randn(2, 1) * 2
        x = (x.abs() + 0.1 if positive else x).requires_grad_(True)
        y.requires_grad_(True)
        z = function(x, y)
        g = torch.randn_like(z)
        gx, gy = torch.autograd.grad(z, (x, y), g)
        for part, t in (("x", x), ("y", y), ("z", z), ("g", g), ("gx", gx), ("gy", gy)):
            numbers(f"{name}_b{part}", t)
        rows.append(f'    {{"{name}", {name}_bx, {name}_by, {name}_bz, {name}_bg,\n'
                    f"     {name}_bgx, {name}_bgy}},")
    print("static const binary_value binary_values[] = {")
    print("\n".join(rows))
    print("};")


def reduce():
    rows = []
    for name, function in REDUCE.items():
        for label, (dims, keep) in AXES.items():
            x = torch.randn(3, 4, 2).requires_grad_(True)
            y = (function or prod)(x, dims, bool(keep))
            g = torch.randn_like(y)
            (gx,) = torch.autograd.grad(y, x, g)
            key = f"{name}_{label}"
            for part, t in (("x", x), ("y", y), ("g", g), ("gx", gx)):
                numbers(f"{key}_{part}", t)
            axes = ", ".join(str(d) for d in dims)
            rows.append(f'    {{"{name}", {len(dims)}, {{{axes}}}, {keep}, {y.numel()}, {key}_x,\n'
                        f"     {key}_y, {key}_g, {key}_gx}},")
    print("static const reduce_value reduce_values[] = {")
    print("\n".join(rows))
    print("};")


print("""/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ops_values.h - made by make_ops_values.py with PyTorch 2.13.0 in float64; do not edit.
 *
 * Unary: x, y, and gx for the gradient g of y. Binary: x [3,1,4], y [2,1], z [3,2,4]. Reductions of
 * x [3,4,2] over axes.
 */
#ifndef BURN_TESTS_DATA_OPS_VALUES_H
#define BURN_TESTS_DATA_OPS_VALUES_H

#include <math.h>
#include <stdint.h>

typedef struct unary_value {
    const char *op;
    uint32_t n;
    uint32_t tanh_form;
    const double *x;
    const double *y;
    const double *g;
    const double *gx;
} unary_value;

typedef struct binary_value {
    const char *op;
    const double *x;
    const double *y;
    const double *z;
    const double *g;
    const double *gx;
    const double *gy;
} binary_value;

typedef struct reduce_value {
    const char *op;
    uint32_t n_axes;
    int64_t axes[3];
    uint32_t keepdims;
    uint32_t n_out;
    const double *x;
    const double *y;
    const double *g;
    const double *gx;
} reduce_value;
""")
unary()
binary()
reduce()
print("\n#endif /* BURN_TESTS_DATA_OPS_VALUES_H */")
