#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks: ./dev bench [SUITE[/CASES]]. bench/README.md says how to read the table."""
import argparse
import json
import pathlib
import subprocess
import sys

from harness import instructions, report, rounds, suite as suites

ROUNDS, ROUNDS_QUICK = 25, 5
BUILD = suites.ROOT / "build"
PROGRAMS = BUILD / "release/bin/bench"


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("name", nargs="?", help="a suite, or SUITE/CASES with * in it; default all")
    parser.add_argument("--quick", action="store_true", help=f"{ROUNDS_QUICK} rounds, for a look")
    parser.add_argument("--rounds", type=int, help=f"how many, {ROUNDS} by default")
    parser.add_argument("--json", type=pathlib.Path, help="default build/bench/SUITE.json")
    parser.add_argument("--list", action="store_true", help="the suites and their cases")
    parser.add_argument("--instructions", action="store_true", help="count instead of measuring")
    parser.add_argument("--check", action="store_true", help="compare the counts with the baseline")
    parser.add_argument("--update", action="store_true", help="make the counts the baseline")
    parser.add_argument("--bin", type=pathlib.Path, default=PROGRAMS, help="where the programs are")
    options = parser.parse_args()
    if (options.check or options.update) and not options.instructions:
        parser.error("--check and --update go with --instructions")
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def selected(name):
    """The suites to run, by NAME or NAME/CASES."""
    wanted, _, pattern = (name or "").partition("/")
    found = [s for s in suites.names() if wanted in ("", s)]
    if not found:
        raise SystemExit(f"no suite {wanted}; there are {' '.join(suites.names())}")
    loaded = [suites.load(s, pattern or "*") for s in found]
    if not any(suite.cases for suite in loaded):
        raise SystemExit(f"no case {pattern} in {wanted}: see --list")
    return loaded


def show(suite):
    print(f"{suite.name}: {suite.title}")
    print(f"  against {', '.join(peer.name for peer in suite.peers())}")
    for case in suite.cases:
        print(f"  {case.name:18} {case.title}")


def leave_out_unbuilt(suite, folder):
    """Peers whose library is not there are left out; ours must be."""
    for competitor in list(suite.competitors):
        if not (folder / competitor.program).exists():
            if competitor.ours:
                raise SystemExit(f"{folder / competitor.program} is not there: ./dev build")
            print(f"without {competitor.name}: {competitor.program} is not built")
            suite.competitors.remove(competitor)


def compiler_of(suite, folder):
    program = next(c.program for c in suite.competitors if c.ours)
    return json.loads(subprocess.check_output([folder / program, "about"]))["compiler"]


def run(suite, options):
    """One suite; true if every program came through."""
    count = options.rounds or (ROUNDS_QUICK if options.quick else ROUNDS)
    leave_out_unbuilt(suite, options.bin)
    if options.quick:
        suite.cases = [case for case in suite.cases if case.quick]
    about = report.machine(compiler_of(suite, options.bin))
    answers, failures = rounds.measure(suite, options.bin, count)
    cases = report.figures(suite, answers)
    for line in report.table(suite, cases, about, count):
        print(line)
    path = options.json or BUILD / "bench" / f"{suite.name}.json"
    report.save(path, suite, cases, about, count)
    print(f"\n{path}")
    for failure in failures:
        print(failure)
    return not failures


def count(options):
    counts = instructions.count(options.bin)
    if options.update:
        return instructions.update(counts)
    if options.check:
        return instructions.check(counts)
    instructions.show(counts)
    return 0


def main():
    options = parse()
    if options.instructions:
        return count(options)
    loaded = selected(options.name)
    if options.list:
        for suite in loaded:
            show(suite)
        return 0
    return 0 if all([run(suite, options) for suite in loaded]) else 1


if __name__ == "__main__":
    sys.exit(main())
