# SPDX-License-Identifier: Apache-2.0
"""What the drivers of this folder share: programs that may be missing, the test server, raw
connections, nginx.
"""
import contextlib
import functools
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77  # exit status
START_S = 20  # until a program listens; sanitizers are slow
TIMEOUT_S = 60  # of one answer


def skip(reason):
    """Ends the test as skipped, or as failed if WEIR_REQUIRE=all."""
    print("skipped:", reason)
    sys.exit(1 if os.environ.get("WEIR_REQUIRE") == "all" else SKIPPED)


def need(*programs):
    """Skips the test without these programs."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    for program in programs:
        if shutil.which(program, path=path) is None:
            skip(f"{program} is not installed")
    os.environ["PATH"] = path


def need_module(name):
    """Continues with Debian's Python if only that has the module; skips the test without it."""
    if importlib.util.find_spec(name) is not None:
        return
    python = "/usr/bin/python3"
    if sys.executable != python and os.path.exists(python):
        os.execv(python, [python, *sys.argv])
    skip(f"the Python module {name} is not installed")


def fail(message):
    print(f"error: {message}", flush=True)
    sys.exit(1)


def expect(holds, message):
    if not holds:
        fail(message)


def wait_until(holds, what, timeout_s=TIMEOUT_S):
    """Polls, since what is waited for is in another process."""
    end = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > end:
            fail(f"{what}: not within {timeout_s} s")
        time.sleep(0.005)


# --- servers -------------------------------------------------------------------------------------


