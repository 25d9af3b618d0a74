# SPDX-License-Identifier: Apache-2.0
"""Generates docs/benchmarks.md and its charts from docs/benchmarks/results.json."""
import math
import re

from harness import results, svg
from harness.suite import ROOT

PAGE = ROOT / "docs/benchmarks.md"
FOLDER = ROOT / "docs/benchmarks"
RESULTS = FOLDER / "results.json"

AHEAD = 0.995  # a ratio below this is reported
LEAST = 0.01  # smaller ratios are those of costs that are next to nothing
# Limits that do less; not peers.
UNREACHABLE = ("OpenSSL in memory", "without TLS", "canned answers", "TCP echo")
LEVEL = 0.02  # smaller differences are noise unless instruction counts agree
QUIET_LOAD = 0.5

PEER_NAMES = {
    "raw uring": "raw io_uring",
    "raw uring, poll": "raw io_uring, poll",
    "in memory": "OpenSSL in memory",
    "by hand": "OpenSSL by hand",
    "netty": "Netty",
    "Netty NIO": "Netty",
    "plain": "without TLS",
    "canned": "canned answers",
}


# ---- numbers and names ----


def shown(name, ours):
    """The name of a competitor on the page."""
    if not ours:
        return PEER_NAMES.get(name, name)
    return name if name.startswith("weir") else "weir " + name.replace("uring", "io_uring")


def cost(value, unit="ns"):
    """A cost in the unit that suits it."""
    if unit == "B":
        return f"{value:,.0f} B" if value < 100_000 else f"{value / 2**20:.1f} MiB"
    if unit == "us/s":
        return f"{value / 10_000:.2f} % CPU"
    for bound, factor, name in ((1e4, 1, "ns"), (1e7, 1e3, "µs"), (math.inf, 1e6, "ms")):
        if value < bound:
            digits = 1 if value / factor < 100 else 0
            return f"{value / factor:,.{digits}f} {name}"


def ns(value):
    """A time without blanks, for axes."""
    for bound, factor, name in ((1e3, 1, "ns"), (1e6, 1e3, "µs"), (math.inf, 1e6, "ms")):
        if value < bound:
            return f"{value / factor:.3g} {name}"


def size(value):
    """Bytes in 1 K = 1024, for axes."""
    for bound, factor, name in ((1024, 1, ""), (2**20, 1024, "K"), (math.inf, 2**20, "M")):
        if value < bound:
            return f"{value / factor:.0f}{name}"


def count(value):
    for bound, factor, name in ((1e3, 1, ""), (1e6, 1e3, "k"), (math.inf, 1e6, "M")):
        if value < bound:
            return f"{value / factor:.3g}{name}"


def times(value):
    return f"{value:.2f}x" if value >= LEAST else f"<{LEAST}x"


def lead(ratio):
    """How far the other is ahead, in words."""
    if ratio < LEAST:
        return f"more than {1 / LEAST:.0f} times"
    return f"{100 / ratio - 100:.0f} %" if ratio > 0.5 else f"{1 / ratio:.1f} times"


# ---- access ----


class Run:
    """The results of a run, by names."""

    def __init__(self, content):
        self.content = content
        self.suites = {suite["name"]: suite for suite in content["suites"]}
        self.cases = {
            (suite["name"], case["name"]): case
            for suite in content["suites"]
            for case in suite["cases"]
        }

    def ours(self, suite):
        return [c["name"] for c in self.suites[suite]["competitors"] if c["ours"]]

    def values(self, suite, case, only=None):
        """The cost of each competitor in one case, by the names of the page."""
        found = self.cases.get((suite, case))
        if not found:
            return {}
        ours = self.ours(suite)
        cost_of = "best" if found["by"] == "best" else "median"
        names = {name: shown(name, name in ours) for name in found["results"]}
        return {
            names[name]: result[cost_of]
            for name, result in found["results"].items()
            if not only or names[name] in only
        }


# ---- charts ----

WHOLE_STACK = (
    "raw epoll",
    "raw io_uring",
    "libuv",
    "libev",
    "bufferevent",
    "Netty",
    "weir epoll",
    "weir io_uring",
    "weir poll",
)


