# SPDX-License-Identifier: Apache-2.0
"""mutants.py requests|responses COUNT [SEED]: streams of bytes around the edges of HTTP/1.1
framing, as the records that http_parse.c reads: the length in 4 bytes, lowest first, then the
bytes.

The seeds of corpus.py come first, unchanged; then mutants of them, with one to three changes each.
The same COUNT and SEED give the same mutants. Behind each stands a canary, another message: a
parser that takes too much or too little for the mutant does not see it, or sees something else.
"""
import random
import re
import struct
import sys

import corpus

CANARY = {
    "requests": b"GET /canary HTTP/1.1\r\nHost: canary\r\n\r\n",
    "responses": b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ncanary",
}

SEEDS = {"requests": corpus.REQUESTS, "responses": corpus.RESPONSES}

BYTES = [b"\r", b"\n", b"\r\n", b"\t", b" ", b"\x00", b"\x0b", b"\x0c", b"\x7f", b"\x80", b"\xff",
         b":", b",", b";", b"=", b"\"", b"\\", b"0", b"1", b"9", b"a", b"F", b"x", b"+", b"-",
         b"_", b".", b"/", b"?", b"#", b"%", b"@", b"[", b"]", b"(", b"{", b"*", b"\x01", b"\x1f"]

LINE_ENDS = [b"\n", b"\r", b"\r\r\n", b"\n\r", b"\r\n\r\n", b" \r\n", b"\t\r\n", b"\r\n ",
             b"\r\n\t",
             b"\x00\r\n", b"\r\x00\n", b""]

LENGTHS = [b"0", b"1", b"3", b"5", b"6", b"00", b"05", b"+5", b"-1", b"-0", b"5 ", b" 5", b"5\t",
           b"5,5", b"5, 5", b"5,6", b"5;", b"0x5", b"5.0", b"5e0", b"1 0", b"1_0", b"",
           b",5", b"5,",
           b"18446744073709551616", b"18446744073709551621", b"9223372036854775807",
           b"4294967301", b"999999999999999999", b"9999999999999999999", b"\xd9\xa5", b"\"5\""]

CODINGS = [b"chunked", b"Chunked", b"CHUNKED", b"chunked,", b",chunked", b"chunked, chunked",
           b"identity", b"identity, chunked", b"chunked, identity", b"gzip", b"gzip, chunked",
           b"chunked;a=b", b"chunked; a", b" chunked", b"chunked ", b"chunked\t", b"\tchunked",
           b"x-chunked", b"chunke", b"chunkedx", b"chunk ed", b"\"chunked\"", b"'chunked'", b"",
           b"chunked\x00", b"\x00chunked", b"chunked\x0b", b"cHuNkEd", b"deflate,gzip",
           b"trailers", b"chunked\r\n ", b"\r\n chunked", b"\r\n\tchunked", b"nothing"]

FIELDS = [b"Content-Length: %s" % length for length in LENGTHS] + \
         [b"Transfer-Encoding: %s" % coding for coding in CODINGS] + [
    b"Content-Length : 5", b"Content-Length\t: 5", b"Content-Length:5", b"content-length: 5",
    b"Content_Length: 5", b"Content-Length\x00: 5", b" Content-Length: 5", b"Content-Length 5",
    b"\tTransfer-Encoding: chunked", b"Transfer-Encoding : chunked", b"Transfer-Encoding",
    b"Transfer-Encoding\x0b: chunked", b"TRANSFER-ENCODING: chunked", b"Transfer_Encoding: chunked",
    b"X: y\rTransfer-Encoding: chunked", b"X: y\nTransfer-Encoding: chunked",
    b"X: y\n\nGET /smuggled HTTP/1.1\nHost: a", b"\rX: y", b"X: y\r\n\r", b"X: y\r\n\x00",
    b"Host: other", b"Host:", b"Host: a:1", b"Host: a,b", b"Host: [::1]", b"Host: a#b", b"Host : a",
    b"Host: [::1", b"Host: a:", b"Host: a:99999", b"Host: %61", b"Host: a\x80",
    b"host: weir.example",
    b"Connection: close", b"Connection: keep-alive", b"Connection: close, keep-alive",
    b"Connection: Content-Length", b"Connection: Transfer-Encoding", b"Connection: upgrade",
    b"Proxy-Connection: close", b"Keep-Alive: timeout=5", b"Connection:", b"Connection: close,",
    b"Upgrade: h2c", b"Upgrade: websocket", b"Expect: 100-continue", b"Expect: nothing",
    b"Trailer: X", b"TE: trailers", b"X-Empty:", b"X: " + b"y" * 300, b"X" * 300 + b": y",
    b"X: y, z", b"X:\t\ty", b"X: \x7f", b"X: \x80\xff", b"X: \x01", b"X@: y", b"X[]: y", b"\x80: y"]

