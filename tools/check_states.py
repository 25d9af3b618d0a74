# SPDX-License-Identifier: Apache-2.0
"""check_states.py: fails if a struct of src/channel, src/tls or src/protocol has more than six
booleans. Flags that answer one question, such as what the input does, are one enum, with its
transitions at the top of the file. Options, which do not change, are excepted.
"""
import re
import sys

import source

FOLDERS = ("src/channel", "src/tls", "src/protocol")
MAX = 6

# Structs that have more, and how many. An entry that is no longer true fails, too.
KNOWN = {}

STRUCT = re.compile(r"\bstruct\s*(\w*)\s*\{")
BOOLEANS = re.compile(r"^\s*(?:_Atomic\s+)?(?:atomic_)?bool\s+([^;(]*);", re.MULTILINE)


def body_at(text, start):
    """The text from the brace before start to the one that closes it, without nested structs."""
    depth, end = 1, start
    while depth > 0:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return text[start : end - 1], text[end:].split(";")[0].strip()


def structs(text):
    """The name and the count of booleans of each struct."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    for match in STRUCT.finditer(text):
        body, alias = body_at(text, match.end())
        body = re.sub(r"\{[^{}]*\}", "", body)
        count = sum(names.count(",") + 1 for names in BOOLEANS.findall(body))
        yield match.group(1) or alias, count


def main():
    problems, seen = [], {}
    for folder in FOLDERS:
        for path in sorted((source.ROOT / folder).rglob("*.[ch]")):
            for name, count in structs(path.read_text()):
                if count <= MAX or name.endswith("_options"):
                    continue
                seen[name] = count
                if KNOWN.get(name) != count:
                    relative = path.relative_to(source.ROOT)
                    problems.append(f"{relative}: {name} has {count} booleans, not at most {MAX}")
    for name in KNOWN.keys() - seen.keys():
        problems.append(f"tools/check_states.py: {name} has no more than {MAX} booleans any more")
    return source.report(problems)


if __name__ == "__main__":
    sys.exit(main())
