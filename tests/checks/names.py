#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Names of functions that are not static, words of unfinished work, and the licence line.

A plugin is one shared object that exports one symbol, so its files may share functions under the
name of its folder: plugins/flex has flex_*, sdk/mock has mock_*.
"""
import re

from check_lib import Problem, is_c, is_code, line_of, run, strip_c

# sdk/conformance is a program: nothing else is linked with it.
LIBRARY = ("core/", "loader/", "train/", "plugins/", "extensions/", "sdk/burn_sdk/", "sdk/mock/")
PREFIXES = ("burn_", "burni_")
SPDX = "SPDX-License-Identifier: MIT OR Apache-2.0"
OWN_NAME = re.compile(r"(?:plugins|extensions|sdk)/(\w+)/")
# In pieces, so that this file does not find itself.
UNFINISHED = re.compile(
    r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b|not (yet )?imple" r"mented", re.I)
# A definition: return type at column 0, name, parameters, and the body's brace on its own line.
DEFINITION = re.compile(r"^(?!typedef\b|static\b|#)([A-Za-z_][\w \t\n\*]*?[ \t\n\*])"
                        r"(?:BURN_CALL[ \t\n]+)?([A-Za-z_]\w*)\(([^;{}]*)\)\s*\n\{", re.M)


def static_macros(tree):
    """Macros that stand for `static inline ...`, as kernels use them."""
    return {m.group(1) for path, text in tree.items() if is_c(path)
            for m in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+static\b", text, re.M)}


def check_functions(path, text, static_words):
    own = OWN_NAME.match(path)
    prefixes = PREFIXES + ((own.group(1) + "_",) if own else ())
    for match in DEFINITION.finditer(strip_c(text)):
        name = match.group(2)
        if static_words.intersection(re.findall(r"\w+", match.group(1))):
            continue
        if name.startswith(prefixes) or name == "main":
            continue
        yield Problem(
            f"function {name} is neither static nor named burn_* or burni_*",
            f"{path}:{line_of(text, match.start(2))}",
            "public symbols are burn_*, what files of one library share is burni_*; anything else "
            "may clash with an application's names",
            f"make it static, or rename it to burni_<area>_{name}")


def check(tree):
    problems = []
    static_words = static_macros(tree) | {"static"}
    for path, text in tree.items():
        if not is_code(path):
            continue
        first = "\n".join(text.split("\n")[:2])
        if text.strip() and SPDX not in first and not path.endswith(".map"):
            problems.append(Problem("the licence line is missing", f"{path}:1",
                                    "files are copied one by one; each says its terms",
                                    f"begin it with a comment: {SPDX}"))
        for match in UNFINISHED.finditer(text):
            problems.append(Problem(f"'{match.group(0)}'", f"{path}:{line_of(text, match.start())}",
                                    "what is not done is an issue, not a comment",
                                    "do it, or open an issue and remove the word"))
        if is_c(path) and path.startswith(LIBRARY):
            problems += check_functions(path, text, static_words)
    return problems


HEAD = "/* " + SPDX + " */\n"
GOOD = {
    "core/a.c": HEAD + "static int own(int a)\n{\n}\n\n"
                       "int burni_x(void)\n{\n    if (a) {\n    }\n}\n",
    "core/b.c": HEAD + "int32_t BURN_CALL burn_y(int a,\n                         int b)\n{\n}\n",
    "core/c.c": HEAD + "static const burn_x *\nlong_name(int a)\n{\n}\n",
    "plugins/npu/a.c": HEAD + "#define INLINE static inline\nINLINE int f(int a)\n{\n}\n\n"
                              "int npu_run(void)\n{\n}\n",
    "tests/t.c": HEAD + "int anything(void)\n{\n}\n", "cli/main.c": HEAD + "int main(void)\n{\n}\n",
    "dev": "#!/usr/bin/env bash\n# " + SPDX + "\n", "docs/x.md": "no licence line here\n",
}
BAD = [
    ("plain name", {"core/a.c": HEAD + "int helper(int a)\n{\n}\n"}),
    ("pointer result", {"core/a.c": HEAD + "char *helper(void)\n{\n}\n"}),
    ("two lines", {"loader/a.c": HEAD + "int helper(int a,\n           int b)\n{\n}\n"}),
    ("another plugin's name", {"plugins/npu/a.c": HEAD + "int flex_run(void)\n{\n}\n"}),
    ("no licence", {"core/a.c": "int burni_x;\n"}),
    ("unfinished", {"core/a.c": HEAD + "/* TO" + "DO: more */\n"}),
    ("unfinished text", {"core/a.c": HEAD + "/* not imple" + "mented */\n"}),
]

if __name__ == "__main__":
    run(check, GOOD, BAD)
