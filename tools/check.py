# SPDX-License-Identifier: Apache-2.0
"""check.py [NAME...]: runs all checks, or the named ones, two at a time, one line each. Prints the
output of failed checks only, and exits 1 if there are any. No check runs a test.
"""
import concurrent.futures
import dataclasses
import subprocess
import sys
import threading
import time

from source import ROOT

LOGS = ROOT / "build/log"
FAILED = LOGS / "failed-checks.txt"  # names of failed checks, for the summary of ./dev test
LIBRARIES = ("libweir", "libweir-tls", "libweir-http", "libweir-sim")
SHARED = " ".join(f"build/release/{name}.so" for name in LIBRARIES)
HARNESS_TESTS = "python3 -m unittest discover -s bench -t bench"
# Need libraries that the cross compiler lacks.
FOREIGN = "weir-loop-objects weir-tls-objects weir-protocol-http-objects"


@dataclasses.dataclass
class Check:
    name: str
    command: str
    after: str = ""  # the check that builds the files this one reads
    passed: bool = False
    done: threading.Event = dataclasses.field(default_factory=threading.Event)

    @property
    def log(self):
        return LOGS / f"check-{self.name}.txt"


def build(preset, target="all"):
    return f"cmake --preset {preset} && cmake --build build/{preset} --target {target}"


def script(name, arguments=""):
    return f"python3 tools/check_{name}.py {arguments}"


# In starting order: each below the check it is `after`, long ones first.
CHECKS = [
    Check("gcc", build("release")),
    Check("models", "tools/models/run"),
    Check("clang", build("clang")),
    Check("instructions", "python3 bench/run.py --instructions --check", after="gcc"),
    Check("aarch64", build("aarch64") + " && " + build("aarch64-more", FOREIGN)),
    Check("musl", build("musl", "weir-static weir-tls-static weir-http-static weir-sim-static")),
    Check("lto", build("lto", "weir weir-tls weir-http weir-sim")),
    Check("headers", script("headers")),
    Check("cplusplus", script("cplusplus", SHARED), after="gcc"),
    Check("snippets", script("snippets", SHARED), after="gcc"),
    Check("symbols", script("symbols", SHARED), after="gcc"),
    Check("barriers", script("barriers", "build/release"), after="gcc"),
    Check("barriers-aarch64", script("barriers", "build/aarch64"), after="aarch64"),
    Check("format", script("format")),
    Check("layers", script("layers")),
    Check("api-docs", script("api_docs")),
    Check("lengths", script("lengths")),
    Check("links", script("links")),
    Check("logs", script("logs")),
    Check("names", script("names")),
    Check("states", script("states")),
    Check("words", script("words")),
    Check("benchmarks", "python3 bench/run.py --page --check && " + HARNESS_TESTS),
    Check("subjects", "tools/hooks/commit-msg --test"),
    Check("mutants", "python3 tools/mutants.py --check"),
]


def execute(check):
    """Runs a check's command; returns (verdict, output)."""
    with open(check.log, "w") as output:
        done = subprocess.run(
            check.command, shell=True, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT
        )
    check.passed = done.returncode == 0
    return ("ok", "") if check.passed else ("FAILED", check.log.read_text())


def run(check, by_name):
    """Waits for the check that this one depends on, runs it, prints its line."""
    before = by_name.get(check.after)
    if before:
        before.done.wait()
    start = time.monotonic()
    if before and not before.passed:
        verdict, text = "FAILED", f"{check.after} has to pass first\n"
        check.log.write_text(text)
    else:
        verdict, text = execute(check)
    line = f"{'check ' + check.name:20} {verdict:6} {time.monotonic() - start:4.0f} s\n"
    print(line + text[-20000:], end="", flush=True)
    check.done.set()


def selected(names):
    """The named checks and their dependencies."""
    wanted = [c for c in CHECKS if not names or c.name in names]
    needed = {c.after for c in wanted}
    return [c for c in CHECKS if c in wanted or c.name in needed]


def main():
    unknown = set(sys.argv[1:]) - {c.name for c in CHECKS}
    if unknown:
        known = " ".join(c.name for c in CHECKS)
        print(f"unknown check: {' '.join(unknown)}; expected one of {known}")
        return 2
    checks = selected(sys.argv[1:])
    by_name = {c.name: c for c in checks}
    LOGS.mkdir(parents=True, exist_ok=True)
    FAILED.unlink(missing_ok=True)
    with concurrent.futures.ThreadPoolExecutor(2) as lanes:
        list(lanes.map(lambda check: run(check, by_name), checks))
    failed = [c.name for c in checks if not c.passed]
    FAILED.write_text(" ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
