# SPDX-License-Identifier: Apache-2.0
"""sum_tests.py [checks:FILE] LOG...: sums the results in logs of `ctest --verbose`. Prints the
output of failed tests, then one line with the reason for each, so that the end of a log is enough,
then `N unsteady: names` if there are any, and last `N passed, N failed, N skipped`. Exits 1 if any
failed. FILE is written by check.py: the names of failed checks, whose logs are beside it; all
checks together count as one test.

A cmocka program counts as its test cases, any other test as one. A program without cmocka's closing
lines has failed, whatever its exit status; so has a log without tests.

Beside `test-X.txt` there may be `again-X.txt`: the log of the few failed tests, run once more,
alone. A test that passes there is reported as UNSTEADY and does not fail the run. Sanitizer
reports, crashes, and more than a few unsteady tests are never excused.
"""
import collections
import pathlib
import re
import sys

Counts = collections.Counter
Failure = collections.namedtuple("Failure", "name reason lines")
UNSTEADY_MAX = 2  # of all the logs
LINES_SHOWN = 60  # of a program
LINES_OF_SCRIPT = 40
REASON_SHOWN = 200  # characters

COMMAND = re.compile(r"^(\d+): Test command: (.*)$", re.MULTILINE)
RESULT = re.compile(r"^ *\d+/\d+ Test +#(\d+): (\S+) \.* *(.*?) +[\d.]+ sec", re.MULTILINE)
CASE = re.compile(r"^\[ +(RUN|OK|FAILED|SKIPPED) +\] (\S+)$")
SANITIZER = re.compile(r"(ERROR: |WARNING: )\w+Sanitizer|: runtime error: ")


# --- counting ------------------------------------------------------------------------------------


def number_in(pattern, output):
    """The number in one of cmocka's lines, 0 without such a line."""
    found = re.search(pattern, output)
    return int(found[1]) if found else 0


def count_program(output, result):
    """A cmocka program. cmocka counts a case whose fixture failed as neither passed nor failed, so
    failed cases are the rest of those started."""
    if "[  PASSED  ]" not in output:
        return Counts(failed=1)
    began = number_in(r"Running (\d+) test\(s\)", output)
    passed = number_in(r"\[  PASSED  \] (\d+) test\(s\)", output)
    skipped = number_in(r"\[  SKIPPED \] (\d+) test\(s\)", output)
    failed = max(began - passed - skipped, 0 if result == "Passed" else 1)
    return Counts(passed=passed, failed=failed, skipped=skipped)


def count_script(result):
    word = {"Passed": "passed", "***Skipped": "skipped"}.get(result, "failed")
    return Counts([word])


# --- failures and reasons ------------------------------------------------------------------------


def cut(lines, most):
    """A sanitizer's report from its beginning, else the end of the output."""
    for number, line in enumerate(lines):
        if SANITIZER.search(line):
            return lines[number : number + most]
    return lines[-most:]


def reason_in(lines, result):
    """One line of those that a failed case has printed, or a script."""
    text = "\n".join(lines)
    place = re.search(r"\[   LINE   \] --- (?:\S*/)?(\S+:\d+): error", text)
    for pattern in (
        r"^SUMMARY: (.*)",
        r"^ERROR: (.*)",
        r"(?s)^\[  ERROR   \] --- (?!\[)(.*?)(?=\n\[|\Z)",
        r"^smoke: (?!ended |it takes )(.*)",  # a script's message, else its last step
        r"(?s)^\++ [^\n]*(?!.*^\++ )",
        r"^.*\berror: .*",
        r"(?s)^[^\n]+(?!.*^[^\n]+)",
    ):
        found = re.search(pattern, text, re.MULTILINE)
        if found:
            said = " ".join(found[found.re.groups].split())[:REASON_SHOWN]
            return f"{result}: {said}" + (f" ({place[1]})" if place else "")
    return result


def failed_cases(lines, result):
    """A Failure for each case: that which failed, and that in which the program ended."""
    failures, said, running = [], [], None
    for line in lines:
        case = CASE.match(line)
        word = case[1] if case else None
        if word == "RUN":
            said, running = [], case[2]
        elif word == "FAILED" and running:
            failures.append(Failure(case[2], reason_in(said, "failed"), said))
            said, running = [], None
        elif word:
            said, running = [], None
        else:
            said.append(line)
    if running:
        failures.append(Failure(running, reason_in(said, result), said))
    return failures


