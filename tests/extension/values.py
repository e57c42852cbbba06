# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernels that are wrong near 0, at subnormals, zeros, NaN or infinities only, run through
burn-conformance: the smoke run must name each, and pass the same kernel with the right function.
Each is the stub of stub_values.c under the name of its lie.

usage: values.py BURN-CONFORMANCE STUB.so
"""
import subprocess
import sys

from lies import run_all

# lie: (op, what the report must say)
CASES = {
    "expm1_by_exp": ("expm1", "chosen points"),
    "log1p_by_log": ("log1p", "chosen points"),
    "sinh_by_exp": ("sinh", "chosen points"),
    "tanh_by_exp": ("tanh", "chosen points"),
    "sin_by_two_words": ("sin", "chosen points"),
    "softplus_by_log": ("softplus", "chosen points"),
    "exp_flushed": ("exp", "chosen points"),
    "sqrt_flushed": ("sqrt", "special values"),
    "log_flushed": ("log", "special values"),
    "abs_flushed": ("abs", "special values"),
    "neg_by_sub": ("neg", "is 0, expected -0"),
    "trunc_by_integer": ("trunc", "is 0, expected -0"),
    "relu_by_fmax": ("relu", "is 0, expected nan"),
    "sign_by_copysign": ("sign", "expected 0"),
    "add_flushed": ("add", "special values"),
    "mul_flushed": ("mul", "special values"),
    "mul_skips_zero": ("mul", "is 0, expected -"),
    "mul_unsigned_zero": ("mul", "is 0, expected -0"),
    "div_by_recip": ("div", "special values"),
    "maximum_loses_nan": ("maximum", "expected nan"),
    "maximum_of_one_side": ("maximum", "expected nan"),
    "pow_of_nan": ("pow", "is nan, expected 1"),
    "matmul_skips_zero": ("matmul", "(non-finite)"),
    "conv2d_skips_padding": ("conv2d", "(non-finite)"),
    "own_loses_nan": (None, "sweep special values"),
}


def run(tool, env, name, op, smoke):
    arguments = ["--smoke"] if smoke else ["--dtype", "f32"]
    done = subprocess.run(
        [tool, "--device", "flex", "--extension", name, "--op", op, "--no-modes",
         *arguments],
        env=env, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def try_case(tool, env, name):
    op, text = CASES[name]
    status, said = run(tool, env, name, op or f"{name}.op", op is not None)
    line = f"FAIL {op or name + '.op'} f32 {'forward contiguous' if op else ''}"
    faults = [f"it ended with {status}"] if status != 1 else []
    faults += [f"it does not say {part!r}" for part in (line, text) if part not in said]
    right = f"{name}_right"
    status, more = run(tool, env, right, op or f"{right}.op", op is not None)
    if status != 0:
        faults.append(f"the right one ended with {status}: {more[:600]}")
    if faults:
        print(f"{name}: {'; '.join(faults)}. It said:\n{said[:1500]}")
    return not faults


def main():
    tool, stub = sys.argv[1:3]
    return run_all(dict.fromkeys([*CASES, *(f"{name}_right" for name in CASES)], stub),
                   lambda env: [try_case(tool, env, name) for name in CASES])


if __name__ == "__main__":
    sys.exit(main())
