#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""server.py FOLDER [CERTIFICATE KEY]: a server for http-get's smoke test. Prints its port.

Files of the folder, and: /redirect to /small, /loop to itself, /echo, /gzip (small, compressed),
/cut (ends too early), /never (no answer)."""
import errno
import gzip
import http.server
import os
import socket
import ssl
import sys
import threading


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def send(self, status, content=b"", fields=()):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self):
        content = self.rfile.read(int(self.headers["Content-Length"]))
        head = f"{self.command} {self.path}\n{self.headers}"
        self.send(200, head.encode() + content + b"\n")

    def do_GET(self):
        if self.path == "/redirect":
            self.send(302, b"elsewhere", [("Location", "small")])
        elif self.path == "/loop":
            self.send(302, b"", [("Location", "/loop")])
        elif self.path == "/gzip":
            with open("small", "rb") as small:
                self.send(200, gzip.compress(small.read()), [("Content-Encoding", "gzip")])
        elif self.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"too short")
            self.close_connection = True
        elif self.path == "/never":
            threading.Event().wait(30)
        else:
            super().do_GET()


class OverIPv6(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6


def listen():
    """Servers on one port of 127.0.0.1 and of ::1, if there is IPv6: "localhost" may be either."""
    while True:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        try:
            return [server, OverIPv6(("::1", server.server_address[1]), Handler)]
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return [server]
            server.server_close()


os.chdir(sys.argv[1])
servers = listen()
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    for server in servers:
        server.socket = context.wrap_socket(server.socket, server_side=True)
print(servers[0].server_address[1], flush=True)
for server in servers[1:]:
    threading.Thread(target=server.serve_forever, daemon=True).start()
servers[0].serve_forever()
