#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""commands.py PORT [quick]: the text protocol's commands, their errors and their order, and what
the store does when it is full or an item has expired, unless it has to be quick. The server has
4 MiB and takes values of up to 100,000 bytes."""
import socket
import sys
import time

PATIENCE = 60  # seconds

# The bytes to send, and the whole answer.
DIALOGUES = [
    (b"set a 5 0 3\r\nabc\r\n", b"STORED\r\n"),
    (b"get a\r\n", b"VALUE a 5 3\r\nabc\r\nEND\r\n"),
    (b"get a none a\r\n", b"VALUE a 5 3\r\nabc\r\nVALUE a 5 3\r\nabc\r\nEND\r\n"),
    (b"add a 0 0 1\r\nx\r\n", b"NOT_STORED\r\n"),
    (b"add b 0 0 1\r\nx\r\n", b"STORED\r\n"),
    (b"replace none 0 0 1\r\nx\r\n", b"NOT_STORED\r\n"),
    (b"replace b 1 0 1\r\ny\r\n", b"STORED\r\n"),
    (b"append b 0 0 2\r\nzz\r\nprepend b 0 0 1\r\nx\r\nget b\r\n",
     b"STORED\r\nSTORED\r\nVALUE b 1 4\r\nxyzz\r\nEND\r\n"),
    (b"append none 0 0 1\r\nx\r\n", b"NOT_STORED\r\n"),
    (b"cas none 0 0 1 1\r\nx\r\n", b"NOT_FOUND\r\n"),
    (b"cas a 0 0 1 999999999\r\nx\r\n", b"EXISTS\r\n"),
    (b"set n 0 0 2\r\n10\r\nincr n 5\r\ndecr n 100\r\n", b"STORED\r\n15\r\n0\r\n"),
    (b"set n 0 0 20\r\n18446744073709551615\r\nincr n 2\r\n", b"STORED\r\n1\r\n"),
    (b"incr none 1\r\n", b"NOT_FOUND\r\n"),
    (b"incr a 1\r\n", b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
    (b"incr n x\r\n", b"CLIENT_ERROR invalid numeric delta argument\r\n"),
    (b"delete b\r\ndelete b\r\n", b"DELETED\r\nNOT_FOUND\r\n"),
    (b"delete a 1 2\r\n",
     b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"),
    (b"touch a 100\r\ntouch none 100\r\n", b"TOUCHED\r\nNOT_FOUND\r\n"),
    (b"gat 100 a none\r\n", b"VALUE a 5 3\r\nabc\r\nEND\r\n"),
    (b"gat x a\r\n", b"CLIENT_ERROR invalid exptime argument\r\n"),
    (b"set a 0 -1 1\r\nx\r\nget a\r\n", b"STORED\r\nEND\r\n"),  # it has expired already
    (b"set a 0 0 1 noreply\r\nx\r\nget a\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\n"),
    (b"delete a noreply\r\nget a\r\n", b"END\r\n"),
    (b"set empty 0 0 0\r\n\r\nget empty\r\n", b"STORED\r\nVALUE empty 0 0\r\n\r\nEND\r\n"),
    (b"nonsense\r\n", b"ERROR\r\n"),
    (b"\r\n", b"ERROR\r\n"),
    (b"get\r\n", b"ERROR\r\n"),
    (b"get " + b"k" * 251 + b"\r\n", b"CLIENT_ERROR bad command line format\r\n"),
    (b"set a 0 0 -1\r\n", b"CLIENT_ERROR bad data chunk\r\n"),
    (b"set a 0 0 1\r\nxyz", b"CLIENT_ERROR bad data chunk\r\n"),
    (b"set a 0 0 100001\r\n" + b"x" * 100001 + b"\r\n",
     b"SERVER_ERROR object too large for cache\r\n"),
    (b"verbosity 1\r\nflush_all\r\nget n\r\n", b"OK\r\nOK\r\nEND\r\n"),
]


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.file = self.socket.makefile("rb")

    def ask(self, words):
        self.socket.sendall(words)

    def read(self, length):
        return self.file.read(length)

    def lines_until(self, last):
        lines = []
        while not lines or lines[-1] != last:
            line = self.file.readline()
            if not line:
                sys.exit(f"commands: the connection ended after {lines[-3:]}")
            lines.append(line)
        return lines[:-1]


def expect(got, wanted, words):
    if got != wanted:
        sys.exit(f"commands: {words[:60]} was answered with {got[:200]}, not {wanted[:200]}")


def try_dialogues(port):
    """Each by itself, byte by byte in the beginning; and all at once, which needs their order."""
    for words, wanted in DIALOGUES:
        client = Client(port)
        for i in range(min(len(words), 20)):
            client.ask(words[i : i + 1])
        client.ask(words[20:])
        client.socket.shutdown(socket.SHUT_WR)
        expect(client.read(len(wanted)), wanted, words)
    client = Client(port)
    client.ask(b"".join(words for words, _ in DIALOGUES if not words.endswith(b"xyz")))
    for words, wanted in DIALOGUES:
        if not words.endswith(b"xyz"):
            expect(client.read(len(wanted)), wanted, words)


def try_cas(port):
    client = Client(port)
    client.ask(b"set c 0 0 1\r\n1\r\ngets c\r\n")
    unique = client.lines_until(b"END\r\n")[1].split()[-1]
    client.ask(b"cas c 0 0 1 %s\r\n2\r\ncas c 0 0 1 %s\r\n3\r\nget c\r\n" % (unique, unique))
    wanted = b"STORED\r\nEXISTS\r\nVALUE c 0 1\r\n2\r\nEND\r\n"
    expect(client.read(len(wanted)), wanted, b"cas")


def try_order(port):
    """Keys of all shards, asked for in one line: the answer has their order."""
    client = Client(port)
    keys = [b"key-%d" % i for i in range(200)]
    client.ask(b"".join(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(key), key) for key in keys))
    expect(client.read(8 * len(keys)), b"STORED\r\n" * len(keys), b"set")
    client.ask(b"get " + b" ".join(keys) + b"\r\n")
    values = client.lines_until(b"END\r\n")[1::2]
    expect(b"".join(values), b"".join(key + b"\r\n" for key in keys), b"get of 200 keys")


def try_expiry(port):
    client = Client(port)
    client.ask(b"set e 0 1 1\r\nx\r\n")
    client.read(8)
    end = time.monotonic() + PATIENCE
    answer = [b""]
    while answer and time.monotonic() < end:
        time.sleep(0.1)
        client.ask(b"get e\r\n")
        answer = client.lines_until(b"END\r\n")
    expect(b"".join(answer), b"", b"an item of one second")


def try_memory(port):
    """Ten times as much as there is room for: the newest is there, the oldest is not."""
    client = Client(port)
    value = b"x" * 50000
    for i in range(800):
        client.ask(b"set m-%d 0 0 %d noreply\r\n%s\r\n" % (i, len(value), value))
    client.ask(b"get m-0\r\n")
    expect(b"".join(client.lines_until(b"END\r\n")), b"", b"the oldest")
    client.ask(b"get m-799\r\n")
    expect(b"".join(client.lines_until(b"END\r\n")[1:]), value + b"\r\n", b"the newest")
    client.ask(b"stats\r\n")
    stats = dict(line.split()[1:3] for line in client.lines_until(b"END\r\n"))
    if int(stats[b"bytes"]) > int(stats[b"limit_maxbytes"]) or int(stats[b"evictions"]) == 0:
        sys.exit(f"commands: the store is beyond its limit: {stats}")


def try_long_line(port):
    client = Client(port)
    client.ask(b"get " + b"k" * 70000)
    expect(client.read(-1), b"CLIENT_ERROR line too long\r\n", b"a line without end")


def main(port, quick=None):
    try_dialogues(port)
    try_cas(port)
    try_order(port)
    try_long_line(port)
    if quick is None:
        try_expiry(port)
        try_memory(port)


main(int(sys.argv[1]), *sys.argv[2:])
