#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""burst.py PORT PID COUNT: while the server PID is stopped, COUNT clients connect. All of them must
find room in its listen queue: those that do not would wait a second and more for the next try."""
import os
import select
import signal
import socket
import sys
import time

PATIENCE = 30  # seconds


def connect(port):
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(("127.0.0.1", port))
    return client


def await_stop(pid):
    """A thread that is still in accept(2) would make room that the listen queue does not have."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            if stat.read().rsplit(")", 1)[1].split()[0] == "T":
                return
        time.sleep(0.01)
    sys.exit(f"burst: process {pid} has not stopped")


def count_connected(clients):
    """A connection on loopback is established at once, or not before the server accepts."""
    return len(select.select([], clients, [], 0)[1])


def main(port, pid, count):
    with open("/proc/sys/net/core/somaxconn", encoding="utf-8") as limit:
        count = min(count, int(limit.read()))
    os.kill(pid, signal.SIGSTOP)
    try:
        await_stop(pid)
        clients = [connect(port) for _ in range(count)]
        connected = count_connected(clients)
    finally:
        os.kill(pid, signal.SIGCONT)
    if connected < count:
        sys.exit(f"burst: only {connected} of {count} clients found room")


main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
