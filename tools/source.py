# SPDX-License-Identifier: Apache-2.0
"""What the checks share: where our files are, C without its comments, and the public declarations.

C is read by the line shapes that clang-format guarantees (a function's brace stands in column 0),
not with a parser; the compilers check the rest.
"""
import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
INCLUDE = ROOT / "include"
OURS = ("include", "src", "tests", "examples", "bench", "fuzz", "tools")

WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wundef -Wcast-qual -Wwrite-strings -Werror".split()

COMMENT_OR_LITERAL = re.compile(
    r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""",
    re.DOTALL | re.VERBOSE,
)


def files(*suffixes, under=OURS):
    """Our files with these suffixes, sorted."""
    found = (f for folder in under for f in (ROOT / folder).rglob("*"))
    return sorted(f for f in found if f.suffix in suffixes and f.is_file())


def public_headers():
    """The headers of the API without the umbrella, which holds only includes."""
    return [f for f in files(".h", under=["include"]) if f.name != "weir.h"]


def shown(path):
    """A path as messages name it."""
    return path.relative_to(ROOT).as_posix() if ROOT in path.parents else str(path)


def code_only(text):
    """C with comments and literals blanked; what is left stays on its line and column."""
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


def declarations(header):
    """The public functions and variables of a header, in order."""
    text = header.read_text()
    lines = text.split("\n")
    code = code_only(text).split("\n")
    for index, line in enumerate(code):
        inline = line.startswith("static inline ")
        if inline or re.match(r"(extern )?WEIR_API\b", line):
            statement = re.split(r"[;{=]", " ".join(code[index : index + 10]))[0]
            comment = comment_above(lines, index)
            yield Declaration(header, index + 1, declared_name(statement), comment, inline)


def api():
    """Every public declaration of every public header."""
    return [d for header in public_headers() for d in declarations(header)]
