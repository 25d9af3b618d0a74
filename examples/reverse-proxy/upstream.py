#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""upstream.py NAME [PORT]: a server behind the proxy. Prints its port.

GET / reports the request; /big is 3 MB of a pattern; /slow is written in ten pieces;
/never does not answer; /cut ends too early; /status/N has status N. POST reports length and hash of
the content."""
import hashlib
import http.server
import sys
import threading

name = sys.argv[1]
big = bytes(i * 7 % 251 for i in range(3_000_000))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def send(self, status, content):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Upstream", name)
        self.send_header("Connection", "X-Hop")
        self.send_header("X-Hop", "for the proxy alone")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def report(self):
        return f"{name} {self.command} {self.path}\n{self.headers}".encode()

    def read_content(self):
        if "Content-Length" in self.headers:
            return self.rfile.read(int(self.headers["Content-Length"]))
        content = b""
        while size := int(self.rfile.readline(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def do_POST(self):
        content = self.read_content()
        digest = hashlib.sha256(content).hexdigest()
        self.send(200, self.report() + f"content {len(content)} {digest}\n".encode())

    def do_GET(self):
        if self.path == "/big":
            self.send(200, big)
        elif self.path == "/slow":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for _ in range(10):
                threading.Event().wait(0.03)
                self.wfile.write(b"5\r\nslow\n\r\n")
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        elif self.path == "/never":
            threading.Event().wait(20)
        elif self.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"too short")
            self.close_connection = True
        elif self.path.startswith("/status/"):
            self.send(int(self.path[8:]), b"")
        else:
            self.send(200, self.report())

    do_HEAD = do_GET
    do_PUT = do_POST


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


server = Server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
