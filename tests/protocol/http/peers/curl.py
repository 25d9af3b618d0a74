# SPDX-License-Identifier: Apache-2.0
"""curl.py SERVER [MIB]: curl against http-test-server, on every backend: persistent connections,
uploads of both framings, 100-continue, HEAD, content coding, TLS, proxies, ranges, and MIB up and
down (default 2, on the first backend 20), compared with what was sent.
"""
import contextlib
import gzip
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

import peers
from peers import expect


class Curl:
    """curl in a folder of its own."""

    def __init__(self, server, folder):
        self.server, self.folder = server, pathlib.Path(folder)
        self.url = f"http://127.0.0.1:{server.port}"
        self.tls_url = f"https://localhost:{server.ports[-1]}"

    def __call__(self, *arguments, status=0):
        """Runs curl; returns the content that it has printed."""
        command = ["curl", "-sS", "--max-time", str(peers.TIMEOUT_S), "--noproxy", "", *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.said = done.stderr.decode("latin1")
        expect(done.returncode == status, f"{' '.join(map(str, command))}: {self.said}")
        return done.stdout

    def file(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return f"@{path}"


def check_connections(curl):
    """One connection serves several requests, of HTTP/1.1 and, if asked, of 1.0."""
    form = ["-o", "/dev/null", "-w", "%{http_code} %{num_connects}\n"]
    urls = [part for _ in range(3) for part in (*form[:2], f"{curl.url}/hello")]
    expect(curl(*form[2:], *urls) == b"200 1\n200 0\n200 0\n", "connections are not kept")
    expect(curl("-0", *form[2:], *urls) == b"200 1\n200 1\n200 1\n", "HTTP/1.0 is kept")
    kept = curl("-0", "-H", "Connection: keep-alive", *form[2:], *urls)
    expect(kept == b"200 1\n200 0\n200 0\n", f"HTTP/1.0 with keep-alive is not kept: {kept}")
    closed = curl("-H", "Connection: close", *form[2:], *urls)
    expect(closed == b"200 1\n200 1\n200 1\n", "Connection: close is ignored")
    parallel = [part for _ in range(20) for part in ("-o", "/dev/null", f"{curl.url}/slow?ms=20")]
    codes = curl("-Z", "-w", "%{http_code} ", *parallel)
    expect(codes.split() == [b"200"] * 20, f"parallel requests: {codes}")


def check_uploads(curl):
    data = peers.content(300000)
    path = curl.file("upload", data)
    chunked = ("-H", "Transfer-Encoding: chunked")
    for route in ("sum", "whole"):
        for framing in ((), chunked):
            answer = curl(*framing, "--data-binary", path, f"{curl.url}/{route}")
            expect(answer == peers.sum_of(data), f"/{route} {framing}: {answer}")
    expect(curl("--data-binary", "", f"{curl.url}/sum") == peers.sum_of(b""), "empty content")
    zipped = curl.file("zipped", gzip.compress(data))
    answer = curl("-H", "Content-Encoding: gzip", "--data-binary", zipped, f"{curl.url}/whole")
    expect(answer == peers.sum_of(data), f"an encoded upload: {answer}")
    # Waits for status 100: the timeout of curl is longer than that of the test.
    wait = ("-v", "--expect100-timeout", "100", "-H", "Expect: 100-continue", "-T", path[1:])
    for route in ("sum", "whole", "echo"):
        answer = curl(*wait, f"{curl.url}/{route}", "-X", "POST")
        expect("100 Continue" in curl.said, f"/{route}: no status 100: {curl.said}")
        expect(answer == (data if route == "echo" else peers.sum_of(data)), f"/{route} after 100")
    code = curl("-v", "--expect100-timeout", "100", "-H", "Expect: 100-continue", "-X", "POST",
                "-w", "%{http_code}", "-o", "/dev/null", "-T", path[1:], f"{curl.url}/none")
    expect(code == b"404" and "100 Continue" not in curl.said, "404 came after the content")
    too_much = curl.file("too-much", peers.content(2 << 20))
    code = curl("--data-binary", too_much, "-w", "%{http_code}", "-o", "/dev/null",
                f"{curl.url}/whole")
    expect(code == b"413", f"2 MiB where 1 is allowed: {code}")


def check_responses(curl):
    head = curl("-I", f"{curl.url}/text").decode()
    expect("HTTP/1.1 200" in head and "102400" in head, f"HEAD: {head}")
    for coding in ("gzip", "deflate", "br", "zstd"):
        answer = curl("-D", curl.folder / "head", "--compressed", "-H",
                      f"Accept-Encoding: {coding}", f"{curl.url}/text")
        named = (curl.folder / "head").read_text().lower()
        expect(answer == peers.TEXT, f"{coding}: other content")
        expect(f"content-encoding: {coding}" in named or coding in ("br", "zstd"), f"not {coding}")
        expect("vary: accept-encoding" in named, "no Vary")
    expect(curl(f"{curl.url}/text") == peers.TEXT, "without a coding")
    answer = curl("-i", f"{curl.url}/trailers")
    expect(b"with a trailer\n" in answer and b"x-checksum: abc" in answer.lower(),
           f"no trailer: {answer}")
    expect(curl("-w", "%{http_code}", f"{curl.url}/big/0") == b"200", "an empty response")
    code = curl("-o", "/dev/null", "-w", "%{http_code}", "-X", "DELETE", f"{curl.url}/hello")
    expect(code == b"405", f"DELETE /hello: {code}")


def check_files(curl):
    """Ranges and conditions: see http_test_server.c, /files."""
    data = (curl.folder / "files/data").read_bytes()
    url = f"{curl.url}/files/data"
    expect(curl(url) == data, "a file")
    for text, part in (("0-99", data[:100]), ("100-", data[100:]), ("-100", data[-100:]),
                       ("5-5", data[5:6])):
        answer = curl("-D", curl.folder / "head", "-r", text, url)
        expect("206" in (curl.folder / "head").read_text().splitlines()[0], f"range {text}: status")
        expect(answer == part, f"range {text}: {len(answer)} bytes")
    answer = curl("-r", "0-1,10-19", url)
    expect(data[:2] in answer and data[10:20] in answer and b"multipart" not in answer[:2],
           "two ranges")
    code = curl("-o", "/dev/null", "-w", "%{http_code}", "-r", f"{len(data)}-", url)
    expect(code == b"416", f"a range behind the end: {code}")
    (curl.folder / "part").write_bytes(data[:1000])
    curl("-C", "-", "-o", curl.folder / "part", url)
    expect((curl.folder / "part").read_bytes() == data, "a download that is continued")
    etag = curl.folder / "etag"
    curl("--etag-save", etag, "-o", "/dev/null", url)
    code = curl("--etag-compare", etag, "-o", "/dev/null", "-w", "%{http_code}", url)
    expect(code == b"304", f"the same ETag: {code}")
    code = curl("-z", curl.folder / "files/data", "-o", "/dev/null", "-w", "%{http_code}", url)
    expect(code == b"304", f"not modified since: {code}")


def check_volume(curl, mib):
    """MIB in each direction, in both framings, and there and back."""
    data = peers.content(mib << 20)
    path = curl.file("volume", data)
    down = curl.folder / "down"
    for query in ("", "?chunked=1"):
        curl("-o", down, f"{curl.url}/big/{len(data)}{query}")
        expect(down.read_bytes() == data, f"{mib} MiB down {query}")
    curl("-o", down, "-T", path[1:], "-H", "Expect:", "-X", "POST", f"{curl.url}/echo")
    expect(down.read_bytes() == data, f"{mib} MiB there and back")
    answer = curl("-T", path[1:], "-H", "Transfer-Encoding: chunked", f"{curl.url}/sum")
    expect(answer == peers.sum_of(data), f"{mib} MiB up")


def check_tls(curl):
    data = peers.content(1 << 20)
    path = curl.file("secret", data)
    expect(curl("-k", f"{curl.tls_url}/hello", f"{curl.tls_url}/hello") == b"Hello, World!\n" * 2,
           "TLS")
    expect(curl("-k", f"{curl.tls_url}/big/{len(data)}") == data, "a download by TLS")
    expect(curl("-k", "-T", path[1:], "-H", "Expect:", f"{curl.tls_url}/echo") == data,
           "there and back by TLS")


@contextlib.contextmanager
def tunnels():
    """A proxy that knows CONNECT; yields its port."""

    def pump(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def serve(client):
        with client:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            host, port = head.split()[1].decode().rsplit(":", 1)
            with socket.create_connection((host, int(port))) as origin:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=pump, args=(origin, client))
                back.start()
                pump(client, origin)
                back.join()

    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def check_proxies(curl):
    """Absolute targets, as a proxy gets them, and a tunnel through a proxy to TLS."""
    answer = curl("-x", curl.url, "http://weir.example/hello")
    expect(answer == b"Hello, World!\n", f"an absolute target: {answer}")
    with tunnels() as port:
        proxy = ("-p", "-x", f"http://127.0.0.1:{port}")
        expect(curl(*proxy, f"{curl.url}/hello") == b"Hello, World!\n", "through a tunnel")
        if len(curl.server.ports) > 1:
            expect(curl(*proxy, "-k", f"{curl.tls_url}/hello") == b"Hello, World!\n",
                   "by TLS through a tunnel")


def check_backend(program, io, mib, has_tls):
    with tempfile.TemporaryDirectory(prefix="weir-curl-") as folder:
        files = pathlib.Path(folder, "files")
        files.mkdir()
        (files / "data").write_bytes(peers.content(200000))
        options = ["--io", io, "--files", files] + (["--tls"] if has_tls else [])
        with peers.Server(program, *options, addresses=1 + has_tls) as server:
            curl = Curl(server, folder)
            check_connections(curl)
            check_uploads(curl)
            check_responses(curl)
            check_files(curl)
            check_proxies(curl)
            check_volume(curl, mib)
            if has_tls:
                check_tls(curl)
            print(f"{io}: ok", flush=True)


def main(program, mib=None):
    peers.need("curl")
    has_tls = peers.has_tls(program)
    for number, io in enumerate(peers.backends(program)):
        check_backend(program, io, int(mib or (2 if number else 20)), has_tls)


if __name__ == "__main__":
    main(*sys.argv[1:])
