# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes burnpack.bpk, the golden file of test_burnpack.c, from the format's description alone.

    python3 make_bpk.py burnpack.bpk

Shares no code with the library: CBOR is spelled out below.
"""

import struct
import sys


def head(major, n):
    for bits, code, kind in ((8, 24, "B"), (16, 25, "H"), (32, 26, "I"), (64, 27, "Q")):
        if n < 24:
            return bytes([major << 5 | n])
        if n < 1 << bits:
            return bytes([major << 5 | code]) + struct.pack(">" + kind, n)
    raise ValueError(n)


def floating(x):
    for code, kind in ((0xF9, "e"), (0xFA, "f")):
        try:
            packed = struct.pack(">" + kind, x)
        except OverflowError:
            continue
        if struct.pack(">d", struct.unpack(">" + kind, packed)[0]) == struct.pack(">d", x):
            return bytes([code]) + packed
    return b"\xfb" + struct.pack(">d", x)


def cbor(x):
    if isinstance(x, bool):
        return b"\xf5" if x else b"\xf4"
    if isinstance(x, int):
        return head(0, x) if x >= 0 else head(1, -1 - x)
    if isinstance(x, float):
        return floating(x)
    if isinstance(x, str):
        return head(3, len(x.encode())) + x.encode()
    if isinstance(x, list):
        return head(4, len(x)) + b"".join(cbor(i) for i in x)
    return head(5, len(x)) + b"".join(cbor(k) + cbor(v) for k, v in x.items())


def aligned(n):
    return -(-n // 256) * 256


def pack(tensors, metadata, scalars):
    """tensors: [(name, dtype, shape, data, param_id or None)] in the order of the file."""
    described, at, body = {}, 0, b""
    for name, dtype, shape, data, param_id in tensors:
        at = aligned(at)
        body += b"\0" * (at - len(body)) + data
        entry = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        if param_id is not None:
            entry["param_id"] = param_id
        described[name] = entry
        at += len(data)
    top = {"tensors": dict(sorted(described.items()))}
    if metadata:
        top["metadata"] = dict(sorted(metadata.items()))
    if scalars:
        top["scalars"] = dict(sorted(scalars.items()))
    blob = cbor(top)
    start = b"\x4e\x52\x55\x42" + struct.pack("<HI", 1, len(blob)) + blob
    return start + b"\0" * (aligned(len(start)) - len(start)) + body


def contents():
    tensors = [
        ("fc.weight", "F32", [3, 2], struct.pack("<6f", 1, -2, 0.5, 3.25, 1e10, -0.0), 2**63 + 5),
        ("fc.bias", "F32", [2], struct.pack("<2f", 0.1, -7), 7),
        ("a.f64", "F64", [], struct.pack("<d", 0.1), None),
        ("b.f16", "F16", [5], struct.pack("<5e", 1, 2, 0.5, -1, 65504), None),
        ("c.bf16", "BF16", [2, 1], bytes([0x80, 0x3F, 0x00, 0x40]), 300),
        ("d.bool", {"Bool": "Native"}, [3], bytes([1, 0, 1]), None),
        ("e.i64", "I64", [1], struct.pack("<q", -5), None),
        ("empty", "F32", [0, 4], b"", 24),
        ("f.i32", "I32", [2], struct.pack("<2i", -1, 70000), None),
        ("g.i16", "I16", [1], struct.pack("<h", -300), None),
        ("h.i8", "I8", [3], struct.pack("<3b", -1, 2, -128), None),
        ("i.u64", "U64", [1], struct.pack("<Q", 2**64 - 1), None),
        ("j.u32", "U32", [1], struct.pack("<I", 2**32 - 1), None),
        ("k.u16", "U16", [1], struct.pack("<H", 65535), None),
        ("l.u8", "U8", [300], bytes(i % 251 for i in range(300)), None),
    ]
    metadata = {"format": "burnpack", "producer": "burn", "größe": "ja"}
    scalars = {
        "half": 1.5,
        "single": 16777216.0 * 3 + 4,
        "double": 0.1,
        "tiny": 5.960464477539063e-08,
        "infinite": float("-inf"),
        "step": 1000,
        "most": 2**64 - 1,
        "below": -1000000,
        "least": -(2**63),
        "on": True,
    }
    kinds = {"step": "UInt", "most": "UInt", "below": "Int", "least": "Int", "on": "Bool"}
    return tensors, metadata, {k: {kinds.get(k, "Float"): v} for k, v in scalars.items()}


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as out:
        out.write(pack(*contents()))
