# SPDX-License-Identifier: Apache-2.0
"""Runs the rounds of a suite: short, many, and the competitors of a case right after one another.

The host changes its speed every second or so, and whoever else uses it comes and goes. Rounds of
some milliseconds that take turns put all competitors through the same weather; a whole pass over
the cases lies between two rounds of one, so that each case is tried all along the run.
"""
import collections
import json
import random
import selectors
import subprocess
import sys
import time

ANSWER_SECONDS_MAX = 120


class Failure(Exception):
    """A program that did not answer."""


class Program:
    """A program of a suite, alive from its first round to its last."""

    def __init__(self, path):
        self.name = path.name
        self.process = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.answers = selectors.DefaultSelector()
        self.answers.register(self.process.stdout, selectors.EVENT_READ)

    def round(self, line):
        """Runs one round; what was measured, by name."""
        try:
            self.process.stdin.write(line + "\n")
            answered = self.answers.select(ANSWER_SECONDS_MAX)
            return json.loads(self.process.stdout.readline()) if answered else self.give_up(line)
        except (BrokenPipeError, json.JSONDecodeError):
            raise Failure(f"{self.name} failed in '{line}'") from None

    def give_up(self, line):
        self.process.kill()
        raise Failure(f"{self.name} did not answer '{line}' in {ANSWER_SECONDS_MAX} s")

    def close(self):
        """The end of its input ends the program."""
        self.answers.close()
        self.process.stdout.close()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()


class Progress:
    """Reports on stderr how far a run of some suites is: one line, rewritten on a terminal."""

    SILENCE = 15  # seconds between lines where there is no terminal

    def __init__(self, expected):
        self.expected, self.done = expected, 0  # in seconds by expected_seconds
        self.start = time.monotonic()
        self.next_line = self.start
        self.tty = sys.stderr.isatty()
        self.width = 0

    def step(self, doing, expected):
        """Called before each round; `expected` is its duration."""
        now = time.monotonic()
        if self.tty:
            line = self.text(now, doing)
            print(f"\r{line:{self.width}}", end="", file=sys.stderr, flush=True)
            self.width = len(line)
        elif now >= self.next_line:
            print(self.text(now, doing), file=sys.stderr, flush=True)
            self.next_line = now + self.SILENCE
        self.done += expected

    def text(self, now, doing):
        elapsed = now - self.start
        left = elapsed * (self.expected / self.done - 1) if self.done else self.expected
        percent = 100 * self.done / self.expected
        return f"{percent:3.0f} %  {clock(elapsed)} elapsed, {clock(left)} left  {doing}"

    def clear(self):
        if self.tty:
            print("\r" + " " * self.width + "\r", end="", file=sys.stderr, flush=True)


def clock(seconds):
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


def expected_seconds(case):
    """A guess at the duration of a round, which Progress corrects by what has passed."""
    settings = dict(word.split("=") for word in case.run.split()[1:])
    measured = int(settings.get("ms", 200)) + int(settings.get("warmup_ms", 40))
    connections = int(settings.get("connections", settings.get("clients", 0)))
    if connections:  # echoes; opening and closing a connection takes 40 us
        return measured / 1000 + connections * 40e-6
    return 0.05 + int(settings.get("timers", 0)) * 1e-6


def plan(suite, count):
    """(round, case, competitor) of all that is to run, in order; the same order each time."""
    chance = random.Random(1)
    for number in range(count):
        for case in suite.runs():
            if number % case.every == 0:
                runners = suite.runners(case)
                for competitor in chance.sample(runners, len(runners)):
                    yield number, case, competitor


def expected_of(suite, count):
    """The duration of a suite in seconds, as Progress counts them."""
    return sum(expected_seconds(case) for _, case, _ in plan(suite, count))


def measure(suite, folder, count, progress):
    """
    All answers, by (line of the case, competitor), and failures, by competitor. A program that
    fails takes no further part.
    """
    programs, failures = {}, {}
    answers = collections.defaultdict(list)
    try:
        for number, case, competitor in plan(suite, count):
            name = competitor.name
            doing = f"{suite.name}/{case.name}, round {number + 1} of {count}: {name}"
            progress.step(doing, expected_seconds(case))
            if name in failures:
                continue
            try:
                if name not in programs:
                    programs[name] = Program(folder / competitor.program)
                line = f"{case.run} {competitor.settings}".strip()
                answers[case.run, competitor.name].append(programs[name].round(line))
            except Failure as failure:
                failures[name] = str(failure)
    finally:
        progress.clear()
        for program in programs.values():
            program.close()
    return answers, failures
