#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks: ./dev bench [SUITE[/CASES]]. bench/README.md says how to read the table."""
import argparse
import json
import pathlib
import subprocess
import sys
import time

from harness import instructions, page, report, results, rounds, suite as suites

ROUNDS, ROUNDS_QUICK = 25, 5
BUILD = suites.ROOT / "build"
PROGRAMS = BUILD / "release/bin/bench"


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("name", nargs="?", help="a suite, or SUITE/CASES with * in it; default all")
    parser.add_argument("--quick", action="store_true", help=f"{ROUNDS_QUICK} rounds, for a look")
    parser.add_argument("--rounds", type=int, help=f"how many, {ROUNDS} by default")
    parser.add_argument("--list", action="store_true", help="the suites and their cases")
    parser.add_argument(
        "--page", action="store_true", help="generate the page again; of a suite, measure it first"
    )
    parser.add_argument("--instructions", action="store_true", help="count instead of measuring")
    parser.add_argument("--check", action="store_true", help="compare the counts or the page")
    parser.add_argument("--update", action="store_true", help="make the counts the baseline")
    parser.add_argument("--bin", type=pathlib.Path, default=PROGRAMS, help="where the programs are")
    options = parser.parse_args()
    if options.update and not options.instructions:
        parser.error("--update goes with --instructions")
    if options.check and not (options.instructions or options.page):
        parser.error("--check goes with --instructions or --page")
    if options.page and "/" in (options.name or ""):
        parser.error("--page needs all cases of a suite")
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds must be at least 1")
    options.rounds = options.rounds or (ROUNDS_QUICK if options.quick else ROUNDS)
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


def run(suite, options, about, progress):
    """Measures one suite, prints its table; its cases, and failures by competitor."""
    answers, failures = rounds.measure(suite, options.bin, options.rounds, progress)
    cases = report.figures(suite, answers)
    for line in report.table(suite, cases, about, options.rounds):
        print(line)
    path = BUILD / "bench" / f"{suite.name}.json"
    report.save(path, suite, cases, about, options.rounds)
    print(f"\n{path}\n", flush=True)
    return cases, failures


def measure(loaded, options):
    """Runs the suites; if these are all, and ours came through, writes the page. The exit code."""
    for suite in loaded:
        leave_out_unbuilt(suite, options.bin)
        if options.quick:
            suite.cases = [case for case in suite.cases if case.quick]
    about = report.machine(compiler_of(loaded[0], options.bin))
    progress = rounds.Progress(sum(rounds.expected_of(s, options.rounds) for s in loaded))
    start = time.monotonic()
    measured, failures, ours_failed = [], [], False
    for suite in loaded:
        cases, failed = run(suite, options, about, progress)
        measured.append((suite, cases))
        failures += [f"{suite.name}: {text}" for text in failed.values()]
        ours_failed = ours_failed or any(c.ours and c.name in failed for c in suite.competitors)
    for failure in failures:
        print(failure)
    if ours_failed or (options.name and not options.page):
        return 1 if failures else 0
    command = " ".join(["./dev bench", *sys.argv[1:]])
    seconds = time.monotonic() - start
    collected = results.collect(measured, about, options.rounds, seconds, command, failures)
    if options.name:
        collected = results.replaced(results.load(page.RESULTS), collected)
    results.save(page.RESULTS, collected)
    return page.write()


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
    if options.page and not options.name:
        return page.check() if options.check else page.write()
    loaded = selected(options.name)
    if options.list:
        for suite in loaded:
            show(suite)
        return 0
    return measure(loaded, options)


if __name__ == "__main__":
    sys.exit(main())
