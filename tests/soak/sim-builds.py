# SPDX-License-Identifier: Apache-2.0
"""./dev soak sim-builds [SEEDS] [PRESET...]: the hash of the trace of each seed (10,000) of each
program is the same in all builds: release (gcc), asan (gcc) and clang.

Where it differs, the first difference of the traces is printed.
"""
import itertools
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def build(preset):
    log = ROOT / "build/log" / f"build-sim-{preset}.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        for command in (["cmake", "--preset", preset],
                        ["cmake", "--build", f"build/{preset}", "--target", "weir-sim-programs"]):
            subprocess.run(command, cwd=ROOT, stdout=output, stderr=output, check=True)
    return str(ROOT / "build" / preset / "bin/sim")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def hashes(sim, name, seeds):
    lines = output_of(sim, name, "--seeds", f"1-{seeds}", "--hashes").splitlines()
    return dict(line.split()[1:] for line in lines if len(line.split()) == 3)


def show_difference(sims, name, seed):
    traces = [output_of(sim, name, "--seed", seed, "--trace").splitlines() for sim in sims]
    for number, lines in enumerate(itertools.zip_longest(*traces), 1):
        if len(set(lines)) > 1:
            print(f"line {number} of the traces of {name} --seed {seed}:")
            print("\n".join(f"  {sim}: {line}" for sim, line in zip(sims, lines)))
            return


def main(folder, seeds="10000", *presets):
    sims = [build(preset) for preset in presets or ("release", "asan", "clang")]
    names = [line.split()[0] for line in output_of(sims[0], "--list").splitlines()]
    status = 0
    for name in names:
        found = [hashes(sim, name, seeds) for sim in sims]
        different = [seed for seed in found[0] if len({each[seed] for each in found}) > 1]
        print(f"{name}: {len(found[0])} seeds, {len(different)} differ", flush=True)
        if different:
            show_difference(sims, name, different[0])
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
