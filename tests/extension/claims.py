# SPDX-License-Identifier: MIT OR Apache-2.0
"""Claims of rows that are not kept, and the commands that burn-conformance prints: each failure's
command, run as it is printed, must fail with the same line.

usage: claims.py BURN-CONFORMANCE STUB.so
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from lies import install

TOOL, STUB = sys.argv[1:3]
FAILURE = re.compile(r"^(FAIL .*)\n +rerun: burn-conformance (.*)$", re.M)
# What a run that passes says.
SKIPPED = {"claim_off": "skip claim_off.op none claim tried: row stub.row is switched off: "
                        "nobody set STUB_ON\n"}
# defect: the op that is tried, words that must be there (None: it passes), further arguments
CASES = {
    "claim_kept": ("claim_kept.op", None, []),
    "claim_unreachable": ("claim_unreachable.op",
                          "claim tried: row stub.row was never launched", []),
    "claim_raceless": ("claim_raceless.op",
                       "claim tried: row stub.row was never launched", []),
    "claim_off": ("claim_off.op", None, ["--verbose"]),
    "claim_off_unasked": ("claim_off_unasked.op",
                          "claim tried: row stub.row was never launched", []),
    "claim_untried": ("claim_untried.op", "a kernel is claimed, but no sample tried it", []),
    "bounds_behind": ("bounds_behind.op", "wrote 4 bytes behind", []),
    "takes_softmax": ("softmax", "as the step of a program", []),
    "infer_rank": ("infer_rank.op", "rank 200", []),
    "says_value": ("says_value.op", "is not in stock", []),
    "takes_add": ("add", "element 0 is 42", ["--smoke"]),
}
NAMES = sorted(CASES)


def run(env, arguments):
    done = subprocess.run([TOOL, *arguments], env=env, capture_output=True, text=True,
                          timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def check_reruns(env, name, said):
    """One command for each check that failed."""
    faults, seen = [], set()
    for line, command in FAILURE.findall(said):
        check = line.split(",")[0].split(":")[0]
        if check in seen:
            continue
        seen.add(check)
        # Modes are other processes of the whole op; each of them is slow.
        more = [] if " same bits" in check else ["--no-modes"]
        status, again = run(env, shlex.split(command) + more)
        if status != 1 or line not in again:
            faults.append(f"{name}: {command!r} ended with {status} and did not say {line!r}")
    return faults


def check_case(env, name):
    op, words, more = CASES[name]
    arguments = ["--device", "flex", "--extension", name, "--op", op, "--no-modes", *more]
    status, said = run(env, arguments)
    if words is None:
        fine = status == 0 and SKIPPED.get(name, "") in said
        return [] if fine else [f"{name}: ended with {status}:\n{said[:1500]}"]
    faults = check_reruns(env, name, said)
    if status != 1 or words not in said or not FAILURE.search(said):
        faults.append(f"{name}: ended with {status}, without {words!r}:\n{said[:1500]}")
    return faults


def check_list(env, folder):
    """A slot that takes less than it did is a difference, and so is a row of another priority."""
    path = str(folder / "claims.txt")
    base = ["--device", "flex", "--extension", "claim_kept", "--op", "claim_kept.op", "--no-modes"]
    status, said = run(env, [*base, "--write-claims", path])
    text = pathlib.Path(path).read_text()
    faults = [] if status == 0 else [f"--write-claims ended with {status}: {said}"]
    for old, new in (("claim_kept.op slot stub.row 0 f32 contiguous",
                      "claim_kept.op slot stub.row 0 f32 contiguous,rows"),
                     ("claim_kept.op row stub.row priority 1000",
                      "claim_kept.op row stub.row priority 1001")):
        pathlib.Path(path).write_text(text.replace(old, new))
        status, said = run(env, [*base, "--claims", path])
        if old not in text or status != 1 or f"not claimed any more: {new}" not in said:
            faults.append(f"--claims with {new!r}: ended with {status}:\n{said[:800]}")
        faults += check_reruns(env, "claims", said)
    return faults


def check_reports(env, folder):
    """Both files have the command, and what was run."""
    report, junit = folder / "report.json", folder / "report.xml"
    run(env, ["--device", "flex", "--extension", "bounds_behind", "--op", "bounds_behind.op",
              "--no-modes", "--json", str(report), "--junit", str(junit)])
    found = json.loads(report.read_text())
    faults = [f"JSON lacks {key}" for key in ("library", "abi", "plugin", "isa")
              if not found.get(key)]
    for entry in found["results"]:
        if entry["text"] == "" or (entry["outcome"] == "fail") != ("rerun" in entry):
            faults.append(f"JSON: {entry}")
    root = xml.etree.ElementTree.parse(junit).getroot()
    names = {p.get("name") for p in root.iter("property") if p.get("value")}
    failures = list(root.iter("failure"))
    if names != {"library", "abi", "plugin", "isa"} or not failures:
        faults.append(f"JUnit: properties {names}, {len(failures)} failures")
    faults += [f"JUnit: {f.get('message')!r} without a command" for f in failures
               if "burn-conformance --device flex:0 --op bounds_behind.op" not in (f.text or "")]
    return faults


def main():
    with tempfile.TemporaryDirectory(prefix="burn-claims-") as name:
        folder = pathlib.Path(name)
        for case in NAMES:
            install(folder, case, STUB)
        path = os.environ.get("BURN_PLUGIN_PATH", "")
        env = dict(os.environ, BURN_PLUGIN_PATH=f"{folder}:{path}")
        faults = [fault for case in NAMES for fault in check_case(env, case)]
        faults += check_list(env, folder) + check_reports(env, folder)
    print("\n".join(faults) if faults else "all as expected")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
