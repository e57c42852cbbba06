#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""No absolute paths of somebody's machine and no hosts of package indexes in the project."""
import re

from check_lib import ROOT, Problem, line_of, run

# In pieces, so that this file does not find itself.
MACHINE = re.compile(
    r"(?<![\w.<$}])/(?:ho" r"me|ro" r"ot|Us" r"ers|wo" r"rk|mnt|workspace)/[\w.-]")
HOSTS = re.compile(r"\b(?:py" r"pi\.org|python" r"hosted\.org|registry\.n" r"pmjs\.org|"
                   r"deb\.deb" r"ian\.org|archive\.ubu" r"ntu\.com|proxy\.gol" r"ang\.org|"
                   r"static\.cra" r"tes\.io|index\.cra" r"tes\.io|"
                   r"arti" r"factory|ne" r"xus\.)", re.I)
ADDRESS = re.compile(
    r"https?://(?:(?:\d{1,3}\.){3}\d{1,3}|[\w.-]+\.(?:internal|local|lan|corp)\b)")


def check(tree):
    problems = []
    here = re.compile(re.escape(ROOT) + r"(?![\w-])") if len(ROOT) > 4 else None
    for path, text in tree.items():
        for pattern, what in ((MACHINE, "path of one machine"), (here, "path of this checkout"),
                              (HOSTS, "host of a package index"), (ADDRESS, "private address")):
            for match in pattern.finditer(text) if pattern else ():
                problems.append(Problem(
                    f"{what}: {match.group(0)}", f"{path}:{line_of(text, match.start())}",
                    "it is wrong on every other machine, and tells what is nobody's business",
                    "use a path relative to the project, a build variable, or the ordinary client"))
    return problems


GOOD = {"a.md": "use ~/.cache, $HOME/x, /usr/bin/meson, /tmp/x, docs/home/x, https://example.org\n",
        "dev": "apt-get install meson\n"}
BAD = [("home", {"a.c": '"/ho' + 'me/ann/x"\n'}), ("root", {"dev": "cd /ro" + "ot/x\n"}),
       ("checkout", {"a.md": "see " + ROOT + "/abi\n"}),
       ("index", {"dev": "pip -i https://py" + "pi.org/simple\n"}),
       ("address", {"a.md": "http://10" + ".0.0.7/simple\n"})]

if __name__ == "__main__":
    run(check, GOOD, BAD)