def speed_bars(run, title, subtitle, limit, panels, only=WHOLE_STACK):
    """Each competitor's speed as a multiple of the limit's; panels are (title, suite, case)."""
    drawn = []
    for panel, suite, case in panels:
        values = run.values(suite, case, only)
        if limit in values:
            ratios = {name: values[limit] / max(v, 0.001) for name, v in values.items()}
            drawn.append({"title": panel, "values": ratios, "format": times, "reference": 1})
    most = max((ratio for panel in drawn for ratio in panel["values"].values()), default=0)
    return svg.bars(title, subtitle, [{**p, "most": most} for p in drawn]) if drawn else None


def cost_bars(run, title, subtitle, panels, form, only=None):
    """Each competitor's cost, the lowest first."""
    drawn = [
        {"title": panel, "values": values, "format": form, "longest_first": False}
        for panel, suite, case in panels
        if (values := run.values(suite, case, only))
    ]
    return svg.bars(title, subtitle, drawn) if drawn else None


def series(run, suite, pattern, points, only=None):
    """The cost of each competitor at each point; the cases are named by `pattern`."""
    found = {}
    for value, name in points:
        for competitor, value_there in run.values(suite, pattern.format(name), only).items():
            found.setdefault(competitor, []).append((value, value_there))
    return {name: points for name, points in found.items() if len(points) > 1}


def relative(found, limit):
    """Speeds as multiples of the limit's at each point."""
    base = dict(found.get(limit, ()))
    return {
        name: [(at, base[at] / max(value, 0.001)) for at, value in points if at in base]
        for name, points in found.items()
    }


CONNECTIONS = [(n, str(n)) for n in (1, 16, 64, 256, 1000, 4000, 10000, 19000)]
SIZES = [(n, str(n)) for n in (1, 64, 1024, 4096, 16384, 65536, 262144, 1048576)]
HANDLERS = [(n, str(n)) for n in (0, 1, 2, 4, 8, 16)]
TIMERS = [(1000, "1k"), (10_000, "10k"), (100_000, "100k"), (1_000_000, "1m")]
ALLOCATIONS = [
    (64, "64"),
    (256, "256"),
    (1024, "1k"),
    (4096, "4k"),
    (16384, "16k"),
    (65536, "64k"),
]


def growth(run, title, subtitle, panels, points, form, x_title, x_log=True):
    """Lines over one axis; panels are (title, series, options)."""
    drawn = []
    for panel, found, options in panels:
        there = {at for line in found.values() for at, _ in line}
        x_ticks = [(value, form(value)) for value, _ in points if value in there]
        if found and len(x_ticks) > 1:
            about = {"title": panel, "series": found, "x_ticks": x_ticks, "x_title": x_title}
            drawn.append({"format": ns, "x_log": x_log, **about, **options})
    return svg.lines(title, subtitle, drawn) if drawn else None


def echo_chart(run):
    panels = [
        ("64 connections, 64 B", "echo", "echo-64"),
        ("16 requests in flight on each", "echo", "echo-64-depth-16"),
        ("1,000 connections, 64 B", "echo", "echo-1000"),
        ("10,000 connections, 64 B", "echo", "echo-10k"),
        ("64 connections, 4 KiB", "echo", "echo-4k"),
        ("16 connections, 64 KiB", "echo", "bulk"),
    ]
    subtitle = "Requests per second of server CPU, as a multiple of raw epoll. More is better."
    return speed_bars(run, "TCP echo: weir and its peers", subtitle, "raw epoll", panels)


def connections_chart(run):
    found = series(run, "growth", "connections-{}", CONNECTIONS)
    panels = [
        ("Server CPU per request", found, {"log": True}),
        ("Speed relative to raw epoll", relative(found, "raw epoll"), {"format": times}),
    ]
    return growth(
        run,
        "Echo from 1 to 19,000 connections",
        "64 B, one request in flight on each. Left: less is better; right: more is better.",
        panels,
        CONNECTIONS,
        count,
        "connections",
    )


