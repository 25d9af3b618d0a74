# SPDX-License-Identifier: Apache-2.0
"""drive.py node|python|chromium SERVER CLIENT: an implementation of another maker as the client of
ws-test-server, on every backend, and as the server of ws-test-client. Its own part is peer.js,
peer.py or browser.js; it gets one argument, JSON:

    ports    of the servers
    tls      their port with TLS, that of the first one; 0 = none
    cert     and key, self-signed for 127.0.0.1
    clients  commands of ws-test-client, to which the URL of a server is appended
"""
import contextlib
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "http/peers"))
import peers  # noqa: E402: the path comes first

TIMEOUT_S = 120


def make_certificate(folder):
    """A key and a certificate that is its own authority."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True, stderr=subprocess.DEVNULL)
    return str(cert), str(key)


def python_with_websockets():
    """The interpreter that runs this may not be the one of the distribution's packages."""
    for python in (sys.executable, "/usr/bin/python3"):
        done = subprocess.run([python, "-c", "import websockets"], stderr=subprocess.DEVNULL)
        if done.returncode == 0:
            return python
    peers.skip("Python's websockets is not installed")


def node_with(package):
    peers.need("node")
    if subprocess.run(["node", "-e", f"require('{package}')"],
                      stderr=subprocess.DEVNULL).returncode != 0:
        peers.skip(f"{package} of npm is not installed: python3 tools/npm_packages.py")
    return "node"


def command_of(peer):
    if peer == "python":
        return [python_with_websockets(), HERE / "peer.py"]
    if peer == "node":
        return [node_with("ws"), HERE / "peer.js"]
    peers.need("chromium")
    return [node_with("playwright-core"), HERE / "browser.js"]


def main(peer, server, client):
    command = command_of(peer)
    peers.need("openssl")
    with peers.folder() as folder, contextlib.ExitStack() as stack:
        cert, key = make_certificate(folder)
        ios = peers.backends(server) if peer != "chromium" else ["epoll"]
        tls = ["--cert", cert, "--key", key]
        has_tls = subprocess.run([server, "--probe", *tls],
                                 stderr=subprocess.DEVNULL).returncode == 0
        servers = []
        for io in ios:
            extra = tls if has_tls and not servers else []
            servers.append(stack.enter_context(peers.Server(
                server, "--io", io, *extra, addresses=2 if extra else 1)))
        task = {
            "ports": [one.port for one in servers],
            "tls": servers[0].ports[1] if has_tls else 0,
            "cert": cert,
            "key": key,
            "clients": [[client, "--io", io] for io in ios if io != "blocking"],
        }
        done = subprocess.run([*command, json.dumps(task)], timeout=TIMEOUT_S, env=os.environ)
        peers.expect(done.returncode == 0, f"{peer} ended with status {done.returncode}")


if __name__ == "__main__":
    main(*sys.argv[1:])
