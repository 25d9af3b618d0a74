# SPDX-License-Identifier: Apache-2.0
"""check_snippets.py LIBRARY: fails when a ```c block of README.md or docs/ does not compile against
the public headers, or is no longer the part of the example it says it shows.

A block with main() is compiled and linked; any other is compiled as declarations or else as the
body of a function. A block below `<!-- from: examples/x/main.c -->` must be that file's text or one
of its parts between `/* doc:begin name */` and `/* doc:end */`, without their indentation.
"""
import re
import subprocess
import sys
import textwrap

import source
from source import INCLUDE, ROOT, shown

BLOCK = re.compile(
    r"(?:<!--\s*from:\s*(?P<file>\S+)\s*-->\s*)?^```c\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
REGION = re.compile(
    r"^[ ]*/\* doc:begin \S+ \*/\n(.*?)^[ ]*/\* doc:end \*/\n", re.MULTILINE | re.DOTALL
)
LICENCE = re.compile(r"/\* SPDX-License-Identifier: .* \*/\n")
PRELUDE = "#include <errno.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <weir/weir.h>\n"
# A snippet shows a part of something: what it declares need not be used in it.
TOLERANT = ["-Wno-unused", "-Wno-shadow"]
FLAGS = ["-std=c11", "-D_GNU_SOURCE", *source.WARNINGS, *TOLERANT, f"-I{INCLUDE}"]
COMPILE = ["gcc", *FLAGS, "-fsyntax-only", "-x", "c", "-"]
BODY = """void snippet(void);
void snippet(void)
{
%s
}
"""


def parts(file):
    """The texts that a page may show of an example: all of it, or a marked region."""
    text = (ROOT / file).read_text()
    return [LICENCE.sub("", text), *map(textwrap.dedent, REGION.findall(text))]


def errors(command, text):
    """What the compiler says of this text; empty if it is content."""
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr or "failed"


def compile_errors(code, library):
    if re.search(r"\bmain\(", code):
        link = ["gcc", *FLAGS, "-x", "c", "-", "-x", "none", library, "-pthread", "-o", "/dev/null"]
        return errors(link, code)
    at_file_scope = errors(COMPILE, PRELUDE + code)
    return at_file_scope and errors(COMPILE, PRELUDE + BODY % code)


def problem(block, library):
    """What is wrong with a block, or the empty string."""
    file = block["file"]
    if not file:
        return compile_errors(block["code"], library)
    if not (ROOT / file).is_file():
        return f"{file} does not exist"
    return "" if LICENCE.sub("", block["code"]) in parts(file) else f"is no part of {file} any more"


def main():
    library = sys.argv[1]
    problems = []
    for page in [ROOT / "README.md", *source.files(".md", under=["docs"])]:
        text = page.read_text() if page.exists() else ""
        for block in BLOCK.finditer(text):
            line = text.count("\n", 0, block.start("code"))
            found = problem(block, library)
            problems += [f"{shown(page)}:{line}: {found}"] if found else []
    return source.report(problems)


if __name__ == "__main__":
    sys.exit(main())