def sizes_chart(run):
    found = series(run, "growth", "size-{}", SIZES)
    panels = [
        ("Server CPU per request", found, {"log": True}),
        ("Speed relative to raw epoll", relative(found, "raw epoll"), {"format": times}),
    ]
    return growth(
        run,
        "Echo from 1 B to 1 MiB",
        "16 connections, one request in flight on each. Left: less is better; right: more.",
        panels,
        SIZES,
        size,
        "message size in bytes",
        x_log=False,
    )


def handlers_chart(run):
    panels = [
        ("Read event in memory", series(run, "pipeline", "read-{}", HANDLERS), {"from_zero": True}),
        ("Echo over TCP", series(run, "growth", "handlers-{}", HANDLERS), {"from_zero": True}),
    ]
    return growth(
        run,
        "0 to 16 handlers that pass on everything",
        "Left: a read event through the chain. Right: server CPU per echo. Less is better.",
        panels,
        HANDLERS,
        str,
        "handlers",
        x_log=False,
    )


def timers_chart(run):
    restart = series(run, "executor", "restart-{}", TIMERS)
    expire = series(run, "executor", "expire-{}", TIMERS)
    return growth(
        run,
        "Timers from 1,000 to 1,000,000",
        "Time per timer, on logarithmic axes. Less is better.",
        [
            ("Stop and start one at random", restart, {"log": True}),
            ("Expire", expire, {"log": True}),
        ],
        TIMERS,
        count,
        "timers outstanding",
    )


def memory_chart(run):
    panels = [
        ("10,000 connections", "idle", "idle-10k"),
        ("19,000 connections", "idle", "idle-19k"),
    ]
    return cost_bars(
        run,
        "Resident memory per idle connection",
        "After one request each; weir with a pipeline of three handlers. Less is better.",
        panels,
        lambda value: cost(value, "B"),
    )


def submit_chart(run):
    panels = [
        ("1 producer on another core", "executor", "submit-1"),
        ("4 producers", "executor", "submit-4"),
        ("1 producer on the same core", "executor", "submit-same"),
        ("Round trip of two loops on one core", "executor", "pingpong-same"),
    ]
    return cost_bars(
        run,
        "Tasks across threads",
        "Time per task, from the first submit to the last run. Less is better.",
        panels,
        cost,
    )


def buffers_chart(run):
    panels = [
        ("Released at once", series(run, "buffer", "alloc-{}", ALLOCATIONS), {"log": True}),
        ("On another core", series(run, "buffer", "alloc-far-{}", ALLOCATIONS), {"log": True}),
    ]
    return growth(
        run,
        "Allocating and releasing a buffer",
        "Time per buffer, on a logarithmic axis; weir's has a header and a count. Less is better.",
        panels,
        ALLOCATIONS,
        size,
        "buffer size in bytes",
        x_log=False,
    )


def others_chart(run):
    panels = [
        ("Accept, one echo, close", "accept", "accept"),
        ("Unix sockets: 64 connections, 64 B", "unix", "echo-64"),
        ("Unix sockets: 16 connections, 64 KiB", "unix", "bulk"),
        ("UDP: 1 socket, 16 datagrams of 64 B in flight", "udp", "echo-16"),
    ]
    subtitle = "Requests per second of server CPU, as a multiple of raw epoll. More is better."
    title = "Short connections, Unix sockets, datagrams"
    return speed_bars(run, title, subtitle, "raw epoll", panels)


def tls_chart(run):
    panels = [
        ("Full handshake, one answer, close", "tls", "full-1.3"),
        ("Resumed session", "tls", "resumed-1.3"),
        ("Answers of 1 MiB", "tls", "bulk"),
        ("64 connections, 64 B", "tls", "small"),
    ]
    names = ("OpenSSL in memory", "OpenSSL by hand", "nginx", "weir epoll", "weir io_uring")
    return cost_bars(
        run,
        "TLS 1.3: server CPU for each",
        "In memory there are no sockets: a limit that no server reaches. Less is better.",
        panels,
        cost,
        names,
    )


def http_chart(run):
    panels = [
        ("64 connections", "http", "hello-64"),
        ("16 pipelined requests on each", "http", "hello-64-depth-16"),
        ("A browser's 12 fields", "http", "browser-64"),
        ("A file of 1 KiB", "http", "file-1k"),
        ("A file of 1 MiB", "http", "file-1m"),
        ("Proxy", "http", "proxy-64"),
    ]
    return cost_bars(
        run,
        "HTTP/1.1: server CPU per request",
        "Canned answers are sent by hand, without parsing: a limit. Less is better.",
        panels,
        cost,
    )


