# SPDX-License-Identifier: Apache-2.0
"""check_barriers.py BUILD...: fails unless the machine code has the store-load barriers that the
sleep protocol and promises rely on. Each store below is followed by a load that must not overtake
it, and the other side does the reverse (executor/executor.c, executor/promise.c). Tests rarely
notice a weaker order.

x86-64: the store is an xchg, or there is a locked instruction or an mfence. aarch64: the store is
an stlr and the load an ldar, which the processor keeps in order.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import source

# (the file that is compiled, the file of the statement, the statement without its memory order)
STORES = [
    (
        "src/executor/executor.c",
        "src/executor/executor.h",
        "atomic_store_explicit(&executor->next_wakeup, deadline_ns,",
    ),
    ("src/executor/lifecycle.c", None, "atomic_store_explicit(&executor->state, (uint32_t)state,"),
    ("src/executor/promise.c", None, "atomic_store_explicit(&promise->state, DONE,"),
]
LOADS = [
    ("src/executor/executor.c", "src/base/queue.h", "return atomic_load_explicit(&queue->head,"),
    ("src/executor/executor.c", None, "if (when_ns < atomic_load_explicit(&executor->next_wakeup,"),
    ("src/executor/lifecycle.c", None, "next_ns = atomic_load_explicit(&executor->next_wakeup,"),
    ("src/executor/promise.c", None, "if (atomic_load_explicit(&promise->waiters,"),
    ("src/executor/promise.c", None, "while ((state = atomic_load_explicit(&promise->state,"),
]

X86 = re.compile(r"\b(lock|mfence)\b|\bxchg\w*\s.*\(")
STLR = re.compile(r"\bstlr[bh]?\b")
LDAR = re.compile(r"\bldar[bh]?\b")
LOCATION = re.compile(r"^(/.*?):(\d+)(?: \(discriminator \d+\))?$")


def compile_commands(build):
    commands = json.loads((build / "compile_commands.json").read_text())
    return {str(pathlib.Path(c["file"]).relative_to(source.ROOT)): c for c in reversed(commands)}


def disassemble(entry, output):
    """Compiles with the build's own options; (file, line) -> the instructions of that line."""
    command = shlex.split(entry["command"])
    command[command.index("-o") + 1] = output
    subprocess.run(command + ["-g"], cwd=entry["directory"], check=True)
    prefix = "aarch64-linux-gnu-" if is_aarch64(entry) else ""
    listing = subprocess.run(
        [f"{prefix}objdump", "-dl", "--no-show-raw-insn", output],
        check=True, capture_output=True, text=True,
    ).stdout
    found, place = {}, None
    for line in listing.splitlines():
        location = LOCATION.match(line)
        if location:
            place = (pathlib.Path(location[1]).resolve(), int(location[2]))
        elif "\t" in line:
            found.setdefault(place, []).append(line.split("\t", 1)[1].strip())
    return found


def is_aarch64(entry):
    return "aarch64" in shlex.split(entry["command"])[0] or "aarch64" in entry["directory"]


def line_of(path, statement):
    """The only line that the statement begins on; None if there is none, or are several."""
    lines = (source.ROOT / path).read_text().splitlines()
    numbers = [i for i, line in enumerate(lines, 1) if statement in line]
    return numbers[0] if len(numbers) == 1 else None


def problem_of(code, row, required, what):
    path = row[1] or row[0]
    number = line_of(path, row[2])
    if number is None:
        return f"{path}: expected exactly one line with `{row[2]}`"
    instructions = code.get(((source.ROOT / path).resolve(), number), [])
    if any(required.search(text) for text in instructions):
        return None
    return f"{path}:{number}: no {what} in its machine code: {'; '.join(instructions) or 'nothing'}"


def problems_of(build):
    commands, problems = compile_commands(build), []
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted({row[0] for row in STORES}):
            entry = commands[path]
            code = disassemble(entry, f"{folder}/object.o")
            arm = is_aarch64(entry)
            for row in (r for r in STORES if r[0] == path):
                problems.append(problem_of(code, row, STLR if arm else X86,
                                           "stlr" if arm else "xchg, lock or mfence"))
            for row in (r for r in LOADS if r[0] == path and arm):
                problems.append(problem_of(code, row, LDAR, "ldar"))
    return [f"{build.name}: {p}" for p in problems if p]


def main():
    builds = [(source.ROOT / name).resolve() for name in sys.argv[1:]]
    return source.report([p for build in builds for p in problems_of(build)])


if __name__ == "__main__":
    sys.exit(main())
