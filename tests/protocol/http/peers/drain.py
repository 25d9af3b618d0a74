# SPDX-License-Identifier: Apache-2.0
"""drain.py SERVER [ROUNDS] [SECONDS]: stops http-test-server while wrk asks it, on every backend.
It ends in time, and wrk has received as many responses as the server has read requests. The server
is stopped after half of SECONDS (1), wrk when the server has ended; ROUNDS is 1.
"""
import pathlib
import re
import signal
import sys
import time

import clients
import peers
from peers import expect

DEADLINE_S = 10  # of a server without --drain
LOAD_S = 60  # longer than a run takes: wrk must not end by itself, with requests under way


def count_lines(path):
    return path.read_text().count("\n")


def has_unread(port):
    """True if a client of the port has not read everything that the kernel has for it."""
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, _, remote, _, queues = line.split()[:5]
        if int(remote.split(":")[1], 16) == port and int(queues.split(":")[1], 16) > 0:
            return True
    return False


class Run:
    """A server under load."""

    def __init__(self, program, io, folder, script):
        self.name = io + (", pipelined" if script else "")
        self.log = folder / f"{io}.log"
        self.log.unlink(missing_ok=True)
        self.server = peers.Server(program, "--io", io, "--threads", 2, "--log", self.log)
        self.load = None

    def start_load(self, script):
        self.load = clients.start_wrk(self.server, LOAD_S, script)

    def stop(self, began):
        self.server.stop(DEADLINE_S + 5)
        self.took_s = time.monotonic() - began

    def check(self):
        end = time.monotonic() + DEADLINE_S
        while has_unread(self.server.port) and time.monotonic() < end:
            time.sleep(0.01)
        self.load.send_signal(signal.SIGINT)  # prints what it has counted
        said = self.load.communicate()[0]
        done = re.search(r"(\d+) requests in", said)
        read = count_lines(self.log)
        expect(done, said)
        expect(read > 0, f"{self.name}: no request was read")
        expect(self.took_s < DEADLINE_S, f"{self.name}: the stop took {self.took_s:.1f} s")
        expect(int(done[1]) == read,
               f"{self.name}: {read} requests were read, {done[1]} responses came")
        took_ms = self.took_s * 1000
        print(f"{self.name}: {read} requests, stopped after {took_ms:.0f} ms", flush=True)


def main(program, rounds="1", seconds="1"):
    """All backends at once, since a run takes a second at least."""
    peers.need("wrk")
    with peers.folder() as folder:
        script = folder / "pipelined.lua"
        script.write_text(clients.PIPELINED)
        for _ in range(int(rounds)):
            for lua in (None, script):
                runs = [Run(program, io, folder, lua) for io in peers.backends(program)]
                for run in runs:
                    run.start_load(lua)
                time.sleep(int(seconds) / 2)
                began = time.monotonic()
                for run in runs:  # all at once, long before wrk ends by itself
                    run.server.terminate()
                for run in runs:
                    run.stop(began)
                for run in runs:
                    run.check()


if __name__ == "__main__":
    main(*sys.argv[1:])
