# SPDX-License-Identifier: Apache-2.0
"""check_symbols.py LIBRARY...: fails unless each shared library exports exactly the functions that
its public headers declare.
"""
import subprocess
import sys

import source

# All that libweir-sim and libweir-http need beside the public functions.
PRIVATE = {
    "weir__seams_get",
    "weir__mailbox_hold",
    "weir__mailbox_init",
    "weir__mailbox_post",
    "weir__mailbox_resume",
    "weir__mailbox_set",
}


def exported(library):
    command = ["nm", "--dynamic", "--defined-only", "--format=posix", library]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    symbols = [line.split() for line in lines]
    # The linker lists the name of a symbol version as an absolute symbol.
    return {name.split("@")[0] for name, kind, *_ in symbols if kind != "A"}


def problems_of(library):
    declared = {d.name: d for d in source.api(source.library_at(library)) if not d.inline}
    symbols = exported(library) - PRIVATE
    own = {name for name in symbols if name.startswith("weir_") and not name.startswith("weir__")}
    problems = [f"{name} is exported, but is not weir_*" for name in symbols - own]
    problems += [f"{name} is exported, but in no public header" for name in own - declared.keys()]
    problems += [f"{declared[name]} is not exported" for name in declared.keys() - symbols]
    return sorted(problems)


def main():
    return source.report([p for library in sys.argv[1:] for p in problems_of(library)])


if __name__ == "__main__":
    sys.exit(main())
