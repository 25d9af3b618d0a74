# SPDX-License-Identifier: Apache-2.0
"""sum_tests.py [passed:NAME] [failed:NAME] LOG...: sums what the tests in logs of `ctest --verbose`
reported, prints the failed ones and, as its last line, `N passed, N failed, N skipped`. Exits 1 if
any failed. passed: and failed: are results of something that is not in a log.

A cmocka program counts as its test cases, anything else as one. A program that ended without its
closing lines has failed, whatever it returned; so has a log in which no test is.
"""
import collections
import pathlib
import re
import sys

Counts = collections.Counter
OUTPUT_SHOWN = 10000  # of a failed test, from its end

COMMAND = re.compile(r"^(\d+): Test command: (\S+)", re.MULTILINE)
RESULT = re.compile(r"^ *\d+/\d+ Test +#(\d+): (\S+) \.* *(.*?) +[\d.]+ sec", re.MULTILINE)


def number_in(pattern, output):
    """The number that one of cmocka's lines gives, 0 if there is no such line."""
    found = re.search(pattern, output)
    return int(found[1]) if found else 0


def count_program(output, result):
    """A cmocka program. A case whose fixture failed is neither passed nor failed to cmocka, so the
    failed ones are what is left of those it began with."""
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


def tests_in(text):
    """(name, result, whether it is a cmocka program, its output) of each test in a log."""
    outputs = collections.defaultdict(list)
    for number, line in re.findall(r"^(\d+): ?(.*)$", text, re.MULTILINE):
        outputs[number].append(line)
        if line.startswith("Test timeout computed"):
            outputs[number].clear()  # up to here it was ctest that spoke
    commands = dict(COMMAND.findall(text))
    for number, name, result in RESULT.findall(text):
        program = pathlib.Path(commands.get(number, "")).name.startswith("test_")
        yield name, result, program, "\n".join(outputs[number])


def count_log(path):
    """(counts, what failed) of one log."""
    tests = list(tests_in(path.read_text(errors="replace"))) if path.exists() else []
    if not tests:
        return Counts(failed=1), [f"{path.stem}: no test was run"]
    total, failures = Counts(), []
    for name, result, program, output in tests:
        counts = count_program(output, result) if program else count_script(result)
        total += counts
        if counts["failed"]:
            shown = output[-OUTPUT_SHOWN:]
            failures.append(f"{path.stem}: {name}: {result}, {counts['failed']} failed\n{shown}\n")
    return total, failures


def count_argument(argument):
    verdict, _, name = argument.partition(":")
    if verdict in ("passed", "failed"):
        return Counts([verdict]), [f"{name} failed"] * (verdict == "failed")
    return count_log(pathlib.Path(argument))


def main():
    total = Counts()
    for argument in sys.argv[1:]:
        counts, failures = count_argument(argument)
        total += counts
        print("".join(f"{failure}\n" for failure in failures), end="")
    print(", ".join(f"{total[word]} {word}" for word in ("passed", "failed", "skipped")))
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
