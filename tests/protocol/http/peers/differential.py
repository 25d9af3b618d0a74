# SPDX-License-Identifier: Apache-2.0
"""differential.py HTTP_PARSE requests|responses [COUNT [SEED [STRIDE]]]: gives the same mutants to
the HTTP/1.1 codec (http_parse.c), which also gets each of them in two parts, cut at every STRIDE-th
byte, and to Node's parser (node_parse.js); and compares what they make of them: messages, contents,
and where each message ends.

Each parser prints a line of JSON for each mutant. Its strings are hexadecimal:

    messages   of these: method, target, version, fields, body, trailers, end (the position behind
               the message, null if it has not ended), keep (another may follow), tunnel
    error      why the next one was refused, or null
    split      of the codec: true if the stream gave other messages whole or in two parts

Where only one of the two refuses a message, the reason that it gives must be in
node_requests.txt or node_responses.txt, with an explanation. What lets requests be smuggled cannot
be listed there: two parsers that both accept a message, and see different lengths, contents or
ends.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

import mutants
import peers

FULL = 20000  # with so many mutants, each row of the list must occur
SHOWN = 3  # examples of a class
RARE = "(rare)"  # begins a reason: not with each seed
OLD = "(llhttp 6)"  # begins a reason: only with that version, which Node 18 has, and which is lax


def text(digits):
    return bytes.fromhex(digits).decode("latin1")


def framing(message):
    """The length of the content according to the fields of a message; -1 if it is chunked."""
    pairs = list(zip(message["fields"][::2], message["fields"][1::2]))
    named = {text(name).lower(): text(value) for name, value in pairs}
    if "transfer-encoding" in named:
        return -1
    return int(named.get("content-length", "0"))


class Smuggling(Exception):
    """The parsers do not agree where a message that both accept ends."""


def compare_heads(ours, theirs):
    """The classes of differences between two heads of the same bytes."""
    is_request = theirs["target"] != ""
    if is_request and framing(theirs) != ours["length"]:
        raise Smuggling(f"length {ours['length']} and {framing(theirs)}")
    for part in ("method", "target", "version"):
        if ours[part] != theirs[part]:
            yield f"both differ: {part}"
    if len(ours["fields"]) != len(theirs["fields"]):
        yield "both differ: number of fields"
    for at, (one, other) in enumerate(zip(ours["fields"], theirs["fields"])):
        if one != other:
            yield f"both differ: field {text(theirs['fields'][at & ~1]).lower()}"


def compare_ends(ours, theirs):
    """The classes of differences between two messages that have ended."""
    for part in ("end", "body"):
        if ours[part] != theirs[part]:
            raise Smuggling(f"{part} {ours[part]} and {theirs[part]}")
    if ours["trailers"] != theirs["trailers"]:
        yield "both differ: trailers"
    if ours["keep"] != theirs["keep"]:
        yield "both differ: keep-alive"


def compare(ours, theirs):
    """The classes of differences in one mutant, up to the first message that only one accepts."""
    for number in range(max(len(ours["messages"]), len(theirs["messages"])) + 1):
        one, other = (result["messages"][number:number + 1] for result in (ours, theirs))
        if one and other:
            yield from compare_heads(one[0], other[0])
        ended = [bool(found) and found[0]["end"] is not None for found in (one, other)]
        if all(ended):
            yield from compare_ends(one[0], other[0])
            if one[0]["tunnel"] or other[0]["tunnel"] or not (one[0]["keep"] and other[0]["keep"]):
                return
            continue
        errors = [ours["error"], theirs["error"]]
        if errors[0] and errors[1]:
            return
        if errors[0]:
            yield "weir refuses: " + errors[0]
        elif errors[1]:
            yield "node refuses: " + errors[1]
        elif any(ended):
            raise Smuggling("one sees an end, the other waits for more")
        elif one and other and one[0]["body"] != other[0]["body"]:
            raise Smuggling("contents that have not ended differ")
        return


def read_list(path):
    """class -> reason."""
    rows, name = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("    "):
            rows[name] = f"{rows[name]} {line.strip()}".strip()
        elif line and not line.startswith("#"):
            name = line
            rows[name] = ""
    peers.expect(all(rows.values()), f"{path.name}: a class without a reason")
    return rows


def results(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    peers.expect(done.returncode == 0, f"{command[0]} failed: {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main(program, kind, count=FULL, seed=1, stride=29):
    peers.need("node")
    streams = list(mutants.mutants(int(count), int(seed), kind))
    with tempfile.TemporaryDirectory(prefix="weir-mutants-") as folder:
        path = os.path.join(folder, "mutants")
        mutants.write(path, streams)
        ours = results(program, kind, path, str(stride))
        theirs = results("node", "--no-deprecation", peers.HERE / "node_parse.js", kind, path)
    peers.expect(len(ours) == len(theirs) == len(streams), "a result is missing")

    path = peers.HERE / f"node_{kind}.txt"
    is_old = subprocess.run(["node", "-p", "process.versions.llhttp"], stdout=subprocess.PIPE,
                            text=True).stdout.startswith("6.")
    listed = {name: reason for name, reason in read_list(path).items()
              if is_old or not reason.startswith(OLD)}
    classes, smuggled, accepted = collections.defaultdict(list), [], 0
    for stream, one, other in zip(streams, ours, theirs):
        peers.expect(not one["split"], f"weir sees it differently in pieces: {stream!r}")
        try:
            for name in set(compare(one, other)):
                classes[name].append(stream)
        except Smuggling as difference:
            smuggled.append((str(difference), stream))
        both = zip(one["messages"], other["messages"])
        accepted += any(a["end"] is not None and b["end"] is not None for a, b in both)

    unlisted = sorted(set(classes) - set(listed))
    for name in sorted(classes, key=lambda name: -len(classes[name])):
        print(f"{len(classes[name]):6} {name}")
        for stream in classes[name][:SHOWN] if name in unlisted else ():
            print("       ", stream)
    for difference, stream in smuggled[:10]:
        print(f"smuggling: {difference}: {stream!r}")
    print(f"{len(streams)} mutants, both accepted the first message of {accepted}")
    peers.expect(not smuggled, f"{len(smuggled)} mutants could smuggle a request")
    peers.expect(not unlisted, f"not in {path.name}: {unlisted}")
    peers.expect(accepted > len(streams) // 10, "too few mutants are accepted")
    if len(streams) >= FULL and int(seed) == 1 and not is_old:
        stale = [name for name, reason in sorted(listed.items())
                 if name not in classes and not reason.startswith(RARE)]
        peers.expect(not stale, f"{path.name}: no longer occurs: {stale}")


if __name__ == "__main__":
    main(*sys.argv[1:])
