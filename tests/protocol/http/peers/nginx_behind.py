# SPDX-License-Identifier: Apache-2.0
"""nginx_behind.py REVERSE_PROXY [COUNT [SECONDS]]: nginx behind examples/reverse-proxy, with
persistent connections between them. COUNT mutants (mutants.py; default 2000) must not smuggle a
request past the proxy, and no request may be lost under the load of wrk.

The proxy adds X-Forwarded-For to each request that it has accepted: a smuggled one has none. nginx
gives each request an id, which goes back to the client: each must arrive once at most.
"""
import collections
import concurrent.futures
import contextlib
import re
import socket
import subprocess
import sys

import mutants
import peers
from peers import expect

QUIET_S = 0.3

CONFIGURATION = """
    log_format ids '$request_id $status "$http_x_forwarded_for" $request';
    keepalive_requests 1000000;
    server {
        listen 127.0.0.1:$port backlog=4096;
        access_log $dir/access.log ids;
        add_header X-Origin-Id $request_id always;
        add_header X-Origin-Uri $request_uri always;
        location / { return 200 "from nginx\\n"; }
    }
"""


def start_proxy(program, port):
    return peers.Server(program, "--port", 0, "--threads", 2, "--upstream", f"127.0.0.1:{port}",
                        "--check-path", "/health")


def exchange(port, stream):
    """As peers.exchange, but the stream ends only when the last answer has come, or nothing comes
    any more: the proxy forwards nothing for a client that has left."""
    answer = b""
    with peers.connect(port, QUIET_S) as one:
        with contextlib.suppress(ConnectionError, TimeoutError):
            one.sendall(stream)
            while b"/canary" not in answer or not answer.endswith(b"from nginx\n"):
                piece = one.recv(1 << 16)
                if not piece:
                    return answer
                answer += piece
        one.settimeout(peers.TIMEOUT_S)
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_WR)
        return answer + peers.read_all(one)


def send(port, stream):
    """The responses to a mutant, as far as they can be read."""
    try:
        return peers.responses(exchange(port, stream))
    except ValueError:
        return []  # cut off, or to a HEAD


def origin_ids(found):
    return [fields["x-origin-id"] for _, fields, _ in found if "x-origin-id" in fields]


def has_logged(log, ids):
    return log.endswith("\n") and set(ids) <= {line.split(None, 1)[0] for line in log.splitlines()}


def check_logs(log, found):
    """Each request that nginx saw came through the proxy's parser."""
    ids = set()
    for line in log.splitlines():
        request_id, status, rest = line.split(None, 2)
        if " /health " in rest:
            continue
        ids.add(request_id)
        expect(not rest.startswith('"-"') or status == "400", f"smuggled: {line}")
    seen = collections.Counter(origin_ids(found))
    expect(all(count == 1 for count in seen.values()), "a response was sent twice")
    expect(set(seen) <= ids, "a response that nginx never sent")
    statuses = collections.Counter(status for status, _, _ in found)
    print(f"nginx saw {len(ids)} requests, clients {len(found)} responses: {dict(statuses)}")
    expect(len(seen) > 100, "too few requests were forwarded")
    expect(statuses[502] == 0, f"{statuses[502]} requests were lost between the proxy and nginx")


def check_mutants(program, count):
    with peers.nginx(CONFIGURATION) as (folder, origin), start_proxy(program, origin) as proxy:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda stream: send(proxy.port, stream),
                                  mutants.mutants(count, 1)))
        for responses in found:
            canaries = [fields for _, fields, _ in responses
                        if fields.get("x-origin-uri") == "/canary"]
            expect(len(canaries) <= 1, f"{len(canaries)} answers to one request")
        access = folder / "access.log"
        all_found = [response for one in found for response in one]
        # nginx logs a request after its response has been sent
        peers.wait_until(lambda: has_logged(access.read_text(), origin_ids(all_found)),
                         "a log of all that nginx has sent")
        check_logs(access.read_text(), all_found)


def check_load(program, seconds):
    peers.need("wrk")
    with peers.nginx(CONFIGURATION) as (folder, origin), start_proxy(program, origin) as proxy:
        said = subprocess.run(["wrk", "-t1", "-c64", f"-d{seconds}s", "--timeout", "60s",
                               f"http://127.0.0.1:{proxy.port}/hello"], stdout=subprocess.PIPE,
                              text=True).stdout
        done = re.search(r"(\d+) requests in", said)
        expect(done and "Socket errors" not in said and "Non-2xx" not in said, said)
        access = folder / "access.log"
        peers.wait_until(lambda: access.read_text().count("/hello ") >= int(done[1]),
                         f"that nginx has seen {done[1]} requests")
        print(f"{done[1]} requests under load, none lost")


def main(program, count="2000", seconds="1"):
    peers.need("nginx")
    check_mutants(program, int(count))
    check_load(program, seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
