#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""`burn explain` and `burn doctor`: what happened, what is broken, why, and what to do.

usage: test_seeing.py BURN OPS_PROGRAM STUB; BURN_PLUGIN_PATH leads to flex and mock. STUB is the
loader tests' plugin, which has the defect that its file is named after. Programs end in every way:
fine, with a status, killed, not there at all.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BURN, PROGRAM, STUB = sys.argv[1:4]
VARIABLES = ("BURN_LOG", "BURN_CHECK", "BURN_EXPLAIN", "BURN_PLANS", "BURN_WINDOW", "BURN_THREADS")


def call(*args, env=None):
    environment = {k: v for k, v in os.environ.items() if k not in VARIABLES}
    environment.update({"BURN_DEVICE": "mock", **(env or {})})
    environment = {k: v for k, v in environment.items() if v is not None}
    return subprocess.run([*map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment, timeout=60, check=False)


class Plans(unittest.TestCase):
    def plans(self, *args, device="flex", status=0, **env):
        done = call(BURN, "plans", "--json", "--", PROGRAM, *args,
                    env={"BURN_DEVICE": device, **env})
        self.assertEqual(done.returncode, status, done)
        return json.loads(done.stdout)["processes"]

    def test_a_loop_has_a_plan_with_its_program(self):
        process, = self.plans("loop")
        self.assertIn("flex:0: 1 plan kept, 1 made, 3 runs by one that was there",
                      process["text"])
        self.assertIn("3 calls in 1 launch (1 group of 3 calls), used 3 times again",
                      process["text"])
        self.assertRegex(process["text"], r"3 calls as one by flex\.fused.*:\n    in0 f32")
        self.assertRegex(process["text"], r"memory: bound \d+, peak \d+")
        self.assertIn("= relu ", process["text"])
        text = call(BURN, "plans", "--", PROGRAM, "loop", env={"BURN_DEVICE": "flex"})
        self.assertIn(b"40\nprocess ", text.stdout)
        self.assertIn(b"= relu ", text.stdout)

    def test_without_a_row_there_are_no_groups(self):
        process, = self.plans("loop", device="mock")
        self.assertIn("3 calls in 3 launches (0 groups of 0 calls)", process["text"])
        process, = self.plans("loop", BURN_WINDOW="1")
        self.assertIn("flex:0: 0 plans kept, 0 made", process["text"])

    def test_how_the_program_ends_is_passed_on(self):
        self.assertEqual(len(self.plans("7", status=7)), 1)
        self.assertEqual(self.plans("crash", status=137), [])
        self.assertEqual(len(self.plans("fork")), 1)
        done = call(BURN, "plans", "--", "/nothing/there")
        self.assertEqual(done.returncode, 127, done)
        self.assertEqual(call(BURN, "plans").returncode, 2)

    def test_a_folder_that_is_none_is_told(self):
        done = call(PROGRAM, env={"BURN_PLANS": "here"})
        self.assertEqual(done.returncode, 1)
        self.assertIn(b'BURN_PLANS="here": not an absolute folder', done.stderr)
        done = call(PROGRAM, env={"BURN_PLANS": "/nothing/there"})
        self.assertEqual(done.returncode, 1)
        self.assertIn(b'BURN_PLANS="/nothing/there": no folder is there', done.stderr)

    def test_an_unknown_value_of_an_option_of_flex_is_told(self):
        done = call(BURN, "doctor", "--json", env={"BURN_FLEX_GEMM": "mkl"})
        flex, = [p for p in json.loads(done.stdout)["plugins"] if p["id"] == "flex"]
        self.assertIn("FLEX_GEMM=mkl is not known; use openblas, or own", json.dumps(flex))
        for value in ("own", "openblas"):
            done = call(PROGRAM, env={"BURN_FLEX_GEMM": value, "BURN_DEVICE": "flex"})
            self.assertEqual(done.returncode, 0, done)


class Explain(unittest.TestCase):
    def explain(self, *args, status=0, env=None):
        done = call(BURN, "explain", "--json", "--", *args, env=env)
        self.assertEqual(done.returncode, status, done)
        return json.loads(done.stdout), done

    def one(self, answer, op, within=""):
        process, = answer["processes"]
        found = [o for o in process["ops"] if o["op"] == op and o["within"] == within]
        self.assertTrue(found, (op, process))
        return found[0]

    def test_copies_rows_and_decompositions_are_told_with_reasons(self):
        answer, done = self.explain(PROGRAM)
        self.assertIn(b"\n", done.stderr)  # the program's output
        matmul = self.one(answer, "matmul")
        self.assertEqual((matmul["kind"], matmul["served"]), ("row", "mock.matmul"))
        self.assertEqual((matmul["copies"], matmul["copy_bytes"]), (1, 24))
        self.assertEqual(matmul["operands"], "f32[3,2] strided, f32[2,3]")
        self.assertIn("x is strided, it takes contiguous", matmul["why"])
        self.assertEqual(matmul["tag"], "head")
        self.assertEqual(self.one(answer, "copy", "layout copy for matmul")["calls"], 1)
        gelu = self.one(answer, "gelu")
        self.assertEqual(gelu["kind"], "decomposed")
        self.assertIn("erf", gelu["served"])
        self.assertEqual(gelu["why"], "mock:0 has no row for it")
        self.assertEqual(self.one(answer, "add")["calls"], 7)
        self.assertEqual(self.one(answer, "permute")["kind"], "view")
        totals = answer["processes"][0]["totals"]
        self.assertEqual(totals["calls"], sum(o["calls"] for o in answer["processes"][0]["ops"]))
        self.assertEqual((totals["layout_copies"], totals["layout_copy_bytes"]), (1, 24))
        self.assertEqual((totals["host_fallbacks"], totals["failed"]), (0, 0))

    def test_flex_takes_the_same_operands_as_they_are(self):
        answer, _ = self.explain(PROGRAM, env={"BURN_DEVICE": "flex"})
        matmul = self.one(answer, "matmul")
        self.assertEqual((matmul["kind"], matmul["copies"]), ("row", 0))
        self.assertTrue(matmul["served"].startswith("flex.matmul"))
        self.assertEqual(answer["processes"][0]["totals"]["layout_copies"], 0)

    def test_the_window_changes_nothing(self):
        for window in ("1", "64"):
            answer, _ = self.explain(PROGRAM, env={"BURN_WINDOW": window})
            self.assertEqual(self.one(answer, "add")["calls"], 7)

    def test_text(self):
        done = call(BURN, "explain", "--", PROGRAM)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(text, r"(?m)^ +7  add\(f32\[3,3\], f32\[3,3\]\) +mock\.add$")
        self.assertRegex(text, r"(?m)^ +1  gelu\(f32\[3,3\]\) +made of .*erf")
        self.assertIn("layout copies: 1, 24 bytes; host fallbacks: none", text)

    def test_the_status_is_passed_on(self):
        self.assertEqual(self.explain(PROGRAM, "5", status=5)[0]["status"], 5)
        self.assertEqual(call(BURN, "explain", "--", PROGRAM, "6").returncode, 6)
        self.assertEqual(self.explain("/nonexistent/program", status=127)[0]["processes"], [])
        self.assertEqual(self.explain("/tmp", status=126)[0]["processes"], [])

    def test_a_crash_loses_nothing(self):
        answer, _ = self.explain(PROGRAM, "crash", status=128 + 9)
        self.assertEqual(answer["signal"], 9)
        self.assertEqual(self.one(answer, "add")["calls"], 7)
        text = call(BURN, "explain", "--", PROGRAM, "crash").stdout.decode()
        self.assertIn("ended by signal 9", text)

    def test_each_process_is_told_and_other_programs_are_fine(self):
        answer, _ = self.explain("sh", "-c", f"{PROGRAM}; {PROGRAM} 3", status=3)
        self.assertEqual(len(answer["processes"]), 2)
        self.assertEqual(self.explain("true")[0]["processes"], [])
        self.assertIn(b"opened no device", call(BURN, "explain", "--", "true").stdout)

    def test_a_forked_child_has_a_table_of_its_own(self):
        answer, _ = self.explain(PROGRAM, "fork")
        self.assertEqual(len(answer["processes"]), 2)
        adds = [o["calls"] for p in answer["processes"] for o in p["ops"]
                if (o["op"], o["within"]) == ("add", "")]
        self.assertEqual(sorted(adds), [5, 7])

    def test_nothing_is_left_behind(self):
        folder = call(BURN, "explain", "--", "sh", "-c", f"{PROGRAM} > /dev/null; "
                      "echo $BURN_EXPLAIN").stdout.decode().splitlines()[0]
        self.assertTrue(folder.startswith("/"), folder)
        self.assertFalse(os.path.exists(folder))

    def test_used_wrongly(self):
        for args in ((), ("--",), (PROGRAM,), ("--nothing", "--", PROGRAM)):
            done = call(BURN, "explain", *args)
            self.assertEqual(done.returncode, 2, done)
            self.assertTrue(done.stderr.startswith(b"burn explain: "), done)

    def test_log_dispatch__lines_and_totals(self):
        done = call(PROGRAM, env={"BURN_LOG": "dispatch"})
        text = done.stderr.decode()
        self.assertIn("dispatch: matmul(f32[3,2] strided, f32[2,3]) by mock.matmul; copied first",
                      text)
        self.assertRegex(text, r"dispatch: gelu\(f32\[3,3\]\) made of .*erf.*mock:0 has no row")
        self.assertEqual(len(re.findall("dispatch: add", text)), 1)
        self.assertRegex(text, r"total: \d+ calls: \d+ by rows, 1 decomposed, 1 view, 0 failed")
        self.assertIn("total: 1 layout copy of 24 bytes, host fallbacks: none", text)
        self.assertEqual(call(PROGRAM).stderr, b"")

    def test_the_folder_must_be_one(self):
        for folder in ("relative", "/nonexistent/folder"):
            done = call(PROGRAM, env={"BURN_EXPLAIN": folder})
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"BURN_EXPLAIN", done.stderr)


