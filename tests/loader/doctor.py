#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""`burn doctor` on a machine where nearly every plugin is broken, each in its own way.

usage: doctor.py --burn PROGRAM --stubs FOLDER
A folder gets every defect of stub.c and hostile.c under its name, and a slow plugin. The program
must end by itself, list each of them with a reason, and say which one is slow. `burn devices` tells
which of the stubs' devices are one.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def ids_of(source):
    """What the file's own id is compared with, and the rows of its table of defects."""
    text = (HERE / source).read_text()
    return sorted(set(re.findall(r"\bis\(\"(\w+)\"\)", text) +
                      re.findall(r"\bROW\((\w+)\)", text)) - {"name"})


def install(folder, stubs):
    ids = {}
    for source, library in (("stub.c", "stub.so"), ("hostile.c", "hostile.so")):
        for name in ids_of(source):
            kind = "extension" if name.startswith("ext") else "backend"
            shutil.copyfile(pathlib.Path(stubs, library), pathlib.Path(folder, f"{name}.so"))
            manifest = {"format": 1, "id": name, "name": f"Stub {name}", "kind": kind,
                        "file": f"{name}.so", "version": "1.2.3", "license": "MIT",
                        "abi": {"oldest": "0.1", "newest": "0.1"}, "priority": -5,
                        "devices": "virtual"}
            pathlib.Path(folder, f"{name}.json").write_text(json.dumps(manifest))
            ids[name] = kind
    return ids


def run(burn, folder, *more):
    names = sorted(p.stem for p in pathlib.Path(folder).glob("*.json"))
    # What is installed on this machine stays out.
    env = {**os.environ, "BURN_PLUGIN_PATH": folder, "BURN_BACKENDS": ",".join(names)}
    env.pop("BURN_DEVICE", None)
    return subprocess.run([burn, "doctor", *more], env=env, capture_output=True, text=True,
                          timeout=100)


def check(burn, folder, ids):
    problems = []
    plain, done = run(burn, folder), run(burn, folder, "--json")
    for name, result in (("doctor", plain), ("doctor --json", done)):
        # Nothing computes here, so 1 is the right answer; a signal or a crash is not.
        if result.returncode != 1:
            problems.append(f"{name}: exit status {result.returncode}: {result.stderr[-400:]}")
    try:
        plugins = {p["id"]: p for p in json.loads(done.stdout)["plugins"]}
    except (ValueError, KeyError) as cause:
        return problems + [f"doctor --json: {cause!r}: {done.stdout[:200]}"]
    for name in ids:
        plugin = plugins.get(name)
        if plugin is None or name not in plain.stdout:
            problems.append(f"{name}: is not listed")
        elif plugin["state"] not in ("usable", "loadable", "known") and not plugin["reason"]:
            problems.append(f"{name}: {plugin['state']} without a reason")
    broken = [name for name in ids if plugins.get(name, {}).get("state") == "broken"]
    if len(broken) < 40:
        problems.append(f"only {len(broken)} of the plugins are broken: {broken}")
    if not plugins.get("very_slow", {}).get("slow") or "which is slow" not in plain.stdout:
        problems.append("very_slow: is not told to be slow")
    return problems


def b236_one_device_through_two_backends_is_linked(burn, folder):
    """Two stubs say the same bus address: the second is told to be the first."""
    env = {**os.environ, "BURN_PLUGIN_PATH": folder}
    env.pop("BURN_DEVICE", None)
    command = [burn, "devices", "--json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100)
    plain = subprocess.run(command[:2], env=env, capture_output=True, text=True, timeout=100)
    try:
        devices = {d["device"]: d.get("same_as") for d in json.loads(done.stdout)["devices"]}
    except (ValueError, KeyError) as cause:
        return [f"devices --json: {cause!r}: {done.stdout[:200]}{done.stderr[-200:]}"]
    problems = []
    linked = {name: same for name, same in devices.items() if same is not None}
    if linked != {"twin_b:0": "twin_a:0"}:
        problems.append(f"devices: {linked} are linked, not twin_b:0 with twin_a:0")
    if not {"twin_a:0", "twin_far:0", "mixed:1"} <= set(devices):
        problems.append(f"devices: not all are listed: {sorted(devices)}")
    if plain.stdout.count("the same as ") != 1 or "the same as twin_a:0" not in plain.stdout:
        problems.append("devices: the line of twin_b:0 does not name twin_a:0")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--burn", required=True)
    parser.add_argument("--stubs", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        ids = install(folder, args.stubs)
        problems = check(args.burn, folder, ids)
        problems += b236_one_device_through_two_backends_is_linked(args.burn, folder)
    for line in problems:
        print(line)
    print(f"doctor: {len(ids)} plugins, {len(problems)} problems")
    return 1 if problems or len(ids) < 80 else 0


if __name__ == "__main__":
    sys.exit(main())
