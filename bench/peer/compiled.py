#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""compiled.py - training steps and chains under torch.compile, behind the protocol of worker.c.

Of a step, forward, loss and backward are compiled as one, the optimizer's step as another, which is
how PyTorch's documentation does it. A chain is compiled as a whole. Both are those of peer.cpp. To
add a step: a function that returns (model, loss, optimizer, x, y), and its name in STEPS; a chain:
a function of two tensors, and its name in CHAINS.
"""
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LENGTH = 256, 4, 128


def momentum(model):
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def mlp(batch):
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    return (model, F.cross_entropy, momentum(model), torch.randn(batch, 784),
            torch.randint(0, 10, (batch,)))


def lenet(batch):
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    return (model, F.cross_entropy, momentum(model), torch.randn(batch, 1, 28, 28),
            torch.randint(0, 10, (batch,)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.fc1 = nn.Linear(WIDTH, 4 * WIDTH)
        self.fc2 = nn.Linear(4 * WIDTH, WIDTH)

    def attend(self, x):
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.proj(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


def block(batch):
    model = Block()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    shape = (batch, LENGTH, WIDTH)
    return model, F.mse_loss, optimizer, torch.randn(shape), torch.randn(shape)


def chain8(a, b):
    y = torch.relu((a + b) * b - a)
    return torch.abs(torch.maximum(y, b) * a) + b


def softmax(a, _):
    e = torch.exp(a - torch.amax(a, -1, keepdim=True))
    return e / torch.sum(e, -1, keepdim=True)


def layer_norm(a, _):
    centred = a - torch.mean(a, -1, keepdim=True)
    return centred / torch.sqrt(torch.var(a, -1, unbiased=False, keepdim=True) + 1e-5)


STEPS = {"step_mlp": mlp, "step_lenet": lenet, "step_block": block}
CHAINS = {"chain8": chain8, "softmax_parts": softmax, "layer_norm_parts": layer_norm}


class Timed:
    def run(self, n):
        raise NotImplementedError

    def timed(self, n):
        start = time.perf_counter()
        self.run(n)
        return time.perf_counter() - start


class Chain(Timed):
    """A compiled function of two tensors, whose last result lives until the next one."""

    def __init__(self, name, elements):
        shape = (elements,) if name == "chain8" else (elements // 1024, 1024)
        self.a, self.b = torch.randn(shape), torch.randn(shape)
        self.chain, self.last = torch.compile(CHAINS[name]), None

    def run(self, n):
        with torch.no_grad():
            for _ in range(n):
                self.last = self.chain(self.a, self.b)


class Step(Timed):
    """One network, compiled; run(n) does n training steps."""

    def __init__(self, model, loss, optimizer, x, y):
        self.optimizer, self.x, self.y = optimizer, x, y
        self.loss = torch.compile(lambda x, y: loss(model(x), y))
        self.update = torch.compile(optimizer.step)

    def run(self, n):
        for _ in range(n):
            self.optimizer.zero_grad()
            self.loss(self.x, self.y).backward()
            self.update()


class Server:
    def __init__(self):
        self.case = None
        self.estimate = 0.0

    def prepare(self, name, arg):
        if name not in STEPS and name not in CHAINS:
            return f"no such case: {name}"
        torch.compiler.reset()
        torch.manual_seed(1)
        arg = int(arg)
        self.case = Step(*STEPS[name](arg)) if name in STEPS else Chain(name, arg)
        self.case.run(3)
        n = 1
        while (seconds := self.case.timed(n)) <= 0.02:
            n *= 2
        self.estimate = seconds / n
        return "ok"

    def round(self, seconds):
        if self.case is None:
            return "no case is prepared"
        n = max(1, int(float(seconds) / self.estimate))
        self.case.timed(n // 5)  # as worker.c does
        self.estimate = self.case.timed(n) / n
        return f"ok {self.estimate:.9e} {n}"

    def done(self):
        self.case = None
        return "ok"

    def answer(self, words):
        known = {"prepare": self.prepare, "round": self.round, "done": self.done}
        if not words or words[0] not in known:
            return "no such request"
        try:
            return known[words[0]](*words[1:])
        except Exception as error:  # whatever a compiler raises: it is the answer
            text = str(error).strip() or type(error).__name__
            return "no " + text.splitlines()[0][:200]


def main():
    # What compilers print must not get between the answers.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "0")) or torch.get_num_threads())
    server = Server()
    for line in sys.stdin:
        out.write(server.answer(line.split()) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