class Options(unittest.TestCase):
    def test_a_wrong_value_is_told_by_whatever_opens_a_device(self):
        for name, value, word in (("LOG", "dispach", "dispatch"), ("CHECK", "nam", "nan"),
                                  ("THREADS", "abc", "4096"), ("THREADS", "0", "4096"),
                                  ("WINDOW", "x", "1024")):
            done = call(PROGRAM, env={f"BURN_{name}": value})
            self.assertEqual(done.returncode, 1, (name, done))
            said = done.stderr.decode()
            self.assertIn(f"BURN_{name}=\"{value}\"", said)
            self.assertIn(word, said)

    def test_check__of_a_program_that_knows_nothing_of_it(self):
        wrong = {"BURN_MOCK_WRONG_OP": "40:3"}
        plain = call(PROGRAM, env=wrong)
        self.assertEqual(plain.stderr, b"")
        for window in ("1", "64"):
            done = call(PROGRAM, env={**wrong, "BURN_CHECK": "compare", "BURN_WINDOW": window})
            self.assertIn(b"add: output", done.stdout, done)
            self.assertIn(b"its definition says", done.stdout)
            self.assertIn(b"at [0,0] of f32[3,3]", done.stdout)
        fine = call(PROGRAM, env={"BURN_CHECK": "nan,compare", "BURN_LOG": "info"})
        self.assertEqual(fine.stdout, call(PROGRAM).stdout)
        self.assertRegex(fine.stderr.decode(), r"check: \d+ calls looked at .*, 0 wrong")


