#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""upstream.py PATH: a server on the Unix socket PATH that expects a PROXY header of version 2. It
reads each connection to its end, and only then answers: the fields of the header, a line each, and
the number of bytes received."""
import socket
import struct
import sys

TYPES = {0x01: "alpn", 0x02: "authority", 0x21: "version", 0x22: "cn", 0x23: "cipher"}


def read(client, length):
    data = b""
    while len(data) < length:
        piece = client.recv(length - len(data))
        if not piece:
            sys.exit("upstream: the header is truncated")
        data += piece
    return data


def tlvs(data):
    while data:
        kind, length = struct.unpack(">BH", data[:3])
        value, data = data[3 : 3 + length], data[3 + length :]
        if kind == 0x20:
            flags, verify = struct.unpack(">BI", value[:5])
            yield f"ssl {flags} {verify}"
            yield from tlvs(value[5:])
        else:
            yield f"{TYPES.get(kind, kind)} {value.decode()}"


def header(client):
    signature, command, family, length = struct.unpack(">12sBBH", read(client, 16))
    if signature != b"\r\n\r\n\0\r\nQUIT\n" or command != 0x21 or family != 0x11:
        sys.exit("upstream: this is not a PROXY header for TCP over IPv4")
    data = read(client, length)
    source, _, port, _ = struct.unpack(">4s4sHH", data[:12])
    yield f"source {socket.inet_ntoa(source)} {port}"
    yield from tlvs(data[12:])


def main(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    while True:
        client, _ = listener.accept()
        lines, count = list(header(client)), 0
        while piece := client.recv(65536):
            count += len(piece)
        client.sendall("\n".join(lines + [f"bytes {count}", ""]).encode())
        client.close()


main(sys.argv[1])
