# SPDX-License-Identifier: Apache-2.0
"""Fails when clang-format would change a C or C++ file (--fix formats it), or when one of our text
files lacks its licence line or violates .editorconfig.
"""
import os
import subprocess
import sys

import source
from source import ROOT, shown

LICENCE = "SPDX-License-Identifier: Apache-2.0"
FORMATTED = (".c", ".h", ".cpp")
SCRIPTS = [ROOT / "dev", ROOT / ".ci/run"]
COLUMNS_MAX = 100
TABLES = ("layers.txt", "CMakePresets.json")  # one row is one line, however long


def licensed():
    """The files that must name their licence: all that can hold a comment."""
    found = source.files(*FORMATTED, ".py", ".sh", ".cmake", ".pml", ".txt")
    found += [f for f in source.files("") if os.access(f, os.X_OK)]
    return found + SCRIPTS + [ROOT / "CMakeLists.txt", *ROOT.glob("cmake/*.cmake")]


def text_problems(file):
    lines = file.read_text().split("\n")
    problems = []
    if not any(LICENCE in line for line in lines[:2]):
        problems.append("does not begin with its licence line")
    if lines[-1] != "" or lines[-2:-1] == [""]:
        problems.append("does not end with one newline")
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            problems.append(f"line {number} ends with a space")
        if "\t" in line:
            problems.append(f"line {number} has a tab")
        if len(line) > COLUMNS_MAX and file.name not in TABLES and file.parent.name != "mutants":
            problems.append(f"line {number} is longer than {COLUMNS_MAX}")
    return [f"{shown(file)}: {problem}" for problem in problems]


def main():
    how = ["-i"] if "--fix" in sys.argv else ["--dry-run", "-Werror"]
    done = subprocess.run(["clang-format", *how, *source.files(*FORMATTED)])
    problems = [problem for file in licensed() for problem in text_problems(file)]
    return source.report(problems) or done.returncode


if __name__ == "__main__":
    sys.exit(main())
