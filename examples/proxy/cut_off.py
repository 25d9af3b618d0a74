#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cut_off.py PROGRAM ARGUMENTS: starts a proxy that serves TLS, with these arguments. The end of a
client's TLS is passed on as the end of a stream; that it was cut off without one, as a reset."""
import socket
import ssl
import subprocess
import sys


def visit(target, port, with_end):
    """What the target hears of a client that says hello and goes."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    client = socket.create_connection(("127.0.0.1", port), timeout=40)
    client = context.wrap_socket(client, suppress_ragged_eofs=False)
    server, _ = target.accept()
    server.settimeout(40)
    client.sendall(b"hello")
    heard = server.recv(5, socket.MSG_WAITALL)
    if with_end:
        client.setblocking(False)
        try:
            client.unwrap()
        except ssl.SSLWantReadError:
            pass  # the other direction has not ended
    else:
        client.shutdown(socket.SHUT_WR)
    try:
        heard += server.recv(1)
    except ConnectionResetError:
        heard += b", reset"
    client.close()
    server.close()
    return heard


def main():
    target = socket.create_server(("127.0.0.1", 0))
    target.settimeout(40)
    to = "127.0.0.1:%d" % target.getsockname()[1]
    proxy = subprocess.Popen([*sys.argv[1:], "--to", to, "--port", "0"], stdout=subprocess.PIPE,
                             text=True)
    try:
        port = int(proxy.stdout.readline().rsplit(":", 1)[1])
        assert visit(target, port, True) == b"hello"
        assert visit(target, port, False) == b"hello, reset"
    finally:
        proxy.kill()
        proxy.wait()


main()
