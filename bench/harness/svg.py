# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG: panels of bars, and lines over a logarithmic axis.

A chart has its own background and follows the reader's light or dark theme. Its text has no markup
of its own, so that it can be searched.
"""
import html
import math

WIDTH = 860
GAP = 22  # around panels
FONT = "system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif"

# Colours by class, on light and on dark.
THEMES = {
    "background": ("#ffffff", "#0d1117"),
    "text": ("#1f2328", "#e6edf3"),
    "muted": ("#59636e", "#9198a1"),
    "grid": ("#dde2e8", "#2a313c"),
    "blue": ("#0969da", "#4493f8"),
    "teal": ("#12a0b5", "#39c5cf"),
    "purple": ("#8250df", "#ab7df8"),
    "grey": ("#8c959f", "#7d8590"),
    "slate": ("#57606a", "#b1bac4"),
    "orange": ("#d4720b", "#f0883e"),
    "green": ("#2da44e", "#3fb950"),
    "red": ("#cf222e", "#ff7b72"),
    "pink": ("#bf3989", "#f778ba"),
}

# A competitor has one colour in all charts.
COLOURS = {
    "weir": "blue",
    "weir io_uring": "blue",
    "weir epoll": "teal",
    "weir, own task": "teal",
    "weir poll": "purple",
    "raw": "grey",
    "raw epoll": "grey",
    "raw io_uring": "slate",
    "OpenSSL in memory": "grey",
    "OpenSSL by hand": "slate",
    "libuv": "orange",
    "glibc": "orange",
    "libev": "green",
    "mimalloc": "green",
    "libevent": "red",
    "bufferevent": "red",
    "jemalloc": "red",
    "Netty": "pink",
    "nginx": "pink",
}


def colour(name):
    return COLOURS.get(name, "slate")


def is_ours(name):
    return name.startswith("weir")


def style():
    def rules(theme):
        return "".join(f".{name}{{fill:{shades[theme]}}}" for name, shades in THEMES.items())

    def strokes(theme):
        return "".join(f".s-{name}{{stroke:{shades[theme]}}}" for name, shades in THEMES.items())

    return (
        f"<style>text{{font-family:{FONT};font-size:12px}}.bold{{font-weight:600}}"
        ".title{font-size:15px;font-weight:600}.small{font-size:11px}"
        "polyline,line{fill:none}"
        ".halo{paint-order:stroke;stroke-width:4px;stroke-linejoin:round}"
        f"{rules(0)}{strokes(0)}"
        f"@media (prefers-color-scheme:dark){{{rules(1)}{strokes(1)}}}</style>"
    )


def point(value):
    return f"{value:.1f}".removesuffix(".0")


def text(x, y, content, classes="text", anchor="start"):
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    shown = html.escape(content)
    return f'<text x="{point(x)}" y="{point(y)}" class="{classes}"{place}>{shown}</text>'


def line(x1, y1, x2, y2, name, extra=""):
    ends = f'x1="{point(x1)}" y1="{point(y1)}" x2="{point(x2)}" y2="{point(y2)}"'
    return f'<line {ends} class="s-{name}" {extra}/>'


def document(title, subtitle, height, body):
    """The whole file."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{html.escape(title)}">'
    )
    frame = (
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="6" '
        'class="background s-grid"/>'
    )
    titles = [text(GAP, 30, title, "text title"), text(GAP, 49, subtitle, "muted")]
    return "\n".join([head, style(), frame, *titles, *body, "</svg>", ""])


# ---- bars ----

BAR, BAR_STEP, BAR_LABEL, BAR_VALUE = 14, 20, 134, 62
COLUMN = (WIDTH - 3 * GAP) / 2


def bar_panel(x, y, panel):
    """One case: a bar for each competitor, the longest first. Yields the parts."""
    rows = sorted(panel["values"].items(), key=lambda row: -row[1])
    if not panel.get("longest_first", True):
        rows.reverse()
    left, room = x + BAR_LABEL, COLUMN - BAR_LABEL - BAR_VALUE
    most = max(panel.get("most", 0), *(value for _, value in rows), 1e-9)
    bottom = y + 18 + BAR_STEP * len(rows)
    yield text(x, y + 4, panel["title"], "text bold")
    reference = panel.get("reference")
    if reference:
        at = left + room * reference / most
        yield line(at, y + 13, at, bottom, "muted", 'stroke-dasharray="2 3"')
    for number, (name, value) in enumerate(rows):
        top = y + 16 + BAR_STEP * number
        weight = " bold" if is_ours(name) else ""
        length = max(room * value / most, 1)
        shade = "" if is_ours(name) else ' fill-opacity="0.75"'
        yield text(left - 8, top + 11.5, name, "text" + weight, "end")
        yield (
            f'<rect x="{point(left)}" y="{point(top)}" width="{point(length)}" '
            f'height="{BAR}" rx="2" class="{colour(name)}"{shade}/>'
        )
        label = "text halo s-background" + weight
        yield text(left + length + 6, top + 11.5, panel["format"](value), label)


def bars(title, subtitle, panels):
    """
    Panels in two columns, each {title, values, format}; `reference` is a line at that value, `most`
    the least length of the axis.
    """
    body, y = [], 74
    for first in range(0, len(panels), 2):
        pair = panels[first : first + 2]
        for column, panel in enumerate(pair):
            body += bar_panel(GAP + column * (COLUMN + GAP), y, panel)
        y += 42 + BAR_STEP * max(len(panel["values"]) for panel in pair)
    return document(title, subtitle, y - 8, body)


