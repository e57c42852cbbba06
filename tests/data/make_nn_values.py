# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes nn_values.h: what PyTorch computes in float64 for softmax, norms, attention, losses and
optimizers. Made with torch 2.13.0 (CPU):

    python3 make_nn_values.py > nn_values.h
"""

import torch
import torch.nn.functional as F

torch.manual_seed(20240607)
torch.set_default_dtype(torch.float64)


def emit(name, tensor):
    numbers = tensor.detach().reshape(-1).tolist()
    text = [repr(float(x)).replace("inf", "HUGE_VAL").replace("nan", "NAN") for x in numbers]
    print(f"static const double {name}[] = {{")
    line = "   "
    for item in text:
        if len(line) + len(item) + 2 > 98:
            print(line)
            line = "   "
        line += f" {item},"
    print(line)
    print("};")


def leaf(*shape, scale=1.0):
    return (torch.randn(*shape) * scale).requires_grad_(True)


def softmax():
    x = leaf(2, 3, 4, scale=2.0)
    g = torch.randn(2, 3, 4)
    emit("softmax_x", x)
    emit("softmax_g", g)
    for name, function in (("softmax", F.softmax), ("log_softmax", F.log_softmax)):
        y = function(x, dim=1)
        (gx,) = torch.autograd.grad(y, x, g)
        emit(f"{name}_y", y)
        emit(f"{name}_gx", gx)


def layer_norm():
    x, gamma, beta = leaf(3, 2, 4), leaf(2, 4), leaf(2, 4)
    g = torch.randn(3, 2, 4)
    y = F.layer_norm(x, (2, 4), gamma, beta, 1e-3)
    gx, ggamma, gbeta = torch.autograd.grad(y, (x, gamma, beta), g)
    for name, t in (("x", x), ("gamma", gamma), ("beta", beta), ("g", g), ("y", y), ("gx", gx),
                    ("ggamma", ggamma), ("gbeta", gbeta)):
        emit(f"layer_norm_{name}", t)


def batch_norm():
    x, gamma, beta = leaf(3, 2, 2, 3), leaf(2), leaf(2)
    g = torch.randn(3, 2, 2, 3)
    mean, var = torch.randn(2), torch.rand(2) + 0.5
    emit("batch_norm_x", x)
    emit("batch_norm_gamma", gamma)
    emit("batch_norm_beta", beta)
    emit("batch_norm_g", g)
    emit("batch_norm_mean", mean)
    emit("batch_norm_var", var)
    y = F.batch_norm(x, None, None, gamma, beta, True, 0.1, 1e-3)
    emit("batch_norm_train_y", y)
    emit("batch_norm_train_mean", x.mean((0, 2, 3)))
    emit("batch_norm_train_var", x.var((0, 2, 3), correction=0))
    for name, t in zip(("gx", "ggamma", "gbeta"), torch.autograd.grad(y, (x, gamma, beta), g)):
        emit(f"batch_norm_train_{name}", t)
    y = F.batch_norm(x, mean, var, gamma, beta, False, 0.1, 1e-3)
    emit("batch_norm_eval_y", y)
    for name, t in zip(("gx", "ggamma", "gbeta"), torch.autograd.grad(y, (x, gamma, beta), g)):
        emit(f"batch_norm_eval_{name}", t)


def attention():
    q, k, v = leaf(1, 2, 3, 4), leaf(1, 2, 3, 4), leaf(1, 2, 3, 5)
    g = torch.randn(1, 2, 3, 5)
    keep = torch.tensor([[1, 0, 1], [1, 1, 0], [0, 1, 1]], dtype=torch.bool)
    bias = leaf(2, 1, 3)
    for name, t in (("q", q), ("k", k), ("v", v), ("g", g), ("keep", keep.double()),
                    ("bias", bias)):
        emit(f"attention_{name}", t)
    options = {
        "plain": {},
        "causal": {"is_causal": True},
        "scaled": {"scale": 0.25},
        "masked": {"attn_mask": keep},
        "biased": {"attn_mask": bias},
    }
    for name, option in options.items():
        y = F.scaled_dot_product_attention(q, k, v, **option)
        emit(f"attention_{name}_y", y)
        wanted = (q, k, v, bias) if name == "biased" else (q, k, v)
        for part, t in zip(("gq", "gk", "gv", "gbias"), torch.autograd.grad(y, wanted, g)):
            emit(f"attention_{name}_{part}", t)


def cross_entropy():
    x = leaf(2, 3, 4, scale=2.0)
    target = torch.tensor([[0, 2, -100, 1], [1, -100, 2, 2]])
    weight = torch.tensor([0.5, 1.5, 0.75])
    soft = torch.rand(2, 3, 4)
    soft = (soft / soft.sum(1, keepdim=True)).requires_grad_(True)
    g = torch.randn(2, 4)
    for name, t in (("x", x), ("target", target.double()), ("weight", weight), ("soft", soft),
                    ("g", g)):
        emit(f"entropy_{name}", t)
    for reduction in ("mean", "sum", "none"):
        for w in (None, weight):
            for s in (0.0, 0.1):
                for kind, t in (("class", target), ("soft", soft)):
                    y = F.cross_entropy(x, t, w, reduction=reduction, label_smoothing=s)
                    seed = g if reduction == "none" else torch.tensor(1.0)
                    wanted = (x, soft) if kind == "soft" else (x,)
                    grads = torch.autograd.grad(y, wanted, seed)
                    name = f"entropy_{kind}_{reduction}_{int(w is not None)}{int(s > 0)}"
                    emit(f"{name}_y", y)
                    emit(f"{name}_gx", grads[0])
                    if kind == "soft":
                        emit(f"{name}_gt", grads[1])


def run_steps(name, make):
    p = torch.tensor([1.0, -2.0, 0.5]).requires_grad_(True)
    grads = torch.tensor([[0.5, -0.25, 1.0], [0.1, 0.2, -0.3], [-0.7, 0.05, 0.0]])
    optimizer = make([p])
    for step in range(3):
        p.grad = grads[step].clone()
        optimizer.step()
        emit(f"step_{name}_{step}", p)


def optimizers():
    emit("step_start", torch.tensor([1.0, -2.0, 0.5]))
    emit("step_grads", torch.tensor([[0.5, -0.25, 1.0], [0.1, 0.2, -0.3], [-0.7, 0.05, 0.0]]))
    run_steps("sgd", lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01))
    run_steps("momentum", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.2))
    run_steps("nesterov", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True,
                                                    weight_decay=0.05))
    run_steps("adam", lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.1))
    run_steps("adamw", lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.1))


print("/* SPDX-License-Identifier: MIT OR Apache-2.0 */")
print("/*")
print(" * nn_values.h - made by make_nn_values.py with PyTorch 2.13.0 in float64; do not edit.")
print(" */")
print("#ifndef BURN_TESTS_DATA_NN_VALUES_H")
print("#define BURN_TESTS_DATA_NN_VALUES_H")
print()
print("#include <math.h>")
print()
for part in (softmax, layer_norm, batch_norm, attention, cross_entropy, optimizers):
    part()
print()
print("#endif /* BURN_TESTS_DATA_NN_VALUES_H */")
