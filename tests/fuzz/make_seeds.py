#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the seeds of the corpora that no real file offers: op records and small PNG images.

usage: make_seeds.py        writes corpus/op/ and corpus/png/ beside this script
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


def main():
    for folder, seeds in (("op", op_seeds()), ("png", png_seeds())):
        (CORPUS / folder).mkdir(parents=True, exist_ok=True)
        count = 0
        for name, data in seeds:
            (CORPUS / folder / name).write_bytes(data)
            count += 1
        print(f"{folder}: {count} seeds")


if __name__ == "__main__":
    main()