# ---- lines ----

PLOT_HEIGHT, AXIS, LABELS, LABEL_STEP = 250, 50, 98, 14


def ticks_linear(low, high):
    """Four to eight round values between two."""
    rough = (high - low) / 7
    unit = 10 ** math.floor(math.log10(rough))
    step = next(s * unit for s in (1, 2, 2.5, 5, 10) if s * unit >= rough)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def ticks_log(low, high):
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [10.0**p for p in powers if low <= 10.0**p <= high]
    if len(found) >= 3:
        return found
    wanted = (1, 2, 5)
    return [s * 10.0**p for p in powers for s in wanted if low <= s * 10.0**p <= high]


def spread_out(wanted, low, high):
    """Heights near the wanted ones, at least LABEL_STEP apart, from low to high."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed, previous = list(wanted), low - LABEL_STEP
    for i in order:
        placed[i] = previous = max(wanted[i], previous + LABEL_STEP)
    following = high + LABEL_STEP
    for i in reversed(order):
        placed[i] = following = min(placed[i], following - LABEL_STEP)
    return placed


class Scale:
    """Maps values to coordinates, linearly or by their logarithms."""

    def __init__(self, low, high, start, end, is_log):
        self.is_log = is_log
        self.low, self.high = (math.log(low), math.log(high)) if is_log else (low, high)
        self.start, self.end = start, end

    def __call__(self, value):
        value = math.log(value) if self.is_log else value
        return self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)


class Steps:
    """Maps the values of a list to coordinates, evenly spaced."""

    def __init__(self, values, start, end):
        self.values, self.start, self.end = values, start, end

    def __call__(self, value):
        share = self.values.index(value) / (len(self.values) - 1)
        return self.start + (self.end - self.start) * share


def bounds(panel):
    values = [y for points in panel["series"].values() for _, y in points]
    low, high = min(values), max(values)
    if panel.get("log"):
        return low / 1.25, high * 1.25
    if panel.get("from_zero"):
        return 0, high * 1.06
    room = max((high - low) * 0.06, high * 0.01)
    return low - room, high + room


def axes(panel, across, up, low, high):
    """Grid, ticks and the names of both axes. Yields the parts."""
    left, right, top, bottom = across.start, across.end, up.end, up.start
    for value in (ticks_log if panel.get("log") else ticks_linear)(low, high):
        y = up(value)
        yield line(left, y, right, y, "grid")
        yield text(left - 7, y + 4, panel["format"](value), "muted small", "end")
    after = math.inf  # the last label is always there
    for value, label in reversed(panel["x_ticks"]):
        x = across(value)
        yield line(x, bottom, x, bottom + 4, "muted")
        if after - x >= 8 * len(label):
            yield text(x, bottom + 17, label, "muted small", "middle")
            after = x
    yield line(left, bottom, right, bottom, "muted")
    yield text((left + right) / 2, bottom + 36, panel["x_title"], "muted small", "middle")
    yield text(left - AXIS + 4, top - 14, panel["title"], "text bold")


def line_panel(x, y, panel, width):
    """Yields the parts."""
    low, high = bounds(panel)
    values = [value for value, _ in panel["x_ticks"]]
    left, right = x + AXIS, x + width - LABELS
    if panel.get("x_log", True):
        across = Scale(values[0], values[-1], left, right, True)
    else:
        across = Steps(values, left, right)
    up = Scale(low, high, y + PLOT_HEIGHT, y, panel.get("log"))
    yield from axes(panel, across, up, low, high)
    reference = panel.get("reference")
    if reference and low < reference < high:
        at = up(reference)
        yield line(left, at, right, at, "muted", 'stroke-dasharray="2 3"')
    names = sorted(panel["series"], key=is_ours)  # ours on top
    for name in names:
        points = [(across(at), up(value)) for at, value in panel["series"][name]]
        weight = 2.75 if is_ours(name) else 1.75
        path = " ".join(f"{point(px)},{point(py)}" for px, py in points)
        yield f'<polyline points="{path}" class="s-{colour(name)}" stroke-width="{weight}"/>'
        for px, py in points:
            radius = 3 if is_ours(name) else 2.25
            yield f'<circle cx="{point(px)}" cy="{point(py)}" r="{radius}" class="{colour(name)}"/>'
    ends = [up(panel["series"][name][-1][1]) for name in names]
    for name, end, at in zip(names, ends, spread_out(ends, y + 4, y + PLOT_HEIGHT - 2)):
        yield line(right + 4, end, right + 13, at, colour(name), 'stroke-opacity="0.6"')
        weight = " bold" if is_ours(name) else ""
        yield text(right + 16, at + 4, name, colour(name) + weight)


def lines(title, subtitle, panels):
    """
    Panels side by side, each {title, x_title, x_ticks, series, format}; `log` is the upward axis,
    `x_log` false spaces the ticks evenly, `from_zero` includes 0.
    """
    width = (WIDTH - GAP * (len(panels) + 1)) / len(panels)
    body = []
    for number, panel in enumerate(panels):
        body += line_panel(GAP + number * (width + GAP), 96, panel, width)
    return document(title, subtitle, 96 + PLOT_HEIGHT + 54, body)
