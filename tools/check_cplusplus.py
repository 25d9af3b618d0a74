# SPDX-License-Identifier: Apache-2.0
"""check_cplusplus.py LIBRARY...: fails unless the programs in tests/cplusplus, one for each shared
library, use every public function of it, and compile and link as C++11 with both compilers.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import source
from source import INCLUDE, ROOT, WARNINGS

PROGRAMS = {
    "weir": ROOT / "tests/cplusplus/api.cpp",
    "weir-tls": ROOT / "tests/cplusplus/tls_api.cpp",
}


def build_problem(compiler, program, libraries):
    """What the compiler says, or None."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [compiler, "-std=c++11", *WARNINGS, f"-I{INCLUDE}", program, *libraries]
        done = subprocess.run([*command, "-o", f"{scratch}/api"], capture_output=True, text=True)
    return None if done.returncode == 0 else f"{compiler}:\n{done.stderr}"


def problems_of(name, libraries):
    program = PROGRAMS[name]
    used = set(re.findall(r"\bweir_\w+", source.code_only(program.read_text())))
    unused = [d for d in source.api(name) if d.name not in used]
    found = [build_problem(compiler, program, libraries) for compiler in ("g++", "clang++")]
    return [f"{d} is not used in {program.name}" for d in unused] + list(filter(None, found))


def main():
    libraries = [pathlib.Path(path).absolute() for path in sys.argv[1:]]
    names = [source.library_at(path) for path in libraries]
    return source.report([p for name in names for p in problems_of(name, libraries)])


if __name__ == "__main__":
    sys.exit(main())
