# SPDX-License-Identifier: Apache-2.0
"""attacks.py SERVER [--full] [--no-memory] [NAME...]: attacks on http-test-server. Each must get
the documented answer, and may cost a bounded amount of memory, while a well-behaved client is
served at all times.

The numbers are small by default. --full takes those of a real attack, and waits for the timeouts
that take ten seconds. --no-memory does not measure memory, which sanitizers need for themselves.
"""
import asyncio
import contextlib
import gzip
import re
import resource
import select
import socket
import struct
import subprocess
import sys
import time

import peers
from peers import expect

MIB = 1 << 20
HEAD_MS = {False: 500, True: 8000}  # --head-ms of the server; with --full, clients are slow, too
SEND_BUFFER = 65536  # of the kernel: a thousand clients that do not read would take gigabytes of it
FIELDS = b"Host: weir.example\r\n"
SLOWEST_MS = 5000  # two answers to the well-behaved client, on a busy machine


# --- connections ---------------------------------------------------------------------------------


class Connection:
    """A connection of an attacker."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, port, receive_buffer=None):
        one = socket.socket()
        if receive_buffer:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        one.setblocking(False)
        await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", port))
        return cls(*await asyncio.open_connection(sock=one))

    async def send(self, data):
        """False if the server has closed."""
        try:
            self.writer.write(data)
            await self.writer.drain()
            return True
        except ConnectionError:
            return False

    async def read_all(self, timeout_s=peers.TIMEOUT_S):
        pieces = []
        try:
            while piece := await asyncio.wait_for(self.reader.read(1 << 16), timeout_s):
                pieces.append(piece)
        except ConnectionError:
            pass
        return b"".join(pieces)

    async def ask(self, request):
        """The status, fields and content of the response to one request."""
        await self.send(request)
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), peers.TIMEOUT_S)
        status, fields, _ = peers.responses(head, ["HEAD"])[0]
        length = int(fields.get("content-length", "0"))
        return status, fields, await self.reader.readexactly(length)

    def close(self):
        self.writer.close()


async def statuses(port, stream, timeout_s=peers.TIMEOUT_S):
    """The statuses of all responses to a stream, up to the end of the connection."""
    one = await Connection.open(port)
    await one.send(stream)
    with contextlib.suppress(OSError, ConnectionError):
        one.writer.write_eof()
    answer = await one.read_all(timeout_s)
    one.close()
    return [status for status, _, _ in peers.responses(answer)]


def get(target, *fields):
    return b"GET " + target + b" HTTP/1.1\r\n" + FIELDS + b"".join(
        field + b"\r\n" for field in fields) + b"\r\n"


def post(target, *fields, body=b""):
    return b"POST " + target + b" HTTP/1.1\r\n" + FIELDS + b"".join(
        field + b"\r\n" for field in fields) + b"\r\n" + body


# --- a well-behaved client -----------------------------------------------------------------------


def visit(port):
    """Two requests on one connection."""
    answer = peers.exchange(port, get(b"/hello") + post(b"/sum", b"Content-Length: 5",
                                                        b"Connection: close", body=b"hello"))
    found = [(status, body) for status, _, body in peers.responses(answer)]
    expect(found == [(200, b"Hello, World!\n"), (200, peers.sum_of(b"hello"))],
           f"the guest got {answer}")


def run_guest(port):
    """Visits again and again. For each line of input, prints how often, and the slowest, in ms."""
    served, slowest_s = 0, 0.0
    while True:
        begin = time.monotonic()
        visit(port)
        served, slowest_s = served + 1, max(slowest_s, time.monotonic() - begin)
        if select.select([sys.stdin], [], [], 0.02)[0]:
            if not sys.stdin.readline():
                return
            print(served, int(slowest_s * 1000), flush=True)
            served, slowest_s = 0, 0.0


class Guest:
    """A process of its own: attackers are busy."""

    def __init__(self, port):
        self.process = subprocess.Popen([sys.executable, __file__, "guest", str(port)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def report(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        expect(re.fullmatch(r"\d+ \d+\n", line), f"the guest was not served: {line}")
        return [int(number) for number in line.split()]

    def leave(self):
        self.process.stdin.close()
        expect(self.process.wait(peers.TIMEOUT_S) == 0, "the guest was not served")


# --- the attacks ---------------------------------------------------------------------------------


class Attacks:
    def __init__(self, server, full, root):
        self.port, self.server, self.full, self.root = server.port, server, full, root

    def count(self, small, full):
        return full if self.full else small

    async def many(self, number, attack):
        """Runs so many at once."""
        await asyncio.gather(*(attack(i) for i in range(number)))

    async def slow_heads(self):
        """Heads that arrive byte by byte and never end: 408 after --head-ms. Memory: MIB, below."""

        async def attack(number):
            one = await Connection.open(self.port)
            head = asyncio.ensure_future(one.read_all())
            begin = time.monotonic()
            for byte in b"GET / HTTP/1.1\r\nX: " + b"x" * 1000:
                if head.done() or not await one.send(bytes([byte])):
                    break
                await asyncio.wait([head], timeout=HEAD_MS[self.full] / 8000)
            answer = await head
            one.close()
            expect(answer.startswith(b"HTTP/1.1 408 "), f"slow head: {answer[:80]}")
            took_s = time.monotonic() - begin
            expect(took_s > HEAD_MS[self.full] / 2000, f"slow head: closed after {took_s} s")

        number = self.count(200, 5000)
        await self.many(number, attack)
        return 32 * MIB + number * 16384

    async def silence(self):
        """Connections that say nothing are closed."""

        async def attack(number):
            one = await Connection.open(self.port)
            answer = await one.read_all()
            one.close()
            expect(answer == b"" or answer.startswith(b"HTTP/1.1 408 "), f"silence: {answer[:80]}")

        await self.many(self.count(200, 5000), attack)
        return 32 * MIB

    async def slow_bodies(self):
        """Bodies below the minimum rate: 408, after 10 seconds."""

        async def attack(number):
            one = await Connection.open(self.port)
            await one.send(post(b"/sum", b"Content-Length: 1000000"))
            end = asyncio.ensure_future(one.read_all())
            begin = time.monotonic()
            while time.monotonic() - begin < (40 if self.full else 0.5) and not end.done():
                await one.send(b"x")
                await asyncio.wait([end], timeout=1)
            expect(end.done() or not self.full, "a slow body was not closed")
            if self.full:
                answer = await end
                expect(answer.startswith(b"HTTP/1.1 408 "), f"slow body: {answer[:80]}")
            end.cancel()
            one.close()

        number = self.count(200, 5000)
        await self.many(number, attack)
        return 32 * MIB + number * 16384

    async def tiny_chunks(self):
        """Chunks of one byte: correct, and without an allocation for each."""
        number = self.count(20000, 100000)
        body = b"1\r\nx\r\n" * number + b"0\r\n\r\n"
        for target in (b"/sum", b"/whole"):
            one = await Connection.open(self.port)
            answer = await one.ask(post(target, b"Transfer-Encoding: chunked", body=body))
            expect(answer[2] == peers.sum_of(b"x" * number), f"tiny chunks: {answer}")
            one.close()
        return 32 * MIB

    async def empty_trailers(self):
        """Trailers and chunk extensions without end are refused."""
        head = post(b"/sum", b"Transfer-Encoding: chunked")
        for body in (b"0\r\n" + b"X: y\r\n" * 100000, b"1;" + b"x" * 1000000,
                     b"".join(b"1;%s\r\nx\r\n" % (b"x" * 1000) for _ in range(100))):
            found = await statuses(self.port, head + body)
            expect(found in ([400], [431], []), f"trailers and extensions: {found}")
        return 16 * MIB

    async def pipelining(self):
        """Thousands of requests at once: all are answered, in order."""
        number = self.count(10000, 100000)
        one = await Connection.open(self.port)
        read = asyncio.ensure_future(one.read_all())
        await one.send(b"".join(get(b"/big/%d" % (i % 10)) for i in range(number)))
        one.writer.write_eof()
        found = peers.lengths(await read)
        one.close()
        expect(found == [i % 10 for i in range(number)], f"pipelining: {len(found)} answers")
        return 32 * MIB

    async def never_reading(self):
        """Clients that ask and do not read: little is written for them, and after 10 seconds the
        connection is reset."""

        async def attack(number):
            one = await Connection.open(self.port, 4096)
            one.writer.transport.pause_reading()
            if number % 2:
                await one.send(get(b"/big/1000000000"))
            else:  # more and more requests, until the server reads no more
                with contextlib.suppress(asyncio.TimeoutError):
                    for _ in range(200):
                        await asyncio.wait_for(one.send(get(b"/text") * 100), 0.3)
            await asyncio.sleep(25 if self.full else 0.3)
            if self.full:
                one.writer.transport.resume_reading()
                rest = await one.read_all()
                expect(len(rest) < 10 * MIB, f"never reading: {len(rest)} bytes more")
            one.close()

        number = self.count(100, 1000)
        await self.many(number, attack)
        return 64 * MIB + number * 300000

    async def floods(self):
        """Heads above the limits: 414 and 431; and below them, with a thousand cookies."""
        cases = [
            ([414], b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n" + FIELDS + b"\r\n"),
            ([414], b"A" * 100000),
            ([431], get(b"/hello", *[b"X: y"] * 101)),
            ([431], get(b"/hello", b"X: " + b"y" * 33000)),
            ([431], get(b"/hello", b"Cookie: " + b"; ".join(b"a%d=b" % i for i in range(9999)))),
            ([431], b"GET / HTTP/1.1\r\n" + FIELDS + b"X: y\r\n" * 100000),
            ([431], b"GET / HTTP/1.1\r\n" + FIELDS + b"x" * 1000000),
            ([200], get(b"/hello", b"Cookie: " + b"; ".join(b"a%d=b" % i for i in range(1000)),
                        b"Connection: close")),
            ([200], get(b"/hello", *[b"Cookie: a=b"] * 90, b"Connection: close")),
        ]
        for wanted, stream in cases:
            found = await statuses(self.port, stream)
            expect(found == wanted or found == [], f"flood {stream[:60]}: {found}, not {wanted}")
            expect(found or len(stream) > 50000, f"flood {stream[:60]}: no answer")
        await self.many(self.count(50, 2000), lambda number: statuses(
            self.port, b"GET / HTTP/1.1\r\n" + FIELDS + b"X: y\r\n" * 20000))
        return 64 * MIB

    async def bombs(self):
        """Content that grows 1:1,000 (gzip) and 1:32,768 (zstd): 413."""
        size = 100 * MIB
        block = b"".join(struct.pack("<I", 131072 << 3 | 1 << 1)[:3] + b"\0"
                         for _ in range(size // 131072))
        zstd = b"\x28\xb5\x2f\xfd\x00\x38" + block + struct.pack("<I", 1)[:3]
        zipped = await asyncio.to_thread(gzip.compress, bytes(size), 9)

        async def attack(number):
            coding, data = [(b"gzip", zipped), (b"zstd", zstd)][number % 2]
            for target in (b"/whole", b"/sum"):
                found = await statuses(self.port, post(
                    target, b"Content-Encoding: " + coding, b"Content-Length: %d" % len(data),
                    body=data))
                expect(found in ([413], [415]) or (not found and len(data) > 50000),
                       f"{coding} bomb to {target}: {found}")

        await self.many(self.count(6, 100), attack)
        return 64 * MIB + self.count(0, 200 * MIB)

    async def parts(self):
        """Multipart bodies with a million parts, or with endless heads: 413 or 400."""
        kind = b"Content-Type: multipart/form-data; boundary=b"
        part = b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n"
        one = await Connection.open(self.port)
        good = part * 900 + b"--b--\r\n"
        answer = await one.ask(post(b"/form", kind, b"Content-Length: %d" % len(good), body=good))
        expect((answer[0], answer[2]) == (200, b"900\n"), f"900 parts: {answer}")
        one.close()
        number = self.count(100000, 1000000)
        for body in (part * number, b"--b\r\n" + b"X: y\r\n" * number, b"--b\r\n" * number,
                     b"--b\r\nContent-Disposition: form-data; name=" + b"a" * 10 * number):
            for framing in (b"Content-Length: %d" % len(body), b"Transfer-Encoding: chunked"):
                data = body
                if b"chunked" in framing:
                    data = b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
                found = await statuses(self.port, post(b"/form", kind, framing, body=data))
                expect(found in ([400], [413], []), f"parts {body[:60]}: {found}")
        return 48 * MIB

    async def ranges(self):
        """Many and overlapping ranges do not multiply a file."""
        data = (self.root / "data").read_bytes()
        overlapping = b",".join([b"0-"] * 1000)
        tiny = b",".join(b"%d-%d" % (2 * i, 2 * i) for i in range(1000))
        for text in (overlapping, tiny, b"0-,0-,0-", b"0-99,50-149,100-199"):
            one = await Connection.open(self.port)
            await one.send(get(b"/files/data", b"Range: bytes=" + text, b"Connection: close"))
            answer = await one.read_all()
            one.close()
            expect(answer[:13] in (b"HTTP/1.1 200 ", b"HTTP/1.1 206 ", b"HTTP/1.1 416 "),
                   f"ranges: {answer[:60]}")
            expect(len(answer) < len(data) * 1.1 + 2000, f"ranges: {len(answer)} bytes")
        return 16 * MIB

    async def traversal(self):
        """No path leaves the folder, however it is encoded."""
        dots = [b"..", b"%2e%2e", b"%2E.", b".%2e", b"%252e%252e", b"..%00", b"%c0%ae%c0%ae",
                b"%e0%80%ae%e0%80%ae", b"\\..", b"..;", b"...", b"..%20", b"%u002e%u002e", b".\\."]
        slashes = [b"/", b"%2f", b"%5c", b"\\", b"//", b"/./", b"%252f", b"%c0%af", b"%00/",
                   b"/%2f"]
        targets = {b"/files/" + (dot + slash) * deep + name for dot in dots for slash in slashes
                   for deep in (1, 2, 8) for name in (b"secret", b"etc/passwd")}
        targets |= {b"/files/link", b"/files/folder/../../secret", b"/files//etc/passwd",
                    b"/files/%2fetc/passwd", b"http://x/files/../secret",
                    b"/files/data/../../secret",
                    b"/files/" + str(self.root.parent / "secret").encode(), b"/../secret",
                    b"/files/..", b"/files/../", b"/files/.", b"/files/data%00.html",
                    b"/files/data/"}
        bad = 0
        for target in sorted(targets):
            one = await Connection.open(self.port)
            await one.send(get(target, b"Connection: close"))
            answer = await one.read_all()
            one.close()
            expect(b"SECRET" not in answer and b"root:" not in answer, f"traversal: {target}")
            expect(answer.startswith(b"HTTP/1.1 "), f"traversal: {target}: {answer[:60]}")
            bad += answer.startswith((b"HTTP/1.1 40", b"HTTP/1.1 30"))
        expect(bad >= len(targets) - 5, f"traversal: {len(targets) - bad} answers with content")
        return 16 * MIB


NAMES = ["slow_heads", "silence", "slow_bodies", "tiny_chunks", "empty_trailers", "pipelining",
         "never_reading", "floods", "bombs", "parts", "ranges", "traversal"]


async def watch_memory(server, peak):
    while True:
        peak[0] = max(peak[0], server.rss())
        await asyncio.sleep(0.02)


async def run(server, guest, name, attacks, measures):
    """One attack, with a guest; fails if it costs more than it says."""
    guest.report()
    before, begin = server.rss(), time.monotonic()
    peak = [before]
    watching = asyncio.ensure_future(watch_memory(server, peak))
    allowed = await getattr(attacks, name)()
    watching.cancel()
    served, slowest_ms = guest.report()
    grown = peak[0] - before
    print(f"{name}: {time.monotonic() - begin:.1f} s, {grown / MIB:.1f} of "
          f"{allowed / MIB:.0f} MiB, guest served {served} times, within {slowest_ms} ms",
          flush=True)
    expect(served > 0 and slowest_ms < SLOWEST_MS, f"{name}: the guest was not served")
    expect(not measures or grown < allowed, f"{name}: {grown / MIB:.1f} MiB")
    peers.wait_until(lambda: server.descriptors() < 40, f"{name}: connections are left open")


def main(program, *arguments):
    full, measures = "--full" in arguments, "--no-memory" not in arguments
    names = [name for name in arguments if not name.startswith("--")] or NAMES
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    with peers.folder() as folder:
        root = folder / "root"
        (root / "folder").mkdir(parents=True)
        (root / "data").write_bytes(peers.content(100000))
        (folder / "secret").write_text("SECRET\n")
        (root / "link").symlink_to("../secret")
        with peers.Server(program, "--head-ms", HEAD_MS[full], "--idle-ms", HEAD_MS[full],
                          "--files", root, "--threads", 2, "--send-buffer", SEND_BUFFER) as server:
            guest = Guest(server.port)
            for name in names:
                asyncio.run(run(server, guest, name, Attacks(server, full, root), measures))
            guest.leave()


if __name__ == "__main__":
    if sys.argv[1] == "guest":
        run_guest(int(sys.argv[2]))
    else:
        main(*sys.argv[1:])
