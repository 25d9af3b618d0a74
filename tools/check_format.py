# SPDX-License-Identifier: Apache-2.0
"""Fails when clang-format 14 would change a C or C++ file (--fix formats it), or when one of our
text files lacks its licence line or violates .editorconfig. Other versions of clang-format lay out
some lines differently: on machines without version 14 the layout is not checked, and --fix fails.
"""
import os
import re
import shutil
import subprocess
import sys

import source
from source import ROOT, shown

LICENCE = "SPDX-License-Identifier: Apache-2.0"
FORMATTED = (".c", ".h", ".cpp")
SCRIPTS = [ROOT / "dev", ROOT / ".ci/run"]
COLUMNS_MAX = 100
VERSION = 14  # of clang-format: Debian 12's
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


def clang_format():
    """The name of the program, or None if no clang-format has the version."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        if shutil.which(name):
            said = subprocess.run([name, "--version"], stdout=subprocess.PIPE, text=True).stdout
            if re.search(rf"version {VERSION}\.", said):
                return name
    return None


def layout_fails(is_fixing):
    program = clang_format()
    if not program:
        print(f"clang-format {VERSION} is missing: the layout of C is not checked")
        return is_fixing
    how = ["-i"] if is_fixing else ["--dry-run", "-Werror"]
    return subprocess.run([program, *how, *source.files(*FORMATTED)]).returncode != 0


def main():
    failed = layout_fails("--fix" in sys.argv)
    problems = [problem for file in licensed() for problem in text_problems(file)]
    return source.report(problems) or failed


if __name__ == "__main__":
    sys.exit(main())
