# SPDX-License-Identifier: Apache-2.0
"""Fails when a file includes a layer that layers.txt does not allow, or uses a system call or
header that system.txt reserves for other files, and when weir/weir.h does not include exactly the
public headers of libweir.
"""
import fnmatch
import re
import sys

import source
from source import INCLUDE, ROOT, SRC, shown

INCLUDE_LINE = re.compile(r'\s*#\s*include\s+([<"])([^">]+)[">]')


def table(name):
    """The rows of a table in tools/, without comments."""
    lines = (line.split("#")[0].strip() for line in open(ROOT / "tools" / name))
    return [line for line in lines if line]


class Layers:
    """layers.txt, and the layer of each file."""

    def __init__(self):
        self.allowed = {}
        self.problems = []
        for layer, *below in map(str.split, table("layers.txt")):
            early = [name for name in below if name not in self.allowed and layer != "base"]
            self.problems += [f"tools/layers.txt: {layer} names {l} before its row" for l in early]
            self.allowed[layer] = {layer, *below}
        self.homes = {}
        for layer, *headers in map(str.split, table("headers.txt")):
            for name in headers:
                self.homes[f"weir/{name}.h"] = layer
                if not (INCLUDE / f"weir/{name}.h").exists():
                    self.problems.append(f"tools/headers.txt: there is no weir/{name}.h")

    def of_path(self, path):
        """The layer of a path relative to src/, or None."""
        return max((l for l in self.allowed if path.startswith(l + "/")), key=len, default=None)

    def of_include(self, name):
        """The layer of "layer/x.h" or <weir/x.h>, or None."""
        if not name.startswith("weir/"):
            return self.of_path(name)
        return self.homes.get(name)

    def of_file(self, file):
        root = SRC if SRC in file.parents else INCLUDE
        return self.of_include(file.relative_to(root).as_posix())


def includes(file):
    """(line number, bracket, name) of each include."""
    for number, line in enumerate(file.open(), 1):
        found = INCLUDE_LINE.match(line)
        if found:
            yield number, found[1], found[2]


def include_problem(layers, here, bracket, name):
    """The reason why a file of the layer `here` may not include this, or None."""
    if bracket == "<" and not name.startswith("weir/"):
        return None  # a system header: system.txt decides
    if name == "weir/weir.h":
        return "only users include <weir/weir.h>"
    if bracket == '"' and "/" not in name:
        return f'"{name}" has no layer; write "layer/{name}"'
    if not (INCLUDE if bracket == "<" else SRC).joinpath(name).exists():
        return f"{name} does not exist, or is included with the wrong brackets"
    layer = layers.of_include(name)
    if layer not in layers.allowed[here]:
        return f"{here} may not include {name}, which belongs to {layer or 'no layer'}"
    return None


def check_includes(layers, file):
    here = layers.of_file(file)
    if here is None:
        return [f"{shown(file)}: not in tools/headers.txt"]
    found = ((n, include_problem(layers, here, b, name)) for n, b, name in includes(file))
    return [f"{shown(file)}:{number}: {problem}" for number, problem in found if problem]


class Rule:
    """One row of system.txt."""

    def __init__(self, row):
        names, _, places = row.partition(":")
        self.places = places.split()
        words = [re.escape(word).replace(r"\*", "[^ >(]*") for word in names.split()]
        headers = [word for word in words if word.startswith("<")]
        calls = [word for word in words if not word.startswith("<")]
        self.header = re.compile("|".join(headers) or r"(?!)")
        # x.free(...) and x->free(...) are tables of ours, weir__free(...) is another name
        self.call = re.compile(r"(?<![\w.>])(%s)\s*\(" % ("|".join(calls) or r"(?!)"))

    def allows(self, layer, file):
        path = file.relative_to(SRC).as_posix() if SRC in file.parents else f"{layer}/"
        return any(
            path.startswith(place + "/") or fnmatch.fnmatch(path, place) for place in self.places
        )


def check_system(rules, layers, file):
    code = source.code_only(file.read_text()).split("\n")
    used = [(n, f"<{name}>") for n, bracket, name in includes(file) if bracket == "<"]
    problems = []
    for rule in rules:
        if rule.allows(layers.of_file(file), file):
            continue
        hits = [(n, name) for n, name in used if rule.header.fullmatch(name)]
        for number, line in enumerate(code, 1):
            hits += [(number, f"{call[1]}()") for call in rule.call.finditer(line)]
        where = f"is reserved for: {' '.join(rule.places)} (tools/system.txt)"
        problems += [f"{shown(file)}:{number}: {name} {where}" for number, name in hits]
    return problems


def check_umbrella():
    umbrella = INCLUDE / "weir/weir.h"
    if not umbrella.exists():
        return ["include/weir/weir.h is missing"]
    headers = [h for h in source.public_headers() if source.library_of(h) == "weir"]
    public = {f"weir/{header.name}" for header in headers}
    included = {name for _, _, name in includes(umbrella)}
    problems = [f"include/weir/weir.h lacks <{name}>" for name in sorted(public - included)]
    problems += [f"include/weir/weir.h may not have <{name}>" for name in included - public]
    lines = source.code_only(umbrella.read_text()).split("\n")
    shape = re.compile(r"$|#include|#(ifndef|define) WEIR_WEIR_H$|#endif")
    if not all(shape.match(line.rstrip()) for line in lines):
        problems.append("include/weir/weir.h holds more than includes")
    return problems


def main():
    layers = Layers()
    rules = [Rule(row) for row in table("system.txt")]
    problems = layers.problems + check_umbrella()
    for file in source.files(".c", ".h", under=["src"]) + source.public_headers():
        problems += check_includes(layers, file)
        problems += check_system(rules, layers, file)
    return source.report(problems)


if __name__ == "__main__":
    sys.exit(main())