VERSIONS = [b"HTTP/1.0", b"HTTP/1.1", b"HTTP/1.2", b"HTTP/1.9", b"HTTP/0.9", b"HTTP/2.0", b"HTTP/2",
            b"HTTP/3.0", b"HTTP/1.", b"HTTP/.1", b"HTTP/1", b"HTTP/11", b"HTTP/1.1.1", b"HTTP/01.1",
            b"HTTP/1.01", b"HTTP/+1.1", b"http/1.1", b"HTTP 1.1", b"HTTPS/1.1", b"RTSP/1.0",
            b"ICE/1.0", b"HTTP/1.1 x", b"HTTP/ 1.1", b"", b"HTTP/1,1", b"HTTP/9.9", b"HTTP/10.0"]

STATUSES = [b"100", b"101", b"102", b"199", b"200", b"204", b"205", b"304", b"404", b"599", b"600",
            b"999", b"000", b"99", b"1000", b"20x", b" 200", b"+20", b"", b"2 0", b"200\t", b"-1"]

METHODS = [b"GET", b"POST", b"HEAD", b"PUT", b"OPTIONS", b"TRACE", b"CONNECT", b"PRI", b"SOURCE",
           b"M-SEARCH", b"get", b"G ET", b"GET\t", b"", b"G\x00T", b"G:T", b"QUERY", b"DESCRIBE",
           b"PURGE", b"X-OWN", b"X!#$%&'*+-.^_`|~", b"G@T", b"\xc3\xa4", b"GETX", b"LINK"]

TARGETS = [b"/", b"*", b"//", b"/a/../b", b"/%00", b"/%2", b"http://a/", b"http://b", b"http:///x",
           b"http://", b"http://a:1/", b"http://a b/", b"a:1", b"a", b"/a#f", b"/\x80", b"/\x7f",
           b"/a\\b", b"/\"<>^`{|}", b"ftp://a/", b"HTTP://A/", b"http://u:p@a/", b"http://a?x",
           b"?x", b"", b"/a\tb", b"/a\x00b", b"http://[::1]/", b"http://[::1/", b"http://a#f",
           b"http://a@b@c/", b"mailto:a", b"://a", b"/" + b"a" * 500, b"http://weir.example:80/"]

CHUNK_SIZES = [b"0", b"1", b"5", b"05", b"0000000000000005", b"00000000000000005", b"0x5", b"5h",
               b"-5", b"+5", b" 5", b"5 ", b"5\t", b"5;", b"5;a", b"5;a=b", b"5;a=\"b\"", b"5; a",
               b"5 ;a",
               b"5;a=\"\\\"\"", b"5;a=\"b", b"5;a=b\"", b"5;=b", b"5;;", b"5;\x00", b"5;\x0b",
               b"5;\n",
               b"5;a\nb", b"5;\r", b"5;a\rb", b"5\r", b"5,", b"5\x00", b"", b";a", b"g", b"A", b"a",
               b"ff",
               b"fffffffffffffffb", b"10000000000000005", b"5.", b"5e", b"5_0", b"5;\x80",
               b"5;a\x7f",
               b"5;" + b"x" * 200, b"5\r\n", b"5;a=b;c=d", b"5 ; a = b"]


def spans(pattern, stream):
    return [match.span(1) for match in re.finditer(pattern, stream, re.S)]


def replace(rng, stream, pattern, values):
    """Replaces one match of the pattern's group by one of the values."""
    places = spans(pattern, stream)
    if not places:
        return stream
    begin, end = rng.choice(places)
    return stream[:begin] + rng.choice(values) + stream[end:]


def change_byte(rng, stream):
    place = rng.randrange(len(stream) + 1)
    kind = rng.randrange(3)  # insert, replace, delete
    value = rng.choice(BYTES) if kind < 2 else b""
    return stream[:place] + value + stream[place + (kind > 0):]