def websocket_chart(run):
    panels = [
        ("16 B", "websocket", "echo-16"),
        ("16 messages of 16 B in flight", "websocket", "echo-16-depth-16"),
        ("1 KiB", "websocket", "echo-1k"),
        ("64 KiB", "websocket", "echo-64k"),
        ("1 KiB, deflate", "websocket", "deflate-1k"),
        ("64 KiB, deflate", "websocket", "deflate-64k"),
    ]
    return cost_bars(
        run,
        "WebSocket: server CPU per message",
        "TCP echo returns the same bytes without looking at them: a limit. Less is better.",
        panels,
        cost,
    )


# ---- the page ----

# Title, text, charts as (file, function, what it shows), suites.
SECTIONS = [
    (
        "Echo",
        "The whole stack: bootstrap, channels, a pipeline, pooled buffers. *raw epoll* and"
        " *raw io_uring* are servers written by hand for this benchmark alone; raw epoll is the"
        " limit that all are compared with. The kernel's TCP is about 94 % of a raw echo, so nobody"
        " can be twice as fast as anybody.",
        [("echo", echo_chart, "Echo: speed of each server relative to raw epoll")],
        ["echo"],
    ),
    (
        "Growth",
        "The same echo over the number of connections, the size of a message and the number of"
        " handlers. 19,000 connections are the most that a limit of 20,000 descriptors allows.",
        [
            ("connections", connections_chart, "Echo over connections"),
            ("sizes", sizes_chart, "Echo over message sizes"),
            ("handlers", handlers_chart, "Cost over handlers"),
        ],
        ["growth", "pipeline"],
    ),
    (
        "Memory",
        "The growth of the server's resident memory for each idle connection; no kernel memory.",
        [("memory", memory_chart, "Memory of idle connections")],
        ["idle"],
    ),
    (
        "Short connections, Unix sockets, datagrams",
        "The same servers as for echo. In UDP, raw epoll is recvmmsg and sendmmsg.",
        [("others", others_chart, "Short connections, Unix sockets and datagrams")],
        ["accept", "unix", "udp"],
    ),
    (
        "Tasks and timers",
        "Tasks submitted to a loop by other threads, and timers with random delays of 1 to 60 s.",
        [
            ("timers", timers_chart, "Timers over their number"),
            ("tasks", submit_chart, "Tasks across threads"),
        ],
        ["executor"],
    ),
    (
        "Buffers and codecs",
        "Memory from the pool against allocators, and decoders in memory.",
        [("buffers", buffers_chart, "Allocation over buffer sizes")],
        ["buffer", "codec"],
    ),
    (
        "TLS",
        "OpenSSL for all, the same clients, AES-128-GCM, a P-256 certificate, no tickets unless"
        " the case says so. *OpenSSL in memory* has no sockets and is a limit, not a peer.",
        [("tls", tls_chart, "TLS: server CPU for handshakes and data")],
        ["tls"],
    ),
    (
        "HTTP/1.1",
        "The whole stack: `weir_http_server`, a route, a response of 13 bytes; static files by"
        " `weir_http_files`; a proxy with connections kept upstream. *Canned"
        " answers* is epoll by hand: it parses nothing, sends the same bytes to everybody and, as a"
        " proxy, relays bytes. It is a limit, not a peer.",
        [("http", http_chart, "HTTP/1.1: server CPU per request")],
        ["http"],
    ),
    (
        "WebSocket",
        "Echo of text messages through the whole stack: a route, `weir_ws_accept`, a handler."
        " *TCP echo* is raw epoll: it sends the same bytes back without looking at them, and is a"
        " limit, not a peer. *ws* is the package of npm. With deflate, both compress at level 6"
        " with a window of 4 KiB; what remains is zlib's time.",
        [("websocket", websocket_chart, "WebSocket: server CPU per message")],
        ["websocket"],
    ),
    (
        "Event loops and threads",
        "The backends without channels, how loops wait, and a thread per channel.",
        [],
        ["loop", "blocking"],
    ),
]

