# SPDX-License-Identifier: Apache-2.0
"""Fails when a function is longer than 70 lines and tools/long_functions.txt gives no reason.
With --list it prints the ten longest files and functions instead.
"""
import re
import sys

import source
from source import ROOT, shown

LINES_MAX = 70


def name_in(signature):
    """The function that a signature defines; TEST(noun, sentence) is noun.sentence."""
    name, arguments = re.search(r"(\w+)\s*\(([^()]*)", signature).groups()
    return arguments.replace(", ", ".") if name.startswith("TEST") else name


def signature_start(lines, brace):
    """The first line of the signature above the line of the opening brace."""
    start = brace
    while start > 0 and re.match(r"[\w ]*\w.*[^;}]$", lines[start - 1]):
        start -= 1
    return start


def functions(file):
    """(lines, name) of each function, signature and braces included."""
    lines = source.code_only(file.read_text()).split("\n")
    lines = [line.rstrip() for line in lines]
    for brace in (n for n, line in enumerate(lines) if line == "{"):
        start, end = signature_start(lines, brace), lines.index("}", brace)
        yield end + 1 - start, f"{shown(file)}:{name_in(' '.join(lines[start:brace]))}"


def reasons():
    """function -> why it may be long."""
    rows = (line.split(None, 1) for line in open(ROOT / "tools/long_functions.txt"))
    return {row[0]: row[1] for row in rows if len(row) == 2 and not row[0].startswith("#")}


def longest(pairs):
    for lines, name in sorted(pairs, reverse=True)[:10]:
        print(f"{lines:6}  {name}")


def main():
    ours = source.files(".c", ".h")
    measured = [pair for file in ours for pair in functions(file)]
    if "--list" in sys.argv:
        longest((len(file.read_text().splitlines()), shown(file)) for file in ours)
        print()
        longest(measured)
        return 0
    long = {name: lines for lines, name in measured if lines > LINES_MAX}
    known = reasons()
    problems = [f"{n} has {l} lines and no reason" for n, l in long.items() if n not in known]
    problems += [f"tools/long_functions.txt: {n} is not long" for n in known if n not in long]
    return source.report(problems)


if __name__ == "__main__":
    sys.exit(main())