def change_bit(rng, stream):
    place = rng.randrange(len(stream))
    return stream[:place] + bytes([stream[place] ^ 1 << rng.randrange(8)]) + stream[place + 1:]


def change_line_end(rng, stream):
    return replace(rng, stream, rb"(\r\n)", LINE_ENDS)


def add_field(rng, stream):
    """Inserts a line behind one of the lines of the head."""
    head = stream.split(b"\r\n\r\n", 1)[0]
    ends = spans(rb"(\r\n)", head + b"\r\n")
    if not ends:
        return stream
    place = rng.choice(ends)[1]
    return stream[:place] + rng.choice(FIELDS) + b"\r\n" + stream[place:]


def change_lines(rng, stream):
    """Repeats, removes or swaps lines."""
    lines = stream.split(b"\r\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(3)
    if kind == 0:
        lines.insert(other, lines[one])
    elif kind == 1:
        del lines[one]
    else:
        lines[one], lines[other] = lines[other], lines[one]
    return b"\r\n".join(lines)


def change_name(rng, stream):
    """Changes the blanks around a colon, or the case of a name."""
    return replace(rng, stream, rb"(:) ", [b" :", b"\t:", b":\t", b"::", b":\r\n", b"", b":\x0b",
                                           b":\x00", b":  ", b":\xa0", b":\r\n ", b"\r\n:"])


def splice(rng, stream):
    """Puts the body of another seed behind the head."""
    other = rng.choice(corpus.REQUESTS)
    return stream.split(b"\r\n\r\n", 1)[0] + b"\r\n\r\n" + other.split(b"\r\n\r\n", 1)[-1]


def cut(rng, stream):
    return stream[:rng.randrange(1, len(stream) + 1)]


CHANGES = [
    (6, change_byte),
    (3, change_bit),
    (6, change_line_end),
    (6, add_field),
    (2, change_lines),
    (3, change_name),
    (2, splice),
    (1, cut),
    (4, lambda rng, s: replace(rng, s, rb"(?i)content-length: ?([^\r\n]*)", LENGTHS)),
    (4, lambda rng, s: replace(rng, s, rb"(?i)transfer-encoding: ?([^\r\n]*)", CODINGS)),
    (5, lambda rng, s: replace(rng, s, rb"\n([0-9a-fA-F]+)(?:\r\n|;)", CHUNK_SIZES)),
    (2, lambda rng, s: replace(rng, s, rb"(HTTP/1\.[01])(?:\r\n| \d)", VERSIONS)),
    (1, lambda rng, s: replace(rng, s, rb"HTTP/1\.1 (\d+)[ \r]", STATUSES)),
    (1, lambda rng, s: replace(rng, s, rb"\A([A-Z]+) ", METHODS)),
    (1, lambda rng, s: replace(rng, s, rb"\A[A-Z]+ ([^ ]+) ", TARGETS)),
    (1, lambda rng, s: replace(rng, s, rb"\nHost: ([^\r\n]*)", [
        b"", b"a", b"a:1", b"a b", b"a,b", b"[::1]", b"[::1]:1", b"[v1.a]", b"[]", b"a:b", b"\x80",
        b"a/", b"a?", b"a#", b"u@a", b"%41", b"a%", b"a_b", b"a..b", b"-", b":80", b"a:", b"*"])),
]


def mutants(count, seed, kind="requests"):
    """Yields the streams, canary included."""
    rng, seeds = random.Random(seed), SEEDS[kind]
    weights = [weight for weight, _ in CHANGES]
    for number in range(count):
        if number < len(seeds):
            stream = seeds[number]
        else:
            stream = rng.choice(seeds)
            for _, change in rng.choices(CHANGES, weights, k=rng.choice([1, 1, 1, 2, 2, 3])):
                stream = change(rng, stream) or b"\r\n"
        yield stream + CANARY[kind]


def write(path, streams):
    with open(path, "wb") as file:
        for stream in streams:
            file.write(struct.pack("<I", len(stream)) + stream)


if __name__ == "__main__":
    for mutant in mutants(int(sys.argv[2]), int((sys.argv[3:] or ["1"])[0]), sys.argv[1]):
        sys.stdout.buffer.write(struct.pack("<I", len(mutant)) + mutant)
