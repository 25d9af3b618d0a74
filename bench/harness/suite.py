# SPDX-License-Identifier: Apache-2.0
"""A suite: cases, and the competitors that run them; read from bench/<name>/suite.toml."""
import dataclasses
import fnmatch
import pathlib
import tomllib

BENCH = pathlib.Path(__file__).resolve().parent.parent
ROOT = BENCH.parent


@dataclasses.dataclass(frozen=True)
class Competitor:
    name: str
    program: str
    settings: str = ""  # added to each line of its rounds
    only: str = "*"  # the cases that it takes part in: names with * in them
    ours: bool = False

    def takes_part_in(self, case):
        return any(fnmatch.fnmatch(case.name, pattern) for pattern in self.only.split())


@dataclasses.dataclass
class Case:
    name: str
    title: str
    run: str = ""  # the line that its rounds are
    of: str = ""  # or the case whose rounds it takes another value from
    value: str = "ns"
    by: str = "best"  # what ratios are made of; or "median", or "round": the median of the rounds'
    every: int = 1  # runs in each n-th round only
    quick: bool = True  # false: too long for a run that is for a look
    must: dict = dataclasses.field(default_factory=dict)  # targets of ours, see report.judge,
    aim: dict = dataclasses.field(default_factory=dict)  # or by name those of one of ours


def targets_of(targets, competitor):
    """Those of a case's targets that hold for a competitor."""
    by_name = any(isinstance(target, dict) for target in targets.values())
    return targets.get(competitor.name, {}) if by_name else targets


@dataclasses.dataclass
class Suite:
    name: str
    title: str
    unit: str
    limit: str
    competitors: list
    cases: list

    def runners(self, case):
        """The competitors that take part in a case."""
        return [c for c in self.competitors if c.takes_part_in(case)]

    def runs(self):
        """The cases that have rounds of their own: those that share a line have one for all."""
        return list({case.run: case for case in reversed(self.cases)}.values())[::-1]

    def peers(self):
        return [c for c in self.competitors if not c.ours]


def names():
    return sorted(file.parent.name for file in BENCH.glob("*/suite.toml"))


def resolve(cases):
    """Gives each case that is `of` another that one's rounds."""
    by_name = {case.name: case for case in cases}
    for case in cases:
        if case.of:
            rounds = by_name[case.of]
            case.run, case.every, case.quick = rounds.run, rounds.every, rounds.quick


def load(name, pattern="*"):
    """The suite, with those of its cases whose names match."""
    with open(BENCH / name / "suite.toml", "rb") as file:
        described = tomllib.load(file)
    competitors = [Competitor(**row) for row in described.pop("competitor")]
    cases = [Case(**row) for row in described.pop("case")]
    resolve(cases)
    cases = [case for case in cases if fnmatch.fnmatch(case.name, pattern)]
    return Suite(name, competitors=competitors, cases=cases, **described)
