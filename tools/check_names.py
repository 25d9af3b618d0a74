# SPDX-License-Identifier: Apache-2.0
"""Fails when a page or a comment names something that does not exist: a file, a function, type or
macro of ours, a command of ./dev, a chapter of the guide, a decision, a preset.

On pages, names are read in `code spans`; in C, Python, CMake and shell files, in comments. A name
may end in `*`: then something must begin like that. Names of other projects are in OTHERS.
"""
import fnmatch
import re
import subprocess
import sys

import source
from source import ROOT, shown

SPAN = re.compile(r"`([^`\n]+)`")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
IDENTIFIER = re.compile(r"\b(?:weir_|WEIR_)\w+\*?")
ENDING = r"\.(?:c|cpp|h|md|py|txt|pml|cmake|supp|json)\b(?!\()"
FILE = re.compile(r"(?<![\w/<.$-])[\w*][\w./*-]*" + ENDING)
CHAPTER = re.compile(r"\b[Cc]hapter (\d+)")
DECISION = re.compile(r"\b[Dd]ecision (\d+)")
COMMAND = re.compile(r"\./dev ([a-z][a-z-]*)")
COMMENT = {
    ".c": source.COMMENT_OR_LITERAL,
    ".h": source.COMMENT_OR_LITERAL,
    ".cpp": source.COMMENT_OR_LITERAL,
    ".py": re.compile(r'""".*?"""|#[^\n]*', re.DOTALL),
    ".cmake": re.compile(r"#[^\n]*"),
    ".txt": re.compile(r"^#[^\n]*", re.MULTILINE),
    ".pml": re.compile(r"/\*.*?\*/", re.DOTALL),
}
# What is not ours, is installed or made by the build, or stands for any name.
OTHERS = {"liburing.h", "uv.h", "echo.c", "share/weir/weir.supp", "compile_commands.json"}
SYSTEM = re.compile(r"(sys|linux|netinet|arpa|openssl|event2)/")
PLACEHOLDER = re.compile(
    r"(.*/)?(x[_./]|.*[-_][XN](AME)?\.|weir_(ctx_)?x(_|$)|weir_noun(_verb)?$|WEIR_(UPPER|0|X_\w+)$)"
)


def tracked():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    return {name for name in listed if name and (ROOT / name).exists()}


class Tree:
    """What there is to be named."""

    def __init__(self):
        self.files = tracked()
        self.basenames = {name.rsplit("/", 1)[-1] for name in self.files}
        code = [f for f in self.files if f.endswith((".c", ".h", ".cpp", ".py", ".txt", ".cmake",
                                                     ".in", ".map", ".json", ".yml"))]
        text = "\n".join(self.code_of(ROOT / name) for name in code)
        text += (ROOT / "dev").read_text()
        self.identifiers = set(re.findall(r"\b(?:weir_|WEIR_)\w+", text))
        # What macros paste together: weir_buf_read_##name
        self.pasted = set(re.findall(r"\b(weir_\w+_)##", text))
        self.commands = set(re.findall(r"^command_([a-z-]+)\(\)", (ROOT / "dev").read_text(), re.M))
        self.chapters = self.numbers("docs/guide")
        self.decisions = self.numbers("docs/decisions")

    @staticmethod
    def code_of(path):
        text = path.read_text(errors="replace")
        if path.suffix in (".c", ".h", ".cpp"):
            # comments out, literals stay: environment variables are named in them
            return source.COMMENT_OR_LITERAL.sub(
                lambda found: "" if found[0].startswith("/") else found[0], text)
        return text

    def numbers(self, folder):
        names = (f for f in self.files if f.startswith(folder + "/"))
        found = (re.match(r"0*(\d+)-", name.rsplit("/", 1)[-1]) for name in names)
        return {match[1] for match in found if match}

    def has_identifier(self, name):
        if PLACEHOLDER.match(name):
            return True
        if name.endswith(("*", "_")):
            prefix = name.rstrip("*")
            return any(known.startswith(prefix) for known in self.identifiers | self.pasted)
        return name in self.identifiers or any(name.startswith(p) for p in self.pasted)

    def has_file(self, name, page):
        name = name.removeprefix("./")
        if name in OTHERS or SYSTEM.match(name) or PLACEHOLDER.match(name):
            return True
        if "/" not in name:
            return bool(fnmatch.filter(self.basenames, name))
        top = shown(page).split("/")[0]  # a benchmark says "echo/x.h" of bench/echo/x.h
        beside = (page.parent / name).resolve()
        candidates = [f"{folder}/{name}" for folder in ("src", "include", "tests", "docs", top)]
        candidates += [name, shown(beside)]
        return any(fnmatch.filter(self.files, candidate) for candidate in candidates)


def problems_in(tree, text, page):
    """(offset, problem) of each name in a comment or a code span that does not exist."""
    for found in IDENTIFIER.finditer(text):
        if not tree.has_identifier(found[0]):
            yield found.start(), f"{found[0]} does not exist"
    for found in FILE.finditer(text):
        if not tree.has_file(found[0], page):
            yield found.start(), f"{found[0]} does not exist"
    for found in COMMAND.finditer(text):
        if found[1] not in tree.commands:
            yield found.start(), f"{found[0]}: ./dev has no such command"


def numbered(tree, text):
    for found in CHAPTER.finditer(text):
        if found[1] not in tree.chapters:
            yield found.start(), f"there is no {found[0]}"
    for found in DECISION.finditer(text):
        if found[1] not in tree.decisions:
            yield found.start(), f"there is no {found[0]}"


def check_page(tree, page):
    text = page.read_text()
    prose = FENCED.sub(lambda f: re.sub(r"[^\n]", " ", f[0]), text)
    for span in SPAN.finditer(prose):
        for offset, problem in problems_in(tree, span[1], page):
            yield span.start() + offset, problem
    yield from numbered(tree, prose)


def check_comments(tree, file):
    text = file.read_text()
    for comment in COMMENT[file.suffix].finditer(text):
        if comment[0][0] in "\"'" and file.suffix != ".py":
            continue
        for offset, problem in problems_in(tree, comment[0], file):
            yield comment.start() + offset, problem
        for offset, problem in numbered(tree, comment[0]):
            yield comment.start() + offset, problem


def main():
    tree = Tree()
    problems = []
    pages = [*ROOT.glob("*.md"), *source.files(".md", under=["docs", *source.OURS])]
    commented = source.files(*COMMENT, under=["cmake", *source.OURS])
    commented = [f for f in commented if "corpus" not in f.parts and "mutants" not in f.parts]
    for check, files in ((check_page, pages), (check_comments, commented)):
        for file in files:
            text = file.read_text()
            for offset, problem in check(tree, file):
                line = text.count("\n", 0, offset) + 1
                problems.append(f"{shown(file)}:{line}: {problem}")
    return source.report(problems)


if __name__ == "__main__":
    sys.exit(main())
