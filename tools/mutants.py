# SPDX-License-Identifier: Apache-2.0
"""mutants.py [--check | --list] [LAYER | LAYER/NAME ...]: inserts the mistakes of tools/mutants/
one at a time into a copy of the tree, then builds and runs the tests that should fail. Prints a
line for each mutant and the counts. Exits 1 if fewer than 95 % were killed. --check only verifies
that each mistake still applies to the source.

tools/mutants/<layer>.txt is a list of mutants:

    mutant NAME              the mistake, in a few words joined by hyphens
    file PATH
    tests NAME...            the ctest names that should fail, or
    check NAME...            the tools/check_NAME.py that should fail; gets the build folder
    preset NAME              asan if absent; release, tsan
    -OLD LINE                one to five lines, as they stand in the file, exactly once
    +NEW LINE                any number; none deletes the old ones

A mutant is killed if one of its tests fails. The tests must pass without it, which is verified
first.
"""
import dataclasses
import re
import subprocess
import sys
import time

from source import ROOT

LISTS = ROOT / "tools/mutants"
COPY = ROOT / "build/mutants"
TIMEOUT_S = 90  # for one test program: a mistake may make it hang
MUST_KILL = 0.95
OLD_LINES_MAX = 5


@dataclasses.dataclass
class Mutant:
    name: str  # LAYER/NAME
    file: str = ""
    tests: list = dataclasses.field(default_factory=list)
    checks: list = dataclasses.field(default_factory=list)
    preset: str = "asan"
    old: list = dataclasses.field(default_factory=list)
    new: list = dataclasses.field(default_factory=list)

    @property
    def targets(self):
        return ["test_" + test.replace("/", "_") for test in self.tests]


# --- the lists -----------------------------------------------------------------------------------


def read_list(path):
    """The mutants of one layer's list."""
    mutants = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        word, _, rest = line.partition(" ")
        if not line.strip() or line.startswith("#"):
            continue
        if word == "mutant":
            mutants.append(Mutant(f"{path.stem}/{rest}"))
        elif line[0] in "-+":
            (mutants[-1].old if line[0] == "-" else mutants[-1].new).append(line[1:])
        elif word in ("file", "preset"):
            setattr(mutants[-1], word, rest)
        elif word == "tests":
            mutants[-1].tests = rest.split()
        elif word == "check":
            mutants[-1].checks = rest.split()
        else:
            sys.exit(f"{path.name}:{number}: expected mutant, file, tests, check, preset, - or +")
    return mutants


def selected(names):
    """The mutants of the layers or the names given; all of them without a name."""
    mutants = [m for path in sorted(LISTS.glob("*.txt")) for m in read_list(path)]
    known = {m.name for m in mutants} | {m.name.split("/")[0] for m in mutants}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no such layer or mutant: {' '.join(unknown)}")
    return [m for m in mutants if not names or {m.name, m.name.split("/")[0]} & set(names)]


def mutated(mutant, text):
    """The file's text with the mistake in it, or None if the old lines do not stand there once."""
    old = "".join(line + "\n" for line in mutant.old)
    starts = [m.start() for m in re.finditer(re.escape(old), text)] if old else []
    starts = [s for s in starts if s == 0 or text[s - 1] == "\n"]
    if len(starts) != 1 or not 1 <= len(mutant.old) <= OLD_LINES_MAX:
        return None
    new = "".join(line + "\n" for line in mutant.new)
    return text[: starts[0]] + new + text[starts[0] + len(old) :]


def fault_of(mutant):
    """The problem with a mutant's entry, or None."""
    path = ROOT / mutant.file
    if not mutant.tests and not mutant.checks:
        return "names no test"
    for test in mutant.tests:
        layer, _, noun = test.rpartition("/")
        if not (ROOT / f"tests/{layer}/test_{noun}.c").is_file():
            return f"there is no test {test}"
    if not path.is_file():
        return f"there is no {mutant.file}"
    if mutated(mutant, path.read_text()) is None:
        return f"its old lines do not stand once in {mutant.file}"
    return None


# --- building and running ------------------------------------------------------------------------


