# SPDX-License-Identifier: Apache-2.0
"""Fails when a header does not compile alone and when included twice: public headers as C11 without
extensions and as C++11, with gcc and clang; internal headers with the library's flags.
"""
import concurrent.futures
import os
import subprocess
import sys

import source
from source import INCLUDE, SRC, shown

C11 = ["-x", "c", "-std=c11"]
CXX11 = ["-x", "c++", "-std=c++11"]
PUBLIC = [["gcc", *C11], ["clang", *C11], ["g++", *CXX11], ["clang++", *CXX11]]
AS_OURS = [*C11, "-D_GNU_SOURCE", f"-I{SRC}"]
INTERNAL = [["gcc", *AS_OURS], ["clang", *AS_OURS]]


def jobs():
    """(header, compiler, include line) for every compilation."""
    umbrella = INCLUDE / "weir/weir.h"
    for header in source.public_headers() + [umbrella] * umbrella.exists():
        for compiler in PUBLIC:
            yield header, compiler, f"#include <{header.relative_to(INCLUDE)}>\n"
    for header in source.files(".h", under=["src"]):
        for compiler in INTERNAL:
            yield header, compiler, f'#include "{header.relative_to(SRC)}"\n'


def compile_alone(job):
    header, compiler, line = job
    command = [*compiler, *source.WARNINGS, f"-I{INCLUDE}", "-fsyntax-only", "-"]
    done = subprocess.run(command, input=2 * line, capture_output=True, text=True)
    return None if done.returncode == 0 else f"{shown(header)} with {compiler[0]}:\n{done.stderr}"


def main():
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return source.report([problem for problem in pool.map(compile_alone, jobs()) if problem])


if __name__ == "__main__":
    sys.exit(main())
