# SPDX-License-Identifier: Apache-2.0
"""prometheus.py SERVER [COUNT]: scrapes http-test-server on every backend, or on the first COUNT.
promtool and the parsers of prometheus_client accept what it exports, the formats agree with each
other, and the values agree exactly with a scripted load.
"""
import base64
import json
import socket
import ssl
import struct
import subprocess
import sys

import peers
from peers import expect

LOAD = {200: 7, 201: 2, 301: 3, 404: 5, 503: 4}  # status: requests
TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def request(method, target, *fields, body=b""):
    lines = [f"{method} {target} HTTP/1.1", "Host: test", *fields, "", ""]
    return "\r\n".join(lines).encode() + body


class Load:
    """Counts what it sends and receives, by the names of metrics."""

    def __init__(self, server):
        self.server = server
        self.expected = {}

    def add(self, name, n=1, **labels):
        key = (name, tuple(sorted(labels.items())))
        self.expected[key] = self.expected.get(key, 0) + n

    def count_connection(self, sent, received):
        self.add("weir_http_connections_total")
        self.add("weir_http_bytes_received_total", sent)
        self.add("weir_http_bytes_sent_total", received)

    def count_request(self, method, status):
        self.add("weir_http_requests_total", method=method)
        self.add("weir_http_responses_total", status=f"{status // 100}xx")
        self.add("weir_http_request_seconds_count")

    def call(self, stream, requests):
        """Sends a stream on a new connection; requests are (method, status) of each."""
        answer = peers.exchange(self.server.port, stream)
        found = peers.responses(answer, [method for method, _ in requests])
        expect([one[0] for one in found] == [status for _, status in requests], f"{found}")
        self.count_connection(len(stream), len(answer))
        for one in requests:
            self.count_request(*one)
        self.add("weir_channels_accepted_total", transport="tcp")
        self.add("weir_channels_bytes_received_total", len(stream), transport="tcp")
        self.add("weir_channels_bytes_sent_total", len(answer), transport="tcp")

    def run_requests(self):
        stream = b"".join(request("GET", f"/status/{status}") * n for status, n in LOAD.items())
        self.call(stream, [("GET", status) for status, n in LOAD.items() for _ in range(n)])
        self.call(request("HEAD", "/hello") + request("GET", "/big/300000?chunked=1"),
                  [("HEAD", 200), ("GET", 200)])
        self.call(request("POST", "/echo", "Content-Length: 100000", body=b"x" * 100000),
                  [("POST", 200)])
        answer = peers.exchange(self.server.port, b"malformed\r\n\r\n")
        self.count_connection(13, len(answer))
        self.add("weir_http_requests_refused_total")
        self.add("weir_http_responses_total", status="4xx")
        self.add("weir_channels_accepted_total", transport="tcp")
        self.add("weir_channels_bytes_received_total", 13, transport="tcp")
        self.add("weir_channels_bytes_sent_total", len(answer), transport="tcp")

    def run_websocket(self, messages):
        """A chat with itself: masked messages, and their echoes."""
        head = request("GET", "/ws", "Upgrade: websocket", "Connection: Upgrade",
                       "Sec-WebSocket-Version: 13",
                       "Sec-WebSocket-Key: " + base64.b64encode(bytes(16)).decode())
        with peers.connect(self.server.port) as one:
            stream = one.makefile("rwb")
            stream.write(head)
            stream.flush()
            answer = b""
            while not answer.endswith(b"\r\n\r\n"):
                answer += stream.readline()
            for message in messages:
                stream.write(bytes([0x81, 0x80 | len(message)]) + bytes(4) + message)
                stream.flush()
                echo = stream.read(2 + len(message))
                expect(echo[2:] == message, f"an echo: {echo}")
            stream.write(bytes([0x88, 0x82, 0, 0, 0, 0]) + struct.pack("!H", 1000))
            stream.flush()
            rest = stream.read()
            expect(rest[:1] == b"\x88", f"no close frame: {rest}")
        self.count_connection(len(head), len(answer))
        self.count_request("GET", 101)
        self.add("weir_http_upgrades_total")
        self.add("weir_websocket_connections_total", side="server")
        size = sum(map(len, messages))
        for what in ("received", "sent"):
            self.add(f"weir_websocket_messages_{what}_total", len(messages), side="server")
            self.add(f"weir_websocket_bytes_{what}_total", size, side="server")
        frames = size + 6 * len(messages) + 8
        self.add("weir_channels_accepted_total", transport="tcp")
        self.add("weir_channels_bytes_received_total", len(head) + frames, transport="tcp")
        self.add("weir_channels_bytes_sent_total", len(answer) + size + 2 * len(messages) +
                 len(rest), transport="tcp")

    def run_tls(self, handshakes):
        """Without session tickets nothing is resumed. Bytes of TLS are not predicted."""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        stream = request("GET", "/hello", "Connection: close")
        for _ in range(handshakes):
            with socket.create_connection(("127.0.0.1", self.server.ports[-1])) as raw:
                with context.wrap_socket(raw) as one:
                    one.sendall(stream)
                    answer = peers.read_all(one)
            self.count_connection(len(stream), len(answer))
            self.count_request("GET", 200)
        self.add("weir_tls_handshakes_total", handshakes, side="server")
        answer = peers.exchange(self.server.ports[-1], b"not TLS at all\r\n\r\n")
        self.add("weir_http_connections_total")
        self.add("weir_tls_handshakes_failed_total", side="server")


