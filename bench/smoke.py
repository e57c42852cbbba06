#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""smoke.py BURN_BENCH - the benchmark runs, and its JSON and history say what README.md promises.

Nothing is said about how fast anything is: tests must not depend on who else uses the machine.
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

KEYS = {"name", "value", "unit", "peer", "peer_value", "ratio", "limit", "fraction", "spread",
        "budgets", "rounds", "note"}
ROWS = {"add.64.eager": "ns", "sgemm.256.1t": "GFLOP/s", "start.first_result": "ms",
        "window.known": "ns", "chain8.64k.1t": "ns", "step.mlp": "ms", "replay.mlp": "ms"}
OWN_PEER = {"replay.mlp"}  # beside a process of ours, which is there without PyTorch
LIMITED = {"sgemm.256.1t", "chain8.64k.1t", "step.mlp", "replay.mlp"}
CHECKED = (("chain8", 1000), ("chain8_replay", 1000), ("known", 1), ("softmax_parts", 3072),
           ("layer_norm_parts", 3072), ("bias_backward", 98304), ("turned", 98304),
           ("masked_softmax", 3072), ("residual_norm", 3072),
           ("adamw", 20000), ("step_mlp", 8), ("replay_mlp", 8))


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def check_number(row, key, wanted):
    number = row[key]
    assert (number is not None) == wanted, row
    assert number is None or (math.isfinite(number) and number > 0), row


def verdict(row, budget):
    """What the verdict must be, from the row's own numbers."""
    number = row.get(budget["of"])
    if budget["of"] == "apart" and row["peer_value"] is not None:
        number = abs(row["value"] - row["peer_value"])
    if number is None:
        return "unknown"
    good = number <= budget["most"] if "most" in budget else number >= budget["least"]
    return "met" if good else "missed"


def check_budgets(bench, fast):
    """Every verdict follows from its row, and the exit status from the verdicts."""
    only = ("--only", "add.64.*,ext.call.64,sgemm.256.1t,window.known,math.exp,recompute.none")
    status = {"met": 0, "missed": 3, "unknown": 4}
    for pattern in (only, ("--only", "recompute.none"), ("--only", "start.list10")):
        done = subprocess.run([bench, *fast, *pattern, "--budgets", "--json", "-"],
                              capture_output=True, text=True, timeout=100, check=False)
        report = json.loads(done.stdout)
        verdicts = [(row["name"], budget["verdict"]) for row in report["rows"]
                    for budget in row["budgets"]]
        for row in report["rows"]:
            for budget in row["budgets"]:
                near = budget.get("most", budget.get("least"))
                number = row.get(budget["of"])
                rounded = number is not None and abs(number - near) < 1e-4 * near
                assert rounded or budget["verdict"] == verdict(row, budget), row
        found = {said for _, said in verdicts}
        worst = "missed" if "missed" in found else "met" if "met" in found else "unknown"
        assert done.returncode == status[worst], (done.returncode, verdicts, done.stderr)
        count = {said: sum(said == other for _, other in verdicts) for said in status}
        assert (f"budgets: {count['met']} met, {count['missed']} missed, {count['unknown']} not"
                in done.stderr), done.stderr
        if pattern is only:
            assert len(verdicts) == 9, verdicts
            assert ("add.64.eager", "unknown") in verdicts, verdicts  # no PyTorch beside it


def check_report(report, names):
    assert report["format"] == 1 and report["quick"] is True and report["torch"] is False, report
    assert report["revision"] == 'a "revision"', report
    assert report["machine"]["cpus"] >= 1 and report["machine"]["cpu"], report
    assert 0 <= report["machine"]["round_trip"] <= 20000, report
    assert 0 <= report["others"] <= report["machine"]["cpus"] * 1.5, report
    assert [row["name"] for row in report["rows"]] == names, report
    for row in report["rows"]:
        assert set(row) == KEYS, row
        assert row["unit"] == ROWS[row["name"]], row
        assert row["rounds"] >= 1 and row["note"] is None, row
        has_peer = row["name"] in OWN_PEER
        assert row["peer"] == ("burn" if has_peer else None), row
        check_number(row, "value", True)
        check_number(row, "peer_value", has_peer)
        check_number(row, "ratio", has_peer)
        has_limit = row["name"] in LIMITED
        check_number(row, "limit", has_limit)
        check_number(row, "fraction", has_limit)


def digests(bench, window, request, size):
    """What a worker with that window answers to check or reference, for each case of CHECKED."""
    lines = "".join(f"{request} {name} {arg * size}\n" for name, arg in CHECKED)
    done = subprocess.run([bench, "--worker"], input=lines, capture_output=True, text=True,
                          timeout=100, check=True, env={**os.environ, "BURN_WINDOW": window})
    answers = done.stdout.split("\n")[:-1]
    assert len(answers) == len(CHECKED), done.stdout
    assert all(len(answer) == 19 and answer.startswith("ok ") for answer in answers), answers
    return answers


def check_digests(bench):
    eager = digests(bench, "1", "reference", 1)
    assert digests(bench, "auto", "check", 1) == eager
    assert eager[0] == eager[1] and eager[-2] == eager[-1], eager  # a replay and what it replays
    assert len(set(eager)) == len(eager) - 2, eager
    assert not set(digests(bench, "auto", "check", 2)) & set(eager)


def main():
    bench = sys.argv[1]
    fast = ("--quick", "--no-peer", "--rounds", "2", "--seconds", "0.005")
    listed = run(bench, "--list").split()
    assert len(set(listed)) == len(listed) and set(ROWS) <= set(listed), listed
    names = [name for name in listed if name in ROWS]
    with tempfile.TemporaryDirectory() as folder:
        out, history = pathlib.Path(folder, "out.json"), pathlib.Path(folder, "history.jsonl")
        arguments = (bench, *fast, "--only", ",".join(ROWS), "--json", str(out),
                     f"--record={history}", "--revision", 'a "revision"')
        table = run(*arguments)
        assert all(name in table for name in names), table
        check_report(json.loads(out.read_text()), names)
        run(*arguments)
        lines = history.read_text().splitlines()
        assert len(lines) == 2, lines
        for line in lines:
            check_report(json.loads(line), names)
    only = ("--quick", "--no-peer", "--rounds", "2", "--only", "add.64.e*", "--json", "-")
    report = json.loads(run(bench, *only))
    assert [row["name"] for row in report["rows"]] == ["add.64.eager"], report
    check_digests(bench)
    check_budgets(bench, fast)
    wrong = subprocess.run([bench, "--only", "nothing"], capture_output=True, text=True, timeout=60,
                           check=False)
    assert wrong.returncode == 2 and "no row matches" in wrong.stderr, wrong
    print("bench-smoke: ok")


if __name__ == "__main__":
    main()
