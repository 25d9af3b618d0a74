# SPDX-License-Identifier: Apache-2.0
"""nginx_front.py SERVER [COUNT [SECONDS]]: nginx in front of http-test-server, with persistent
connections to it. COUNT mutants (mutants.py; default 2000) must not smuggle a request past nginx,
and no request may be lost under the load of wrk.

nginx gives each request that it accepts an X-Front-Id. The server logs the id of each request that
it sees, and returns it as X-Back-Id. So a smuggled request has no id, and a response that belongs
to another request has the wrong one.
"""
import collections
import concurrent.futures
import re
import subprocess
import sys

import mutants
import peers
from peers import expect

CONFIGURATION = """
    log_format ids '$request_id $status $upstream_status';
    keepalive_requests 1000000;
    lingering_time 200ms;
    lingering_timeout 100ms;
    upstream back { server 127.0.0.1:BACK; keepalive 16; keepalive_requests 1000000; }
    server {
        listen 127.0.0.1:$port backlog=4096;
        access_log $dir/access.log ids;
        add_header X-Front-Id $request_id always;
        location / {
            proxy_pass http://back;
            proxy_http_version 1.1;
            proxy_request_buffering BUFFERING;
            proxy_ignore_client_abort on;
            proxy_next_upstream off;
            proxy_set_header Connection "";
            proxy_set_header Host $http_host;
            proxy_set_header X-Front-Id $request_id;
        }
    }
"""


def send(port, stream):
    """The responses to a mutant, as far as they can be read."""
    answer = peers.exchange(port, stream)
    try:
        return peers.responses(answer)
    except ValueError:
        return []  # cut off, or to a HEAD


def check_ids(found):
    """Each response must be that of its own request."""
    for _, fields, _ in found:
        back = fields.get("x-back-id")
        expect(back in (None, fields.get("x-front-id")), f"another request's response: {fields}")


def check_logs(front, back, stats):
    """Each request that the server saw is one that nginx has sent, once."""
    sent = {}
    for line in front.splitlines():
        request_id, status, upstream = line.split(None, 2)
        sent[request_id] = (status, upstream)
    seen = collections.Counter(line.split()[0] for line in back.splitlines())
    expect("-" not in seen, f"{seen['-']} requests were smuggled")
    twice = [request_id for request_id, count in seen.items() if count > 1]
    expect(not twice, f"seen more than once: {twice[:5]}")
    unknown = set(seen) - set(sent)
    expect(not unknown, f"never sent by nginx: {list(unknown)[:5]}")
    answered = [i for i, (_, upstream) in sent.items() if upstream.strip() not in ("-", "502")]
    unseen = set(answered) - set(seen)
    expect(len(unseen) <= stats[1], f"answered, but neither seen nor refused: {len(unseen)}")
    failed = [i for i, (_, upstream) in sent.items() if upstream.strip() == "502"]
    statuses = collections.Counter(upstream.strip() for _, upstream in sent.values())
    print(f"nginx took {len(sent)} requests, the server saw {sum(seen.values())}, "
          f"refused {stats[1]}, failed {len(failed)}; statuses {dict(statuses)}")
    return len(failed)


def check_mutants(program, buffering, count):
    with peers.folder() as folder, \
            peers.Server(program, "--log", folder / "back.log", "--threads", 2) as server, \
            peers.nginx(CONFIGURATION.replace("BACK", str(server.port))
                        .replace("BUFFERING", buffering)) as (front, port):
        streams = mutants.mutants(count, 1)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for found in pool.map(lambda stream: send(port, stream), streams):
                check_ids(found)
        answer = peers.responses(peers.exchange(
            server.port, b"GET /stats HTTP/1.1\r\nHost: a\r\nX-Front-Id: stats\r\n"
            b"Connection: close\r\n\r\n"))
        stats = [int(number) for number in answer[0][2].split()]
        access = front / "access.log"
        peers.wait_until(lambda: access.read_text().endswith("\n"), "nginx's log")
        back = (folder / "back.log").read_text().replace("stats GET /stats\n", "")
        failed = check_logs(access.read_text(), back, stats)
        expect(failed == 0, f"{failed} requests failed between nginx and the server")


def check_load(program, seconds):
    peers.need("wrk")
    with peers.Server(program, "--threads", 2) as server, \
            peers.nginx(CONFIGURATION.replace("BACK", str(server.port))
                        .replace("BUFFERING", "on")) as (front, port):
        said = subprocess.run(["wrk", "-t1", "-c64", f"-d{seconds}s", "--timeout", "60s",
                               f"http://127.0.0.1:{port}/hello"], stdout=subprocess.PIPE,
                              text=True).stdout
        done = re.search(r"(\d+) requests in", said)
        expect(done and "Socket errors" not in said and "Non-2xx" not in said, said)
        bad = [line for line in (front / "access.log").read_text().splitlines()
               if not re.search(r" (200|499) (200|-)$", line)]
        expect(not bad, f"lost under load: {bad[:5]}")
        print(f"{done[1]} requests under load, none lost")


def main(program, count="2000", seconds="1"):
    peers.need("nginx")
    for buffering in ("on", "off"):
        check_mutants(program, buffering, int(count))
    check_load(program, seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
