# SPDX-License-Identifier: Apache-2.0
"""check_snippets.py LIBRARY...: fails when a ```c block of README.md or docs/ does not compile
against the public headers, is not run, or differs from the part of the file that it shows.

A block with main() is compiled, linked and run: it must exit with 0, by itself or after SIGTERM.
A block after `<!-- from: FILE -->` is that file's text or one of its parts between
`/* doc:begin NAME */` and `/* doc:end */`, unindented; `<!-- from: FILE NAME -->` selects the part.
The tests run those files, so docs/guide allows nothing else except `<!-- with: libuv -->`: code of
another library, compiled against it. On other pages a block may also be declarations or the body of
a function, which are compiled only. ```java blocks use Netty and are compiled together, as classes
or as the body of a method.

check_snippets.py --update copies the named parts into the pages.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import textwrap

import source
from source import INCLUDE, ROOT, shown

BLOCK = re.compile(
    r"(?:<!--\s*from:\s*(?P<file>\S+)(?:\s+(?P<part>\S+))?\s*-->\s*"
    r"|<!--\s*with:\s*(?P<other>\S+)\s*-->\s*)?"
    r"^```c(?:pp)?\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
REGION = re.compile(
    r"^[ ]*/\* doc:begin (\S+) \*/\n(.*?)^[ ]*/\* doc:end \*/\n", re.MULTILINE | re.DOTALL
)
LICENCE = re.compile(r"/\* SPDX-License-Identifier: .* \*/\n")
PRELUDE = (
    "#include <errno.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
    "#include <weir/weir.h>\n#include <weir/tls.h>\n"
    "#include <weir/http_client.h>\n#include <weir/http_files.h>\n"
)
OTHERS = {
    "libuv": "#include <stdio.h>\n#include <stdlib.h>\n#include <uv.h>\n",
    "libevent": "#include <event2/buffer.h>\n#include <event2/bufferevent.h>\n"
    "#include <event2/event.h>\n#include <event2/listener.h>\n#include <unistd.h>\n",
}
JAVA = re.compile(r"^```java\n(.*?)^```$", re.MULTILINE | re.DOTALL)
JAVA_JARS = "/usr/share/java/*"
JAVA_FILE = """import io.netty.bootstrap.*;
import io.netty.buffer.*;
import io.netty.channel.*;
import io.netty.channel.embedded.*;
import io.netty.channel.socket.*;
import io.netty.channel.socket.nio.*;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
%s
"""
JAVA_METHOD = """
class Snippet%d {
    void snippet(ChannelHandlerContext ctx, EventLoopGroup boss, EventLoopGroup workers,
                 AtomicInteger beats) throws Exception {
%s    }
}
"""
# A snippet is a fragment: its declarations need not be used.
TOLERANT = ["-Wno-unused", "-Wno-shadow"]
FLAGS = ["-std=c11", "-D_GNU_SOURCE", *source.WARNINGS, *TOLERANT, f"-I{INCLUDE}"]
COMPILE = ["gcc", *FLAGS, "-fsyntax-only", "-x", "c", "-"]
BODY = """void snippet(void);
void snippet(void)
{
%s
}
"""
SERVES_SECONDS = 1
ENDS_SECONDS = 20


def parts(file):
    """name -> text of the parts of a file; the empty name is the whole file."""
    text = (ROOT / file).read_text()
    regions = {name: textwrap.dedent(code) for name, code in REGION.findall(text)}
    return {"": LICENCE.sub("", text), **regions}


def errors(command, text):
    """The compiler's errors for this text; empty if it compiles."""
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr or "failed"


def alone():
    """Runs programs in a network namespace of their own where possible, so that ports are free."""
    command = ["unshare", "--net", "--map-root-user"]
    tried = subprocess.run([*command, "true"], capture_output=True)
    return command if tried.returncode == 0 else []


def run_errors(program, libraries):
    path = {**os.environ, "LD_LIBRARY_PATH": os.path.dirname(libraries[0])}
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen([*alone(), program], env=path, **pipe) as process:
        try:
            output, _ = process.communicate(timeout=SERVES_SECONDS)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=ENDS_SECONDS)
        code = process.returncode
    return f"ended with {code}: {output}" if code else ""


def program_errors(code, libraries):
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/program"
        link = ["gcc", *FLAGS, "-x", "c", "-", "-x", "none", *libraries, "-pthread", "-o", program]
        return errors(link, code) or run_errors(program, libraries)


def compile_errors(code):
    at_file_scope = errors(COMPILE, PRELUDE + code)
    return at_file_scope and errors(COMPILE, PRELUDE + BODY % code)


def java_errors(text):
    """What javac says of a page's Java, all of it as one file."""
    blocks = JAVA.findall(text)
    classes = [b if b.startswith("class ") else JAVA_METHOD % (n, b) for n, b in enumerate(blocks)]
    if not blocks:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "Snippets.java"
        file.write_text(JAVA_FILE % "".join(classes))
        return errors(["javac", "-cp", JAVA_JARS, "-d", folder, str(file)], "")


def shown_errors(block):
    """What is wrong with a block that shows a file."""
    file, part, code = block["file"], block["part"], LICENCE.sub("", block["code"])
    if not (ROOT / file).is_file():
        return f"{file} does not exist"
    known = parts(file)
    wanted = known.values() if part is None else [known.get(part)]
    return "" if code in wanted else f"is no part of {file} any more"


def problem(page, block, libraries):
    """What is wrong with a block, or the empty string."""
    if block["file"]:
        return shown_errors(block)
    if block["other"]:
        return errors(COMPILE, OTHERS[block["other"]] + block["code"])
    if re.search(r"\bmain\(", block["code"]):
        return program_errors(block["code"], libraries)
    if shown(page).startswith("docs/guide/"):
        return "is not run: show it from a test or an example"
    return compile_errors(block["code"])


def pages():
    return [ROOT / "README.md", *source.files(".md", under=["docs"])]


def update():
    """Brings the blocks that name their part up to date."""

    def renewed(block):
        text = block[0]
        if block["part"] is None:
            return text
        code = parts(block["file"])[block["part"]]
        return text[: block.start("code") - block.start()] + code + "```"

    for page in pages():
        page.write_text(BLOCK.sub(renewed, page.read_text()))
    return 0


def main():
    if sys.argv[1] == "--update":
        return update()
    libraries = [os.path.abspath(path) for path in sys.argv[1:]]
    problems = []
    for page in pages():
        text = page.read_text()
        for block in BLOCK.finditer(text):
            line = text.count("\n", 0, block.start("code"))
            found = problem(page, block, libraries)
            problems += [f"{shown(page)}:{line}: {found}"] if found else []
        found = java_errors(text)
        problems += [f"{shown(page)}: {found}"] if found else []
    return source.report(problems)


if __name__ == "__main__":
    sys.exit(main())
