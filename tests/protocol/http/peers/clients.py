# SPDX-License-Identifier: Apache-2.0
"""clients.py SERVER python|node|wrk [SECONDS]: clients of other makers against http-test-server, on
every backend. wrk runs for SECONDS, 1 by default.
"""
import contextlib
import http.client
import re
import subprocess
import sys

import peers
from peers import expect


# --- Python --------------------------------------------------------------------------------------


def fetch(connection, method, path, **request):
    connection.request(method, path, **request)
    response = connection.getresponse()
    return response.status, response.read(), response


def check_python(server):
    data = peers.content(100000)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=peers.TIMEOUT_S)
    connection.connect()
    kept = connection.sock
    for _ in range(20):
        expect(fetch(connection, "GET", "/hello")[:2] == (200, b"Hello, World!\n"), "/hello")
    status, body, response = fetch(connection, "HEAD", "/text")
    expect((status, body, response.getheader("Content-Length")) == (200, b"", "102400"), "HEAD")
    pieces = [data[i:i + 777] for i in range(0, len(data), 777)]
    for path, answer in (("/sum", peers.sum_of(data)), ("/whole", peers.sum_of(data)),
                         ("/echo", data)):
        expect(fetch(connection, "POST", path, body=data)[:2] == (200, answer), path)
        chunked = fetch(connection, "POST", path, body=iter(pieces), encode_chunked=True)
        expect(chunked[:2] == (200, answer), f"{path} in chunks")
    expect(fetch(connection, "GET", "/none")[0] == 404, "404")
    expect(fetch(connection, "POST", "/none", body=b"x" * 1000)[0] == 404, "404 with content")
    expect(fetch(connection, "PUT", "/hello", body=b"x")[2].getheader("Allow") is not None, "Allow")
    expect(fetch(connection, "GET", "/big/1000000?chunked=1")[1] == peers.content(1000000), "/big")
    expect(fetch(connection, "GET", "/trailers")[1] == b"with a trailer\n", "/trailers")
    expect(fetch(connection, "OPTIONS", "*")[0] in (200, 204), "OPTIONS *")
    expect(connection.sock is kept, "the connection was not kept")
    connection.close()


# --- Node ----------------------------------------------------------------------------------------


def check_node(server):
    done = subprocess.run(["node", peers.HERE / "node_client.js", str(server.port)],
                          timeout=peers.TIMEOUT_S * 2)
    expect(done.returncode == 0, f"node_client.js ended with {done.returncode}")


# --- wrk -----------------------------------------------------------------------------------------

PIPELINED = """
init = function(args)
    all = string.rep(wrk.format("GET", "/hello"), 16)
end
request = function() return all end
"""


def start_wrk(server, seconds, script=None):
    command = ["wrk", "-t1", "-c50", f"-d{seconds}s", "--timeout", f"{peers.TIMEOUT_S}s"]
    if script:
        command += ["-s", script]
    return subprocess.Popen([*command, f"http://127.0.0.1:{server.port}/hello"],
                            stdout=subprocess.PIPE, text=True)


def check_wrk(name, server, process):
    said = process.communicate()[0]
    done = re.search(r"(\d+) requests in", said)
    expect(process.returncode == 0 and done and int(done[1]) > 0, f"{name}: {said}")
    expect("Socket errors" not in said and "Non-2xx" not in said, f"{name}: {said}")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=peers.TIMEOUT_S)
    seen, refused, _ = fetch(connection, "GET", "/stats")[1].split()
    expect(int(seen) > int(done[1]) and refused == b"0", f"{name}: the server saw {seen} {refused}")
    print(f"{name}: {done[1]} requests")


def check_all_wrk(program, seconds):
    """All backends at once, since a run takes a second at least."""
    with peers.folder() as folder:
        script = folder / "pipelined.lua"
        script.write_text(PIPELINED)
        for lua in (None, script):
            with contextlib.ExitStack() as stack:
                servers = {io: stack.enter_context(peers.Server(program, "--io", io))
                           for io in peers.backends(program)}
                runs = {io: start_wrk(server, seconds, lua) for io, server in servers.items()}
                for io, server in servers.items():
                    check_wrk(io + (", pipelined" if lua else ""), server, runs[io])


def main(program, client, seconds="1"):
    if client == "wrk":
        peers.need("wrk")
        check_all_wrk(program, seconds)
        return
    if client == "node":
        peers.need("node")
    for io in peers.backends(program):
        with peers.Server(program, "--io", io) as server:
            {"python": check_python, "node": check_node}[client](server)
            print(f"{io}: ok", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
