# SPDX-License-Identifier: Apache-2.0
"""check_cplusplus.py LIBRARY...: fails unless the API can be used from C++ with g++ and clang++.

The programs in tests/cplusplus, one for each shared library, must use every public function, and
compile and link as C++11; guide.cpp must compile as C++20. The initializer macro of every options
struct must compile in both: as C++20 with all members, in order.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import source
from source import INCLUDE, ROOT, WARNINGS

COMPILERS = ("g++", "clang++")
PROGRAMS = {
    "weir": ROOT / "tests/cplusplus/api.cpp",
    "weir-tls": ROOT / "tests/cplusplus/tls_api.cpp",
    "weir-http": ROOT / "tests/cplusplus/http_api.cpp",
    "weir-sim": ROOT / "tests/cplusplus/sim_api.cpp",
}
GUIDE = ROOT / "tests/cplusplus/guide.cpp"
MACRO = re.compile(r"#define (WEIR_\w+)\(\.\.\.\)\s(?:\\\s+)?WEIR_OPTIONS\((\w+),")
STRUCT = r"typedef struct %s \{(.*?)\n\} %s;"
MEMBER = re.compile(r"(?:\(\*\s*(\w+)\)\s*\(|(\w+)\s*(?:\[[^]]*\])?\s*$)")


def build_problem(compiler, standard, arguments, text=None):
    """What the compiler says, or None."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [compiler, f"-std={standard}", *WARNINGS, f"-I{INCLUDE}", *arguments]
        done = subprocess.run(
            [*command, "-o", f"{scratch}/out"], input=text, capture_output=True, text=True
        )
    return None if done.returncode == 0 else f"{compiler} -std={standard}:\n{done.stderr}"


def problems_of(name, libraries):
    program = PROGRAMS[name]
    used = set(re.findall(r"\bweir_\w+", source.code_only(program.read_text())))
    unused = [d for d in source.api(name) if d.name not in used]
    found = [build_problem(compiler, "c++11", [program, *libraries]) for compiler in COMPILERS]
    return [f"{d} is not used in {program.name}" for d in unused] + list(filter(None, found))


def members(header, struct):
    """The names of the members of a struct after `size`, in order."""
    body = re.search(STRUCT % (struct, struct), header, re.DOTALL)[1]
    names = []
    for declaration in body.split(";"):
        for part in declaration.split(",") if "(" not in declaration else [declaration]:
            match = MEMBER.search(part.strip())
            names += [match[1] or match[2]] if match else []
    return names[1:]


def macro_program(designated):
    """A program that uses the macro of every options struct."""
    lines = ["#include <weir/weir.h>"]
    lines += [f"#include <weir/{path.name}>" for path in source.public_headers()]
    for path in source.public_headers():
        header = source.code_only(path.read_text())
        for macro, struct in MACRO.findall(header):
            names = members(header, struct) if designated else []
            arguments = ", ".join(f".{name} = {{}}" for name in names)
            lines.append(f"{struct} copy_of_{struct} = *{macro}();")
            lines.append(f"size_t size_of_{struct}(const {struct} *options);")
            lines.append(f"size_t use_{struct}();")
            lines.append(f"size_t use_{struct}() {{")
            lines.append(f"    return size_of_{struct}({macro}({arguments})); }}")
    return "\n".join(lines) + "\n"


def macro_problems():
    arguments = ["-x", "c++", "-fsyntax-only", "-"]
    found = []
    for compiler in COMPILERS:
        found.append(build_problem(compiler, "c++11", arguments, macro_program(False)))
        found.append(build_problem(compiler, "c++20", arguments, macro_program(True)))
        found.append(build_problem(compiler, "c++20", ["-fsyntax-only", GUIDE]))
    return list(filter(None, found))


def main():
    libraries = [pathlib.Path(path).absolute() for path in sys.argv[1:]]
    names = [source.library_at(path) for path in libraries]
    problems = [p for name in names for p in problems_of(name, libraries)]
    return source.report(problems + macro_problems())


if __name__ == "__main__":
    sys.exit(main())
