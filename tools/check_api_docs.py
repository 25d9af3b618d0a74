# SPDX-License-Identifier: Apache-2.0
"""Fails when a public declaration does not end its comment with its contract:

    Thread: any.  Takes: msg.  Keeps: done.  Fails: WEIR_ECLOSED, -ENOMEM.

`Thread:` begins the last line, or one of the two before it when the contract is long.
"""
import re
import sys

import source

LABEL = re.compile(r"(?:^|  )([A-Z][a-z]+(?: until [^:.]+)?):")
KNOWN = re.compile(r"Thread|Takes|Keeps|Gives|Fails|Lends until .+")
LINES_MAX = 3


def problem(declaration):
    """What is wrong with a declaration's comment, or None."""
    if not declaration.comment:
        return "has no comment just above it"
    starts = [n for n, line in enumerate(declaration.comment) if line.startswith("Thread: ")]
    if not starts or len(declaration.comment) - starts[-1] > LINES_MAX:
        return "does not end with a contract line (Thread: ...)"
    if len(declaration.comment) == 1:
        return "says nothing but its contract"
    contract = "  ".join(declaration.comment[starts[-1] :])
    if not contract.endswith("."):
        return "its contract does not end with a full stop"
    unknown = [label for label in LABEL.findall(contract) if not KNOWN.fullmatch(label)]
    return f"its contract has an unknown word: {unknown[0]}" if unknown else None


def main():
    found = ((declaration, problem(declaration)) for declaration in source.api())
    return source.report([f"{declaration} {text}" for declaration, text in found if text])


if __name__ == "__main__":
    sys.exit(main())
