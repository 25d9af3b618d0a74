# SPDX-License-Identifier: Apache-2.0
"""clients.py FOLDER EVENTS PORT ECHO_PORT [TLS_PORT MTLS_PORT]: uses everything that the demo
serves, and waits for that many events, one a second. FOLDER has localhost.pem, the demo's
certificate, client.pem and client.key, and files/, which is served.
"""
import http.client
import json
import os
import socket
import ssl
import sys

TIMEOUT_S = 60


def expect(holds, message):
    if not holds:
        sys.exit(f"clients.py: {message}")


def connect(port, context):
    if context is None:
        return http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    return http.client.HTTPSConnection("localhost", port, timeout=TIMEOUT_S, context=context)


def fetch(connection, method, path, **request):
    connection.request(method, path, **request)
    response = connection.getresponse()
    return response.status, response.read(), response


def check_echo(connection, size):
    data = os.urandom(size)
    pieces = [data[i:i + 70_001] for i in range(0, len(data), 70_001)]
    fields = {"Content-Type": "x-test/bytes"}
    status, body, response = fetch(connection, "POST", "/echo", body=data, headers=fields)
    expect((status, body) == (200, data), "/echo")
    expect(response.getheader("Content-Type") == "x-test/bytes", "the type of /echo")
    expect(response.getheader("Content-Length") == str(len(data)), "the length of /echo")
    chunked = fetch(connection, "POST", "/echo", body=iter(pieces), encode_chunked=True)
    expect(chunked[:2] == (200, data), "/echo in chunks")
    expect(fetch(connection, "POST", "/echo", body=b"")[:2] == (200, b""), "/echo of nothing")
    expect(fetch(connection, "GET", "/echo")[0] == 405, "GET /echo")


def check_files(connection, folder):
    with open(f"{folder}/files/some.txt", "rb") as file:
        expect(fetch(connection, "GET", "/files/some.txt")[:2] == (200, file.read()), "a file")
    expect(b"some.txt" in fetch(connection, "GET", "/files/")[1], "the listing")
    expect(fetch(connection, "GET", "/files/none")[0] == 404, "a file that is not there")
    expect(fetch(connection, "GET", "/files/..%2fclient.key")[0] in (400, 404), "a key")


def check_metrics(connection):
    status, body, response = fetch(connection, "GET", "/metrics")
    expect(status == 200, "/metrics")
    expect(response.getheader("Content-Type").startswith("text/plain"), "the type of /metrics")
    expect(b'\nweir_channels_active{transport="tcp"} ' in body, "the channels in /metrics")
    status, body, response = fetch(connection, "GET", "/metrics?format=json")
    expect(response.getheader("Content-Type") == "application/json", "the type of JSON")
    names = {metric["name"] for metric in json.loads(body)["metrics"]}
    expect("channels.active" in names, f"metrics {names}")


def check_page(connection):
    status, _, response = fetch(connection, "GET", "/")
    expect((status, response.getheader("Location")) == (302, "/weir/"), "the way to the page")
    status, body, _ = fetch(connection, "GET", "/weir/")
    expect(status == 200 and body.startswith(b"<!doctype html>"), "the page")


class Events:
    """A stream of events, which does not end."""

    def __init__(self, port, context):
        self.connection = connect(port, context)
        self.connection.request("GET", "/sse")
        self.response = self.connection.getresponse()
        self.type = self.response.getheader("Content-Type")

    def check(self, count):
        expect(self.type.startswith("text/event-stream"), f"/sse is {self.type}")
        found = []
        while len(found) < count:
            line = self.response.readline()
            expect(line, "/sse has ended")
            if line.startswith(b"data: "):
                found.append(int(line[6:]))
        expect(found == list(range(1, count + 1)), f"events {found}")
        self.connection.close()


def check_http(port, context, folder, event_count, size=300_000):
    events = Events(port, context)
    connection = connect(port, context)
    expect(fetch(connection, "GET", "/hello")[:2] == (200, b"Hello, World!\n"), "/hello")
    kept = connection.sock
    check_echo(connection, size)
    check_files(connection, folder)
    check_metrics(connection)
    check_page(connection)
    expect(fetch(connection, "GET", "/none")[0] == 404, "404")
    expect(connection.sock is kept, "the connection was not kept")
    connection.close()
    events.check(event_count)


def check_tcp(port):
    data = os.urandom(100_000)
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as one:
        one.sendall(data)
        one.shutdown(socket.SHUT_WR)
        found = b""
        while piece := one.recv(65536):
            found += piece
    expect(found == data, "TCP echo")


def check_client_certificates(port, folder):
    context = ssl.create_default_context(cafile=f"{folder}/localhost.pem")
    try:
        status = fetch(connect(port, context), "GET", "/hello")[0]
        expect(False, f"status {status} without a client certificate")
    except OSError:
        pass  # an alert or a reset, depending on the version of TLS
    context.load_cert_chain(f"{folder}/client.pem", f"{folder}/client.key")
    check_http(port, context, folder, 1)


def main(folder, event_count, port, echo_port, tls_port=None, mtls_port=None):
    size = 8_000_000  # more than the kernel buffers: http.client reads nothing before
    check_http(int(port), None, folder, int(event_count), size)
    check_tcp(int(echo_port))
    if tls_port:
        context = ssl.create_default_context(cafile=f"{folder}/localhost.pem")
        check_http(int(tls_port), context, folder, 1)
        check_client_certificates(int(mtls_port), folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
