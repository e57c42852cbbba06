# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes flex_nn_reference.h: inputs and PyTorch's results (in f64) for tests/unit/flex.

Run with torch 2.13 and numpy: python3 make_flex_nn.py > flex_nn_reference.h
"""
import math

import torch
import torch.nn.functional as F

torch.manual_seed(7)
torch.set_default_dtype(torch.float64)


def emit(name, tensor):
    values = [float(v) for v in tensor.detach().to(torch.float64).reshape(-1)]
    print(f"static const float {name}[] = {{")
    for i in range(0, len(values), 6):
        parts = []
        for v in values[i : i + 6]:
            text = "NAN" if math.isnan(v) else f"{v:.9g}"
            if text != "NAN" and "." not in text and "e" not in text:
                text += ".0"
            parts.append(text if text == "NAN" else text + "F")
        print("    " + ", ".join(parts) + ",")
    print("};")


def random(*shape):
    return torch.randn(*shape).float().double()


def lines():
    x = random(3, 5, 4).requires_grad_()
    g = random(3, 5, 4)
    emit("line_x", x)
    emit("line_g", g)
    for name, fn in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
        for axis in (1, 2):
            y = fn(x, axis)
            emit(f"{name}{axis}_y", y)
            emit(f"{name}{axis}_gx", torch.autograd.grad(y, x, g)[0])


def entropy():
    x = random(4, 3, 2).requires_grad_()
    target = torch.tensor([[0, 2], [1, -5], [2, 2], [-5, 1]])
    weight = torch.tensor([0.5, 1.25, 2.0])
    prob = torch.softmax(random(4, 3, 2), 1).float().double()
    emit("entropy_x", x)
    emit("entropy_prob", prob)
    emit("entropy_weight", weight)
    for reduction in ("mean", "sum", "none"):
        for smoothing in (0, 1):
            for weighted in (0, 1):
                w = weight if weighted else None
                tag = f"{reduction}{smoothing}{weighted}"
                s = 0.1 * smoothing
                y = F.cross_entropy(x, target, w, ignore_index=-5, reduction=reduction,
                                    label_smoothing=s)
                emit(f"entropy_class_{tag}", y)
                emit(f"entropy_class_{tag}_gx", torch.autograd.grad(y.sum(), x)[0])
                y = F.cross_entropy(x, prob, w, reduction=reduction, label_smoothing=s)
                emit(f"entropy_prob_{tag}", y)
                emit(f"entropy_prob_{tag}_gx", torch.autograd.grad(y.sum(), x)[0])


def optimizers():
    start = random(6)
    grads = [random(6) for _ in range(3)]
    emit("step_start", start)
    emit("step_grads", torch.cat(grads))
    kinds = {
        "sgd_plain": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.05),
        "sgd_momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3),
        "sgd_nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True,
                                                  weight_decay=0.02),
        "adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
        "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    }
    for name, make in kinds.items():
        p = start.clone().requires_grad_()
        optimizer = make([p])
        for g in grads:
            p.grad = g.clone()
            optimizer.step()
        emit(f"step_{name}", p)


def norms():
    x = random(3, 2, 5).requires_grad_()
    gamma = random(2, 5).requires_grad_()
    beta = random(2, 5).requires_grad_()
    g = random(3, 2, 5)
    for name, tensor in (("x", x), ("gamma", gamma), ("beta", beta), ("g", g)):
        emit(f"layer_{name}", tensor)
    y = F.layer_norm(x, (2, 5), gamma, beta, 1e-5)
    emit("layer_y", y)
    for name, tensor in zip(("gx", "ggamma", "gbeta"), torch.autograd.grad(y, (x, gamma, beta), g)):
        emit(f"layer_{name}", tensor)
    x = random(4, 3, 2, 3).requires_grad_()
    gamma = random(3).requires_grad_()
    beta = random(3).requires_grad_()
    mean = random(3)
    var = random(3).abs() + 0.5
    g = random(4, 3, 2, 3)
    for name, tensor in (("x", x), ("gamma", gamma), ("beta", beta), ("g", g), ("mean", mean),
                         ("var", var)):
        emit(f"batch_{name}", tensor)
    emit("batch_mean_of_x", x.mean((0, 2, 3)))
    emit("batch_var_of_x", x.var((0, 2, 3), unbiased=False))
    for training in (0, 1):
        y = F.batch_norm(x, mean.clone(), var.clone(), gamma, beta, bool(training), 0.1, 1e-5)
        emit(f"batch{training}_y", y)
        grads = torch.autograd.grad(y, (x, gamma, beta), g)
        for name, tensor in zip(("gx", "ggamma", "gbeta"), grads):
            emit(f"batch{training}_{name}", tensor)


def attention(name, q, k, v, mask, causal):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    s, t = scores.shape[-2:]
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    if causal:
        allowed = torch.ones(s, t).tril(t - s).bool()
        scores = scores.masked_fill(~allowed, -math.inf)
    y = torch.softmax(scores, -1) @ v
    emit(f"{name}_y", y)
    grads = torch.autograd.grad(y, (q, k, v), attention.g)
    for part, tensor in zip(("gq", "gk", "gv"), grads):
        emit(f"{name}_{part}", tensor)


def attentions():
    q = random(2, 2, 3, 4).requires_grad_()
    k = random(2, 2, 5, 4).requires_grad_()
    v = random(2, 2, 5, 6).requires_grad_()
    attention.g = random(2, 2, 3, 6)
    bias = random(2, 1, 3, 5)
    mask = torch.tensor([[1, 0, 1, 1, 0], [1, 1, 1, 0, 1], [0, 1, 1, 1, 1]]).bool()
    for name, tensor in (("q", q), ("k", k), ("v", v), ("g", attention.g), ("bias", bias),
                         ("mask", mask)):
        emit(f"attention_{name}", tensor)
    attention("attention_plain", q, k, v, None, False)
    attention("attention_causal", q, k, v, None, True)
    attention("attention_bias", q, k, v, bias, False)
    attention("attention_masked", q, k, v, mask, True)


print("/* SPDX-License-Identifier: MIT OR Apache-2.0 */")
print("/* Made by make_flex_nn.py with PyTorch in f64; do not edit. */")
print("#include <math.h>\n")
lines()
entropy()
optimizers()
norms()
attentions()