HOW_TO_READ = """\
Every number is a cost: mostly the CPU time of the server for each request, best of all rounds. A
ratio says how many times as fast weir is: `1.04x` = 4 % faster than the peer of that column,
`0.90x` = slower. Server and load share a core, and the rounds of all competitors are interleaved;
[bench/README.md](../bench/README.md) says why, and how to repeat it. Differences of less than 2 %
are noise. The last column says whether the case has met its target, and the aim beyond it."""


def machine(run):
    """The machine and the versions. Yields lines."""
    about, content = run.content["machine"], run.content
    minutes = content["seconds"] / 60
    yield "| | |"
    yield "|---|---|"
    yield f"| CPU | {about['cpu']}, {about['cpus']} CPUs, {about['memory_gib']} GiB |"
    yield f"| System | Linux {about['kernel']}, {about['libc']} |"
    yield f"| Compiler | {about['compiler']} |"
    peers = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    yield f"| Peers | {peers} |"
    date = about["date"][:16].replace("T", " ")
    yield f"| Run | {date}, {content['rounds']} rounds, {minutes:.0f} minutes |"
    yield f"| Commands | `{content['command']}`; one suite: `./dev bench echo` |"
    for failure in content["failures"]:
        yield ""
        yield f"**Incomplete**: {failure}. Its results are those of the rounds before."
    if about["load"] > QUIET_LOAD:
        yield ""
        yield (
            f"**The machine was not quiet**: its load average was {about['load']:.1f} at the start."
            " Trust ratios of bests only, and repeat the run before quoting it."
        )


def comparisons(run):
    """
    (suite, case, ours, peer, ratio) of each of ours with each peer, by the page's names. Two loops
    on one core are compared with one loop of ours only.
    """
    for (suite, name), case in run.cases.items():
        ours = run.ours(suite)
        for own in (own for own in ours if own in case["results"] and "two loops" not in own):
            for other, ratio in case["results"][own]["ratios"].items():
                if other not in ours:
                    yield suite, name, shown(own, True), shown(other, False), ratio


def summary(run):
    """A line per peer: how often weir is ahead of it, and by how much. Yields lines."""
    by_peer = {}
    for _, _, _, peer, ratio in comparisons(run):
        if peer in UNREACHABLE:
            continue
        by_peer.setdefault(peer, []).append(ratio)
    yield "| peer | comparisons | weir ahead | within 2 % | peer ahead | geometric mean |"
    yield "|---|---|---|---|---|---|"
    for peer, ratios in by_peer.items():
        mean = math.exp(sum(math.log(max(r, LEAST)) for r in ratios) / len(ratios))
        ahead = sum(ratio > 1 + LEVEL for ratio in ratios)
        behind = sum(ratio < 1 - LEVEL for ratio in ratios)
        level = len(ratios) - ahead - behind
        yield f"| {peer} | {len(ratios)} | {ahead} | {level} | {behind} | {times(mean)} |"


def targets(result, unit, ours):
    """The cell of a result's targets."""
    must, aim = result.get("must", []), result.get("aim", [])
    wanted = []
    for verdict in (v for v in must if not v["met"]):
        of = shown(verdict["of"], verdict["of"] in ours)
        if "at_most" in verdict:
            wanted.append(f"at most {cost(verdict['at_most'], unit)}")
        elif "more" in verdict:
            wanted.append(f"at most {cost(float(verdict['more']), unit)} more than {of}")
        else:
            wanted.append(f"{verdict['at_least']}x {of}")
    if wanted:
        return "missed: " + ", ".join(wanted)
    if aim and all(verdict["met"] for verdict in aim):
        return "aim met"
    return "met" if must else ""


def misses(run):
    """How many targets are met, and each case that misses one. Yields lines."""
    verdicts, lines = {"must": [], "aim": []}, []
    for (suite, name), case in run.cases.items():
        ours = run.ours(suite)
        for own in (own for own in ours if own in case["results"]):
            result = case["results"][own]
            for kind, found in verdicts.items():
                found += [verdict["met"] for verdict in result.get(kind, [])]
            cell = targets(result, case["unit"], ours)
            if cell.startswith("missed"):
                lines.append(f"- `{suite}/{name}`, {shown(own, True)}: {cell}.")
    must, aim = verdicts["must"], verdicts["aim"]
    yield f"{sum(must)} of {len(must)} targets are met, and {sum(aim)} of {len(aim)} aims."
    if lines:
        yield ""
        yield from lines