def failures_of(name, result, program, output):
    lines = output.splitlines()
    cases = failed_cases(lines, result) if program else []
    if not cases:
        shown = cut(lines, LINES_OF_SCRIPT)
        return [Failure(name, reason_in(shown, result), shown)]
    most = max(LINES_SHOWN // len(cases), 5)
    return [Failure(f"{name} {c.name}", c.reason, cut(c.lines, most)) for c in cases]


# --- logs ----------------------------------------------------------------------------------------


def tests_in(text):
    """(name, result, whether it is a cmocka program, its output) of each test in a log."""
    outputs = collections.defaultdict(list)
    for number, line in re.findall(r"^(\d+): ?(.*)$", text, re.MULTILINE):
        outputs[number].append(line)
        if line.startswith("Test timeout computed"):
            outputs[number].clear()  # before this line the output is ctest's
    commands = dict(COMMAND.findall(text))
    for number, name, result in RESULT.findall(text):
        program = re.search(r"/test_\w+\"?$", commands.get(number, "")) is not None
        yield name, result, program, "\n".join(outputs[number])


def count_test(result, program, output):
    return count_program(output, result) if program else count_script(result)


def is_excusable(result, output):
    """True for a timeout or a wrong result; false for sanitizer reports and crashes."""
    crashed = "Test failed with exception" in output  # cmocka's words
    return result in ("***Failed", "***Timeout") and not crashed and not SANITIZER.search(output)


def passed_again(path):
    """The counts of the tests that passed when they were run again, by their names."""
    again = path.with_name(path.name.replace("test-", "again-", 1))
    text = again.read_text(errors="replace") if again != path and again.exists() else ""
    counts = {name: count_test(*rest) for name, *rest in tests_in(text)}
    return {name: c for name, c in counts.items() if not c["failed"]}


def count_log(path):
    """(counts, what failed, what was unsteady) of one log."""
    tests = list(tests_in(path.read_text(errors="replace"))) if path.exists() else []
    if not tests:
        return Counts(failed=1), [Failure(path.stem, "no test was run", [])], []
    total, failures, unsteady, again = Counts(), [], [], passed_again(path)
    for name, result, program, output in tests:
        counts = count_test(result, program, output)
        if counts["failed"]:
            excused = name in again and is_excusable(result, output)
            told = failures_of(f"{path.stem}: {name}", result, program, output)
            (unsteady if excused else failures).extend(told)
            counts = again[name] if excused else counts
        total += counts
    return total, failures, unsteady


def count_checks(path):
    if not path.exists():
        return Counts(failed=1), [Failure("check", "it has not come to its end", [])], []
    failures = []
    for name in path.read_text().split():
        log = path.with_name(f"check-{name}.txt")
        lines = log.read_text(errors="replace").splitlines()[-LINES_OF_SCRIPT:]
        failures.append(Failure(f"check {name}", reason_in(lines, "failed"), lines))
    return Counts(["failed" if failures else "passed"]), failures, []


def count_argument(argument):
    if argument.startswith("checks:"):
        return count_checks(pathlib.Path(argument.removeprefix("checks:")))
    return count_log(pathlib.Path(argument))


def tell(failures, word):
    for failure in failures:
        print(f"{word} {failure.name}: {failure.reason}")


def main():
    total, failures, unsteady = Counts(), [], []
    for argument in sys.argv[1:]:
        counts, failed, excused = count_argument(argument)
        total += counts
        failures += failed
        unsteady += excused
    for failure in failures + unsteady:
        if failure.lines:
            print(f"--- {failure.name}", *failure.lines, "", sep="\n")
    tell(unsteady, "UNSTEADY")
    if len(unsteady) > UNSTEADY_MAX:
        failures += unsteady
        total["failed"] += len(unsteady)
    tell(failures, "FAILED")
    if unsteady:
        print(f"{len(unsteady)} unsteady: " + ", ".join(u.name for u in unsteady))
    print(", ".join(f"{total[word]} {word}" for word in ("passed", "failed", "skipped")))
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
