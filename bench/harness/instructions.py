# SPDX-License-Identifier: Apache-2.0
"""Instruction counts of hot paths, by callgrind, against the committed bench/instructions.json.

They are exact where times are not: a path that has grown by an instruction shows. They depend on
the compiler and the C library, so counts are compared with those of the same ones only: those of
Debian 12 and 13 are stored.
"""
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile

from harness.suite import BENCH

BASELINE = BENCH / "instructions.json"
TOLERANCE = 0.05
COMMAND = ["valgrind", "--tool=callgrind", "--quiet", "--collect-atstart=no"]

DUMP = re.compile(r"^desc: Trigger: Client Request: (.*)\|(\d+)$.*^summary: (\d+)$", re.M | re.S)


def counts_of(program):
    """
    Instructions per operation of each path that the program counts, in its order; None of one that
    this machine cannot do.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = f"--callgrind-out-file={folder}/out"
        subprocess.run([*COMMAND, output, program, "count"], check=True, stdout=subprocess.DEVNULL)
        dumps = sorted(pathlib.Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:]))
        found = [DUMP.search(dump.read_text()).groups() for dump in dumps]
    return {path: each(int(total), int(times)) for path, times, total in found}


def each(total, times):
    return round(total / times, 1) if times else None


def toolchain_of(program):
    about = json.loads(subprocess.run([program, "about"], check=True, capture_output=True).stdout)
    libc = " ".join(platform.libc_ver())
    return f"{about['compiler']}, {libc}, {platform.machine()}"


def count(folder):
    """The counts of all suites as they are stored."""
    programs = sorted(folder.glob("*_instructions"))
    if not programs or not shutil.which("valgrind"):
        raise SystemExit(f"cannot count: valgrind, or *_instructions in {folder}, is not there")
    counts = {p.name.removesuffix("_instructions"): counts_of(p) for p in programs}
    return {"toolchain": toolchain_of(programs[0]), "instructions": counts}


def moved(before, after):
    """(path, count before, count after) of all that differ by more than the tolerance."""
    for path in {**before, **after}:
        old, new = before.get(path), after.get(path)
        if new is None and path in after:
            continue
        if old is None or new is None or abs(new - old) > TOLERANCE * old:
            yield path, old, new


def show(counts):
    for suite, paths in counts["instructions"].items():
        print(f"{suite}: instructions each ({counts['toolchain']})")
        for path, instructions in paths.items():
            print(f"  {path:48} {shown(instructions):>8}")


def change(old, new):
    if old is None or new is None:
        return "new" if old is None else "gone"
    return f"{100 * (new / old - 1):+.1f} %"


def shown(instructions):
    return "-" if instructions is None else f"{instructions:.1f}"


def compare(baseline, counts):
    """The exit code of a check against the counts of the same toolchain."""
    rows = [
        (f"{suite}: {path}", shown(old), shown(new), change(old, new))
        for suite in {**baseline, **counts}
        for path, old, new in moved(baseline.get(suite, {}), counts.get(suite, {}))
    ]
    if not rows:
        print(f"instructions: all within {TOLERANCE:.0%} of {BASELINE.name}")
        return 0
    print(f"{'instructions each':58}{'before':>10}{'now':>10}{'change':>10}")
    for path, old, new, by in rows:
        print(f"{path:58}{old:>10}{new:>10}{by:>10}")
    print("If this is what was meant, also for the better: ./dev bench --instructions --update")
    return 1


def other_toolchain(toolchains, toolchain):
    """The exit code of a check that cannot be made."""
    print(f"instructions: not compared, {BASELINE.name} is of")
    print(*(f"    {known}" for known in toolchains), sep="\n")
    print(f"and this is {toolchain}: ./dev bench --instructions --update adds it")
    return 1 if os.environ.get("WEIR_REQUIRE") == "all" else 0


def baselines():
    """The stored counts by toolchain."""
    return json.loads(BASELINE.read_text()) if BASELINE.exists() else {}


def check(counts):
    """The exit code of --check."""
    known = baselines()
    if counts["toolchain"] not in known:
        return other_toolchain(known, counts["toolchain"])
    return compare(known[counts["toolchain"]], counts["instructions"])


def update(counts):
    known = {**baselines(), counts["toolchain"]: counts["instructions"]}
    BASELINE.write_text(json.dumps(known, indent=4) + "\n")
    print(f"wrote the counts of {counts['toolchain']} to {BASELINE}")
    return 0
