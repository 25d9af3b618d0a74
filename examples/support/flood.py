#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""flood.py PORT FIRST WORD [LINES]: says FIRST, and then WORD over and over, and does not read. It
must be held back before LIMIT bytes are through, since all of it would have to be kept; and must be
answered, with a line at least for each or with so many LINES, when it reads after all. In words,
backslashes are as in Python."""
import select
import socket
import sys
import time

LIMIT = 64 << 20  # the kernel alone may hold 32 MiB for the reader (tcp_rmem)
PATIENCE = 4  # seconds


def unescape(text):
    return text.encode().decode("unicode_escape").encode("latin-1")


def push(client, word):
    """Sends until nothing goes for a second, all has gone, or time is up. How many bytes have."""
    end = time.monotonic() + PATIENCE
    pieces = memoryview(word * (LIMIT // len(word)))
    sent = 0
    while sent < len(pieces) and time.monotonic() < end:
        if not select.select([], [client], [], 1)[1]:
            break
        sent += client.send(pieces[sent : sent + 65536])
    return sent


def read_lines(client, count):
    while count > 0:
        received = client.recv(1 << 16)
        if not received:
            sys.exit(f"flood: {count} lines are missing")
        count -= received.count(b"\n")


def main(port, first, word, lines=None):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 262144)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    client.connect(("127.0.0.1", port))
    client.sendall(first)
    client.setblocking(False)
    sent = push(client, word)
    if sent > LIMIT - len(word):
        sys.exit(f"flood: {sent} bytes are through, and nobody has read an answer")
    client.settimeout(60)
    read_lines(client, int(lines) if lines else sent // len(word))
    client.close()


main(int(sys.argv[1]), unescape(sys.argv[2]), unescape(sys.argv[3]), *sys.argv[4:])
