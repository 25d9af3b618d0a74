# SPDX-License-Identifier: Apache-2.0
"""mutants.py [--check | --list] [--jobs N] [LAYER | LAYER/NAME ...]: inserts the mistakes of
tools/mutants/ one at a time into a copy of the tree, then builds and runs the tests that should
fail. Prints a line for each mutant, then the counts, the time and the names of those that were not
killed. Exits 1 if fewer than 97 % were. --check only verifies that each mistake still applies to
the source. There are N copies, which take the mutants in turn; two, or as many as processors.

tools/mutants/<layer>.txt is a list of mutants:

    mutant NAME              the mistake, in a few words joined by hyphens
    file PATH
    tests NAME...            the ctest names that should fail, or
    check NAME...            the tools/check_NAME.py that should fail; gets the build folder, or
    sim PROGRAM FROM-TO BACKEND [WORDS]
                             the program of tests/sim/programs that should fail with one of these
                             seeds; the failure contains the words. Run by tests/sim/planted.py.
    preset NAME              asan if absent; release, tsan
    -OLD LINE                one to five lines, as they stand in the file, exactly once
    +NEW LINE                any number; none deletes the old ones

A mutant is killed if one of its tests fails. The tests are built and run in the order given, up to
the first that fails: the one that most likely does comes first. They must pass without the mistake,
which is verified first.

A run of all takes hours: most of it is the compiler. So mutants are sorted by file, which saves
compiling the original in between, and ccache is used if it is installed.
"""
import argparse
import contextlib
import dataclasses
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

from source import ROOT

LISTS = ROOT / "tools/mutants"
COPIES = ROOT / "build/mutants"
JOBS_MAX = 2
TIMEOUT_S = 90  # for one test program: a mistake may make it hang
MUST_KILL = 0.97
OLD_LINES_MAX = 5


@dataclasses.dataclass
class Mutant:
    name: str  # LAYER/NAME
    file: str = ""
    tests: list = dataclasses.field(default_factory=list)
    checks: list = dataclasses.field(default_factory=list)
    sim: list = dataclasses.field(default_factory=list)
    preset: str = "asan"
    old: list = dataclasses.field(default_factory=list)
    new: list = dataclasses.field(default_factory=list)


def target_of(test):
    return "test_" + test.replace("/", "_")


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
        elif word == "sim":
            mutants[-1].sim = rest.split(maxsplit=3)
        else:
            sys.exit(
                f"{path.name}:{number}: expected mutant, file, tests, check, sim, preset, - or +"
            )
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
    if not mutant.tests and not mutant.checks and not mutant.sim:
        return "names no test"
    if mutant.sim and not (ROOT / f"tests/sim/programs/{mutant.sim[0]}.c").is_file():
        return f"there is no simulated program {mutant.sim[0]}"
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


class Failure(Exception):
    """Nothing can be said about the mutants: a test fails without one, or does not build."""


def environment(root):
    """With ccache, a copy's objects are found again in the others, and after a mutant. A program
    ends with its first failed test: those that wait in vain take their whole timeout."""
    env = dict(os.environ, CMOCKA_TEST_ABORT="1")
    if shutil.which("ccache"):
        for language in ("C", "CXX"):
            env.setdefault(f"CMAKE_{language}_COMPILER_LAUNCHER", "ccache")
        env.update(CCACHE_BASEDIR=str(root), CCACHE_NOHASHDIR="1")
    return env


