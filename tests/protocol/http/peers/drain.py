# SPDX-License-Identifier: Apache-2.0
"""drain.py SERVER [ROUNDS] [SECONDS]: stops http-test-server while wrk asks it, on every backend. It
ends in time, and wrk has received as many responses as the server has read requests. wrk runs for
SECONDS (1), and the server is stopped after half of that; ROUNDS is 1.
"""
import re
import sys
import time

import clients
import peers
from peers import expect

DEADLINE_S = 10  # of a server without --drain


def count_lines(path):
    return path.read_text().count("\n")


def drain(program, io, folder, seconds, script):
    log = folder / f"{io}.log"
    log.unlink(missing_ok=True)
    with peers.Server(program, "--io", io, "--threads", 2, "--log", log) as server:
        load = clients.start_wrk(server, seconds, script)
        peers.wait_until(lambda: log.exists() and log.stat().st_size > 0, "the first request")
        time.sleep(seconds / 2)
        began = time.monotonic()
        server.stop(DEADLINE_S + 5)
        took = time.monotonic() - began
        server.stop = lambda: None
    said = load.communicate()[0]  # it tries to connect for the rest of its time
    done = re.search(r"(\d+) requests in", said)
    read = count_lines(log)
    name = io + (", pipelined" if script else "")
    expect(done, said)
    expect(took < DEADLINE_S, f"{name}: the stop took {took:.1f} s")
    expect(int(done[1]) == read, f"{name}: {read} requests were read, {done[1]} responses came")
    print(f"{name}: {read} requests, stopped after {took * 1000:.0f} ms", flush=True)


def main(program, rounds="1", seconds="1"):
    peers.need("wrk")
    with peers.folder() as folder:
        script = folder / "pipelined.lua"
        script.write_text(clients.PIPELINED)
        for _ in range(int(rounds)):
            for io in peers.backends(program):
                for lua in (None, script):
                    drain(program, io, folder, int(seconds), lua)


if __name__ == "__main__":
    main(*sys.argv[1:])
