#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""`burn doctor` on a machine where nearly every plugin is broken, each in its own way.

usage: doctor.py --burn PROGRAM --stubs FOLDER
A folder gets every defect of stub.c and hostile.c under its name, and a slow plugin. The program
must end by itself, list each of them with a reason, and say which one is slow; plugins that work
get a warning where they were linked badly, and those that are hidden say by which. `burn devices`
tells which of the stubs' devices are one.
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


def what_works_and_is_told(burn, stubs):
    """Plugins that work: linked as they should not be; and one that hides another of its id."""
    problems = []
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        for folder in (first, second):
            os.chmod(folder, 0o755)
        for folder, name, library in ((first, "many", "exports.so"), (first, "twice", "hostile.so"),
                                      (second, "twice", "hostile.so"),
                                      (first, "bad", "not_a_plugin.so"),
                                      (second, "bad", "hostile.so")):
            shutil.copyfile(pathlib.Path(stubs, library), pathlib.Path(folder, f"{name}.so"))
            manifest = {"format": 1, "id": name, "name": name, "kind": "backend",
                        "file": f"{name}.so", "version": "1.2.3", "license": "MIT",
                        "abi": {"oldest": "0.1", "newest": "0.1"}, "priority": -5}
            pathlib.Path(folder, f"{name}.json").write_text(json.dumps(manifest))
        env = {**os.environ, "BURN_PLUGIN_PATH": f"{first}:{second}"}
        env.pop("BURN_DEVICE", None)
        env.pop("BURN_BACKENDS", None)
        text = subprocess.run([burn, "doctor"], env=env, capture_output=True, text=True,
                              timeout=100).stdout
        done = subprocess.run([burn, "doctor", "--json"], env=env, capture_output=True, text=True,
                              timeout=100).stdout
        plugins = json.loads(done)["plugins"]
        expected = [
            ("many", "usable", "warning", "it exports 2 symbols beside burn_plugin_query"),
            ("many", "usable", "warning_remedy", "version script"),
            ("twice", "usable", "warning", ""),
            ("twice", "hidden", "reason", f"{first}/twice.json hides it"),
            ("twice", "hidden", "remedy", "remove one of the two manifests"),
            ("bad", "broken", "remedy", f"remove {first}/bad.json: it hides {second}/bad.json"),
            ("bad", "hidden", "reason", f"{first}/bad.json hides it"),
        ]
        for name, state, key, words in expected:
            found = [p for p in plugins if p["id"] == name and p["state"] == state]
            if len(found) != 1 or words not in found[0][key] or (not words and found[0][key]):
                problems.append(f"doctor: {name} {state}: {key} lacks '{words}': {found}")
            elif words not in text:
                problems.append(f"doctor: the text lacks '{words}'")
        if not any(p["build_id"] and f"build {p['build_id']}" in text for p in plugins):
            problems.append("doctor: no build id is told")
    return problems


def what_ends_a_program_is_told(burn, stubs):
    """A plugin that nobody can open and live, beside one that works: both are told, and that the
    first keeps devices from being tried."""
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for name in ("fatal", "healthy"):
            shutil.copyfile(pathlib.Path(stubs, "hostile.so"), pathlib.Path(folder, f"{name}.so"))
            manifest = {"format": 1, "id": name, "name": name, "kind": "backend",
                        "file": f"{name}.so", "version": "1.2.3", "license": "MIT",
                        "abi": {"oldest": "0.1", "newest": "0.1"}, "priority": -5}
            pathlib.Path(folder, f"{name}.json").write_text(json.dumps(manifest))
        env = {**os.environ, "BURN_PLUGIN_PATH": folder, "BURN_BACKENDS": "fatal,healthy"}
        env.pop("BURN_DEVICE", None)
        for words in (["doctor"], ["doctor", "--json"], ["plugins", "--open"]):
            done = subprocess.run([burn, *words], env=env, capture_output=True, text=True,
                                  timeout=100)
            wanted = ["opening its library ends the program", "install it again", "usable"]
            if words[0] == "doctor":
                wanted.append("1 plugin ends a program that opens plugins")
            if done.returncode not in (0, 1) or (words[0] == "doctor" and done.returncode != 1):
                problems.append(f"{words}: status {done.returncode}")
            problems += [f"{words}: '{w}' is not told" for w in wanted if w not in done.stdout]
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
    problems += what_works_and_is_told(args.burn, args.stubs)
    problems += what_ends_a_program_is_told(args.burn, args.stubs)
    for line in problems:
        print(line)
    print(f"doctor: {len(ids)} plugins, {len(problems)} problems")
    return 1 if problems or len(ids) < 80 else 0


if __name__ == "__main__":
    sys.exit(main())
