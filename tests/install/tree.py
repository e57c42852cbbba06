# SPDX-License-Identifier: MIT OR Apache-2.0
"""An installed tree: made from a build, and used as a stranger would, who has nothing else.

Shared by the tests of this folder. Programs run with the tree's own `bin` first on the path and
pkg-config looking into the tree alone; variables of Burn-C in the caller's environment are dropped.
"""
import os
import pathlib
import re
import shlex
import subprocess


def own_meson(build):
    """The command is the build's own: another meson on the path might be of another version."""
    text = pathlib.Path(build, "build.ninja").read_text()
    match = re.search(r"^ COMMAND = (.*meson.*) install --no-rebuild$", text, re.M)
    return shlex.split(match.group(1)) if match else ["meson"]


def build_install(build, top):
    subprocess.run([*own_meson(build), "install", "-C", build, "--no-rebuild", "--destdir", top],
                   check=True, stdout=subprocess.DEVNULL)


class Tree:
    """Where the parts are, and how programs are built and run against them."""

    def __init__(self, top, compiler):
        self.top, self.compiler = pathlib.Path(top), compiler
        found = list(self.top.rglob("libburn-core.so.0"))
        if len(found) != 1:
            raise SystemExit(f"libburn-core.so.0 is there {len(found)} times under {top}")
        self.lib = found[0].parent
        self.prefix = next(p for p in self.lib.parents if (p / "include/burn").is_dir())
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("BURN_")}
        self.env.update(LD_LIBRARY_PATH=str(self.lib), PKG_CONFIG_LIBDIR=f"{self.lib}/pkgconfig",
                        PATH=f"{self.prefix}/bin:{os.environ['PATH']}")
        self.env.pop("PKG_CONFIG_PATH", None)
        where = os.path.realpath(self.call("pkg-config", "--variable=plugindir", "burn-plugin"))
        if where != os.path.realpath(self.lib / "burn/0"):
            raise SystemExit(f"pkg-config says that plugins go to {where}, not to {self.lib}/burn/0"
                             "; this build is older than movable trees: remove it, or run meson "
                             "configure BUILD -Dpkgconfig.relocatable=true")

    def pkg_config(self, *args):
        return shlex.split(self.call("pkg-config", *args))

    def run(self, *command, cwd=None, **env):
        """(exit status, output, both streams)"""
        run = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, env={**self.env, **env},
                             cwd=cwd or self.top)
        return run.returncode, run.stdout.strip()

    def call(self, *command, cwd=None, **env):
        """The output; a failure ends the test."""
        code, said = self.run(*command, cwd=cwd, **env)
        if code != 0:
            raise SystemExit(f"what:  {shlex.join(map(str, command))} ended with {code}\n{said}")
        return said

    def compile(self, source, program, module, *flags):
        self.call(*self.compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", source, "-o", program,
                  *flags, *self.pkg_config("--cflags", "--libs", module))
        return program

    def needed(self, library):
        text = self.call("readelf", "-d", library)
        return re.findall(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]", text)


def core_among(names):
    return [name for name in names if name.startswith("libburn")]