class Doctor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.folder.chmod(0o755)
        for name in ("no_devices", "very_slow", "layout_hash", "query_fails", "count_fails",
                     "gone", "open_door", "future"):
            library = cls.folder / f"{name}.so"
            shutil.copy(STUB, library)
            library.chmod(0o666 if name == "open_door" else 0o755)
            abi = "9.0" if name == "future" else "0.1"
            manifest = {"format": 1, "id": name, "name": name, "kind": "backend",
                        "file": f"{name}.so", "version": "1.2.3", "license": "MIT",
                        "abi": {"oldest": abi, "newest": abi}, "priority": -500,
                        "devices": "cpu"}
            path = cls.folder / f"{name}.json"
            path.write_text(json.dumps(manifest))
            path.chmod(0o644)
        (cls.folder / "gone.so").unlink()
        cls.env = {"BURN_PLUGIN_PATH": f"{cls.folder}:{os.environ['BURN_PLUGIN_PATH']}"}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def doctor(self, **env):
        done = call(BURN, "doctor", "--json", env={**self.env, **env})
        return json.loads(done.stdout)

    def test_each_defect_has_its_reason_and_remedy(self):
        plugins = {p["id"]: p for p in self.doctor()["plugins"]}
        expected = {
            "no_devices": ("loadable", "no device", "driver"),
            "layout_hash": ("broken", "layout hash", "rebuild"),
            "query_fails": ("broken", "libdriver.so.1: version 3 is needed", ""),
            "gone": ("broken", "No such file", "install"),
            "open_door": ("broken", "can be written by every user", "mode"),
            "future": ("broken", "ABI 9.0", "update this library"),
            "count_fails": ("loadable", "", "driver"),
            "mock": ("usable", "", ""),
        }
        for name, (state, reason, remedy) in expected.items():
            plugin = plugins[name]
            self.assertEqual(plugin["state"], state, plugin)
            self.assertIn(reason, plugin["reason"])
            self.assertIn(remedy, plugin["remedy"])
        text = call(BURN, "doctor", env=self.env).stdout.decode()
        self.assertIn("remedy: rebuild", text)
        self.assertIn("All is well", text)

    def test_slow_loading_is_told(self):
        plugins = {p["id"]: p for p in self.doctor()["plugins"]}
        self.assertTrue(plugins["very_slow"]["slow"], plugins["very_slow"])
        self.assertGreater(plugins["very_slow"]["open_ms"], 100)
        self.assertIn("which is slow", call(BURN, "doctor", env=self.env).stdout.decode())

    def test_the_allow_list(self):
        plugins = {p["id"]: p for p in self.doctor(BURN_BACKENDS="mock")["plugins"]}
        self.assertEqual(plugins["very_slow"]["state"], "disabled")
        self.assertIn("BURN_BACKENDS", plugins["very_slow"]["reason"])
        self.assertIn("BURN_BACKENDS", plugins["very_slow"]["remedy"])

    def test_variables(self):
        seen = {v["name"]: v for v in self.doctor(
            BURN_DEVIC="x", BURN_MOCK_DELAY_US="1", BURN_THREADS="3",
            BURN_NOBODY_KNOWS="1")["environment"]}
        self.assertEqual(seen["BURN_DEVIC"]["read_by"], "nobody")
        self.assertEqual(seen["BURN_DEVIC"]["hint"], "BURN_DEVICE")
        self.assertEqual(seen["BURN_NOBODY_KNOWS"]["hint"], "")
        self.assertEqual((seen["BURN_MOCK_DELAY_US"]["read_by"],
                          seen["BURN_MOCK_DELAY_US"]["plugin"]), ("plugin", "mock"))
        self.assertEqual((seen["BURN_THREADS"]["read_by"], seen["BURN_THREADS"]["problem"]),
                         ("library", ""))
        text = call(BURN, "doctor", env={"BURN_DEVIC": "x"}).stdout.decode()
        self.assertIn("BURN_DEVIC=x  nobody reads it; did you mean BURN_DEVICE?", text)

    def test_a_wrong_value_is_told(self):
        answer = self.doctor(BURN_THREADS="many")
        self.assertFalse(answer["check"]["ok"])
        variable, = [v for v in answer["environment"] if v["name"] == "BURN_THREADS"]
        self.assertIn("4096", variable["problem"])

    def test_an_empty_value_is_a_wrong_one(self):
        table = (pathlib.Path(__file__).parents[2] / "docs/modes.md").read_text()
        rows = re.findall(r"^\| (`BURN_[^|]*) \|", table, re.M)
        names = []
        for row in rows:
            first, *others = re.findall(r"`(\w+)`", row)
            stem = re.match(r"BURN_[A-Z]+", first).group()
            names += [first] + [stem + other for other in others]
        self.assertIn("BURN_MOCK_FAIL_OP", names)
        self.assertGreater(len(names), 18)
        for name in names:
            device = "mock" if "MOCK" in name else "flex"
            env = {"BURN_DEVICE": device, name: ""}
            done = call(PROGRAM, env=env)
            self.assertNotEqual(done.returncode, 0, name)
            said = done.stderr.decode() + done.stdout.decode()
            self.assertIn(name.removeprefix("BURN_"), said)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