class Server:
    """A server of ours: prints `listening on ADDRESS:PORT` for each address."""

    def __init__(self, program, *arguments, addresses=1):
        self.process = subprocess.Popen(
            [program, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
        self.ports = [self._read_port() for _ in range(addresses)]
        self.port = self.ports[0]
        self.pid = self.process.pid
        self.is_terminated = False

    def _read_port(self):
        for line in self.process.stdout:
            found = re.match(r"listening on .*:(\d+)$", line.rstrip())
            if found:
                return int(found[1])
        fail(f"the server has not started: exit status {self.process.wait()}")

    def rss(self):
        """Resident bytes."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def terminate(self):
        """Begins to drain. A second signal would abort connections, so it is sent once."""
        if not self.is_terminated:
            self.process.send_signal(signal.SIGTERM)
        self.is_terminated = True

    def stop(self, timeout_s=TIMEOUT_S):
        """Drains. Anything but exit status 0 fails: leaks and races are reported there."""
        self.terminate()
        try:
            rest, _ = self.process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            fail("the server does not stop")
        expect(self.process.returncode == 0,
               f"the server ended with status {self.process.returncode}")
        return rest

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.stop()
        elif self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def nginx(configuration):
    """Runs nginx with a block of http{}, in which "$dir" and "$port" are replaced. Yields both."""
    need("nginx")
    with tempfile.TemporaryDirectory(prefix="weir-nginx-") as folder:
        port = free_port()
        text = """
            daemon off; worker_processes 1; pid $dir/pid; error_log $dir/error.log warn;
            events { worker_connections 4096; }
            http {
                access_log off;
                client_body_temp_path $dir/body; proxy_temp_path $dir/proxy;
                fastcgi_temp_path $dir/f; uwsgi_temp_path $dir/u; scgi_temp_path $dir/s;
            """ + configuration + "}"
        path = pathlib.Path(folder, "nginx.conf")
        path.write_text(text.replace("$dir", folder).replace("$port", str(port)))
        process = subprocess.Popen(["nginx", "-p", folder, "-c", path, "-e", folder + "/error.log"])
        try:
            wait_until(lambda: accepts(port) or process.poll() is not None, "nginx", START_S)
            expect(process.poll() is None, "nginx has not started")
            yield pathlib.Path(folder), port
        finally:
            process.terminate()
            process.wait()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


# --- raw connections -----------------------------------------------------------------------------


def connect(port, timeout_s=TIMEOUT_S):
    one = socket.create_connection(("127.0.0.1", port), timeout_s)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one


def read_all(one):
    """Bytes up to the end of the stream; a reset is an end."""
    pieces = []
    with contextlib.suppress(ConnectionError):
        while piece := one.recv(1 << 16):
            pieces.append(piece)
    return b"".join(pieces)


def exchange(port, stream):
    """Sends a stream and its end; returns everything that comes back."""
    with connect(port) as one:
        with contextlib.suppress(ConnectionError, BrokenPipeError):
            one.sendall(stream)
            one.shutdown(socket.SHUT_WR)
        return read_all(one)


def responses(stream, methods=()):
    """(status, fields, body) of each response in a stream; fields have lower-case names. `methods`
    are those of the requests. Raises ValueError where the stream is not HTTP."""
    found = []
    while stream:
        head, gap, rest = stream.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        line = re.fullmatch(rb"HTTP/1\.[01] (\d{3})(?: .*)?", lines[0])
        if not line or not gap:
            raise ValueError(f"not a response: {stream[:80]!r}")
        status = int(line[1])
        fields = {}
        for field in lines[1:]:
            name, _, value = field.partition(b":")
            fields[name.strip().lower().decode()] = value.strip().decode("latin1")
        method = methods[len(found)] if len(found) < len(methods) else "GET"
        body, stream = split_body(status, fields, rest, method)
        if status >= 200:
            found.append((status, fields, body))
    return found


def lengths(stream):
    """The lengths of the contents in a stream of responses with status 200, fast."""
    found, at = [], 0
    pattern_of_head = re.compile(
        rb"HTTP/1\.1 200 [^\r]*\r\n(?:[^\r]+\r\n)*?content-length: (\d+)\r\n(?:[^\r]+\r\n)*\r\n",
        re.IGNORECASE)
    while head := pattern_of_head.match(stream, at):
        found.append(int(head[1]))
        at = head.end() + found[-1]
    return found if at == len(stream) else []


def split_body(status, fields, rest, method="GET"):
    """The content of a response, and what is behind it."""
    if method == "HEAD" or status in (204, 304) or status < 200:
        return b"", rest
    if "chunked" in fields.get("transfer-encoding", ""):
        body = b""
        while True:
            size, gap, rest = rest.partition(b"\r\n")
            count = int(size.split(b";")[0], 16)
            if not gap:
                raise ValueError("a chunk is cut off")
            if count == 0:
                trailers, _, rest = (b"\r\n" + rest).partition(b"\r\n\r\n")
                return body, rest
            body, rest = body + rest[:count], rest[count + 2:]
    length = int(fields["content-length"]) if "content-length" in fields else len(rest)
    if len(rest) < length:
        raise ValueError("a body is cut off")
    return rest[:length], rest[length:]


# --- content -------------------------------------------------------------------------------------

PATTERN_SIZE = 1000003


@functools.lru_cache(None)
def pattern():
    """The block that /big repeats."""
    state, block = 17, bytearray(PATTERN_SIZE)
    for i in range(PATTERN_SIZE):
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        block[i] = state >> 56
    return bytes(block)


def content(size):
    """The first bytes of /big."""
    return (pattern() * (size // PATTERN_SIZE + 1))[:size]


def sum_of(data):
    """The answer of /sum and /whole."""
    return b"%d %08x\n" % (len(data), zlib.crc32(data))


TEXT = (b"the quick brown fox jumps over the lazy dog\n" * 2400)[:100 * 1024]


def backends(program):
    """The values of --io that run here; those that are not built are skipped."""
    found = []
    for io in ("epoll", "uring", "poll", "blocking"):
        done = subprocess.run([program, "--io", io, "--probe"], stderr=subprocess.DEVNULL)
        if done.returncode == 0:
            found.append(io)
    expect("epoll" in found, "no backend runs")
    return found


def has_tls(program):
    return subprocess.run([program, "--tls", "--probe"], stderr=subprocess.DEVNULL).returncode == 0


@contextlib.contextmanager
def folder():
    """A temporary one."""
    with tempfile.TemporaryDirectory(prefix="weir-peers-") as path:
        yield pathlib.Path(path)
