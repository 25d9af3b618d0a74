# SPDX-License-Identifier: Apache-2.0
"""check_words.py [FILE...]: fails when a sentence uses a pattern that docs/STYLE.md replaces by
plain words. Reads the comments and literals of include/ and src/, the comments of tests/, tools/,
cmake/ and shell scripts, and the prose of pages: all of them, or the named files.

    python3 tools/check_words.py src/loop/io.h
"""
import pathlib
import re
import sys

import source
from source import ROOT, shown

# A sentence begins at the start of a comment or paragraph, or after another sentence.
START = r"(?:^|(?<=[.!?:;] )|(?<=\* )|(?<=\*  ))"

# (pattern, replacement). One row per habit; each row applies everywhere.
RULES = [
    (START + r"Who(ever)?\b(?![^.]*\?)", "begin with the thing: the caller, the thread, a handler"),
    (r"\bwho(ever)? (wants|asks|has|is|does|holds|calls|reads|waits|needs|likes|made)\b",
     "name the subject: the caller, the user, the thread that"),
    (r"\b(for|to|of|by|from|with) who(m|ever)?\b", "name the person or the thing"),
    (START + r"Whose\b(?![^.]*\?)", "name the owner"),
    (r"\b(is|are|was|were|be|been|gets?) told\b", "is notified, receives, is reported"),
    (r"\btells? (of|who|whom|everybody|nobody)\b", "reports, notifies"),
    (r"\bcannot be told\b", "cannot be reported, cannot be distinguished"),
    (r"\b(is|are|be) told from\b", "is distinguished from"),
    (r"\bso many\b|\bso much of\b", "a number: `count` bytes, at most `max`"),
    (r"\bhears? of\b|\bheard of\b", "is notified of, sees, receives"),
    (r"\blet(s|ting)? go( of)?\b", "releases, frees"),
    (r"\bg(ive|ives|iven|ave|iving) back\b|\bgives? (it|them|a \w+|the \w+) back\b",
     "returns, releases"),
    (r"\bTakes a reference\b", "Retains the ...; `Takes:` means that ownership moves"),
    (r"\bmakes? no sense\b", "is invalid; say what is allowed"),
    (r"\bis fine\b", "is ignored, is allowed"),
    (r"\b[Ff]igures?\b", "stats, metric, counter, number, measurement"),
    (r"\bbelieve[sd]?\b", "trust"),
    (r"\bless than nothing\b", "negative"),
    (r"\bhow we fare\b|\bhow it fares\b", "status"),
    (r"\ball default\b", "their defaults"),
    (r"\bamid\b|\bin the midst of\b", "during"),
    (r"\bunasked\b", "without a request"),
    (r"\bwithstands?\b", "resists, is resistant to"),
    (r"\bturned? away\b", "reject, refuse"),
    (r"\bnot a number that\b|\bis no (address|number|name|file|descriptor)\b", "is not a ..."),
    (r"\bas (it|they) likes?\b", "say when or how much"),
    (r"\bput(s|ting)? off\b", "defer, postpone"),
    (r"\bmend(s|ed|ing)?\b", "repair, fix, rebuild"),
    (r"\belsewhere\b", "on another executor, in another thread, in FILE"),
    (r"\b[Ii]ssue \d|\b[Mm]ust hold \d|^ *D \d", "say the thing itself"),
    (r"\bDESIGN(\.md)? \d|\bIO\.md\b|\bSEMANTICS\b|PERFORMANCE\.md", "say the thing itself"),
]
COMPILED = [(re.compile(pattern, re.MULTILINE), advice) for pattern, advice in RULES]
FENCED = re.compile(r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
LINE_COMMENT = re.compile(r"(?m)^\s*#(?!!)[^\n]*|\"\"\".*?\"\"\"", re.DOTALL)


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def keep(text, ranges):
    """The text with all but these ranges blanked, so that offsets stay."""
    out, at = [], 0
    for start, end in ranges:
        out += [blank(text[at:start]), text[start:end]]
        at = end
    return "".join(out) + blank(text[at:])


def prose(file):
    """The prose of a file, with everything else blanked."""
    text = file.read_text()
    if file.suffix == ".md":
        return FENCED.sub(lambda found: blank(found[0]), text)
    if file.suffix in (".c", ".h", ".cpp"):
        literals = file.is_relative_to(source.SRC)
        found = (m for m in source.COMMENT_OR_LITERAL.finditer(text)
                 if m[0].startswith("/") or literals and len(m[0]) > 12)
        return keep(text, [m.span() for m in found])
    return keep(text, [m.span() for m in LINE_COMMENT.finditer(text)])


def flowing(text):
    """Comment decoration blanked: a pattern may cross a line, a sentence may begin one."""
    return re.sub(r"(?m)^[ ]*(/\*+|\*/|\*|#)", lambda found: blank(found[0]), text)


def check(file):
    text = flowing(prose(file))
    joined = re.sub(r"\n[ ]*(?=[^\s])", lambda found: " " + " " * (len(found[0]) - 1), text)
    joined = re.sub(r"(?<=[.:;!?])[ ]{2,}", lambda found: " " * (len(found[0])), joined)
    problems = []
    for pattern, advice in COMPILED:
        for found in pattern.finditer(joined):
            line = text.count("\n", 0, found.start()) + 1
            words = " ".join(found[0].split())
            problems.append((line, f"{shown(file)}:{line}: \"{words}\": {advice}"))
    return [problem for _, problem in sorted(problems)]


def is_shell(file):
    if file.suffix or not file.is_file():
        return file.suffix == ".sh"
    return file.read_bytes().startswith(b"#!/usr/bin/env bash")


def all_files():
    pages = [*ROOT.glob("*.md"), *source.files(".md", under=["docs", "bench", "fuzz", "tests"])]
    code = source.files(".c", ".h", ".cpp", under=["include", "src", "tests", "examples", "bench"])
    scripts = source.files(".py", ".cmake", ".toml", under=["tools", "cmake", "bench"])
    loose = [f for folder in ("examples", "tests", "tools") for f in (ROOT / folder).rglob("*")]
    shell = [f for f in [*loose, ROOT / "dev"] if is_shell(f)]
    mine = [pathlib.Path(__file__).resolve(), ROOT / "docs/STYLE.md"]
    return [f for f in [*pages, *code, *scripts, *shell] if f.resolve() not in mine]


def main():
    files = [pathlib.Path(name).resolve() for name in sys.argv[1:]] or all_files()
    return source.report([problem for file in files for problem in check(file)])


if __name__ == "__main__":
    sys.exit(main())
