#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""planted.py SIM [LAST]: the simulator finds each mistake of planted.txt, with the seeds that are
listed there, or with those from 1 to LAST. Prints the seed and the failure. Without a mistake the
same programs pass.
"""
import pathlib
import re
import subprocess
import sys

LIST = pathlib.Path(__file__).resolve().parent / "planted.txt"


def run(sim, mistake, program, last, backend):
    seeds = last if "-" in str(last) else f"1-{last}"
    command = [sim, program, "--planted", mistake, "--seeds", seeds, "--quiet",
               "--jobs", "1", "--backend", backend]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def names(sim):
    listed = subprocess.run([sim, "--list-planted"], check=True, capture_output=True, text=True)
    return {line.split()[0] for line in listed.stdout.splitlines()}


def has_uring(sim):
    return run(sim, "NONE", "echo", 1, "uring")[0] == 0


def main(sim, last=None):
    rows = [line.split() for line in LIST.read_text().splitlines() if not line.startswith("#")]
    missing = names(sim) - {row[0] for row in rows}
    failures = [f"{name}: not in {LIST.name}" for name in missing]
    if not has_uring(sim):
        print("without io_uring")
        rows = [row for row in rows if row[3] != "uring"]
    for mistake, program, listed, backend, *words in rows:
        seeds = listed if "-" in listed else last or listed
        status, output, errors = run(sim, mistake, program, seeds, backend)
        found = re.search(r"seed (\d+) FAILED: (.*)", output)
        if status == 1 and found and " ".join(words) in found[2]:
            print(f"{mistake:20} {program:8} seed {found[1]:>5}: {found[2]}", flush=True)
        else:
            failures.append(f"{mistake}: {program} does not find it: {output}{errors}")
    for program, backend in sorted({(row[1], row[3]) for row in rows}):
        status, output, errors = run(sim, "NONE", program, 20, backend)
        if status != 0:
            failures.append(f"{program} fails without a mistake: {output}{errors}")
    print("\n".join(failures) or f"{len(rows)} mistakes found")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
