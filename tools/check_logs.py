# SPDX-License-Identifier: Apache-2.0
"""Fails when src/ logs at INFO or above without a limit and tools/unlimited_logs.txt does not say
why. A peer that can cause a message must not fill the log: weir__warn_limited, weir__error_limited,
or weir__log_admit in the same function. With --list it prints the functions whose messages are
limited.
"""
import re
import sys

import source
from check_lengths import name_in, signature_start
from source import ROOT, shown

CALL = re.compile(r"\b(?:weir__(?:info|warn|error)|weir_log_write)\((?!WEIR_LOG_(?:DEBUG|TRACE))")
LIMITED = re.compile(r"\bweir__(?:(?:warn|error)_limited|log_admit)\(")
LIST = "tools/unlimited_logs.txt"


def functions(file):
    """(name, body) of each function."""
    lines = source.code_only(file.read_text()).split("\n")
    for brace in (n for n, line in enumerate(lines) if line == "{"):
        start, end = signature_start(lines, brace), lines.index("}", brace)
        yield f"{shown(file)}:{name_in(' '.join(lines[start:brace]))}", "\n".join(lines[brace:end])


def reasons():
    """function -> why its messages are not limited."""
    rows = (line.split(None, 1) for line in open(ROOT / LIST))
    return {row[0]: row[1] for row in rows if len(row) == 2 and not row[0].startswith("#")}


def main():
    ours = [pair for file in source.files(".c", ".h", under=["src"]) for pair in functions(file)]
    if "--list" in sys.argv:
        print("\n".join(name for name, body in ours if LIMITED.search(body)))
        return 0
    free = {n for n, body in ours if CALL.search(body) and "weir__log_admit(" not in body}
    known = reasons()
    problems = [f"{n} logs without a limit, and {LIST} does not say why" for n in free - set(known)]
    problems += [f"{LIST}: {n} logs nothing without a limit" for n in set(known) - free]
    return source.report(sorted(problems))


if __name__ == "__main__":
    sys.exit(main())
