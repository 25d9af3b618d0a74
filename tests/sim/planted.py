#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""planted.py BUILD [LAST]: the simulator finds each mistake of tools/mutants/planted.txt, with the
seeds that are listed there, or with those up to LAST. Prints the seed and the failure. Without a
mistake the same programs pass.

For each mistake, one file of the library is compiled with it, into BUILD/planted, and linked with
the simulated programs that BUILD has.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True

import mutants  # noqa: E402

LIST = mutants.LISTS / "planted.txt"


def run(sim, program, seeds, backend):
    command = [sim, program, "--seeds", seeds, "--quiet", "--jobs", "1", "--backend", backend]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class Build:
    def __init__(self, folder):
        self.folder = folder
        self.sim = str(folder / "bin/sim")
        self.link = (folder / "planted/link.txt").read_text().splitlines()
        commands = json.loads((folder / "compile_commands.json").read_text())
        self.commands = {entry["file"]: shlex.split(entry["command"]) for entry in commands}

    def command_of(self, command):
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True)

    def program_with(self, mutant):
        """The simulated programs, linked with the mistake."""
        original = ROOT / mutant.file
        stem = self.folder / "planted" / mutant.name.rpartition("/")[2]
        changed = stem.with_suffix(".c")
        changed.write_text(mutants.mutated(mutant, original.read_text()))
        command = self.commands[str(original)]
        object_at = command.index("-o") + 1
        given = {command[object_at]: f"{stem}.o", str(original): str(changed)}
        self.command_of([given.get(word, word) for word in command] + ["-w"])
        link = [f"{stem}.o" if word == "CHANGED" else word for word in self.link]
        self.command_of([*link, "-o", str(stem)])
        return str(stem)

    def failure_of(self, mutant, last):
        """What is wrong if the mistake is not found, or None."""
        program, seeds, backend, *words = mutant.sim
        first, _, listed = seeds.partition("-")
        try:
            sim = self.program_with(mutant)
        except subprocess.CalledProcessError as error:
            return f"{mutant.name} does not build: {error.stderr}"
        status, output, errors = run(sim, program, f"{first}-{last or listed}", backend)
        os.unlink(sim)
        found = re.search(r"seed (\d+) FAILED: (.*)", output)
        if status != 1 or not found or " ".join(words) not in found[2]:
            return f"{mutant.name}: {program} does not find it: {output}{errors}"
        print(f"{mutant.name:66} {program:8} seed {found[1]:>5}: {found[2]}", flush=True)
        return None


def main(folder, last=None):
    build = Build(pathlib.Path(folder).resolve())
    listed = mutants.read_list(LIST)
    if run(build.sim, "echo", "1-1", "uring")[0] != 0:
        print("without io_uring")
        listed = [mutant for mutant in listed if mutant.sim[2] != "uring"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        failures = list(filter(None, pool.map(lambda m: build.failure_of(m, last), listed)))
    for program, backend in sorted({(m.sim[0], m.sim[2]) for m in listed}):
        status, output, errors = run(build.sim, program, "1-20", backend)
        if status != 0:
            failures.append(f"{program} fails without a mistake: {output}{errors}")
    print("\n".join(failures) or f"{len(listed)} mistakes found")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
