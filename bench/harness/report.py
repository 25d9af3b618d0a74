# SPDX-License-Identifier: Apache-2.0
"""Turns the answers of all rounds into statistics, a table and a JSON file.

Every value is a cost. A ratio is the other's cost divided by ours: how many times as fast ours is.
"""
import datetime
import json
import os
import platform
import re
import statistics

from harness import suite as suites

SMALLEST = 0.001  # what a program reports as 0 is less than this
UNITS = {"bytes": "B", "base": "B", "share": "us/s"}  # of values; all others are ns
RATIOS = {"best": "", "median": " (ratios of the medians)", "round": " (median of the ratios)"}


def spread(values):
    """Best, quartiles and all rounds of one competitor in one case."""
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if values[1:] else values * 3
    p25, median, p75 = quartiles
    return {"best": min(values), "p25": p25, "median": median, "p75": p75, "rounds": values}


def times(other, own):
    return max(other, SMALLEST) / max(own, SMALLEST)


def ratio(by, other, own):
    if by == "round":
        return statistics.median(map(times, other["rounds"], own["rounds"]))
    return times(other[by], own[by])


def judge(targets, result, more):
    """
    Whether each target of one of our results is met: a bound of its `best` or `median`; or by the
    name of another, how many times as fast it must be, or "+N": how much more it may cost.
    """
    verdicts = []
    for of, bound in targets.items():
        if of in ("best", "median"):
            verdicts.append({"of": of, "at_most": bound, "met": result[of] <= bound})
        elif of in more and isinstance(bound, str):
            verdicts.append({"of": of, "more": bound, "met": more[of] <= float(bound)})
        elif of in more:
            verdicts.append({"of": of, "at_least": bound, "met": result["ratios"][of] >= bound})
    return verdicts


def figures(suite, answers):
    """What the suite's cases have come to."""
    cases = []
    for case in suite.cases:
        results = {}
        for competitor in suite.runners(case):
            found = answers.get((case.run, competitor.name), ())
            values = [a[case.value] for a in found if case.value in a]  # not without a request
            if values:
                results[competitor.name] = spread(values)
        compare(suite, case, results)
        fields = {"name": case.name, "title": case.title, "run": case.run, "by": case.by}
        cases.append({**fields, "unit": UNITS.get(case.value, "ns"), "results": results})
    return cases


def compare(suite, case, results):
    """Adds the ratios and, to ours, the targets."""
    cost = "best" if case.by == "best" else "median"
    for competitor in suite.runners(case):
        result = results.get(competitor.name)
        if result:
            others = {name: r for name, r in results.items() if name != competitor.name}
            more = {name: result[cost] - other[cost] for name, other in others.items()}
            result["ratios"] = {n: ratio(case.by, other, result) for n, other in others.items()}
            if competitor.ours:
                for kind, targets in (("must", case.must), ("aim", case.aim)):
                    wanted = suites.targets_of(targets, competitor)
                    result[kind] = judge(wanted, result, more)


def machine(compiler):
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": model[1] if model else platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_gib": round(pages / 2**30),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "compiler": compiler,
        "load": os.getloadavg()[0],
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    }


def number(value):
    return f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def targets(verdicts):
    """Targets as the table shows them."""
    cells = []
    for v in verdicts:
        if "at_most" in v:
            bound = f"{v['of']} {v['at_most']}"
        else:
            bound = f"{v['more']} {v['of']}" if "more" in v else f"{v['at_least']}x {v['of']}"
        cells.append(f"{bound} {'met' if v['met'] else 'MISSED'}")
    return ", ".join(cells)


def row(suite, name, result):
    """A competitor's line of the table, as cells."""
    quartiles = f"{number(result['p25'])}..{number(result['p75'])}"
    cells = [f"  {name}", number(result["best"]), number(result["median"]), quartiles]
    for peer in suite.peers():
        faster = result["ratios"].get(peer.name)
        shown = faster and ("must" in result or peer.name == suite.limit)
        cells.append(f"{faster:.2f}x" if shown else "")
    return cells + [targets(result.get("must", ())), targets(result.get("aim", ()))]


def aligned(rows):
    """Rows of cells as lines: numbers to the right, the name and the two targets to the left."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for name, *numbers, must, aim in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:])]
        yield "  ".join([f"{name:{widths[0]}}", *cells, f"{must:{widths[-2]}}", aim]).rstrip()


def table(suite, cases, about, count):
    """The report as lines."""
    names = [peer.name for peer in suite.peers()]
    rows = [[f"  {suite.unit} each", "best", "median", "p25..p75", *names, "must", "aim"]]
    titles = {}
    for case in cases:
        titles[len(rows)] = f"{case['name']}: {case['title']}{RATIOS[case['by']]}"
        rows += [row(suite, name, result) for name, result in case["results"].items()]
    yield suite.title
    yield f"{about['cpu']}, {about['cpus']} CPUs, load {about['load']:.1f}, {about['compiler']}"
    yield f"{count} rounds, interleaved; 2.00x = twice as fast as the one named above, by the bests"
    yield ""
    for index, line in enumerate(aligned(rows)):
        if index in titles:
            yield titles[index]
        yield line


def save(path, suite, cases, about, count):
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"suite": suite.name, "unit": suite.unit, "machine": about, "rounds": count}
    path.write_text(json.dumps({**content, "cases": cases}, indent=1) + "\n")