class Copy:
    """A copy of the tree, in which one mutant at a time is built and tested."""

    def __init__(self, number):
        self.root = COPIES if number == 0 else COPIES.with_name(f"mutants-{number}")
        self.env = environment(self.root)
        self.process = None

    def update(self):
        """Brings the copy up to date; files that have not changed keep their times."""
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.check_output(command, cwd=ROOT, text=True)
        for name in listed.splitlines():
            source, target = ROOT / name, self.root / name
            if not source.is_file():
                continue
            content = source.read_bytes()
            if not target.is_file() or target.read_bytes() != content:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
                target.chmod(source.stat().st_mode)
        for stale in self.root.glob("src/**/*.[ch]"):
            if not (ROOT / stale.relative_to(self.root)).is_file():
                stale.unlink()

    def run(self, command):
        """Runs a command in the copy; returns (success, output). What it leaves running is killed:
        a test that fails may not get to end its children."""
        self.process = subprocess.Popen(
            command,
            cwd=self.root,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        output, _ = self.process.communicate()
        self.kill()
        return self.process.returncode == 0, output

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def build(self, preset, targets):
        return self.run(["cmake", "--build", f"build/{preset}", "--target", *targets])

    def failed_test(self, preset, tests):
        """The first test that fails, or None."""
        pattern = "^(" + "|".join(map(re.escape, tests)) + ")$"
        still = ["setarch", "-R"] if preset == "tsan" else []
        options = ["--no-tests=error", "--stop-on-failure", "--tests-regex", pattern]
        passed, output = self.run([*still, "ctest", "--test-dir", f"build/{preset}", *options])
        if passed:
            return None
        for name, result in re.findall(r"Test +#\d+: (\S+) \.*(.*?) +[\d.]+ sec", output):
            if "Passed" not in result:
                return f"{name} (hangs)" if "Timeout" in result else name
        raise Failure(output[-5000:])

    def failed_check(self, preset, checks):
        for check in checks:
            if not self.run(["python3", f"tools/check_{check}.py", f"build/{preset}"])[0]:
                return f"check {check}"
        return None

    def prepare(self, preset, mutants):
        """Builds the tests that the mutants need; verifies that they pass without a mistake."""
        targets = sorted({target_of(t) for m in mutants for t in m.tests})
        tests = sorted({t for m in mutants for t in m.tests})
        print(f"building {len(targets)} test programs, {preset}", flush=True)
        settings = ["-DWEIR_WERROR=OFF", f"-DWEIR_TEST_TIMEOUT={TIMEOUT_S}"]
        passed, output = self.run(["cmake", "--preset", preset, *settings])
        if passed and targets:
            passed, output = self.build(preset, targets)
        if not passed:
            raise Failure(output[-5000:])
        failed = self.failed_test(preset, tests) if tests else None
        failed = failed or self.failed_check(preset, sorted({c for m in mutants for c in m.checks}))
        if failed:
            raise Failure(f"{failed} fails without a mutant, {preset}")

    def notice(self, mutant):
        """(The verdict, the test that failed) of the mutant that is in the tree."""
        for test in mutant.tests:
            passed, output = self.build(mutant.preset, [target_of(test)])
            if not passed:
                return "INVALID", "does not build:\n" + output[-2000:]
            noticed = self.failed_test(mutant.preset, [test])
            if noticed:
                return "killed", noticed
        noticed = self.failed_check(mutant.preset, mutant.checks)
        if noticed:
            return "killed", noticed
        return "SURVIVED", " ".join(mutant.tests + mutant.checks)

    def verdict_of(self, mutant):
        """Inserts a mutant, runs its tests and removes it."""
        path = self.root / mutant.file
        text = path.read_text()
        path.write_text(mutated(mutant, text))
        try:
            return self.notice(mutant)
        finally:
            path.write_text(text)


# --- all of them ---------------------------------------------------------------------------------


def batches_of(mutants):
    """Mutants of one preset and layer: a copy builds only the tests of those it gets. The largest
    batch first, so that the copies finish at about the same time."""
    batches = {}
    for mutant in mutants:
        batches.setdefault((mutant.preset, mutant.name.split("/")[0]), []).append(mutant)
    ordered = sorted(batches.values(), key=len, reverse=True)
    return [sorted(batch, key=lambda m: m.file) for batch in ordered]


class Run:
    """The mutants that are left, and what came of the others."""

    def __init__(self, mutants):
        self.batches = queue.SimpleQueue()
        for batch in batches_of(mutants):
            self.batches.put(batch)
        self.count = len(mutants)
        self.lock = threading.Lock()
        self.verdicts = {}
        self.failure = None

    def note(self, mutant, verdict, noticed, seconds):
        with self.lock:
            self.verdicts[mutant.name] = verdict
            place = f"{len(self.verdicts):3}/{self.count}"
            print(f"{place} {verdict:8} {seconds:4.0f} s  {mutant.name}: {noticed}", flush=True)

    def take(self, copy):
        """Tests batches in this copy until none is left."""
        try:
            copy.update()
            while self.failure is None:
                batch = self.batches.get_nowait()
                copy.prepare(batch[0].preset, batch)
                for mutant in batch:
                    start = time.monotonic()
                    verdict, noticed = copy.verdict_of(mutant)
                    self.note(mutant, verdict, noticed, time.monotonic() - start)
        except queue.Empty:
            pass
        except Exception as failure:  # of either thread: the other stops after its batch
            self.failure = failure

    def summary(self, start):
        named = {verdict: [] for verdict in ("killed", "SURVIVED", "INVALID")}
        for name in sorted(self.verdicts):
            named[self.verdicts[name]].append(name)
        killed, survived, invalid = map(len, named.values())
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{killed} killed, {survived} survived, {invalid} invalid of {self.count}")
        print(
            f"{(time.monotonic() - start) / 60:.1f} minutes, "
            f"{(usage.ru_utime + usage.ru_stime) / 60:.1f} of a processor"
        )
        for verdict in ("SURVIVED", "INVALID"):
            for name in named[verdict]:
                print(f"{verdict} {name}")
        return 0 if killed >= MUST_KILL * self.count else 1


def run_all(mutants, jobs):
    start = time.monotonic()
    run = Run(mutants)
    copies = [Copy(i) for i in range(jobs)]
    threads = [threading.Thread(target=run.take, args=(copy,), daemon=True) for copy in copies]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        for copy in copies:
            if copy.process is not None:
                copy.kill()
        raise
    if isinstance(run.failure, Failure):
        sys.exit(str(run.failure))
    if run.failure is not None:
        raise run.failure
    return run.summary(start)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=min(JOBS_MAX, os.cpu_count() or 1))
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    mutants = selected(options.names)
    faults = [f"{m.name}: {fault}" for m in mutants if (fault := fault_of(m))]
    if faults:
        print("\n".join(faults))
        return 1
    if options.list:
        print("\n".join(m.name for m in mutants))
    if options.list or options.check:
        return 0
    mutants = [m for m in mutants if not m.sim]
    if not mutants:
        sys.exit("these mistakes are run by ./dev test sim/planted")
    return run_all(mutants, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
