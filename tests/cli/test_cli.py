#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The `burn` program as a user and as a script see it: text, JSON, exit status, bad input.

usage: test_cli.py BURN MAKE_MODEL MNIST_FOLDER; BURN_PLUGIN_PATH leads to flex and mock.
Every call must end by itself (no signal). A failing call says why: on stderr, or with --json as
{"error": ...} on stdout. Files are made here, so that the expected answer is known.
"""
import gzip
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

BURN, MAKE_MODEL, MNIST = sys.argv[1:4]
COMMANDS = ["devices", "plugins", "ops", "doctor", "explain", "plans", "profile", "inspect",
            "predict", "new"]
SIZE = 28
DOCS_OPS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "ops.md"


def call(*args, env=None, stdout=subprocess.PIPE):
    environment = {**os.environ, "BURN_DEVICE": "mock", **(env or {})}
    environment = {k: v for k, v in environment.items() if v is not None}
    return subprocess.run([BURN, *map(str, args)], stdout=stdout, stderr=subprocess.PIPE,
                          env=environment, timeout=60, check=False)


def png(width, height, rows, color=0, depth=8):
    """A PNG of raw rows (bytes of one row each)."""
    def chunk(name, data):
        return (struct.pack(">I", len(data)) + name + data +
                struct.pack(">I", zlib.crc32(name + data)))
    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) +
            chunk(b"IEND", b""))


def band(k, size=SIZE, paper=0, ink=255):
    """Rows of an image whose k-th quarter of columns is drawn."""
    return [bytes(ink if x * 4 // size == k else paper for x in range(size)) for _ in range(size)]


def idx(images):
    data = b"".join(b"".join(rows) for rows in images)
    return struct.pack(">IIII", 0x803, len(images), SIZE, SIZE) + data


class Cli(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        subprocess.run([MAKE_MODEL, cls.temporary.name], check=True,
                       env={**os.environ, "BURN_DEVICE": "mock"})

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def text(self, *args, status=0, env=None):
        done = call(*args, env=env)
        self.assertEqual(done.returncode, status, (args, done))
        if status == 0:
            self.assertEqual(done.stderr, b"", args)
        return done.stdout.decode()

    def json(self, *args, status=0, env=None):
        done = call(*args, "--json", env=env)
        self.assertEqual(done.returncode, status, (args, done))
        return json.loads(done.stdout)

    def refused(self, *args, status=1, code=None, words=(), env=None):
        """The call fails with a reason, in both forms."""
        done = call(*args, env=env)
        self.assertEqual(done.returncode, status, (args, done))
        said = done.stderr.decode()
        for word in words:
            self.assertIn(word, said)
        self.assertTrue(said.startswith("burn "), said)
        error = self.json(*args, status=status, env=env)["error"]
        if code:
            self.assertEqual(error["code"], code, error)
        self.assertTrue(error["text"])

    # ---- the program ----

    def test_help__every_command_has_examples(self):
        general = self.text("--help")
        for command in COMMANDS:
            self.assertIn(f"  {command}", general)
            text = self.text(command, "--help")
            self.assertIn(f"burn {command}", text.split("examples:")[1])
            self.assertEqual(text, self.text("help", command))

    def test_version(self):
        self.assertRegex(self.text("--version"), r"^burn \d+\.\d+\.\d+, plugin ABI \d+\.\d+\n$")

    def test_usage__is_status_2(self):
        self.assertEqual(call().returncode, 2)
        self.assertEqual(call("nothing").returncode, 2)
        for command in COMMANDS:
            self.refused(command, "--nothing", status=2, words=["--nothing"])
        self.refused("devices", "word", status=2, words=["word"])
        self.refused("inspect", status=2, words=["FILE"])
        self.refused("ops", "--device", status=2, words=["needs a value"])

    def test_names__that_were_meant_are_told(self):
        done = call("doctr")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"did you mean 'doctor'? `burn --help` lists them", done.stderr)
        self.refused("ops", "relux", words=["did you mean 'relu'?"])
        self.refused("ops", "no_such_op", words=["there is no op 'no_such_op'; `burn ops`"])
        done = call("xyz")
        self.assertEqual(done.returncode, 2)
        self.assertNotIn(b"did you mean", done.stderr)

    def test_help__says_what_predict_makes_of_an_image(self):
        text = self.text("predict", "--help")
        for words in ("0 to 255 where the graph takes u8", "divided by 255 where it takes f32"):
            self.assertIn(words, text)

    def test_output__a_full_disk_is_no_success(self):
        with open("/dev/full", "wb") as full:
            self.assertEqual(call("--help", stdout=full).returncode, 1)

    # ---- new: the rest is in tests/install/projects.py, with installed templates ----

    def test_new__bad_calls_write_nothing(self):
        before = sorted(self.folder.iterdir())
        free = str(self.folder / "free")
        self.refused("new", status=2, words=["burn new backend NAME"])
        self.refused("new", "plugin", "acme", status=2, words=["burn new extension NAME"])
        self.refused("new", "backend", "9lives", "--dir", free, words=["9lives", "begin"])
        self.refused("new", "extension", "flex", "--dir", free, words=["flex", "already"])
        for name, why in (("time", "C header"), ("stdio", "C header"), ("int", "keyword"),
                          ("template", "keyword"), ("test", "target"), ("kernels", "file"),
                          ("burn", "meaning")):
            for kind in ("backend", "extension"):
                self.refused("new", kind, name, "--dir", free, words=[f"'{name}'", why])
        self.refused("new", "backend", "acme", "--dir", free, "--templates", str(self.folder),
                     words=["no template", "--templates"])
        self.assertEqual(sorted(self.folder.iterdir()), before)

    # ---- devices ----

    def test_devices__lists_all_of_them(self):
        text = self.text("devices")
        for device in ("flex:0", "mock:0", "mock:1"):
            self.assertIn(device, text)
        self.assertIn("default: mock:0", text)
        answer = self.json("devices")
        self.assertEqual(answer["default"]["device"], "mock:0")
        by_name = {d["device"]: d for d in answer["devices"]}
        self.assertEqual(by_name["flex:0"]["kind"], "cpu")
        self.assertEqual(by_name["mock:1"]["kind"], "virtual")
        self.assertTrue(by_name["flex:0"]["isa"])

    def test_devices__resolves_strings(self):
        answer = self.json("devices", "--resolve", "mock:1?key=1+autodiff")
        self.assertEqual((answer["device"], answer["options"], answer["autodiff"]),
                         ("mock:1", "key=1", True))
        self.assertTrue(self.text("devices", "--resolve").startswith("mock:0"))
        self.assertIn("auto", self.text("devices", "--resolve", env={"BURN_DEVICE": None}))

    def test_B234_devices__a_wrong_string_is_an_error_with_a_remedy(self):
        self.refused("devices", "--resolve", "flx", code="E_NOT_FOUND",
                     words=["did you mean", "flex", "position"])
        self.refused("devices", "--resolve", "", code="E_INVALID", words=["empty"])
        self.refused("devices", "--resolve", env={"BURN_DEVICE": ""}, words=["empty"])
        for string in ("mock:", "mock:x", "mock:99", "mock:01", "mock+auto", ":", "mock,flex",
                       "mock?", "mock?a", "mock: 1", "m\x1b[2Jock", "x" * 600):
            self.refused("devices", "--resolve", string)
        self.assertNotIn(b"\x1b", call("devices", "--resolve", "m\x1b[2Jock").stderr)
        self.assertIn("error", self.json("devices", env={"BURN_DEVICE": "flx"})["default"])

    # ---- plugins and doctor ----

    def test_plugins__are_known_before_they_are_opened(self):
        states = {p["id"]: p["state"] for p in self.json("plugins")["plugins"]}
        self.assertEqual((states["flex"], states["mock"]), ("known", "known"))
        self.assertIn("searched:", self.text("plugins"))

    def test_B234_plugins__known_loadable_usable_are_three_answers(self):
        broken = self.folder / "plugins"
        broken.mkdir(exist_ok=True)
        manifest = {"format": 1, "id": "dud", "name": "Dud", "kind": "backend", "file": "dud.so",
                    "version": "1", "license": "MIT", "abi": {"oldest": "0.1", "newest": "0.1"},
                    "priority": 99, "devices": "discrete"}
        (broken / "dud.json").write_text(json.dumps(manifest))
        (broken / "dud.so").write_text("no library")
        (broken / "torn.json").write_text("{\"format\": ")
        for name in ("dud.json", "dud.so", "torn.json"):
            (broken / name).chmod(0o644)
        broken.chmod(0o755)
        env = {"BURN_PLUGIN_PATH": f"{broken}:{os.environ['BURN_PLUGIN_PATH']}"}
        before = {p["id"]: p for p in self.json("plugins", env=env)["plugins"]}
        self.assertEqual(before["dud"]["state"], "known")
        self.assertEqual(before["torn"]["state"], "broken")
        after = {p["id"]: p for p in self.json("plugins", "--open", env=env)["plugins"]}
        self.assertEqual(after["dud"]["state"], "broken")
        self.assertIn("dud.so", after["dud"]["reason"])
        self.assertEqual(after["mock"]["state"], "usable")
        self.assertGreater(after["mock"]["devices"], 0)
        # The others still work, and asked for by name it is an error.
        self.assertIn("mock:0", self.text("doctor", env=env))
        self.refused("devices", "--resolve", "dud", env=env, words=["dud.so"])

    def test_doctor__computes(self):
        self.assertIn("All is well", self.text("doctor"))
        answer = self.json("doctor")
        self.assertTrue(answer["check"]["ok"])
        self.assertGreaterEqual(answer["threads"], 1)
        self.assertEqual(self.json("doctor", env={"BURN_THREADS": "3"})["threads"], 3)

    def test_doctor__says_where_nothing_can_be_saved(self):
        open_to_all = self.folder / "open_to_all"
        open_to_all.mkdir()
        open_to_all.chmod(0o1777)
        file = self.folder / "no_folder"
        file.write_text("")
        for place, words in ((open_to_all, "can be written by every user"), (file, "is no folder"),
                             (file / "below", "cannot be written to")):
            text = self.text("doctor", env={"BURN_ENVIRONMENT_PATH": str(place)})
            self.assertIn(words, text)
            self.assertIn("Not all is well", text)
        text = self.text("doctor", env={"BURN_ENVIRONMENT_PATH": str(self.folder / "new/one")})
        self.assertIn("All is well", text)

    def test_doctor__says_what_is_wrong(self):
        self.assertIn("cannot be used",
                      self.text("doctor", status=1, env={"BURN_DEVICE": "mokc"}))
        self.assertIn("cannot be made: No such file",
                      self.text("doctor", status=1, env={"BURN_EXPLAIN": "/nonexistent/folder"}))
        answer = self.json("doctor", status=1, env={"BURN_BACKENDS": "other"})
        self.assertFalse(answer["check"]["ok"])
        backends = [p for p in answer["plugins"] if p["kind"] == "backend"]
        self.assertEqual({p["state"] for p in backends}, {"disabled"})
        self.assertEqual(answer["devices"], [])
        self.json("devices", status=1, env={"BURN_BACKENDS": "other"})

    # ---- ops ----

    def test_ops__tells_how_each_is_served(self):
        ops = {o["name"]: o["support"] for o in self.json("ops")["ops"]}
        self.assertGreater(len(ops), 100)
        self.assertEqual(ops["reshape"]["f32"], "view")
        self.assertEqual(ops["matmul"]["f32"], "native")
        self.assertNotIn("i32", ops["exp"])
        found = {s for support in ops.values() for s in support.values()}
        self.assertIn("decomposed", found)
        only = {o["name"]: o["support"] for o in self.json("ops", "--dtype", "f32")["ops"]}
        self.assertEqual(list(only["matmul"]), ["f32"])
        self.assertRegex(self.text("ops", "--device", "flex"), r"(?m)^matmul .*n")

    def test_ops__one_in_detail(self):
        one = self.json("ops", "conv2d", "--device", "flex")
        self.assertEqual([i["name"] for i in one["inputs"]][:2],
                         ["x", "weight"])
        self.assertTrue(one["kernels"])
        self.assertIn("native", self.text("ops", "conv2d", "--device", "flex"))

    def test_ops__the_page_of_the_docs_is_up_to_date(self):
        page = self.text("ops", "--markdown")
        self.assertEqual(page, DOCS_OPS.read_text(encoding="utf-8"), "./dev golden writes it anew")
        rows = [line for line in page.splitlines() if line.startswith("| `")]
        self.assertEqual(len(rows), len(self.json("ops")["ops"]))
        for row in rows:
            self.assertEqual(len(row.replace("\\|", "").split("|")), 9, row)

    def test_ops__bad_words(self):
        self.refused("ops", "--markdown", "--device", "mock", status=2, words=["--markdown"])
        self.refused("ops", "matmull", code="E_NOT_FOUND", words=["matmull"])
        self.refused("ops", "--dtype", "float", status=2, words=["float"])
        self.refused("ops", "--device", "flx", words=["flex"])
        self.refused("ops", "--device", "", words=["empty"])

    # ---- inspect ----

    def test_inspect__shows_what_is_there(self):
        text = self.text("inspect", self.folder / "bands.bpk", "--graph")
        for word in ("bands", "f32[784,4]", "note: bands", "u8[1,1,28,28]", "softmax"):
            self.assertIn(word, text)
        self.assertNotIn("burn.window", text)
        answer = self.json("inspect", self.folder / "bands.bpk")
        self.assertEqual(answer["tensors"],
                         [{"name": "bands", "dtype": "f32", "shape": [784, 4]}])
        self.assertEqual(answer["metadata"], {"note": "bands"})
        self.assertEqual(answer["graph"]["inputs"],
                         [{"name": "image", "dtype": "u8", "shape": [1, 1, 28, 28]}])
        self.assertEqual(answer["size"], (self.folder / "bands.bpk").stat().st_size)

    def test_inspect__text_of_a_file_cannot_steer_the_terminal(self):
        text = self.text("inspect", self.folder / "plain.bpk")
        self.assertIn("note: ?[2Jgone", text)
        self.assertIn("no graph", text)
        self.assertIsNone(self.json("inspect", self.folder / "plain.bpk")["graph"])

    def test_inspect__bad_files(self):
        good = (self.folder / "bands.bpk").read_bytes()
        for n in (0, 3, 9, 10, 50, 200, 300, len(good) - 300, len(good) - 5):
            self.refused("inspect", self.write("cut.bpk", good[:n]), code="E_FORMAT")
        self.refused("inspect", self.write("magic.bpk", b"X" + good[1:]), code="E_FORMAT")
        # The stored graph is base64 of "BRNW"...: another letter, and no letter.
        for letter in (b"A", b"!"):
            bad = good.replace(b"QlJOV", letter + b"lJOV", 1)
            self.refused("inspect", self.write("graph.bpk", bad), code="E_FORMAT",
                         words=["graph"])
        self.refused("inspect", self.folder, words=["not a regular file"])
        self.refused("inspect", self.folder / "none.bpk", code="E_NOT_FOUND")
        self.refused("inspect", "/dev/zero")

    # ---- predict ----

    def predicted(self, *args, model="bands.bpk"):
        answer = self.json("predict", self.folder / model, *args)
        self.assertAlmostEqual(sum(t["probability"] for t in answer["top"]),
                               1 if len(answer["top"]) == 4 else answer["top"][0]["probability"],
                               delta=1e-3 if len(answer["top"]) == 4 else 1)
        return answer

    def test_predict__a_png_that_was_cut_short(self):
        whole = png(SIZE, SIZE, band(1))
        for size in (20, len(whole) // 2, len(whole) - 20):
            path = self.write("cut.png", whole[:size])
            self.refused("predict", self.folder / "bands.bpk", "--image", path,
                         words=["cut.png", "ends before the image does"])

    def test_predict__png(self):
        for k in range(4):
            path = self.write("band.png", png(SIZE, SIZE, band(k)))
            answer = self.predicted("--image", path, "--top", "4")
            self.assertEqual(answer["class"], k)
            self.assertGreater(answer["probability"], 0.9)
            self.assertFalse(answer["inverted"])
            self.assertEqual(len(answer["top"]), 4)
            self.assertEqual(answer["device"], "mock:0")
        text = self.text("predict", self.folder / "bands.bpk", "--image", path)
        self.assertTrue(text.startswith("class 3\n"), text)

    def test_predict__white_paper_is_inverted_and_said_so(self):
        # A drawing that leaves the border free: a band of rows 4 to 23.
        for k in (1, 2):
            rows = [row if 4 <= y < 24 else b"\xff" * SIZE
                    for y, row in enumerate(band(k, paper=255, ink=0))]
            path = self.write("paper.png", png(SIZE, SIZE, rows))
            self.assertEqual(self.predicted("--image", path)["class"], k)
            self.assertTrue(self.predicted("--image", path)["inverted"])
            text = self.text("predict", self.folder / "bands.bpk", "--image", path)
            self.assertIn("inverted", text)

    def test_predict__colours_alpha_and_other_sizes(self):
        rgb = [bytes(v for p in row for v in (p, p, p)) for row in band(2)]
        self.assertEqual(self.predicted("--image", self.write("rgb.png", png(SIZE, SIZE, rgb, 2)))
                         ["class"], 2)
        clear = [bytes(v for p in row for v in (0, 0, 0, p)) for row in band(1)]
        answer = self.predicted("--image", self.write("a.png", png(SIZE, SIZE, clear, 6)))
        self.assertEqual((answer["class"], answer["inverted"]), (1, True))
        clear = [bytes(v for p in row for v in (255, 255, 255, p)) for row in band(1)]
        answer = self.predicted("--image", self.write("b.png", png(SIZE, SIZE, clear, 6)))
        self.assertEqual((answer["class"], answer["inverted"]), (1, False))
        for size in (4, 14, 30, 56, 300):
            path = self.write("size.png", png(size, size, band(3, size)))
            self.assertEqual(self.predicted("--image", path)["class"], 3)
            self.assertIn(f"from {size}x{size} to 28x28",
                          self.text("predict", self.folder / "bands.bpk", "--image", path))

    def test_predict__resizing_takes_the_mean_of_the_area(self):
        """Softmax of four equal bands is 1/4 each; of half as bright ones their quotient is known:
        logits are 0.05 * sum(pixels / 255), 196 pixels to a band."""
        rows = [bytes((200 if x % 2 else 100) if x < 14 else 0 for x in range(56))
                for _ in range(56)]
        path = self.write("mean.png", png(56, 56, rows))
        answer = self.predicted("--image", path, "--top", "4")
        e = 2.718281828459045 ** (0.05 * 196 * 150 / 255)
        self.assertAlmostEqual(answer["probability"], e / (e + 3), delta=1e-4)

    def test_predict__softmax_is_taken_of_what_is_no_probability(self):
        path = self.write("band.png", png(SIZE, SIZE, band(1)))
        answer = self.predicted("--image", path, "--top", "4", model="raw.bpk")
        self.assertEqual((answer["class"], answer["softmax"]), (1, True))
        e = 2.718281828459045 ** (0.05 * 196)
        self.assertAlmostEqual(answer["probability"], e / (e + 3), delta=1e-5)
        self.assertFalse(self.predicted("--image", path)["softmax"])

    def test_predict__idx(self):
        data = idx([band(k) for k in (2, 0, 3)])
        for path in (self.write("i.idx", data), self.write("i.idx.gz", gzip.compress(data))):
            for i, k in enumerate((2, 0, 3)):
                self.assertEqual(self.predicted("--idx", path, "--index", i)["class"], k)
            self.assertEqual(self.predicted("--idx", path)["class"], 2)
            self.refused("predict", self.folder / "bands.bpk", "--idx", path, "--index", 3,
                         code="E_NOT_FOUND", words=["3 of 3"])
        images = pathlib.Path(MNIST, "t10k-images-idx3-ubyte.gz")
        self.predicted("--idx", images, "--index", 9999)

    def test_predict__bad_idx(self):
        model = self.folder / "bands.bpk"
        good = idx([band(0)])
        packed = gzip.compress(good)
        middle = len(packed) // 2
        for data in (b"", good[:2], good[:15], good[:-1], good + b"x", b"\1" + good[1:],
                     packed[:-3], packed[:middle], packed[:-8] + b"\0" * 8,
                     packed[:middle] + b"\xff\xff\xff" + packed[middle + 3:]):
            self.refused("predict", model, "--idx", self.write("bad.idx", data))
        labels = pathlib.Path(MNIST, "t10k-labels-idx1-ubyte.gz")
        self.refused("predict", model, "--idx", labels, code="E_SHAPE")
        self.refused("predict", model, "--idx", self.folder / "none")
        self.refused("predict", model, "--idx", self.folder)

    def test_predict__bad_png(self):
        model = self.folder / "bands.bpk"
        good = png(SIZE, SIZE, band(0))
        huge = png(1 << 20, 1 << 20, [])
        for data in (b"", good[:7], good[:20], good[:40], good[:-20],
                     good[:45] + b"\xff\xff\xff" + good[48:], b"GIF89a" + good, huge,
                     png(0, 5, []), png(5, 5, [b"\0" * 5]), png(5, 5, [b"\0" * 5] * 5, color=9)):
            self.refused("predict", model, "--image", self.write("bad.png", data))
        self.refused("predict", model, "--image", self.folder / "none.png", code="E_NOT_FOUND")
        self.refused("predict", model, "--image", self.folder)

    def test_predict__bad_model(self):
        path = self.write("band.png", png(SIZE, SIZE, band(1)))
        self.refused("predict", self.folder / "plain.bpk", "--image", path, code="E_NOT_FOUND",
                     words=["graph"])
        self.refused("predict", self.folder / "pair.bpk", "--image", path, code="E_UNSUPPORTED",
                     words=["2 inputs"])
        good = (self.folder / "bands.bpk").read_bytes()
        self.refused("predict", self.write("cut.bpk", good[:-100]), "--image", path,
                     code="E_FORMAT")
        # A tensor of another name: the graph's state is nowhere.
        lost = self.write("lost.bpk", good.replace(b"\x65bands", b"\x65bandz", 1))
        self.refused("predict", lost, "--image", path, code="E_NOT_FOUND", words=["bands"])

    def test_predict__bad_call(self):
        model = self.folder / "bands.bpk"
        path = self.write("band.png", png(SIZE, SIZE, band(1)))
        self.refused("predict", model, status=2)
        self.refused("predict", "--image", path, status=2)
        self.refused("predict", model, "--image", path, "--idx", path, status=2)
        for word in ("0", "x", "-1", "1.5", "1001", "", "99999999999999999999"):
            self.refused("predict", model, "--image", path, "--top", word, status=2)
        self.refused("predict", model, "--image", path, "--index", "1e3", status=2)
        self.refused("predict", model, "--image", path, "--index", "-1", status=2,
                     words=["--index", "-1"])
        self.refused("predict", model, "--image", path, "--index", "99999999999999999999",
                     status=2, words=["99999999999999999999"])
        self.refused("predict", model, "--image", path, "--device", "", words=["empty"])
        self.refused("predict", model, "--image", path, "--device", "mokc", words=["mock"])

    def test_predict__devices_agree(self):
        path = self.write("band.png", png(SIZE, SIZE, band(1)))
        answers = [self.predicted("--image", path, "--device", d) for d in ("flex", "mock:1")]
        self.assertAlmostEqual(answers[0]["probability"], answers[1]["probability"], delta=1e-6)
        self.assertEqual([a["device"] for a in answers], ["flex:0", "mock:1"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
