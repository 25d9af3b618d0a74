# SPDX-License-Identifier: Apache-2.0
"""./dev soak sim [SEEDS] [FIRST]: runs simulated programs, SEEDS (1,000,000) worlds in all, divided
among the programs; the seeds of each begin with FIRST (100,000).

Every failure is reported with its seed and a reduced list of faults; the run continues.
"""
import pathlib
import subprocess
import sys
import time


def programs(sim):
    listed = subprocess.run([sim, "--list"], check=True, capture_output=True, text=True).stdout
    return [line.split()[0] for line in listed.splitlines()]


def main(folder, total="1000000", first="100000"):
    sim = str(pathlib.Path(folder) / "sim")
    names = programs(sim)
    each = max(1, int(total) // len(names))
    failed = []
    start = time.monotonic()
    for number, name in enumerate(names, 1):
        print(f"--- {number} of {len(names)}: {name}, {each} seeds", flush=True)
        seeds = f"{first}-{int(first) + each - 1}"
        if subprocess.run([sim, name, "--seeds", seeds, "--keep-going"]).returncode != 0:
            failed.append(name)
    print(f"{each * len(names)} worlds in {time.monotonic() - start:.0f} s;",
          "failed: " + " ".join(failed) if failed else "none failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
