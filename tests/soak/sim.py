# SPDX-License-Identifier: Apache-2.0
"""./dev soak sim [SEEDS] [FIRST]: runs simulated programs, SEEDS (1,000,000) worlds in all, divided
among the programs; the seeds of each begin with FIRST (100,000). About half of the worlds run over
io_uring, if weir was built with it.

Every failure is reported with its seed and a reduced list of faults; the run continues.
"""
import pathlib
import re
import subprocess
import sys
import time

SUMMARY = re.compile(r"(\d+) seeds, (\d+) over io_uring, \d+ failed")


def programs(sim):
    listed = subprocess.run([sim, "--list"], check=True, capture_output=True, text=True).stdout
    return [line.split()[0] for line in listed.splitlines()]


def run(*command):
    """Prints the output. Returns the status, the number of worlds, and of those over io_uring."""
    counts = 0, 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            found = SUMMARY.search(line)
            if found:
                counts = int(found[1]), int(found[2])
    return process.returncode, *counts


def main(folder, total="1000000", first="100000"):
    sim = str(pathlib.Path(folder) / "sim")
    names = programs(sim)
    each = -(-int(total) // len(names))
    failed = []
    worlds = over_uring = 0
    start = time.monotonic()
    for number, name in enumerate(names, 1):
        print(f"--- {number} of {len(names)}: {name}, {each} seeds", flush=True)
        seeds = f"{first}-{int(first) + each - 1}"
        status, count, uring = run(sim, name, "--seeds", seeds, "--keep-going")
        worlds += count
        over_uring += uring
        if status != 0:
            failed.append(name)
    print(f"{worlds} worlds in {time.monotonic() - start:.0f} s, {over_uring} over io_uring and",
          f"{worlds - over_uring} over readiness;",
          "failed: " + " ".join(failed) if failed else "none failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
