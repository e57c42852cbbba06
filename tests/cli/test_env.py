#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""`burn env`: environments are filled, shown, shipped, damaged and removed.

usage: test_env.py BURN OPS_PROGRAM; BURN_PLUGIN_PATH leads to flex and mock. Which kernel is the
faster one is no test's business: only that there is an answer, and what becomes of it.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BURN, PROGRAM = sys.argv[1:3]
DROPPED = ("BURN_LOG", "BURN_CHECK", "BURN_EXPLAIN", "BURN_WINDOW", "BURN_ENVIRONMENT")


class Env(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.root = pathlib.Path(self.temporary.name)
        self.folder = self.root / "deep" / "environments"

    def call(self, *args, status=0, **env):
        environment = {k: v for k, v in os.environ.items() if k not in DROPPED}
        environment.update({"BURN_DEVICE": "flex", "BURN_ENVIRONMENT_PATH": str(self.folder),
                            **env})
        environment = {k: v for k, v in environment.items() if v is not None}
        done = subprocess.run([*map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done)
        return done

    def burn(self, *args, status=0, **env):
        cut = args.index("--") if "--" in args else len(args)
        done = self.call(BURN, "env", *args[:cut], "--json", *args[cut:], status=status, **env)
        return json.loads(done.stdout) if done.stdout else None

    def prepare(self, name, sizes="40x30x20", **env):
        return self.burn("prepare", name, "--matmul", sizes, **env)

    def test_prepare_by_sizes_show_and_list(self):
        self.assertEqual(self.burn("list"), {"environments": []})
        self.assertEqual(self.prepare("lab", "40x30x20,41x30x20")["choices"], 2)
        self.assertEqual(self.prepare("lab", "40x30x20,42x30x20")["choices"], 3)
        shown = self.burn("show", "lab")
        device, = shown["devices"]
        self.assertEqual((device["backend"], shown["choices"]), ("flex", 3))
        self.assertGreater(device["flops_f32"], 0)
        self.assertIn("matmul(f32[41,30], f32[30,20])", [c["call"] for c in device["choices"]])
        for choice in device["choices"]:
            self.assertTrue(choice["row"].startswith("flex.matmul.f32"), choice)
            self.assertGreater(choice["seconds"], 0)
        only, = self.burn("list")["environments"]
        self.assertEqual((only["name"], only["choices"], only["code"]), ("lab", 3, 0))
        text = self.call(BURN, "env", "show", "lab").stdout.decode()
        self.assertIn("matmul(f32[42,30], f32[30,20])", text)
        self.assertIn("lab", self.call(BURN, "env", "list").stdout.decode())
        self.assertEqual(self.folder.stat().st_mode & 0o077, 0)

    def test_prepare_by_convolutions(self):
        lists = ("--conv2d", "2x4x12x10:6x3x3:p1x2,2x4x12x10:6x3x3:s2x1,2x4x8x8:6x3x3:g2",
                 "--conv1d", "2x4x30:6x5:p2:d2", "--matmul", "40x30x20")
        answer = self.burn("prepare", "lab", *lists)
        device, = self.burn("show", "lab")["devices"]
        calls = [c["call"] for c in device["choices"]]
        self.assertEqual(len(calls), answer["choices"])
        for op, n in (("conv2d", 2), ("conv2d_grad_input", 2), ("conv2d_grad_weight", 2),
                      ("conv1d", 1), ("matmul", 1)):
            self.assertGreaterEqual(sum(c.startswith(op + "(") for c in calls), n, calls)
        for words in ("f32[6,4,3,3], -, stride 1x1, padding 1x2, dilation 1x1, groups 1",
                      "f32[6,2,3,3], -, stride 1x1, padding 0x0, dilation 1x1, groups 2"):
            self.assertTrue(any(words in c for c in calls), calls)
        # With a stride there is one kernel, so nothing to choose, unless for the gradients.
        self.assertFalse(any(c.startswith("conv2d(") and "stride 2x1" in c for c in calls), calls)
        self.assertEqual(self.burn("prepare", "lab", *lists)["choices"], len(calls))

    def test_wrong_sizes_say_what_is_right(self):
        form = b"BATCHxCHANNELSxHEIGHTxWIDTH:OUTxKHxKW"
        for text in ("2x4x12:6x3x3", "2x4x12x10", "2x4x12x10:6x3", "2x4x12x10:6x3x3:",
                     "0x1x1x1:1x1x1", "2x4x12x10:6x3x3:s0", "2x4x12x10:6x3x3:q1",
                     "2x4x12x10:6x3x3:p-1", "2x4x12x10:6x3x3:s1x2x3",
                     "2x4x12x10:6x3x3:d2:d3", "2x4x12x10:6x3x3,", ",2x4x12x10:6x3x3",
                     "2x4x12x10:6x3x3:g", "1x1x1x1048577:1x1x1",
                     "40x30x20", "2x4x12x10:6x3x3 ", "2 x4x12x10:6x3x3"):
            done = self.call(BURN, "env", "prepare", "lab", "--conv2d", text, status=2)
            self.assertIn(b"--conv2d: '", done.stderr)
            self.assertIn(form, done.stderr)
        done = self.call(BURN, "env", "prepare", "lab", "--conv1d", "2x4x30:6x5:s1x2", status=2)
        self.assertIn(b"BATCHxCHANNELSxLENGTH:OUTxKERNEL", done.stderr)
        # One wrong part, and nothing runs.
        done = self.call(BURN, "env", "prepare", "lab", "--matmul", "4x5x6,4x5", status=2)
        self.assertIn(b"'4x5' is not ROWSxINNERxCOLUMNS, in numbers up to 1048576", done.stderr)
        self.call(BURN, "env", "prepare", "lab", "--conv1d", ",", status=2)
        # What fits the form and no convolution is the op's to refuse.
        done = self.call(BURN, "env", "prepare", "lab", "--conv2d", "1x5x9x9:4x3x3:g2", status=1)
        self.assertIn(b"conv2d: ", done.stderr)
        done = self.call(BURN, "env", "prepare", "lab", "--conv1d", "1x1x3:1x9", status=1)
        self.assertIn(b"conv1d: ", done.stderr)

    def test_prepare_by_a_program_that_never_shuts_down(self):
        answer = self.burn("prepare", "lab", "--", PROGRAM)
        self.assertEqual((answer["choices_before"], answer["choices"]), (0, 1))
        self.assertEqual(self.burn("prepare", "lab", "--", PROGRAM, "5", status=5)["choices"], 1)
        done = self.call(BURN, "explain", "--json", "--", PROGRAM, BURN_ENVIRONMENT="lab")
        process, = json.loads(done.stdout)["processes"]
        why, = [o["why"] for o in process["ops"] if o["op"] == "matmul"]
        self.assertRegex(why, r"tuned: row flex\.matmul\.f32")

    def test_without_a_name_nothing_is_made(self):
        self.call(PROGRAM)
        self.assertFalse(self.folder.exists())

    def test_the_data_home_is_the_place(self):
        for variable, below in (("XDG_DATA_HOME", "."), ("HOME", ".local/share")):
            home = self.root / variable
            home.mkdir()
            self.prepare("lab", BURN_ENVIRONMENT_PATH=None,
                         **{"XDG_DATA_HOME": None, "HOME": None, variable: str(home)})
            self.assertTrue((home / below / "burn/environments/lab.benv").is_file())

    def test_export_import_clear(self):
        self.prepare("lab")
        shipped = self.root / "shipped.benv"
        self.burn("export", "lab", shipped)
        self.burn("import", "other", shipped)
        self.assertEqual(self.burn("show", "other")["devices"], self.burn("show", "lab")["devices"])
        self.assertEqual(self.burn("show", f"{self.root}/shipped.benv")["choices"], 1)
        self.burn("clear", "lab")
        self.assertEqual([e["name"] for e in self.burn("list")["environments"]], ["other"])
        self.burn("clear", "lab", status=1)
        self.burn("show", "lab", status=1)

    def test_other_threads_are_another_device(self):
        self.prepare("lab", BURN_THREADS="1")
        done = self.call(PROGRAM, BURN_ENVIRONMENT="lab", BURN_THREADS="2", BURN_LOG="info")
        self.assertIn(b"1 entry is not used: made for another number of threads",
                      done.stderr)
        units = sorted(d["units"] for d in self.burn("show", "lab")["devices"])
        self.assertEqual(units, [1, 2])

    def test_a_damaged_file_is_refused_with_offset_and_reason(self):
        self.prepare("lab")
        path = self.folder / "lab.benv"
        good = path.read_bytes()
        for bad, text in ((good[:-1], "offset 16"), (good[:50] + b"?" + good[51:], "offset 24"),
                          (b"?" + good[1:], "offset 0"), (b"", "offset 0")):
            path.write_bytes(bad)
            done = self.call(PROGRAM, status=1, BURN_ENVIRONMENT="lab")
            self.assertIn(text, done.stderr.decode())
            self.assertIn("burn env clear lab", done.stderr.decode())
            self.assertEqual(path.read_bytes(), bad)
            listed, = self.burn("list")["environments"]
            self.assertIn(text, listed["problem"])
            self.burn("import", "other", path, status=1)
            self.burn("show", "lab", status=1)
        self.assertEqual([p.name for p in self.folder.glob("*.benv")], ["lab.benv"])

    def test_bad_names_and_folders_are_errors_of_the_first_opening(self):
        for name in ("", "Lab", "a/b", "..", "a" * 65):
            done = self.call(PROGRAM, status=1, BURN_ENVIRONMENT=name)
            self.assertIn(b"BURN_ENVIRONMENT: environment", done.stderr)
            self.burn("show", name if "/" not in name else "A", status=1)
        done = self.call(PROGRAM, status=1, BURN_ENVIRONMENT="lab", BURN_ENVIRONMENT_PATH="here")
        self.assertIn(b"expected one absolute folder", done.stderr)
        doctor = self.call(BURN, "doctor", "--json", status=1, BURN_ENVIRONMENT="Lab",
                           BURN_ENVIRONMENT_PATH="here")
        problems = {v["name"]: v.get("problem") for v in json.loads(doctor.stdout)["environment"]}
        self.assertIn("a-z 0-9", problems["BURN_ENVIRONMENT"])
        self.assertIn("absolute", problems["BURN_ENVIRONMENT_PATH"])

    def test_a_folder_that_cannot_be_written_costs_nothing_but_a_warning(self):
        self.root.joinpath("file").write_text("")
        done = self.call(PROGRAM, BURN_ENVIRONMENT="lab", BURN_LOG="warn",
                         BURN_ENVIRONMENT_PATH=str(self.root / "file" / "x"))
        self.assertIn(b"not saved: environment: the folder", done.stderr)
        self.assertEqual(done.stdout, self.call(PROGRAM).stdout)

    def test_two_programs_at_once(self):
        processes = []
        for i in range(3):
            environment = {**os.environ, "BURN_DEVICE": "flex", "BURN_ENVIRONMENT": "lab",
                           "BURN_ENVIRONMENT_PATH": str(self.folder)}
            processes.append(subprocess.Popen(
                [BURN, "env", "prepare", "lab", "--matmul", f"3{i}x20x10", "--json"],
                stdout=subprocess.DEVNULL, env=environment))
        self.assertEqual([p.wait(60) for p in processes], [0, 0, 0])
        self.assertEqual(self.burn("show", "lab")["choices"], 3)

    def test_plans_of_a_loop_are_found_by_the_next_run(self):
        for made, found in ((1, ""), (0, "environment: 1 plan found, 0 refused")):
            done = self.call(BURN, "plans", "--", PROGRAM, "loop", BURN_ENVIRONMENT="lab")
            text = done.stdout.decode()
            self.assertIn(f"1 plan kept, {made} made", text)
            self.assertIn(found, text)
        only, = self.burn("list")["environments"]
        self.assertEqual(only["plans"], 1)
        shown = self.call(BURN, "env", "show", "lab").stdout.decode()
        self.assertRegex(shown, r"  1 plan of calls that wait \(\d+ bytes\)\n")

    def test_what_is_not_there_is_told_with_what_is(self):
        for action in (["show"], ["clear"], ["export"]):
            more = [str(self.root / "file")] if action == ["export"] else []
            done = self.call(BURN, "env", *action, "nothing", *more, status=1)
            self.assertIn(b"there is no environment 'nothing'; `burn env list`", done.stderr)
        done = self.call(BURN, "env", "import", "nothing", self.root / "nothing", status=1)
        self.assertNotIn(b"there is no environment", done.stderr)
        self.prepare("good")
        (self.root / "text").write_text("no environment")
        done = self.call(BURN, "env", "import", "good", self.root / "text", status=1)
        self.assertIn(b"this is no environment", done.stderr)
        self.assertNotIn(b"burn env clear", done.stderr)
        self.prepare("bad")
        (self.folder / "bad.benv").write_bytes(b"damaged")
        done = self.call(BURN, "env", "show", "bad", status=1)
        self.assertIn(b"offset 0", done.stderr)
        self.assertIn(b"remove it with `burn env clear bad`", done.stderr)
        for name, text in (("bad", b"`burn env clear bad`"), ("a b", b"a name has")):
            done = self.call(BURN, "env", "prepare", name, "--", PROGRAM, status=1)
            self.assertIn(text, done.stderr)
            self.assertEqual(done.stdout, b"")
        done = self.call(BURN, "env", "shwo", status=2)
        self.assertIn(b"there is no action 'shwo'; there are list, show", done.stderr)

    def test_wrong_use(self):
        for args in ((), ("fly",), ("show",), ("list", "x"), ("export", "lab"),
                     ("prepare", "lab"), ("prepare", "lab", "--matmul", "3x4"),
                     ("prepare", "lab", "--matmul", "3x4x5", "--dtype", "i8")):
            done = self.call(BURN, "env", *args, status=2)
            self.assertIn(b"burn env", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
