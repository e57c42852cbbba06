# SPDX-License-Identifier: MIT OR Apache-2.0
"""Extensions that lie or crash, run through burn-conformance: the tool must say which op, in which
sample, did what. Each is the stub of tests/extension, whose defect is the name of its file.

usage: lies.py BURN-CONFORMANCE STUB.so GUARD-STUB.so
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

RERUN = "rerun: burn-conformance --device {full} --op {op} --extension {id}"

# defect: devices, exit status (negative: the signal), texts that must be there
CASES = {
    "infer_rank": (("eval", "flex"), 1, ["FAIL infer_rank.op f32 eval, sample 0 (vector)",
                                         "infer of infer_rank.op answered for z: rank 200"]),
    "infer_negative": (("eval", "flex"), 1, ["answered for z: dim 0 of size -1"]),
    "infer_huge": (("eval", "flex"), 1, ["E_LIMIT", "too large"]),
    "infer_dtype": (("eval", "flex"), 1, ["answered for z: dtype i32, which its role excludes"]),
    "infer_no_dtype": (("eval", "flex"), 1, ["answered for z: dtype 250, which is none"]),
    "infer_other_float": (("eval", "flex"), 1, ["dtype f64; it is tied to x, which is f32"]),
    "infer_kind": (("eval", "flex"), 1, ["answered for z: kind 17"]),
    "eval_silent": (("eval",), 1, ["failed with -11 (E_DATA): no text"]),
    "vjp_shape": (("eval",), 1, ["failed with -2 (E_SHAPE)",
                                 "gradient of x is f32[5], expected f32[3]"]),
    "vjp_pointwise": (("eval",), 1, ["gradient of x is f32[5], expected f32[3]"]),
    "vjp_code": (("eval",), 1, ["vjp of vjp_code.op returned 4711"]),
    "eval_abort": (("eval",), -6, ["CRASH eval_abort.op f16 eval, sample 0 (vector), on eval"]),
    "launch_crash": (("flex",), -11, ["CRASH launch_crash.op f32 ", "sample 0 (vector), on flex"]),
    "healthy": (("eval", "flex"), 0, ["0 failed"]),
    "takes_softmax": (("flex",), 1, ["FAIL softmax f32 step, sample 0",
                                     "as the step of a program"]),
    "takes_sum": (("flex",), 1, ["FAIL sum f32 step, sample 0", "rows of 33: as the step of a"]),
    "bounds_before": (("flex",), 1, ["FAIL bounds_before.op f32 forward contiguous",
                                     "FAIL bounds_before.op f32 replay",
                                     "wrote 8 bytes before output z (f32[3], 12 bytes)"]),
    "bounds_behind": (("flex",), 1, ["FAIL bounds_behind.op f32 forward contiguous",
                                     "FAIL bounds_behind.op f32 replay",
                                     "wrote 4 bytes behind output z (f32[3], 12 bytes)"]),
    "bounds_rounded": (("flex",), 1, ["FAIL bounds_rounded.op f32 forward contiguous",
                                      "wrote 52 bytes behind output z (f32[3], 12 bytes)"]),
    "bounds_input_size": (("flex",), 1, ["FAIL sum f32 forward contiguous",
                                         "wrote 1280 bytes behind output y (f32[5], 20 bytes)"]),
    "bounds_operand": (("flex",), 1, ["FAIL bounds_operand.op f32 forward contiguous",
                                      "wrote 4 bytes of input y (f32[3], 12 bytes)"]),
    "bounds_short": (("flex",), 1, ["FAIL bounds_short.op f32 forward contiguous",
                                    "element 2 is ", "nan"]),
    "says_value": (("eval", "flex"), 1, ["failed with -11 (E_DATA)", "is not in stock"]),
    "says_code": (("eval", "flex"), 1, ["decompose returned -11 (E_DATA): the sum of x and y is "
                                        "not in stock"]),
    "bounds_workspace": (("flex",), 1, ["wrote 8 bytes behind its workspace (64 bytes)"]),
    "infer_past": (("eval", "flex"), 1, ["wrote past the metas of its 1 outputs"]),
    "eval_past": (("eval", "flex"), 1, ["eval of eval_past.op wrote 24 bytes past output z"]),
    "vjp_past": (("flex",), 1, ["vjp of vjp_past.op wrote 8 bytes past the end of its list"]),
    "decompose_past": (("flex",), 1, ["decompose of decompose_past.op wrote 32 bytes past the"]),
}
# Also where calls wait, and where plans give places.
WINDOWS = {"bounds_behind", "bounds_operand"}
# Ops that a stub has a row for are not always its own.
OPS = {"takes_softmax": "softmax", "takes_sum": "sum", "bounds_input_size": "sum"}


def install(folder, name, stub):
    shutil.copy(stub, folder / f"{name}.so")
    manifest = {"format": 1, "id": name, "name": "a stub", "kind": "extension",
                "file": f"{name}.so", "version": "1.2.3", "license": "MIT",
                "abi": {"oldest": "0.1", "newest": "0.1"}}
    (folder / f"{name}.json").write_text(json.dumps(manifest))


def run_all(libraries, try_all):
    """Installs each library under its names and prints how many results of try_all(env) are true;
    the exit status."""
    with tempfile.TemporaryDirectory(prefix="burn-stubs-") as folder:
        for name, library in libraries.items():
            install(pathlib.Path(folder), name, library)
        path = os.environ.get("BURN_PLUGIN_PATH", "")
        results = try_all(dict(os.environ, BURN_PLUGIN_PATH=f"{folder}:{path}"))
    print(f"{sum(results)} of {len(results)} as expected")
    return 0 if all(results) else 1


def try_case(tool, env, name, device):
    _, status, texts = CASES[name]
    op = OPS.get(name, f"{name}.op")
    done = subprocess.run(
        [tool, "--device", device, "--extension", name, "--op", op, "--dtype", "f32",
         "--no-modes"],
        env=env, capture_output=True, text=True, timeout=60, check=False)
    said = done.stdout + done.stderr
    wanted = list(texts)
    if status != 0:
        full = device if device == "eval" else f"{device}:0"
        wanted.append(RERUN.format(full=full, op=op, id=name))
    faults = [f"does not say {text!r}" for text in wanted if text not in said]
    if done.returncode != status:
        faults.append(f"ended with {done.returncode}, expected {status}")
    for fault in faults:
        print(f"{name} on {device}: {fault}; it said:\n{said[:1500]}")
    return not faults


def main():
    tool, stub, guards = sys.argv[1:4]

    def try_all(env):
        results = [try_case(tool, env, name, device)
                   for name, (devices, _, _) in CASES.items() for device in devices]
        return results + [try_case(tool, dict(env, BURN_WINDOW=window), name, "flex")
                          for name in WINDOWS for window in ("1", "64", "auto")]

    return run_all({name: guards if name.endswith("_past") else stub for name in CASES}, try_all)


if __name__ == "__main__":
    sys.exit(main())
