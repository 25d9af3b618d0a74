# SPDX-License-Identifier: Apache-2.0
"""Shared by the checks: the list of our files, C without comments, the public declarations.

C is recognized by the shapes that clang-format guarantees (the brace of a function is in column 0),
without a parser; the compilers check the rest.
"""
import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
INCLUDE = ROOT / "include"
OURS = ("include", "src", "tests", "examples", "bench", "fuzz", "tools")

WARNINGS = (
    "-Wall -Wextra -Wno-missing-field-initializers -Wpedantic -Wshadow -Wundef -Wcast-qual"
    " -Wwrite-strings -Werror"
).split()

COMMENT_OR_LITERAL = re.compile(
    r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""",
    re.DOTALL | re.VERBOSE,
)


def files(*suffixes, under=OURS):
    """Our files with these suffixes, sorted."""
    found = (f for folder in under for f in (ROOT / folder).rglob("*"))
    return sorted(f for f in found if f.suffix in suffixes and f.is_file())


def public_headers():
    """The public headers, without weir.h, which has only includes."""
    return [f for f in files(".h", under=["include"]) if f.name != "weir.h"]


def library_of(header):
    """The library that a public header belongs to."""
    if header.name.startswith("tls"):
        return "weir-tls"
    if header.name.startswith(("http", "websocket", "dashboard")):
        return "weir-http"
    if header.name == "sim.h":
        return "weir-sim"
    return "weir"


def library_at(path):
    """The name of the shared library in a file."""
    return pathlib.Path(path).name.removeprefix("lib").removesuffix(".so")


def shown(path):
    """A path as shown in messages."""
    return path.relative_to(ROOT).as_posix() if ROOT in path.parents else str(path)


def code_only(text):
    """C with comments and literals blanked; lines and columns stay."""
    return COMMENT_OR_LITERAL.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def report(problems):
    """Prints the problems; the exit code of a check."""
    for problem in problems:
        print(problem)
    return 1 if problems else 0


@dataclasses.dataclass
class Declaration:
    """A public function or variable and the comment above it."""

    header: pathlib.Path
    line: int
    name: str
    comment: list  # its lines, without comment marks
    inline: bool

    def __str__(self):
        return f"{shown(self.header)}:{self.line}: {self.name}"


def comment_above(lines, index):
    """The lines of the block comment that ends just above lines[index]."""
    if index == 0 or not lines[index - 1].endswith("*/"):
        return []
    start = index - 1
    while "/*" not in lines[start]:
        start -= 1
    text = "\n".join(lines[start:index]).strip()[2:-2]
    stripped = [re.sub(r"^\s*\*? ?", "", line).strip() for line in text.split("\n")]
    return [line for line in stripped if line]


def declared_name(statement):
    """The name that a declaration declares."""
    statement = re.sub(r"\b(WEIR_API|WEIR_PRINTF\([^)]*\)|__attribute__\(\(.*?\)\))", "", statement)
    found = re.search(r"(\w+)\s*\(", statement) or re.search(r"(\w+)\W*$", statement)
    return found[1]


def inline_start(code, index):
    """Where the inline function begins that line `index` announces, or None: there, or one further
    down in a macro that generates functions."""
    if code[index].startswith("static inline "):
        return index
    generates = code[index].startswith("#define ") and index + 1 < len(code)
    return index + 1 if generates and code[index + 1].startswith("    static inline ") else None


def declarations(header):
    """The public functions and variables of a header, in order. A macro that generates functions
    stands for all of them: `static inline int weir_buf_get_##NAME(` declares weir_buf_get_.
    Declarations that follow each other without a blank line share the comment above the first.
    """
    text = header.read_text()
    lines = text.split("\n")
    code = code_only(text).split("\n")
    comment, after = [], None
    for index, line in enumerate(code):
        inline = inline_start(code, index)
        if inline is not None or re.match(r"(extern )?WEIR_API\b", line):
            start = index if inline is None else inline
            statement = re.split(r"[;{=]", " ".join(code[start : start + 10]))[0]
            name = declared_name(re.sub(r"##\w+", "", statement))
            comment = comment if index == after else comment_above(lines, index)
            after = next(n for n in range(start, len(code)) if re.search(r"[;{]$", code[n])) + 1
            yield Declaration(header, index + 1, name, comment, inline is not None)


def api(library=None):
    """Every public declaration of every public header, or of a library's."""
    headers = [h for h in public_headers() if library in (None, library_of(h))]
    return [d for header in headers for d in declarations(header)]