def copy_tree():
    """Brings the copy up to date; files that have not changed keep their times."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.check_output(command, cwd=ROOT, text=True)
    for name in listed.splitlines():
        source, target = ROOT / name, COPY / name
        if not source.is_file():
            continue
        content = source.read_bytes()
        if not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(source.stat().st_mode)
    for stale in COPY.glob("src/**/*.[ch]"):
        if not (ROOT / stale.relative_to(COPY)).is_file():
            stale.unlink()


def run(command):
    """Runs a command in the copy; returns (success, output)."""
    done = subprocess.run(
        command,
        cwd=COPY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return done.returncode == 0, done.stdout


def build(preset, targets):
    return run(["cmake", "--build", f"build/{preset}", "--target", *targets])


def failed_test(preset, tests):
    """The first test that fails, or None."""
    pattern = "^(" + "|".join(map(re.escape, tests)) + ")$"
    still = ["setarch", "-R"] if preset == "tsan" else []
    options = ["--no-tests=error", "--stop-on-failure", "--tests-regex", pattern]
    passed, output = run([*still, "ctest", "--test-dir", f"build/{preset}", *options])
    if passed:
        return None
    for name, result in re.findall(r"Test +#\d+: (\S+) \.*(.*?) +[\d.]+ sec", output):
        if "Passed" not in result:
            return f"{name} (hangs)" if "Timeout" in result else name
    sys.exit(output[-5000:])


def failed_check(preset, checks):
    for check in checks:
        if not run(["python3", f"tools/check_{check}.py", f"build/{preset}"])[0]:
            return f"check {check}"
    return None


def prepare(mutants):
    """Builds the tests that the mutants need and verifies that they pass without a mistake."""
    for preset in sorted({m.preset for m in mutants}):
        mine = [m for m in mutants if m.preset == preset]
        targets = sorted({t for m in mine for t in m.targets})
        tests = sorted({t for m in mine for t in m.tests})
        print(f"building {len(targets)} test programs, {preset}", flush=True)
        settings = ["-DWEIR_WERROR=OFF", f"-DWEIR_TEST_TIMEOUT={TIMEOUT_S}"]
        passed, output = run(["cmake", "--preset", preset, *settings])
        if passed and targets:
            passed, output = build(preset, targets)
        if not passed:
            sys.exit(output[-5000:])
        failed = failed_test(preset, tests) if tests else None
        failed = failed or failed_check(preset, sorted({c for m in mine for c in m.checks}))
        if failed:
            sys.exit(f"{failed} fails without a mutant, {preset}")


def verdict_of(mutant):
    """Inserts a mutant, runs its tests and removes it: (verdict, the test that failed)."""
    path = COPY / mutant.file
    text = path.read_text()
    path.write_text(mutated(mutant, text))
    try:
        if mutant.tests:
            passed, output = build(mutant.preset, mutant.targets)
            if not passed:
                return "INVALID", "does not build:\n" + output[-2000:]
        noticed = failed_test(mutant.preset, mutant.tests) if mutant.tests else None
        noticed = noticed or failed_check(mutant.preset, mutant.checks)
        if noticed:
            return "killed", noticed
        return "SURVIVED", " ".join(mutant.tests + mutant.checks)
    finally:
        path.write_text(text)


def run_all(mutants):
    counts = {"killed": 0, "SURVIVED": 0, "INVALID": 0}
    copy_tree()
    prepare(mutants)
    for number, mutant in enumerate(mutants, 1):
        start = time.monotonic()
        verdict, noticed = verdict_of(mutant)
        counts[verdict] += 1
        place, seconds = f"{number:3}/{len(mutants)}", time.monotonic() - start
        print(f"{place} {verdict:8} {seconds:4.0f} s  {mutant.name}: {noticed}", flush=True)
    killed, survived, invalid = counts.values()
    print(f"{killed} killed, {survived} survived, {invalid} invalid of {len(mutants)}")
    return 0 if counts["killed"] >= MUST_KILL * len(mutants) else 1


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    mutants = selected(names)
    faults = [f"{m.name}: {fault}" for m in mutants if (fault := fault_of(m))]
    if faults:
        print("\n".join(faults))
        return 1
    if "--list" in sys.argv:
        print("\n".join(m.name for m in mutants))
    if "--list" in sys.argv or "--check" in sys.argv:
        return 0
    return run_all(mutants)


if __name__ == "__main__":
    sys.exit(main())
