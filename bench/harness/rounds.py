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
    """Says on stderr how far a long run is."""

    def __init__(self, steps):
        self.steps, self.done = steps, 0
        self.start = self.said = time.monotonic()
        self.tty = sys.stderr.isatty()

    def step(self, doing):
        now = time.monotonic()
        if self.tty:
            print(f"\r{self.text(now)} {doing:40.40}", end="", file=sys.stderr, flush=True)
        elif now - self.said >= 10:
            print(f"{self.text(now)} {doing}", file=sys.stderr, flush=True)
            self.said = now
        self.done += 1

    def text(self, now):
        left = (now - self.start) * (self.steps / self.done - 1) if self.done else 0
        return f"{100 * self.done // self.steps:3d} %, {left:.0f} s left "

    def close(self):
        if self.tty:
            print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)


def plan(suite, count):
    """(case, competitor) of each round to run, in order; the same order each time."""
    chance = random.Random(1)
    for number in range(count):
        for case in suite.runs():
            if number % case.every == 0:
                runners = suite.runners(case)
                for competitor in chance.sample(runners, len(runners)):
                    yield case, competitor


def measure(suite, folder, count):
    """All answers, by (line of the case, competitor), and failures. Drops failed programs."""
    steps = list(plan(suite, count))
    programs, failures = {}, {}
    answers = collections.defaultdict(list)
    progress = Progress(len(steps))
    try:
        for case, competitor in steps:
            progress.step(f"{case.name}: {competitor.name}")
            name = competitor.name
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
        progress.close()
        for program in programs.values():
            program.close()
    return answers, list(failures.values())
