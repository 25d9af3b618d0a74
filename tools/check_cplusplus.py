# SPDX-License-Identifier: Apache-2.0
"""check_cplusplus.py LIBRARY: fails unless tests/cplusplus/api.cpp uses every public function and
compiles and links as C++11 with both compilers against the shared library.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import source
from source import INCLUDE, ROOT, WARNINGS

PROGRAM = ROOT / "tests/cplusplus/api.cpp"


def build_problem(compiler, library):
    """What the compiler says, or None."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [compiler, "-std=c++11", *WARNINGS, f"-I{INCLUDE}", PROGRAM, library]
        done = subprocess.run([*command, "-o", f"{scratch}/api"], capture_output=True, text=True)
    return None if done.returncode == 0 else f"{compiler}:\n{done.stderr}"


def main():
    library = pathlib.Path(sys.argv[1]).resolve()
    used = set(re.findall(r"\bweir_\w+", source.code_only(PROGRAM.read_text())))
    problems = [f"{d} is not used in {PROGRAM.name}" for d in source.api() if d.name not in used]
    problems += filter(None, [build_problem(compiler, library) for compiler in ("g++", "clang++")])
    return source.report(problems)


if __name__ == "__main__":
    sys.exit(main())
