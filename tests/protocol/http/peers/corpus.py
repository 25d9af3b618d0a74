# SPDX-License-Identifier: Apache-2.0
"""Requests and responses, valid and nearly valid, whose framing matters: the seeds of mutants.py.

Each is a stream of bytes that begins with a message; some have a second one behind it.
"""


def request(line, *fields, body=b""):
    """A request of lines without their ends."""
    return b"".join(part + b"\r\n" for part in (line, *fields)) + b"\r\n" + body


def get(*fields):
    return request(b"GET / HTTP/1.1", b"Host: weir.example", *fields)


def post(*fields, body=b""):
    return request(b"POST /upload HTTP/1.1", b"Host: weir.example", *fields, body=body)


def chunked(*chunks, fields=(), trailers=b"", last=b"0\r\n"):
    """A POST in chunks: each is bytes, or the line and the bytes of a chunk."""
    body = b""
    for chunk in chunks:
        line, data = chunk if isinstance(chunk, tuple) else (b"%x" % len(chunk), chunk)
        body += line + b"\r\n" + data + b"\r\n"
    return post(b"Transfer-Encoding: chunked", *fields, body=body + last + trailers + b"\r\n")


SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: weir.example\r\n\r\n"

REQUESTS = [
    # start lines and targets
    get(),
    get(b"User-Agent: curl/8.0", b"Accept: */*"),
    request(b"GET /path?query=1&b=%20 HTTP/1.1", b"Host: weir.example:8080"),
    request(b"GET http://weir.example/absolute?x HTTP/1.1", b"Host: weir.example"),
    request(b"GET http://weir.example/absolute HTTP/1.1", b"Host: other.example"),
    request(b"GET https://weir.example:443/a HTTP/1.1", b"Host: weir.example:443"),
    request(b"GET http://user@weir.example/ HTTP/1.1", b"Host: weir.example"),
    request(b"GET http://[::1]:80/ HTTP/1.1", b"Host: [::1]:80"),
    request(b"OPTIONS * HTTP/1.1", b"Host: weir.example"),
    request(b"CONNECT weir.example:443 HTTP/1.1", b"Host: weir.example:443"),
    request(b"HEAD / HTTP/1.1", b"Host: weir.example"),
    request(b"DELETE /a HTTP/1.1", b"Host: weir.example"),
    request(b"PATCH /a HTTP/1.1", b"Host: weir.example", b"Content-Length: 2", body=b"ab"),
    request(b"PROPFIND /a HTTP/1.1", b"Host: weir.example", b"Depth: 1"),
    request(b"GET / HTTP/1.0"),
    request(b"GET / HTTP/1.0", b"Host: weir.example", b"Connection: keep-alive"),
    request(b"POST / HTTP/1.0", b"Content-Length: 3", b"Connection: keep-alive", body=b"abc"),
    request(b"POST / HTTP/1.0", b"Transfer-Encoding: chunked", body=b"3\r\nabc\r\n0\r\n\r\n"),
    request(b"GET / HTTP/2.0", b"Host: weir.example"),
    request(b"GET / HTTP/1.2", b"Host: weir.example"),
    request(b"GET / http/1.1", b"Host: weir.example"),
    request(b"GET / HTTP/1.10", b"Host: weir.example"),
    request(b"GET  / HTTP/1.1", b"Host: weir.example"),
    request(b"GET / HTTP/1.1 ", b"Host: weir.example"),
    request(b"get / HTTP/1.1", b"Host: weir.example"),
    request(b"GET /a b HTTP/1.1", b"Host: weir.example"),
    b"\r\n\r\n" + get(),
    b"\n" + get(),
    b"GET /\r\n",
    # Host
    request(b"GET / HTTP/1.1"),
    request(b"GET / HTTP/1.1", b"Host:"),
    request(b"GET / HTTP/1.1", b"Host: a", b"Host: b"),
    request(b"GET / HTTP/1.1", b"Host: a", b"Host: a"),
    request(b"GET / HTTP/1.1", b"Host: a b"),
    request(b"GET / HTTP/1.1", b"Host: a/b"),
    request(b"GET / HTTP/1.1", b"Host: user@a"),
    request(b"GET / HTTP/1.1", b"Host: a:x"),
    # fields
    get(b"X: \tvalue \t"),
    get(b"X:"),
    get(b"X : value"),
    get(b" X: value"),
    get(b"X: a", b" folded"),
    get(b"X: a", b"\tfolded"),
    get(b"X: \x00"),
    get(b"X: \xe4\xf6"),
    get(b"X\x00: a"),
    get(b"X(: a"),
    get(b": a"),
    get(b"no colon"),
    b"GET / HTTP/1.1\nHost: a\n\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n\n",
    b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
    get(b"Connection: close"),
    get(b"Connection: keep-alive, X", b"X: a"),
    get(b"Connection: upgrade", b"Upgrade: websocket"),
    get(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk"),
    get(b"Expect: 100-continue", b"Content-Length: 0"),
    # lengths
    post(b"Content-Length: 5", body=b"hello"),
    post(b"Content-Length: 0"),
    post(b"Content-Length: 005", body=b"hello"),
    post(b"Content-Length: +5", body=b"hello"),
    post(b"Content-Length: -5", body=b"hello"),
    post(b"Content-Length: 5 5", body=b"hello"),
    post(b"Content-Length: 5, 5", body=b"hello"),
    post(b"Content-Length: 5", b"Content-Length: 5", body=b"hello"),
    post(b"Content-Length: 5", b"Content-Length: 6", body=b"hello "),
    post(b"Content-Length: 0x5", body=b"hello"),
    post(b"Content-Length:"),
    post(b"Content-Length: 9223372036854775808", body=b"hello"),
    post(b"Content-Length : 5", body=b"hello"),
    post(b"Content-Length: 47", body=SMUGGLED),
    get(b"Content-Length: 5") + b"hello",
    # transfer codings
    chunked(b"hello", b" world"),
    chunked(b"hello", trailers=b"X-Checksum: abc\r\n"),
    chunked(b"hello", trailers=b"Content-Length: 5\r\n"),
    chunked((b"5;name=value", b"hello")),
    chunked((b"5; name=\"a;b\"", b"hello")),
    chunked((b"5 ;x", b"hello")),
    chunked((b"05", b"hello"), last=b"00\r\n"),
    chunked((b"5\t", b"hello")),
    chunked((b"0x5", b"hello")),
    chunked((b"5", b"hello+")),
    chunked((b"A", b"0123456789"), (b"a", b"0123456789")),
    chunked((b"ffffffffffffffff5", b"hello")),
    chunked(b"hello", last=b"0;x\r\n"),
    chunked(b"hello", last=b"0\n"),
    chunked(b"hello", fields=(b"Content-Length: 4",)),
    chunked(b"hello", fields=(b"Transfer-Encoding: chunked",)),
    post(b"Content-Length: 4", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    post(b"Transfer-Encoding: Chunked", body=b"0\r\n\r\n"),
    post(b"Transfer-Encoding: xchunked", body=b"0\r\n\r\n"),
    post(b"Transfer-Encoding: chunked, identity", body=b"0\r\n\r\n"),
    post(b"Transfer-Encoding: identity, chunked", body=b"0\r\n\r\n"),
    post(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),
    post(b"Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n"),
    post(b"Transfer-Encoding: identity", b"Content-Length: 5", body=b"hello"),
    post(b"Transfer-Encoding: gzip", body=b"hello"),
    post(b"Transfer-Encoding:", b"Content-Length: 5", body=b"hello"),
    post(b"Transfer-Encoding: \x0bchunked", body=b"0\r\n\r\n"),
    post(b"Transfer-Encoding : chunked", body=b"0\r\n\r\n"),
    post(b"Transfer-Encoding: chunked;q=1", body=b"0\r\n\r\n"),
    post(b"Transfer-Encoding: \"chunked\"", body=b"0\r\n\r\n"),
    post(b"Transfer_Encoding: chunked", b"Content-Length: 5", body=b"0\r\n\r\n"),
    get(b"Transfer-Encoding: chunked") + b"0\r\n\r\n",
    chunked(b"hello") + SMUGGLED,
    get() + get(b"X: second"),
]


def response(*fields, line=b"HTTP/1.1 200 OK", body=b""):
    return request(line, *fields, body=body)


CHUNKED = b"Transfer-Encoding: chunked"

RESPONSES = [
    response(b"Content-Length: 5", body=b"hello"),
    response(b"Content-Length: 0"),
    response(b"Content-Length: 5", b"Connection: close", body=b"hello"),
    response(b"Content-Length: 5", b"Content-Type: text/plain", b"Date: now", body=b"hello"),
    response(line=b"HTTP/1.1 204 No Content"),
    response(line=b"HTTP/1.1 304 Not Modified"),
    response(b"Content-Length: 5", line=b"HTTP/1.1 304 Not Modified"),
    response(b"Content-Length: 5", line=b"HTTP/1.1 204 No Content"),
    response(CHUNKED, line=b"HTTP/1.1 204 No Content"),
    response(body=b"up to the end"),
    response(b"Connection: close", body=b"up to the end"),
    response(line=b"HTTP/1.1 100 Continue") + response(b"Content-Length: 5", body=b"hello"),
    response(b"Link: <a>", line=b"HTTP/1.1 103 Early Hints") + response(b"Content-Length: 0"),
    response(b"Content-Length: 5", line=b"HTTP/1.1 100 Continue") + response(b"Content-Length: 0"),
    response(b"Upgrade: x", b"Connection: upgrade", line=b"HTTP/1.1 101 Switching", body=b"bytes"),
    response(b"Content-Length: 5", line=b"HTTP/1.0 200 OK", body=b"hello"),
    response(b"Content-Length: 5", b"Connection: keep-alive", line=b"HTTP/1.0 200 OK",
             body=b"hello"),
    response(CHUNKED, line=b"HTTP/1.0 200 OK", body=b"5\r\nhello\r\n0\r\n\r\n"),
    response(line=b"HTTP/1.1 200"),
    response(b"Content-Length: 0", line=b"HTTP/1.1 200 "),
    response(b"Content-Length: 0", line=b"HTTP/1.1 200 \xe4 odd\treason"),
    response(b"Content-Length: 0", line=b"HTTP/1.1 20 OK"),
    response(b"Content-Length: 0", line=b"HTTP/1.1 2000 OK"),
    response(b"Content-Length: 0", line=b"HTTP/1.1 099 OK"),
    response(b"Content-Length: 0", line=b"HTTP/1.1 999 OK"),
    response(b"Content-Length: 0", line=b"HTTP/2 200 OK"),
    response(b"Content-Length: 0", line=b"HTTP/1.1  200 OK"),
    response(b"Content-Length: 0", line=b"ICY 200 OK"),
    response(CHUNKED, body=b"5\r\nhello\r\n0\r\n\r\n"),
    response(CHUNKED, body=b"5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n"),
    response(CHUNKED, b"Content-Length: 5", body=b"5\r\nhello\r\n0\r\n\r\n"),
    response(b"Transfer-Encoding: gzip", body=b"up to the end"),
    response(b"Transfer-Encoding: gzip, chunked", body=b"5\r\nhello\r\n0\r\n\r\n"),
    response(b"Transfer-Encoding: chunked, gzip", body=b"5\r\nhello\r\n0\r\n\r\n"),
    response(b"Transfer-Encoding: identity", b"Content-Length: 5", body=b"hello"),
    response(CHUNKED, CHUNKED, body=b"5\r\nhello\r\n0\r\n\r\n"),
    response(b"Content-Length: 5", b"Content-Length: 5", body=b"hello"),
    response(b"Content-Length: 5", b"Content-Length: 6", body=b"hello "),
    response(b"Content-Length: 5, 5", body=b"hello"),
    response(b"Content-Length: +5", body=b"hello"),
    response(b"Content-Length : 5", body=b"hello"),
    response(b"Content-Length: 5", b" folded", body=b"hello"),
    response(b"X: a", b" folded", b"Content-Length: 5", body=b"hello"),
    response(b"X : a", b"Content-Length: 5", body=b"hello"),
    response(b"X: \x00", b"Content-Length: 5", body=b"hello"),
    b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\nhello",
    b"\r\n" + response(b"Content-Length: 5", body=b"hello"),
    response(b"Content-Length: 5", body=b"hello") + response(b"Content-Length: 2", body=b"ab"),
]
