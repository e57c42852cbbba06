#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sums meson's test logs into one last line: `N passed, N failed[, N skipped]`.

Every build folder named by --require must have a log with at least one test; one that has none
counts as a failure, so that a build which broke can never look green. What a failed test printed
last comes first, so that the end of a log tells what happened. Exit status 1 on any failure, 2 when
no test ran at all. --self-test proves those rules.
"""
import argparse
import json
import pathlib
import sys
import tempfile

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}
LAST_LINES = 60


def read_logs(folder):
    """Results of every test in a build folder: list of (name, result, what it printed)."""
    rows = []
    for log in sorted(pathlib.Path(folder).glob("meson-logs/testlog*.json")):
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.strip():
                row = json.loads(line)
                printed = (row.get("stdout") or "") + (row.get("stderr") or "")
                rows.append((row.get("name", "?"), row.get("result", "?"), printed))
    return rows


def last_lines(name, printed):
    """The end of what a test printed, each line marked as its."""
    lines = printed.splitlines()
    left_out = len(lines) - LAST_LINES
    head = [f"({left_out} lines before)"] if left_out > 0 else []
    return "\n".join(f"{name} | {line}" for line in head + lines[-LAST_LINES:])


def count(folders, broken):
    passed, skipped, failures, logs = 0, 0, [], []
    for folder in folders:
        rows = read_logs(folder)
        if not rows:
            failures.append(f"{folder}: no test ran there")
        for name, result, printed in rows:
            if result in PASSED:
                passed += 1
            elif result in SKIPPED:
                skipped += 1
            else:
                failures.append(f"{folder}: {name}: {result}")
                logs.append(last_lines(name, printed))
    if broken and not failures:
        failures.append(f"broken steps: {broken}")
    return passed, skipped, failures, logs


def report(folders, broken, out=sys.stdout):
    passed, skipped, failures, logs = count(folders, broken)
    for log in filter(None, logs):
        print(log + "\n", file=out)
    for line in failures:
        print(f"failed: {line}", file=out)
    tail = f", {skipped} skipped" if skipped else ""
    print(f"{passed} passed, {len(failures)} failed{tail}", file=out)
    if passed + len(failures) == 0 or passed == 0:
        return 2
    return 1 if failures else 0


def self_test():
    with tempfile.TemporaryDirectory() as top:
        sink = open("/dev/null", "w", encoding="utf-8")

        def folder(name, *results):
            logs = pathlib.Path(top, name, "meson-logs")
            logs.mkdir(parents=True)
            lines = [json.dumps({"name": f"t{i}", "result": r}) for i, r in enumerate(results)]
            (logs / "testlog.json").write_text("\n".join(lines))
            return str(pathlib.Path(top, name))

        good = folder("good", "OK", "EXPECTEDFAIL", "SKIP")
        cases = [
            (report([good], "", sink), 0, "all passed"),
            (report([good, folder("bad", "OK", "FAIL")], "", sink), 1, "one failed"),
            (report([good, folder("slow", "TIMEOUT")], "", sink), 1, "one timed out"),
            (report([good, folder("pass", "UNEXPECTEDPASS")], "", sink), 1, "unexpected pass"),
            (report([good, str(pathlib.Path(top, "none"))], "", sink), 1, "a build without log"),
            (report([good], "asan", sink), 1, "a broken step"),
            (report([folder("skips", "SKIP")], "", sink), 2, "only skips"),
            (report([], "", sink), 2, "nothing at all"),
            (last_lines("t", "1\n" * LAST_LINES).count("t | 1"), LAST_LINES, "all is shown"),
            (last_lines("t", "0\n1\n" * LAST_LINES)[:20], "t | (60 lines before)"[:20], "the end"),
        ]
        sink.close()
    wrong = [name for got, want, name in cases if got != want]
    print("count.py: self-test " + (f"failed: {wrong}" if wrong else "ok"))
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--require", action="append", default=[], metavar="BUILD_FOLDER")
    parser.add_argument("--broken", default="")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    return self_test() if args.self_test else report(args.require, args.broken.strip())


if __name__ == "__main__":
    sys.exit(main())
