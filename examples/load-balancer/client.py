#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""client.py half-closure PORT: sends much, ends its stream, and reads it all from an echo.
client.py who PORT [CA]: asks a web server for its own address; by TLS if there is an authority.
client.py drain PORT PID: sends SIGTERM to the server PID, which still relays for this client."""
import os
import signal
import socket
import ssl
import sys
import threading

PATIENCE = 60  # seconds
LENGTH = 3 << 20


def connect(port):
    return socket.create_connection(("127.0.0.1", port), PATIENCE)


def read_all(client):
    pieces = []
    while piece := client.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


def send_all(client, words):
    client.sendall(words)
    client.shutdown(socket.SHUT_WR)


def half_closure(port):
    """The reader pauses first: the echo has to be held back."""
    client, words = connect(port), os.urandom(LENGTH)
    sender = threading.Thread(target=send_all, args=(client, words))
    sender.start()
    sender.join(0.2)
    if read_all(client) != words:
        sys.exit("client: what came back is not what was sent")
    sender.join()


def ask(port, authority, words):
    """The answer, and our own address and port."""
    client = connect(port)
    own = "%s %d\n" % client.getsockname()
    if authority:
        context = ssl.create_default_context(cafile=authority)
        client = context.wrap_socket(client, server_hostname="localhost")
    client.sendall(words)
    return read_all(client).decode(), own


def who(port, authority=""):
    """Also for a client that begins with a PROXY header itself: nobody may take its word."""
    request = b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n"
    answer, own = ask(port, authority, request)
    if not answer.endswith(own):
        sys.exit(f"client: the server says {answer!r}, not {own!r}")
    answer, _ = ask(port, authority, b"PROXY TCP4 9.9.9.9 9.9.9.9 9 9\r\n" + request)
    if answer.endswith("9.9.9.9 9\n"):
        sys.exit("client: the server takes our word for who we are")


def drain(port, pid):
    client = connect(port)
    client.sendall(b"before")
    if client.recv(6, socket.MSG_WAITALL) != b"before":
        sys.exit("client: no echo")
    os.kill(pid, signal.SIGTERM)
    client.sendall(b"after")
    client.shutdown(socket.SHUT_WR)
    if read_all(client) != b"after":
        sys.exit("client: the connection was cut off")


def main(what, port, *rest):
    if what == "half-closure":
        half_closure(int(port))
    elif what == "who":
        who(int(port), *rest)
    else:
        drain(int(port), int(rest[0]))


main(*sys.argv[1:])