# --- scrapes -------------------------------------------------------------------------------------


class Scraper:
    """One connection, so that scrapes do not change the number of connections between them."""

    def __init__(self, port):
        self.stream = peers.connect(port).makefile("rwb")

    def __call__(self, *fields, query=""):
        self.sent = request("GET", "/metrics" + query, *fields)
        self.stream.write(self.sent)
        self.stream.flush()
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.stream.readline()
        _, found, _ = peers.responses(head, ["HEAD"])[0]
        body = self.stream.read(int(found["content-length"]))
        self.received = head + body
        return found["content-type"], body.decode()


def samples(families):
    """{(name, labels): value} of what a parser of prometheus_client returns."""
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in families for sample in family.samples}


def scrape(scraper):
    from prometheus_client.parser import text_string_to_metric_families
    kind, text = scraper()
    expect(kind == TEXT, f"Content-Type: {kind}")
    return samples(text_string_to_metric_families(text)), text


def check_promtool(text):
    done = subprocess.run(["promtool", "check", "metrics"], input=text.encode(),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect(done.returncode == 0, f"promtool: {done.stdout.decode()}")


def check_formats(scraper):
    """The same series in OpenMetrics, and the same numbers in JSON."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
    plain, text = scrape(scraper)
    check_promtool(text)
    kind, text = scraper("Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    expect(kind == OPENMETRICS, f"Content-Type: {kind}")
    families = list(text_string_to_metric_families(text))
    expect(set(samples(families)) == set(plain), "the formats have different series")
    kind, text = scraper(query="?format=json")
    expect(kind == "application/json", f"Content-Type: {kind}")
    found = json.loads(text)["metrics"]
    expect(all(one["kind"] in ("counter", "gauge", "histogram") for one in found), "kinds")
    for one in found:
        if one["kind"] == "histogram":
            expect(sum(count for _, count in one["buckets"]) == one["count"], f"{one}")
    names = {one["name"] for one in found}
    for name in ("executor.utilisation_permille", "loop.turn_ns", "channels.active",
                 "pool.mapped_bytes", "http.requests", "tls.handshakes", "watchdog.blocks",
                 "process.open_fds"):
        expect(name in names or name.startswith("tls."), f"no {name}")
    loops = [one["labels"] for one in found if one["name"] == "loop.turns"]
    expect(loops and all({"group", "loop"} <= set(labels) for labels in loops), f"{loops}")


def check_histograms(found):
    """Buckets only grow, and the last one has all values."""
    series = {}
    for (name, labels), value in found.items():
        if name.endswith("_bucket"):
            bound = float(dict(labels)["le"])
            rest = tuple(one for one in labels if one[0] != "le")
            series.setdefault((name, rest), []).append((bound, value))
    expect(len(series) > 3, "no histograms")
    for (name, labels), buckets in series.items():
        counts = [count for _, count in sorted(buckets)]
        expect(counts == sorted(counts), f"{name}: {counts}")
        expect(counts[-1] == found[name[:-7] + "_count", labels], f"{name}: not all values")


def check_values(server, has_tls):
    """A load between two scrapes. The head of a response is counted before its metrics are read,
    its bytes after that: those of the first scrape are in the second one's values."""
    scraper = Scraper(server.port)
    scrape(scraper)
    before, _ = scrape(scraper)
    load = Load(server)
    received = len(scraper.received)
    load.run_requests()
    load.run_websocket([b"hello", b"", b"x" * 100])
    if has_tls:
        load.run_tls(3)
    closed = ("weir_http_connections_open", ())
    for _ in range(200):  # the server may still be closing the last connections
        load.count_request("GET", 200)
        load.add("weir_http_bytes_received_total", len(scraper.sent))
        load.add("weir_http_bytes_sent_total", received)
        load.add("weir_channels_bytes_received_total", len(scraper.sent), transport="tcp")
        load.add("weir_channels_bytes_sent_total", received, transport="tcp")
        after, _ = scrape(scraper)
        received = len(scraper.received)
        if after[closed] == 1:
            break
    expect(after[closed] == 1, f"{after[closed]} connections are open")
    check_histograms(after)
    tls_bytes = ("weir_channels_accepted_total", "weir_channels_bytes_received_total",
                 "weir_channels_bytes_sent_total")
    for (name, labels), expected in load.expected.items():
        if has_tls and name in tls_bytes:
            continue
        change = after[name, labels] - before[name, labels]
        expect(change == expected, f"{name}{dict(labels)}: {change} instead of {expected}")
    return scraper


def main(program, count=None):
    peers.need("promtool")
    peers.need_module("prometheus_client")
    runs = [(io, False) for io in peers.backends(program)[:count and int(count)]]
    if peers.has_tls(program):
        runs.append((runs[0][0], True))
    for io, has_tls in runs:
        options = ["--io", io] + (["--tls"] if has_tls else [])
        with peers.Server(program, *options, addresses=1 + has_tls) as server:
            scraper = check_values(server, has_tls)
            check_formats(scraper)
            scraper.stream.close()
        print(f"{io}{' with TLS' if has_tls else ''}: ok", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
