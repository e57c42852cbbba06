#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the seeds of the corpora that no real file offers: op records, fused programs, small PNG
images, tuning environments.

usage: make_seeds.py        writes corpus/{environment,fused,op,png}/ beside this script
An op seed follows the program that fuzz_op.c reads. Inputs that once failed are in the same folders
under other names (found_*) and are not touched.
"""
import pathlib
import struct
import zlib

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
TAPED, TWICE = 1, 16
TENSOR, SCALAR = 3, 2  # kinds of operand
F32, I64, BOOL = 0, 6, 8  # places in the target's list of dtypes


def tensor(dtype, *dims, first=1, step=1, view=()):
    head = bytes([TENSOR, dtype, len(dims), *dims, first, step])
    return head + (bytes(view or [0]) if dims else b"")


def record(op, operands, attributes=(), flags=TAPED):
    return bytes([op, flags]) + b"".join(operands) + bytes(attributes)


def op_seeds():
    """Every third op of the list, with the operands that most of its family take."""
    flat, matrix, image = tensor(F32, 6), tensor(F32, 3, 4), tensor(F32, 1, 2, 5, 5)
    index = tensor(I64, 3, 4, step=0)
    turned = tensor(F32, 4, 3, view=[1])
    cut = tensor(F32, 8, view=[2, 0, 3, 1])
    for op in range(0, 120, 3):
        yield f"one_{op:03d}", record(op, [matrix, matrix, matrix], [1] * 12)
    for op in range(1, 120, 6):
        yield f"image_{op:03d}", record(op, [image, image, flat], [1, 1, 0, 0, 1, 1, 1, 1])
    for op in range(2, 120, 6):
        yield f"index_{op:03d}", record(op, [matrix, index, matrix], [1, 0, 0], TAPED | TWICE)
    yield "views", record(33, [turned, turned]) + record(2, [cut]) + record(34, [cut, cut])
    yield "scalars", record(35, [matrix, bytes([SCALAR, 2])]) + record(4, [tensor(BOOL)])


FULL, ROW, ONE, WHOLE, COLUMN, NONE = 0, 1, 2, 3, 4, 0xffff  # spaces of abi/burn/fused.h
CODE = {"bool": 1, "i32": 7, "u64": 8, "i64": 9, "f16": 10, "f32": 12, "f64": 13}  # dtypes
OP = {"neg": 1, "exp": 4, "add": 40, "sub": 41, "mul": 42, "div": 43, "less": 62, "where": 66,
      "cast": 67, "clamp": 68, "sum": 90, "max": 92, "random_uniform": 83,
      "random_normal": 84, "bernoulli": 85, "dropout": 173, "matmul": 130,
      "linear": 131, "conv2d": 140}


def axes_of_a_row():
    return struct.pack("<IIII9q", 88, 1, 1, 1, 1, *[0] * 8)


def axes_of_a_column():
    return struct.pack("<IIII9q", 88, 1, 1, 1, 0, *[0] * 8)


def cast_to(dtype):
    return struct.pack("<IIII", 16, 1, CODE[dtype], 0)


def numbers_of(dtype):
    return struct.pack("<IIII8q", 80, 1, 0, CODE[dtype], *[0] * 8)


def fused(inputs, steps, outputs, length=NONE):
    """inputs: (dtype, space, by value); steps: (op, dtype, space, args, attributes)"""
    at_inputs = 24
    at_outputs = at_inputs + 4 * len(inputs)
    at_steps = (at_outputs + 2 * len(outputs) + 7) // 8 * 8
    more, places, rows = b"", {}, b""
    for op, dtype, space, args, attributes in steps:
        if attributes and attributes not in places:
            places[attributes] = at_steps + 24 * len(steps) + len(more)
            more += attributes
        rows += struct.pack("<QBBBBHH4H", OP[op], len(args), CODE[dtype], space, 0,
                            places.get(attributes, 0), len(attributes),
                            *(args + [NONE] * 4)[:4])
    body = b"".join(struct.pack("<4B", CODE[d], s, v, 0) for d, s, v in inputs)
    body += struct.pack(f"<{len(outputs)}H", *outputs)
    body = body.ljust(at_steps - at_inputs, b"\0") + rows + more
    version = 2 if any(s == WHOLE for _, s, _ in inputs) else 1
    version = 3 if any(step[2] == COLUMN for step in steps) else version
    return struct.pack("<II8H", at_inputs + len(body), version, len(inputs), len(outputs),
                       len(steps), length, at_inputs, at_outputs, at_steps, 0) + body


def convolution():
    return struct.pack("<II11q", 96, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0)


def fused_seeds():
    full, number = ("f32", FULL, 0), ("f32", ONE, 1)
    axes = axes_of_a_row()
    yield "chain", fused([full, full, number], [
        ("mul", "f32", FULL, [0, 1], b""), ("add", "f32", FULL, [3, 2], b""),
        ("exp", "f32", FULL, [4], b"")], [5])
    yield "choice", fused([("i32", FULL, 0)] * 2, [
        ("less", "bool", FULL, [0, 1], b""), ("where", "i32", FULL, [2, 0, 1], b"")], [3, 2])
    yield "casts", fused([("i32", FULL, 0)], [
        ("cast", "f32", FULL, [0], cast_to("f32")), ("cast", "f16", FULL, [1], cast_to("f16"))],
        [1, 2])
    yield "limits", fused([full, number], [("clamp", "f32", FULL, [0, NONE, 1], b"")], [2])
    yield "softmax", fused([full, ("i64", ONE, 1)], [
        ("max", "f32", ROW, [0], axes), ("sub", "f32", FULL, [0, 2], b""),
        ("exp", "f32", FULL, [3], b""), ("sum", "f32", ROW, [4], axes),
        ("div", "f32", FULL, [4, 5], b"")], [6], 1)
    yield "per_row", fused([("f32", ROW, 0), full, ("i64", ONE, 1), ("f32", ONE, 0)], [
        ("sum", "f32", ROW, [1], axes), ("mul", "f32", ROW, [4, 0], b""),
        ("sub", "f32", FULL, [1, 5], b""), ("add", "f32", FULL, [6, 3], b"")], [5, 7], 2)
    seeds = [("u64", ONE, 1)] * 2
    yield "mask", fused([full] + seeds + [number], [
        ("random_uniform", "f32", FULL, [1, 2], numbers_of("f32")),
        ("less", "bool", FULL, [4, 3], b""), ("where", "f32", FULL, [5, 0, 3], b"")], [6])
    yield "noise", fused([full] + seeds + [("f64", ONE, 1), ("i64", ONE, 1)], [
        ("random_normal", "f32", FULL, [1, 2], numbers_of("f32")),
        ("dropout", "f32", FULL, [0, 3, 1, 2], b""), ("add", "f32", FULL, [5, 6], b""),
        ("bernoulli", "i32", FULL, [3, 1, 2], numbers_of("i32")),
        ("sum", "f32", ROW, [7], axes_of_a_row())], [8, 9], 4)
    yield "columns", fused([full, full, ("i64", ONE, 1)], [
        ("mul", "f32", FULL, [0, 1], b""), ("sum", "f32", COLUMN, [3], axes_of_a_column()),
        ("max", "f32", ROW, [3], axes), ("sub", "f32", FULL, [3, 5], b""),
        ("max", "f32", COLUMN, [6], axes_of_a_column())], [6, 4, 7], 2)
    whole = ("f32", WHOLE, 0)
    yield "product", fused([whole, whole, full], [
        ("matmul", "f32", FULL, [0, 1], b""), ("add", "f32", FULL, [3, 2], b"")], [4, 3])
    yield "linear", fused([whole, whole, whole, ("i64", ONE, 1)], [
        ("linear", "f32", FULL, [0, 1, 2], b""), ("max", "f32", ROW, [4], axes),
        ("sub", "f32", FULL, [4, 5], b"")], [6], 3)
    yield "convolution", fused([whole, whole], [
        ("conv2d", "f32", FULL, [0, 1, NONE], convolution()), ("neg", "f32", FULL, [2], b"")], [3])
    for first in range(13):  # recipes, which begin with the inputs' dtypes
        yield f"recipe_{first:02d}", bytes([3, first] + [1, 2, 3] * 3 + [
            40 + first, 2, 0, 1, 2, 3, 90, 0, 0, 0, 0, 0, 67, first + 5, 0, 0, 0, 0, 66, 0, 1, 2, 3,
            4] + list(range(42, 54)))


def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def png(colour, depth, channels, width=5, height=4, interlace=0, more=b""):
    bits = width * channels * depth
    row = bytes((i * 37 + 11) % 256 for i in range((bits + 7) // 8))
    if colour == 3:
        row = bytes(i % 4 for i in range(len(row)))
    rows = b"".join(bytes([y % 5]) + row for y in range(height))
    if interlace:
        rows = b"".join(bytes(1 + (w * channels * depth + 7) // 8) * h for w, h in
                        ((1, 1), (1, 1), (2, 1), (1, 1), (3, 1), (2, 2), (5, 2)))
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + more +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def png_seeds():
    yield "gray.png", png(0, 8, 1)
    yield "gray1.png", png(0, 1, 1)
    yield "gray16.png", png(0, 16, 1)
    yield "rgb.png", png(2, 8, 3)
    yield "alpha.png", png(4, 8, 2)
    yield "rgba.png", png(6, 8, 4)
    yield "palette.png", png(3, 8, 1, more=chunk(b"PLTE", bytes(range(12))) +
                             chunk(b"tRNS", b"\x00\x80\xff\x40"))
    yield "interlaced.png", png(0, 8, 1, interlace=1)
    yield "huge.png", png(0, 8, 1)[:16] + struct.pack(">II", 1 << 30, 1 << 30) + png(0, 8, 1)[24:]
    yield "cut.png", png(0, 8, 1)[:50]


def text(value):
    data = value.encode()
    return struct.pack("<H", len(data)) + data


def device(hardware, roofs=(), choices=(), plans=()):
    body = b"".join(map(text, ("flex", hardware, "avx2", "", "0.1.0")))
    body += struct.pack("<IIQQ", 4, 1, 2, 3)
    body += struct.pack("<III", len(roofs), len(choices), len(plans))
    body += b"".join(struct.pack("<Id", *roof) for roof in roofs)
    for key, row, rival in choices:
        body += struct.pack("<I", len(key)) + key + struct.pack("<QIIIdd", 9, 1, 2, 1, 2e-3, 3e-3)
        body += text(row) + text(rival) + text("matmul(f32[2,3], f32[3,4])")
    return body + b"".join(struct.pack("<QI", key, len(data)) + data for key, data in plans)


def environment(*devices):
    body = b"".join(devices)
    total = 0xcbf29ce484222325
    for byte in body:
        total = (total ^ byte) * 0x100000001b3 % (1 << 64)
    head = b"BURNENV\0" + struct.pack("<IIQQQ", 1, len(devices), 40 + len(body), total, 0)
    return head + body


def environment_seeds():
    full = device("One CPU", [(3, 1e11), (0xffffffff, 1e10)],
                  [(b"a", "flex.matmul.f32", ""), (b"ab", "flex.conv2d.direct", "flex.conv2d")],
                  [(1, b"plan"), (2, b"")])
    plan = kept_plan([0, 0, 0xffff, 3, 0])
    yield "plan", plan
    yield "plan_of_a_later_group", kept_plan([0, 2, 2])
    yield "plans", environment(device("One", [], [], [(1, kept_plan([0])), (7, plan)]))
    yield "empty", environment()
    yield "full", environment(full)
    yield "two", environment(full, device("Another"))
    yield "not_sorted", environment(device("One", [(4, 1.0), (3, 1.0)]))
    yield "no_number", environment(device("One", [(4, float("nan"))]))
    yield "too_many", environment(device("One")[:-12] + b"\xff\xff\0\0" * 3)
    yield "cut", environment(full)[:90]


def kept_plan(groups):
    """A plan of waiting calls (core/tune/kept_plan.c), alone: the target takes it as one, too."""
    chains = [0x9e3779b97f4a7c15 * (i + 1) % 2**64 for i in range(len(groups))]
    return struct.pack(f"<4I{len(groups)}Q{len(groups)}H", 1, len(groups), 0, 0, *chains, *groups)


def main():
    for folder, seeds in (("environment", environment_seeds()), ("fused", fused_seeds()),
                          ("op", op_seeds()), ("png", png_seeds())):
        (CORPUS / folder).mkdir(parents=True, exist_ok=True)
        count = 0
        for name, data in seeds:
            (CORPUS / folder / name).write_bytes(data)
            count += 1
        print(f"{folder}: {count} seeds")


if __name__ == "__main__":
    main()
