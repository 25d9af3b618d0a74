# SPDX-License-Identifier: Apache-2.0
"""The results of a run of all suites as a JSON file, which the page is generated from."""
import json
import shutil
import subprocess

from harness.suite import ROOT

# What is measured besides weir: the name on the page, Debian's package, and the name of pkg-config.
PEERS = [
    ("liburing", "liburing2", "liburing"),
    ("libuv", "libuv1", "libuv"),
    ("libev", "libev4", None),
    ("libevent", "libevent-core-2.1-7", "libevent"),
    ("Netty", "libnetty-java", None),
    ("OpenSSL", "libssl3", "openssl"),
    ("nginx", "nginx-light", None),
    ("h2o", "h2o", None),
    ("Node.js", "nodejs", None),
    ("jemalloc", "libjemalloc2", "jemalloc"),
    ("mimalloc", "libmimalloc2.0", None),
]

WS_PACKAGE = ROOT / "build/npm/node_modules/ws/package.json"  # of tools/npm_packages.py


def answer(*command):
    """The first line that a command prints, "" if it fails or is not installed."""
    if not shutil.which(command[0]):
        return ""
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.split("\n")[0] if done.returncode == 0 else ""


def upstream(version):
    """A Debian version without the epoch and Debian's own part."""
    return version.split(":")[-1].split("+")[0].rsplit("-", 1)[0]


def versions():
    """The version of each peer that is installed."""
    found = {}
    for name, package, module in PEERS:
        version = upstream(answer("dpkg-query", "--show", "--showformat=${Version}", package))
        if not version and module:
            version = answer("pkg-config", "--modversion", module)
        if version:
            found[name] = version
    if WS_PACKAGE.exists():
        found["ws"] = json.loads(WS_PACKAGE.read_text())["version"]
    java = answer("java", "--version").split()
    return {**found, "Java": java[1]} if java else found


def short(value):
    """A number to four digits: more would only be noise, and a larger file."""
    return float(f"{value:.4g}")


def result_of(result):
    """A competitor's result in one case, without its single rounds."""
    kept = {key: short(result[key]) for key in ("best", "p25", "median", "p75")}
    kept["rounds"] = len(result["rounds"])
    kept["ratios"] = {name: short(ratio) for name, ratio in result["ratios"].items()}
    return {**kept, **{key: result[key] for key in ("must", "aim") if result.get(key)}}


def suite_of(suite, cases):
    competitors = [{"name": c.name, "ours": c.ours} for c in suite.competitors]
    kept = [
        {**case, "results": {name: result_of(r) for name, r in case["results"].items()}}
        for case in cases
    ]
    about = {"name": suite.name, "title": suite.title, "limit": suite.limit}
    return {**about, "competitors": competitors, "cases": kept}


def collect(measured, about, count, seconds, command, failures):
    """
    The content of the file; `measured` has (suite, cases) of each suite, `failures` a sentence for
    each peer that failed.
    """
    return {
        "command": command,
        "rounds": count,
        "seconds": round(seconds),
        "failures": failures,
        "machine": about,
        "versions": versions(),
        "suites": [suite_of(suite, cases) for suite, cases in measured],
    }


def replaced(old, new):
    """The results of all suites, those of the suites in `new` replaced."""
    suites = {suite["name"]: suite for suite in old["suites"] + new["suites"]}
    again = {suite["name"] for suite in new["suites"]}
    past = [text for text in old["failures"] if text.split(":")[0] not in again]
    kept = [c for c in old["command"].split("; ") if not again & set(c.split()[2:3])]
    return {
        **old,
        "command": "; ".join([*kept, new["command"]]),
        "seconds": old["seconds"] + new["seconds"],
        "failures": past + new["failures"],
        "versions": new["versions"],
        "suites": [suites[name] for name in sorted(suites)],
    }


def save(path, results):
    """One line per result, so that a change of the file can be read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for suite in results["suites"]:
        for case in suite["cases"]:
            for name, result in case["results"].items():
                lines.append(json.dumps(result))
                case["results"][name] = f"@{len(lines) - 1}@"
    text = json.dumps(results, indent=1)
    for number, line in enumerate(lines):
        text = text.replace(f'"@{number}@"', line, 1)
    path.write_text(text + "\n")


def load(path):
    return json.loads(path.read_text())