def table(run, name):
    """Each of ours in each case, with its ratios to the peers. Yields lines."""
    suite = run.suites[name]
    ours = run.ours(name)
    peers = [c["name"] for c in suite["competitors"] if not c["ours"]]
    heads = [shown(peer, False) for peer in peers]
    yield f"| `{name}` | | cost | " + " | ".join(heads) + " | target |"
    yield "|---|---|--:|" + "--:|" * len(heads) + "---|"
    for case in suite["cases"]:
        title = f"`{case['name']}` {case['title']}"
        for own in (own for own in ours if own in case["results"]):
            result = case["results"][own]
            value = result["best" if case["by"] == "best" else "median"]
            cells = [times(r) if (r := result["ratios"].get(peer)) else "" for peer in peers]
            row = [title, shown(own, True), cost(value, case["unit"]), *cells]
            row.append(targets(result, case["unit"], ours))
            yield "| " + " | ".join(row) + " |"
            title = ""


def joined(words):
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def peers_ahead(run, name):
    """A sentence for each case in which a peer is ahead. Yields lines."""
    found = {}
    for suite, case, own, peer, ratio in comparisons(run):
        if suite == name and ratio < AHEAD and peer not in UNREACHABLE:
            found.setdefault(case, {}).setdefault(peer, []).append(f"{lead(ratio)} ahead of {own}")
    if not found:
        yield f"No peer is ahead of weir in `{name}`."
        return
    yield f"Where a peer is ahead in `{name}`:"
    yield ""
    for case, by_peer in found.items():
        parts = [f"{peer} is {joined(leads)}" for peer, leads in by_peer.items()]
        yield f"- `{case}`: {'; '.join(parts)}."


def section(run, title, words, charts, suites):
    """Yields lines."""
    yield f"## {title}"
    yield ""
    yield words
    for file, draw, what in charts:
        if draw(run):
            yield ""
            yield f"![{what}](benchmarks/{file}.svg)"
    for name in (name for name in suites if name in run.suites):
        yield ""
        yield run.suites[name]["title"][0].upper() + run.suites[name]["title"][1:] + "."
        yield ""
        yield from table(run, name)
        yield ""
        yield from peers_ahead(run, name)
    yield ""


def markdown(run):
    lines = [
        "# Benchmarks",
        "",
        "Generated by `./dev bench` from [results.json](benchmarks/results.json); do not edit.",
        "",
        HOW_TO_READ,
        "",
        *machine(run),
        "",
        "## Summary",
        "",
        "Each of weir's backends against each peer, in all cases of all suites.",
        "",
        *summary(run),
        "",
        "## Targets",
        "",
        *misses(run),
        "",
    ]
    for row in SECTIONS:
        lines += section(run, *row)
    return re.sub(r" +\n", "\n", "\n".join(lines).rstrip() + "\n")


def files():
    """What is generated, by path."""
    run = Run(results.load(RESULTS))
    generated = {PAGE: markdown(run)}
    for _, _, charts, _ in SECTIONS:
        for name, draw, _ in charts:
            drawn = draw(run)
            if drawn:
                generated[FOLDER / f"{name}.svg"] = drawn
    return generated


def write():
    """Writes the page and its charts; removes charts that are no longer generated."""
    generated = files()
    for path in set(FOLDER.glob("*.svg")) - set(generated):
        path.unlink()
    for path, content in generated.items():
        path.write_text(content)
    print(f"wrote {PAGE.relative_to(ROOT)} and {len(generated) - 1} charts")
    return 0


def check():
    """The exit code of --page --check: the committed files are what the results generate."""
    generated = files()
    wrong = [p for p, content in generated.items() if not p.exists() or p.read_text() != content]
    wrong += set(FOLDER.glob("*.svg")) - set(generated)
    for path in wrong:
        print(f"{path.relative_to(ROOT)}: not what {RESULTS.name} generates: ./dev bench --page")
    return 1 if wrong else 0
