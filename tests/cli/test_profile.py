#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""`burn profile`: what kernels, places and threads took, and the trace file.

usage: test_profile.py BURN OPS_PROGRAM; BURN_PLUGIN_PATH leads to flex and mock. Times are compared
with each other, never with numbers.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BURN, PROGRAM = sys.argv[1:3]
VARIABLES = ("BURN_LOG", "BURN_CHECK", "BURN_EXPLAIN", "BURN_PROFILE", "BURN_WINDOW",
             "BURN_THREADS")


def call(*args, env=None):
    environment = {k: v for k, v in os.environ.items() if k not in VARIABLES}
    environment.update({"BURN_DEVICE": "mock", **(env or {})})
    return subprocess.run([*map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment, timeout=60, check=False)


def profile(*args, options=(), env=None):
    done = call(BURN, "profile", "--json", *options, "--", *args, env=env)
    return json.loads(done.stdout), done


class Profile(unittest.TestCase):
    def one(self, answer, op, shapes=""):
        process, = answer["processes"]
        found = [o for o in process["ops"] if o["op"] == op and shapes in o["shapes"]]
        self.assertTrue(found, (op, process))
        return found[0]

    def test_kernels_places_and_threads(self):
        for device, window, clock in (("mock", "1", "device"), ("mock", "64", "device"),
                                      ("flex", "1", "host"), ("flex", "64", "host")):
            answer, done = profile(PROGRAM, env={"BURN_DEVICE": device, "BURN_WINDOW": window})
            self.assertEqual(done.returncode, 0, done)
            self.assertIn(b"\n", done.stderr)  # the program's output
            self.assertEqual((answer["status"], answer["signal"]), (0, 0))
            process, = answer["processes"]
            self.assertEqual(process["program"], os.path.basename(PROGRAM))
            fused = (device, window) == ("flex", "64")  # all wait, and begin with the product
            if not fused:
                add = self.one(answer, "add", "f32[9], f32[9]")
                self.assertEqual(add["calls"], 7)
                self.assertTrue(add["kernel"].startswith(f"{device}.add"), add)
                self.assertLessEqual(add["min_ns"] * 7, add["ns"])
                self.assertLessEqual(add["ns"], add["max_ns"] * 7)
            product = self.one(answer, "fused" if fused else "matmul")
            written = 4 if fused else 4 * 9  # of the group only its sum
            self.assertAlmostEqual(product["gflops"], 36 / product["ns"])
            self.assertAlmostEqual(product["gbytes"], (4 * (6 + 6) + written) / product["ns"])
            thread, = process["threads"]
            self.assertEqual((thread["device"], thread["clock"]), (f"{device}:0", clock))
            self.assertEqual(thread["launches"], sum(o["calls"] for o in process["ops"]))
            self.assertEqual(thread["kernel_ns"], sum(o["ns"] for o in process["ops"]))
            self.assertEqual(thread["outside_ns"], thread["wall_ns"] - thread["kernel_ns"])
            self.assertEqual((thread["untimed"], thread["not_kept"], thread["events_dropped"]),
                             (0, 0, 0))
            self.assertAlmostEqual(sum(o["share"] for o in process["ops"]), 1.0)
            head, = [p for p in process["places"] if p["place"] == "head"]
            nowhere, = [p for p in process["places"] if p["place"] == ""]
            self.assertEqual(head["times"], 1)
            self.assertEqual(head["with_parts_ns"], head["ns"])
            self.assertEqual(head["ns"] + nowhere["ns"], thread["kernel_ns"])
            self.assertEqual(nowhere["launches"], 1 if fused else 8)  # 7 adds and the sum

    def test_text(self):
        done = call(BURN, "profile", "--shapes", "--", PROGRAM)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(text, r"(?m)^ +7 +\d+\.\d+ +\d+\.\d+ +\d+\.\d%  .*  add  mock\.add  "
                               r"f32\[9\], f32\[9\] -> f32\[9\]$")
        self.assertRegex(text, r"(?m)^thread \d+ on mock:0: 15 launches, .* outside; device clock$")
        self.assertRegex(text, r"(?m)^ +7 .* head$")
        short = call(BURN, "profile", "--top", "1", "--", PROGRAM).stdout.decode()
        self.assertRegex(short, r"(?m)^ .* 5 more; --top N shows N$")
        self.assertNotIn("->", short)

    def check_events(self, trace, pid):
        """The format's rules, and that what is inside of something lies inside of it."""
        self.assertEqual(set(trace), {"displayTimeUnit", "traceEvents"})
        named = set()
        spans = []
        for e in trace["traceEvents"]:
            self.assertEqual((type(e["pid"]), type(e["tid"])), (int, int))
            self.assertEqual(e["pid"], pid)
            if e["ph"] == "M":
                self.assertIn(e["name"], ("process_name", "thread_name"))
                self.assertIsInstance(e["args"]["name"], str)
                named.add((e["name"], e["tid"] if e["name"] == "thread_name" else 0))
                continue
            self.assertEqual(e["ph"], "X")
            self.assertIn(e["cat"], ("op", "place"))
            self.assertIsInstance(e["name"], str)
            self.assertIsInstance(e["args"], dict)
            self.assertGreaterEqual(e["ts"], 0)
            self.assertGreaterEqual(e["dur"], 0)
            self.assertIn(("thread_name", e["tid"]), named)
            spans.append(e)
        self.assertIn(("process_name", 0), named)
        return spans

    def test_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            for device in ("mock", "flex"):
                path = pathlib.Path(folder) / f"{device}.json"
                answer, done = profile(PROGRAM, options=("--trace", path),
                                       env={"BURN_DEVICE": device})
                self.assertEqual(done.returncode, 0, done)
                process, = answer["processes"]
                spans = self.check_events(json.loads(path.read_text()), process["pid"])
                ops = [e for e in spans if e["cat"] == "op"]
                place, = [e for e in spans if e["cat"] == "place"]
                self.assertEqual(place["name"], "head")
                self.assertEqual(len(ops), process["threads"][0]["launches"])
                self.assertEqual(sum(e["name"] == "add" and e["args"]["place"] == ""
                                     for e in ops), 7)
                matmul, = [e for e in ops if e["name"] == "matmul"]
                self.assertEqual((matmul["args"]["place"], matmul["args"]["flops"],
                                  matmul["args"]["device"]), ("head", 36, f"{device}:0"))
                self.assertEqual(ops, sorted(ops, key=lambda e: e["ts"]))
                if device == "flex":  # on the thread, inside of its place
                    self.assertEqual(matmul["tid"], place["tid"])
                    self.assertGreaterEqual(matmul["ts"], place["ts"])
                    self.assertLessEqual(matmul["ts"] + matmul["dur"], place["ts"] + place["dur"])
                else:
                    self.assertNotEqual(matmul["tid"], place["tid"])

    def test_the_trace_cannot_be_written(self):
        done = call(BURN, "profile", "--trace", "/nonexistent/t.json", "--", PROGRAM)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"/nonexistent/t.json", done.stderr)

    def test_the_status_is_passed_on(self):
        answer, done = profile(PROGRAM, "5")
        self.assertEqual((answer["status"], done.returncode), (5, 5))
        self.assertEqual(call(BURN, "profile", "--", PROGRAM, "6").returncode, 6)
        self.assertEqual(profile("/nonexistent/program")[1].returncode, 127)
        self.assertEqual(profile("/tmp")[1].returncode, 126)

    def test_a_crash_keeps_what_was_collected(self):
        for device in ("mock", "flex"):
            answer, done = profile(PROGRAM, "crash", env={"BURN_DEVICE": device})
            self.assertEqual(done.returncode, 128 + 9)
            self.assertEqual(answer["signal"], 9)
            self.assertEqual(self.one(answer, "add", "f32[9], f32[9]")["calls"], 7)
        text = call(BURN, "profile", "--", PROGRAM, "crash").stdout.decode()
        self.assertIn("ended by signal 9", text)

    def test_each_process_is_told_and_other_programs_are_fine(self):
        answer, done = profile("sh", "-c", f"BURN_DEVICE=flex {PROGRAM}; {PROGRAM} 3")
        self.assertEqual(done.returncode, 3)
        devices = sorted(p["threads"][0]["device"] for p in answer["processes"])
        self.assertEqual(devices, ["flex:0", "mock:0"])
        self.assertEqual(profile("true")[0]["processes"], [])
        self.assertIn(b"opened no device", call(BURN, "profile", "--", "true").stdout)

    def test_a_forked_child_does_not_write_into_its_parents_files(self):
        answer, done = profile(PROGRAM, "fork", env={"BURN_DEVICE": "flex"})
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.one(answer, "add", "f32[9], f32[9]")["calls"], 7)

    def test_nothing_is_left_behind(self):
        folder = call(BURN, "profile", "--", "sh", "-c", f"{PROGRAM} > /dev/null; "
                      "echo $BURN_PROFILE").stdout.decode().splitlines()[0]
        self.assertTrue(folder.startswith("/"), folder)
        self.assertFalse(os.path.exists(folder))

    def test_the_program_itself_is_the_same(self):
        self.assertIn(call(PROGRAM).stdout, call(BURN, "profile", "--", PROGRAM).stdout)

    def test_the_folder_must_be_one(self):
        for folder in ("relative", "/nonexistent/folder"):
            done = call(PROGRAM, env={"BURN_PROFILE": folder})
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"BURN_PROFILE", done.stdout + done.stderr)
        self.assertIn(b"no folder is there", done.stdout + done.stderr)
        done = call(PROGRAM, env={"BURN_PROFILE": "/proc", "BURN_LOG": "warn"})
        self.assertRegex(done.stderr, rb"/proc/\S+ cannot be made: [A-Z]")

    def test_files_that_are_none(self):
        """A program may leave anything in the folder: it is left out."""
        script = ("head -c 100 /dev/urandom > $BURN_PROFILE/1-0.burn; "
                  "head -c 5000000 /dev/zero > $BURN_PROFILE/1-1.burn; "
                  f": > $BURN_PROFILE/1-2.burn; {PROGRAM}")
        answer, done = profile("sh", "-c", script)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(answer["processes"]), 1)

    def test_used_wrongly(self):
        for args in ((), ("--",), (PROGRAM,), ("--nothing", "--", PROGRAM),
                     ("--top", "0", "--", PROGRAM), ("--trace", "--", PROGRAM)):
            done = call(BURN, "profile", *args)
            self.assertEqual(done.returncode, 2, done)
            self.assertTrue(done.stderr.startswith(b"burn profile: "), done)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
