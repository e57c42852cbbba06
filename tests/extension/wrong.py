# SPDX-License-Identifier: MIT OR Apache-2.0
"""Extensions whose kernel, gradient or rule is wrong in one way, run through burn-conformance: the
check that is there for it must turn red, and no other one that could stand for it. Each is the stub
of stub_kernels.c under the name of its defect.

usage: wrong.py BURN-CONFORMANCE STUB.so
"""
import re
import subprocess
import sys

from lies import run_all

FAILED = re.compile(r"^FAIL (\S+) (\S+) (.*?)[,:]", re.M)
# Kernels are for f32; in other dtypes the op runs by its decomposition.
F32 = ["--no-modes", "--dtype", "f32"]
F64 = ["--no-modes", "--dtype", "f64"]
# Guards see it before anything else does.
UNGUARDED = F32 + ["--unguarded"]

# defect: (checks that must fail, beginnings of those that may as well, further arguments)
CASES = {
    "healthy": ((), (), []),
    "healthy_f32": ((), (), []),
    "gradient": (("gradient", "gradient mixed"), ("second",), F64),
    "gradient_alone": (("gradient alone", "gradient alone mixed"), (), F64),
    "saves_few": (("gradient alone", "gradient alone mixed"), (), F64),
    "second": (("second", "second mixed"), (), F64),
    "second_f32": (("second", "second mixed"), (), F32),
    "second_unknown": (("second",), ("gradient", "second"), F64),
    "decomposed": (("decompose", "decompose mixed"), (), F32),
    "repeat": (("repeat",), ("replay", "moved"), F32),
    "replay": (("replay",), ("repeat", "moved"), F32),
    "same_operand": (("same operand",), ("same operand",), F32),
    "same_operand_mixed": (("same operand mixed",), (), F32),
    "moved": (("moved",), ("moved", "replay", "gradient"), UNGUARDED),
    # Dense copies of strided operands are dead, too.
    "in_place": (("moved",), ("moved", "sweep", "large", "forward"), F32),
    "moved_mixed": (("moved mixed",), ("gradient mixed",), UNGUARDED),
    "parts_mixed": (("gradient mixed", "decompose mixed"), (), F32),
    "layouts": (("forward transposed", "forward sliced", "forward negative", "forward mixed"),
                ("forward stride 0", "sweep", "large", "gradient", "moved", "same operand"),
                F32),
    "mixed": (("forward mixed",), ("gradient mixed", "moved mixed", "large"), F32),
    "state_strided": (("forward transposed", "forward negative", "forward mixed"),
                      ("forward", "sweep", "large"), F32),
    "sweep": (("sweep 17 for 4",), ("sweep",), F32),
    "large": (("large sizes", "large size 4", "large size 6"), (), F32),
    "error": (("error",), (), F32),
    "faults": ((), (), F32),
    "faults_untold": (("error",), (), F32),
    "ordinary": (("definition",), (), ["--no-modes", "--smoke"]),
    "misnamed": (("definition",), (), ["--no-modes", "--smoke"]),
    "unnamed": (("error",), (), ["--no-modes", "--smoke"]),
    "refuse": (("refuse size",), (), ["--no-modes", "--smoke"]),
    "threads": (("same bits 3 threads",), (), []),
    "threads_gradient": (("same bits 3 threads",), (), []),
    "threads_kill": (("same bits 3 threads",), (), ["--smoke"]),
    "threads_samples": (("same bits 3 threads",), (), ["--smoke"]),
    "window": (("same bits window 64",), ("same bits",), ["--smoke"]),
}
# What the failing line says, where the check alone does not tell.
TEXTS = {
    "faults_untold": "faults_untold.op: kernel stub.op reports a fault, and its row lacks "
                     "BURN_ROW_FAULTS",
    "unnamed": "does not name the value of size, 77",
    "ordinary": "no sample has NaN or infinities",
    "misnamed": "is called special and holds neither",
    "second_unknown": "no element could be checked",
    "moved": "was moved while another handle held it",
    "in_place": "has other bits when the operands are moved",
    "threads": "large_",
    "threads_gradient": "large_",
    "threads_kill": "the run failed (BURN_THREADS=3)",
    "threads_samples": "another number of results than in the first run, or than cases",
    "window": "chained",
}


def try_case(tool, env, name):
    required, others, arguments = CASES[name]
    done = subprocess.run(
        [tool, "--device", "flex", "--extension", name, "--op", f"{name}.op", *arguments],
        env=env, capture_output=True, text=True, timeout=120, check=False)
    failed = {check for op, _, check in FAILED.findall(done.stdout)
              if op == f"{name}.op" or check.startswith("same bits")}
    faults = [f"{check!r} should fail" for check in required if check not in failed]
    faults += [f"{check!r} failed" for check in sorted(failed)
               if check not in required and not check.startswith(others)]
    if TEXTS.get(name, "") not in done.stdout:
        faults.append(f"it does not say {TEXTS[name]!r}")
    if done.returncode != (1 if required else 0):
        faults.append(f"it ended with {done.returncode}")
    if faults:
        print(f"{name}: {'; '.join(faults)}. It said:\n{(done.stdout + done.stderr)[:2000]}")
    return not faults


def main():
    tool, stub = sys.argv[1:3]
    return run_all(dict.fromkeys(CASES, stub),
                   lambda env: [try_case(tool, env, name) for name in CASES])


if __name__ == "__main__":
    sys.exit(main())
