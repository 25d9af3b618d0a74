// SPDX-License-Identifier: Apache-2.0
//
// The live page. The server sends JSON over a WebSocket: "hello" once, "stats" every interval with
// totals, from which rates are computed here, and "log", "block", "chat", "move", "unblocked" and "notice"
// when they happen. Everything is drawn once per "stats"; nothing else moves.
"use strict";

const HISTORY = 120; // updates that lines show: two minutes
const WINDOW = 60; // updates that histograms cover
const BLOCK_NOTE_MS = 30000; // for which a loop's row says that it was blocked
const DENSE = 16; // more loops than this are shown in short rows
const HEAT_MIN = 1e4, HEAT_MAX = 1e9; // ns: the ends of the scale of turn times
const BLOCKED_NS = 1e8;
const SCALE = [[1e3, "1 µs"], [1e4, "10 µs"], [1e5, "100 µs"], [1e6, "1 ms"], [1e7, "10 ms"], [1e8, "100 ms"], [1e9, "1 s"]];
const LOG_LINES = 1000;
const BLOCKS_SHOWN = 20;

const $ = (id) => document.getElementById(id);

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function setText(target, text) {
  if (target.textContent !== text)
    target.textContent = text;
}

// ---- numbers ----

const three = (value) => value < 10 ? value.toFixed(value < 1 && value > 0 ? 2 : 1).replace(/\.?0+$/, "")
  : value < 100 ? value.toFixed(1).replace(/\.0$/, "") : String(Math.round(value));

function scaled(value, units, step) {
  let unit = 0;
  while (value >= step && unit < units.length - 1) {
    value /= step;
    unit++;
  }
  return [three(value), units[unit]];
}

const countOf = (value) => scaled(value, ["", "k", "M", "G"], 1000);
const bytesOf = (value) => scaled(value, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
const timeOf = (ns) => scaled(ns, ["ns", "µs", "ms", "s"], 1000);
const count = (value) => countOf(value).join("");
const bytes = (value) => bytesOf(value).join(" ");
const time = (ns) => timeOf(ns).join(" ");
const clock = (ms) => new Date(ms).toLocaleTimeString([], {hour12: false});

// ---- what the server sent ----

let hello = null; // the last one
let previous = null, current = null; // the last two statistics
let seconds = 1; // between them
const history = new Map(); // lines of tiles, by name
const windows = new Map(); // totals of histograms, by name
const blocked = new Map(); // the last block of a loop, by its name
const blocks = new Map(); // elements of the list, by number
let lastLine = 0, lastChat = 0;

const metric = (stats, name) => stats.metrics[name] ?? 0;

// The sum of a family, over all labels.
function family(stats, name) {
  let sum = 0;
  for (const [key, value] of Object.entries(stats.metrics))
    if (key === name || key.startsWith(name + "{"))
      sum += value;
  return sum;
}

const rateOf = (read) => previous ? Math.max(0, read(current) - read(previous)) / seconds : 0;
const rate = (name) => rateOf((stats) => family(stats, name));

// ---- histograms: [B, n, n, ...] are the counts of values of B bits, of B + 1 bits, ... ----

function counts(histogram, into = new Array(64).fill(0)) {
  for (let i = 1; histogram && i < histogram.length; i++)
    into[histogram[0] + i - 1] += histogram[i];
  return into;
}

const difference = (now, before) => now.map((value, i) => Math.max(0, value - before[i]));

// The value that a share of the values does not exceed, within a power of two.
function quantile(values, share) {
  const total = values.reduce((a, b) => a + b, 0);
  let left = total * share;
  for (let bits = 0; bits < values.length; bits++) {
    if (values[bits] > 0 && left <= values[bits]) {
      const low = bits > 0 ? 2 ** (bits - 1) : 0;
      return low + (2 ** bits - low) * (left / values[bits]);
    }
    left -= values[bits];
  }
  return 0;
}

function largest(values) {
  for (let bits = values.length - 1; bits >= 0; bits--)
    if (values[bits] > 0)
      return 2 ** bits * 0.75;
  return 0;
}

// The values of the last minute, since the page was opened.
function inWindow(name, totals) {
  const kept = windows.get(name) ?? [];
  windows.set(name, kept);
  kept.push(totals);
  if (kept.length > WINDOW)
    kept.shift();
  return difference(totals, kept[0]);
}

// ---- drawing ----

let colours = {};

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["heat-0", "heat-1", "heat-2", "heat-3", "heat-4", "bar", "bar-2", "line", "muted", "accent", "sunk"])
    colours[name] = style.getPropertyValue("--" + name).trim();
}

// A context whose unit is a CSS pixel; null if the canvas is not visible.
function contextOf(canvas) {
  const width = canvas.clientWidth, height = canvas.clientHeight, ratio = devicePixelRatio || 1;
  if (width === 0)
    return null;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return {context, width, height};
}

const heatShare = (ns) => Math.min(1, Math.max(0, Math.log(ns / HEAT_MIN) / Math.log(HEAT_MAX / HEAT_MIN)));

function heatColour(ns) {
  if (ns >= BLOCKED_NS)
    return colours["heat-4"];
  const share = heatShare(ns) / heatShare(BLOCKED_NS);
  return colours["heat-" + Math.min(3, Math.floor(share * 4))];
}

function drawHeat(canvas, line) {
  const area = contextOf(canvas);
  if (!area)
    return;
  const step = area.width / HISTORY;
  line.forEach((ns, i) => {
    if (ns <= 0)
      return;
    const height = Math.max(2, (0.15 + 0.85 * heatShare(ns)) * area.height);
    area.context.fillStyle = heatColour(ns);
    area.context.fillRect((HISTORY - line.length + i) * step, area.height - height, Math.max(1, step - 0.5), height);
  });
}

function drawScale() {
  const area = contextOf($("scale"));
  if (!area)
    return;
  for (let x = 0; x < area.width; x++) {
    area.context.fillStyle = heatColour(HEAT_MIN * (HEAT_MAX / HEAT_MIN) ** (x / area.width));
    area.context.fillRect(x, 0, 1, area.height);
  }
}

function drawSparkline(canvas, line) {
  const area = contextOf(canvas);
  if (!area || line.length < 2)
    return;
  const {context, width, height} = area, top = Math.max(...line, 1e-9), step = width / (HISTORY - 1);
  const x = (i) => (HISTORY - line.length + i) * step, y = (value) => height - 2 - value / top * (height - 6);
  context.beginPath();
  line.forEach((value, i) => context.lineTo(x(i), y(value)));
  context.strokeStyle = colours.bar;
  context.lineWidth = 1.5;
  context.lineJoin = "round";
  context.stroke();
  context.lineTo(width, height);
  context.lineTo(x(0), height);
  context.globalAlpha = 0.14;
  context.fillStyle = colours.bar;
  context.fill();
  context.globalAlpha = 1;
}

function drawHistogram(canvas, values) {
  const area = contextOf(canvas);
  if (!area)
    return;
  const {context, width, height} = area, first = 10, last = 33; // 1 us to 8 s
  const folded = values.slice(first, last + 1);
  folded[0] += values.slice(0, first).reduce((a, b) => a + b, 0);
  const top = Math.max(...folded, 1), step = width / folded.length, floor = height - 18;
  folded.forEach((value, i) => {
    const bar = value > 0 ? Math.max(2, Math.sqrt(value / top) * (floor - 4)) : 0;
    context.fillStyle = 2 ** (first + i) > BLOCKED_NS ? colours["heat-4"] : colours.bar;
    context.fillRect(i * step + 1, floor - bar, step - 2, bar);
  });
  context.fillStyle = colours.line;
  context.fillRect(0, floor, width, 1);
  context.fillStyle = colours.muted;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "top";
  for (const [ns, text] of SCALE) {
    const at = (Math.log2(ns) - first + 1) * step;
    if (width < 380 && Math.log10(ns) % 2 === 0)
      continue; // no room for all of them
    context.textAlign = ns === 1e3 ? "left" : "center";
    context.fillText(text, ns === 1e3 ? 0 : at, floor + 5);
  }
}

// ---- tiles ----

const tiles = [
  {name: "Connections", read: () => family(current, "channels.active"), show: countOf,
    more: () => `${count(rate("channels.accepted"))} accepted/s`},
  {name: "Requests", read: () => rate("http.responses"), show: countOf, unit: "/s",
    more: () => `${count(family(current, "http.responses"))} in total`},
  {name: "Received", read: () => rate("channels.bytes_received"), show: bytesOf, unit: "/s",
    more: () => `${bytes(family(current, "channels.bytes_received"))} in total`},
  {name: "Sent", read: () => rate("channels.bytes_sent"), show: bytesOf, unit: "/s",
    more: () => `${bytes(family(current, "channels.bytes_sent"))} in total`},
  {name: "Busiest loop", read: () => Math.max(0, ...loopsOf(current).map((loop) => loop.utilisation ?? 0)) / 10,
    show: (value) => [three(value), "%"],
    more: () => `${three(average(loopsOf(current).map((loop) => loop.utilisation ?? 0)) / 10)} % on average`},
  {name: "Memory", read: () => metric(current, "process.resident_memory_bytes") || metric(current, "pool.mapped_bytes"),
    show: bytesOf, more: () => `${bytes(metric(current, "pool.mapped_bytes"))} of buffers`},
];

const loopsOf = (stats) => stats.loops.filter((loop) => loop.is_loop);
const average = (values) => values.length ? values.reduce((a, b) => a + b, 0) / values.length : 0;

function makeTiles() {
  for (const tile of tiles) {
    tile.value = element("p", {className: "value"}, "–");
    tile.rest = element("p", {className: "more"});
    tile.canvas = element("canvas", {ariaHidden: "true"});
    $("tiles").append(element("div", {className: "card tile"}, element("h2", {}, tile.name), tile.value, tile.rest, tile.canvas));
  }
}

function remember(name, value) {
  const line = history.get(name) ?? [];
  history.set(name, line);
  line.push(value);
  if (line.length > HISTORY)
    line.shift();
  return line;
}

function showTiles() {
  for (const tile of tiles) {
    const value = tile.read(), [number, unit] = tile.show(value);
    tile.value.replaceChildren(number, element("small", {}, unit + (tile.unit ?? "")));
    setText(tile.rest, tile.more());
    drawSparkline(tile.canvas, remember(tile.name, value));
  }
}

// ---- loops ----

const groups = new Map(); // by name: {box, summary, rows: Map}
const shortName = (name) => name.replace(/#\d+$/, "");
const natural = (a, b) => a.localeCompare(b, "en", {numeric: true});

function makeGroup(name) {
  const summary = element("span"), list = element("ul", {className: "rows"});
  const box = element("div", {className: "group"},
    element("h3", {}, element("span", {}, name || "others"), summary), list);
  return {box, summary, list, rows: new Map()};
}

function makeRow(loop) {
  const row = {fill: element("span"), share: element("b"), queue: element("b"), handles: element("b"),
    canvas: element("canvas", {ariaHidden: "true"}), note: element("span", {className: "note", hidden: true}),
    name: element("span", {className: "name mono", title: loop.name}, shortName(loop.name)), heat: [], before: null};
  row.meter = element("span", {className: "bar", role: "meter", ariaLabel: "utilisation", ariaValueMin: "0", ariaValueMax: "100"}, row.fill);
  row.box = element("li", {className: "row"}, row.name,
    element("span", {className: "use"}, row.meter, row.share),
    element("span", {className: "small", title: "tasks that wait"}, row.queue, " queued"),
    element("span", {className: "small more", title: loop.is_loop ? "open descriptors" : "tasks run"}, row.handles,
      loop.is_loop ? " open" : " tasks"),
    element("span", {className: "heat"}, row.canvas, row.note));
  return row;
}

function showRow(row, loop, now) {
  const share = Math.round((loop.utilisation ?? 0) / 10), totals = counts(loop.is_loop ? loop.turn_ns : loop.run);
  const block = blocked.get(shortName(loop.name));
  const turns = (loop.is_loop ? loop.turns : loop.tasks) ?? 0;
  let longest = row.before ? largest(difference(totals, row.before)) : 0;
  if (longest === 0 && row.before && turns > row.turns)
    longest = 1; // it ran; not every turn is measured
  row.before = totals;
  row.turns = turns;
  if (block && now - block.seen < BLOCK_NOTE_MS) {
    if (!block.isDrawn)
      longest = Math.max(longest, block.duration_ns);
    block.isDrawn ||= block.ended;
    setText(row.note, `blocked ${time(block.duration_ns)} by ${block.handler || "a task"}${block.slot ? " in " + block.slot : ""}`);
    row.note.className = "note";
    row.note.hidden = false;
  } else {
    row.note.hidden = true;
  }
  row.box.classList.toggle("blocked", !row.note.hidden);
  row.name.classList.toggle("here", hello !== null && hello.loop === shortName(loop.name));
  row.fill.style.transform = `scaleX(${Math.min(1, share / 100)})`;
  row.meter.setAttribute("aria-valuenow", share);
  setText(row.share, share + " %");
  setText(row.queue, count(loop.pending ?? 0));
  setText(row.handles, count((loop.is_loop ? loop.handles : loop.tasks) ?? 0));
  row.heat.push(longest);
  if (row.heat.length > HISTORY)
    row.heat.shift();
  drawHeat(row.canvas, row.heat);
}

function showLoops() {
  const byGroup = new Map(), now = Date.now(), loops = loopsOf(current);
  for (const loop of current.loops) {
    if (!byGroup.has(loop.group))
      byGroup.set(loop.group, []);
    byGroup.get(loop.group).push(loop);
  }
  const names = [...byGroup.keys()].sort((a, b) =>
    byGroup.get(b).some((loop) => loop.is_loop) - byGroup.get(a).some((loop) => loop.is_loop) || natural(a, b));
  $("groups").classList.toggle("dense", current.loops.length > DENSE);
  for (const name of [...groups.keys()].filter((name) => !byGroup.has(name))) {
    groups.get(name).box.remove();
    groups.delete(name);
  }
  names.forEach((name, at) => {
    const members = byGroup.get(name).sort((a, b) => natural(a.name, b.name));
    if (!groups.has(name))
      groups.set(name, makeGroup(name));
    const group = groups.get(name);
    if ($("groups").children[at] !== group.box)
      $("groups").insertBefore(group.box, $("groups").children[at] ?? null);
    for (const key of [...group.rows.keys()].filter((key) => !members.some((loop) => loop.name === key))) {
      group.rows.get(key).box.remove();
      group.rows.delete(key);
    }
    members.forEach((loop, i) => {
      if (!group.rows.has(loop.name)) {
        const row = makeRow(loop);
        group.rows.set(loop.name, row);
        group.list.insertBefore(row.box, group.list.children[i] ?? null);
      }
      showRow(group.rows.get(loop.name), loop, now);
    });
    const queued = members.reduce((sum, loop) => sum + (loop.pending ?? 0), 0);
    const kind = members[0].is_loop ? "loop" : "executor";
    setText(group.summary, `${members.length} ${kind}${members.length > 1 ? "s" : ""} · ` +
      `${Math.round(average(members.map((loop) => loop.utilisation ?? 0)) / 10)} % busy · ${count(queued)} queued`);
  });
  setText($("loops-summary"), `${loops.length} loops, ${current.loops.length - loops.length} other executors`);
}

// ---- blocks and their demonstration ----

function showBlock(block, isNew) {
  if (isNew)
    blocked.set(block.loop, {...block, seen: Date.now(), isDrawn: blocked.get(block.loop)?.number === block.number &&
      blocked.get(block.loop).isDrawn});
  const who = block.handler ? `${block.handler}` : "a task or timer";
  const item = element("li", {className: "block"},
    element("div", {className: "title"}, element("b", {}, `${block.loop}: ${time(block.duration_ns)}${block.ended ? "" : " so far"}`),
      element("time", {}, clock(block.time))),
    element("p", {}, element("b", {className: "mono"}, who), block.slot ? ` in ${block.slot}` : "",
      block.channel ? `, channel ${block.channel}` : "", block.computing ? "; it was computing" : "; it was waiting"));
  if (block.frames.length > 0)
    item.append(element("details", {open: blocks.get(block.number)?.querySelector("details")?.open ?? false},
      element("summary", {}, "backtrace"), element("pre", {}, block.frames.map((frame, i) => `#${i} ${frame}`).join("\n"))));
  if (blocks.has(block.number))
    blocks.get(block.number).replaceWith(item);
  else
    $("blocks").prepend(item);
  blocks.set(block.number, item);
  $("blocks").querySelector(".empty")?.remove();
  while (blocks.size > BLOCKS_SHOWN) {
    const oldest = Math.min(...blocks.keys());
    blocks.get(oldest).remove();
    blocks.delete(oldest);
  }
}

function showBlocksSummary() {
  const isRunning = metric(current, "watchdog.is_running") > 0;
  setText($("blocks-summary"), isRunning ? `${count(metric(current, "watchdog.blocks"))} in total` : "");
  if (blocks.size === 0)
    $("blocks").replaceChildren(element("li", {className: "empty"}, isRunning
      ? "None so far: no turn has taken longer than the watchdog's threshold."
      : "The watchdog does not run: weir_watchdog_start starts it."));
}

const demoHandler = () => current?.handlers.find((handler) => handler.name === "dashboard-block");

function showDemoState(text) {
  setText($("demo-state"), text);
}

function describeDemo() {
  const handler = demoHandler();
  if (!hello.can_move)
    return "Press the button and watch the row of the loop.";
  if ($("move").checked)
    return handler?.is_offloaded
      ? `The handler is known to block, so it runs on other threads now: ${hello.loop} stays free.`
      : `After four blocks the handler is moved to other threads: ${handler?.blocks ?? 0} so far.`;
  return "Press the button and watch the row of the loop. With the switch on, a handler that has " +
    "blocked more than three times is moved to other threads.";
}

function showHello() {
  setText($("title"), hello.title);
  document.title = hello.title + " – weir";
  setText($("subtitle"), `weir ${hello.version}, visitor ${hello.visitor} on ${hello.loop}`);
  $("demo").hidden = !hello.can_block;
  $("move-label").hidden = !hello.can_move;
  $("chat-card").hidden = !hello.chat;
  $("log-card").hidden = !hello.has_log;
  $("texts").style.gridTemplateColumns = hello.chat && hello.has_log ? "" : "minmax(0, 1fr)";
  setText($("demo-loop"), hello.loop);
  setText($("demo-time"), time(hello.block_ns));
  $("block").disabled = false;
  $("move").checked = hello.moves;
  showDemoState(describeDemo());
  hello.chats.forEach(showChat);
  hello.blocks.forEach((block) => showBlock(block, false));
  hello.log.forEach(addLine);
  showLog();
  if (hello.chat && $("name").value)
    send("name " + $("name").value);
}

// ---- latency, channels, memory, handlers ----

const charts = [
  {title: "HTTP requests", name: "http.request_ns", read: () => counts(current.histograms["http.request_ns"]?.buckets),
    hint: "from the head of the request to the end of the response"},
  {title: "Time in the queue", name: "queue", hint: "how long a task would wait, up to 1,000 samples per second",
    read: () => current.loops.reduce((all, loop) => counts(loop.queue, all), counts(null))},
  {title: "Turns of loops", name: "turns", hint: "since the page was opened",
    read: () => loopsOf(current).reduce((all, loop) => counts(loop.turn_ns, all), counts(null))},
];

function makeCharts() {
  for (const chart of charts) {
    chart.text = element("p");
    chart.canvas = element("canvas", {role: "img"});
    $("charts").append(element("div", {className: "chart", title: chart.hint}, element("h3", {}, chart.title), chart.text, chart.canvas));
  }
}

function showCharts() {
  for (const chart of charts) {
    const values = inWindow(chart.name, chart.read()), total = values.reduce((a, b) => a + b, 0);
    const text = total > 0 ? `median ${time(quantile(values, 0.5))} · 99 % ≤ ${time(quantile(values, 0.99))} · ${count(total)} in all`
      : "none";
    setText(chart.text, text);
    chart.canvas.ariaLabel = `${chart.title}: ${text}`;
    drawHistogram(chart.canvas, values);
  }
}

// Replaces the texts of a table's rows, and adds or removes rows only if their number changes.
function showRows(body, rows, empty) {
  if (rows.length === 0) {
    if (!body.querySelector(".empty"))
      body.replaceChildren(element("tr", {}, element("td", {className: "empty", colSpan: 5}, empty)));
    return;
  }
  if (body.querySelector(".empty"))
    body.replaceChildren();
  while (body.rows.length > rows.length)
    body.deleteRow(-1);
  rows.forEach((cells, i) => {
    const row = body.rows[i] ?? body.insertRow();
    cells.forEach((text, j) => setText(row.cells[j] ?? row.insertCell(), text));
  });
}

function showChannels() {
  const kinds = Object.keys(current.metrics).map((key) => /^channels\.created\{transport="(.*)"\}$/.exec(key)?.[1])
    .filter((kind) => kind && (family(current, `channels.created{transport="${kind}"}`) > 0 || kind === "tcp"));
  const of = (name, kind) => (stats) => metric(stats, `channels.${name}{transport="${kind}"}`);
  showRows($("channels"), kinds.sort().map((kind) => [kind, count(of("active", kind)(current)),
    count(rateOf(of("accepted", kind))), bytes(rateOf(of("bytes_received", kind))), bytes(rateOf(of("bytes_sent", kind)))]),
  "no channels");
}

// What the libraries above channels count; only what has happened in this process.
function showProtocols() {
  const rows = [];
  if (family(current, "http.connections") > 0)
    rows.push(["HTTP connections", count(family(current, "http.connections_open"))]);
  for (const status of ["2xx", "3xx", "4xx", "5xx"]) {
    const name = `http.responses{status="${status}"}`;
    if (metric(current, name) > 0)
      rows.push([`Responses ${status}`, `${count(rate(name))}/s`]);
  }
  if (family(current, "websocket.connections") > 0)
    rows.push(["WebSockets", count(family(current, "websocket.connections_open"))]);
  if (family(current, "tls.handshakes") > 0)
    rows.push(["TLS handshakes", `${count(rate("tls.handshakes"))}/s`]);
  showRows($("protocols"), rows, "");
}

function showMemory() {
  const mapped = metric(current, "pool.mapped_bytes"), used = family(current, "pool.cache.out_bytes");
  const huge = metric(current, "pool.huge_bytes"), cached = family(current, "pool.cache.cached_bytes");
  const share = (part) => mapped > 0 ? `${Math.min(100, part / mapped * 100)}%` : "0";
  const rows = [["In use", bytes(used + huge)], ["Cached for reuse", bytes(cached)], ["Buffers, mapped", bytes(mapped)],
    ["Largest so far", bytes(metric(current, "pool.peak_bytes"))]];
  if ("process.resident_memory_bytes" in current.metrics)
    rows.push(["Process, resident", bytes(metric(current, "process.resident_memory_bytes"))],
      ["Threads", count(metric(current, "process.threads"))],
      ["Open descriptors", count(metric(current, "process.open_fds"))]);
  $("memory-bar").children[0].style.width = share(used + huge);
  $("memory-bar").children[1].style.width = share(cached);
  $("memory-bar").ariaLabel = `${bytes(used + huge)} in use and ${bytes(cached)} cached, of ${bytes(mapped)}`;
  showRows($("memory"), rows, "");
  ["swatch", "swatch two", "swatch three"].forEach((name, i) => $("memory").rows[i].cells[0].className = name);
}

function showHandlers() {
  const handlers = [...current.handlers].sort((a, b) => b.longest_ns - a.longest_ns || b.blocks - a.blocks).slice(0, 8);
  showRows($("handlers"), handlers.map((handler) => [handler.name, count(handler.blocks), time(handler.longest_ns),
    handler.moved > 0 ? "moved away" : "its loop"]), "No handler has blocked.");
}

function showMetrics() {
  if ($("all").open)
    showRows($("metrics"), Object.entries(current.metrics).sort(([a], [b]) => natural(a, b))
      .map(([name, value]) => [name, value.toLocaleString("en")]), "none");
}

// ---- log and chat ----

const levels = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR"];
let lines = [], shownLine = 0;

function addLine(line) {
  if (line[0] <= lastLine)
    return;
  lastLine = line[0];
  lines.push(line);
  if (lines.length > LOG_LINES)
    lines.shift();
}

// Keeps the end in sight if it was.
function keepEnd(box, change) {
  const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
  change();
  if (isAtEnd)
    box.scrollTop = box.scrollHeight;
}

function showLog() {
  const least = Number($("level").value), box = $("log");
  const fresh = lines.filter((line) => line[0] > shownLine && levels.indexOf(line[2]) >= least);
  shownLine = lastLine;
  if (fresh.length > 0)
    keepEnd(box, () => {
      box.querySelector(".muted")?.remove();
      box.append(...fresh.map(([, at, level, subsystem, object, text]) => element("div", {className: level},
        element("time", {}, clock(at)), " ", element("b", {}, level.padEnd(5)), " ",
        element("i", {}, object === "-" ? subsystem : `${subsystem} ${object}`), " ", text)));
      while (box.children.length > LOG_LINES)
        box.firstChild.remove();
    });
  else if (box.children.length === 0)
    box.append(element("div", {className: "muted"}, "No lines yet."));
}

function showChat(message) {
  if (message.number <= lastChat)
    return;
  lastChat = message.number;
  keepEnd($("chat"), () => $("chat").append(element("p", {}, element("time", {}, clock(message.time)),
    element("b", {}, message.from + ": "), message.text)));
}

// ---- the connection ----

let socket = null, delay = 1000, noticeTimer = 0;

function send(text) {
  if (socket?.readyState === WebSocket.OPEN)
    socket.send(text);
}

function showStatus(text, name) {
  setText($("status-text"), text);
  $("status").className = "status " + name;
  document.body.classList.toggle("stale", name === "lost");
}

function notify(text) {
  setText($("notice"), text);
  $("notice").hidden = false;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => { $("notice").hidden = true; }, 4000);
}

function showStats(stats) {
  previous = current;
  current = stats;
  if (previous)
    seconds = Math.max(0.05, (current.time - previous.time) / 1000);
  showTiles();
  showLoops();
  showBlocksSummary();
  showCharts();
  showChannels();
  showProtocols();
  showMemory();
  showHandlers();
  showMetrics();
}

const receivers = {
  hello(message) {
    if (hello?.created !== message.created)
      startAgain(); // another process
    hello = message;
    showHello();
  },
  stats: showStats,
  log(message) {
    message.lines.forEach(addLine);
    showLog();
  },
  chat: showChat,
  block(message) {
    showBlock(message, true);
    if (hello?.can_block && message.handler === "dashboard-block" && message.loop === hello.loop)
      showDemoState(`${message.loop} ${message.ended ? "was" : "is"} blocked for ${time(message.duration_ns)} by ${message.handler} in ` +
        `${message.slot}: its backtrace is below. Nothing else on this loop could run.`);
  },
  move(message) {
    $("move").checked = message.on;
    showDemoState(describeDemo());
  },
  unblocked(message) {
    $("block").disabled = false;
    if (message.moved)
      showDemoState(`dashboard-block was moved: it slept for ${time(message.duration_ns)} on ${message.executor}, and ` +
        `${hello.loop} stayed free.`);
    else if (metric(current ?? {metrics: {}}, "watchdog.is_running") === 0)
      showDemoState(`${hello.loop} was blocked for ${time(message.duration_ns)}. The watchdog does not run, so nobody was told.`);
  },
  notice(message) {
    $("block").disabled = false;
    notify(message.text);
  },
};

function startAgain() {
  previous = current = null;
  lines = [];
  lastLine = shownLine = lastChat = 0;
  for (const kept of [history, windows, blocked, blocks, groups])
    kept.clear();
  for (const id of ["groups", "log", "chat", "blocks"])
    $(id).replaceChildren();
}

function connect() {
  const url = new URL("ws", location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.search = "";
  socket = new WebSocket(url);
  socket.onopen = () => {
    delay = 1000;
    showStatus("live", "live");
  };
  socket.onmessage = (event) => {
    const message = JSON.parse(event.data);
    receivers[message.type]?.(message);
  };
  socket.onclose = () => {
    previous = null;
    $("block").disabled = true;
    showStatus(hello ? "connection lost, trying again" : "cannot connect, trying again", "lost");
    setTimeout(connect, delay);
    delay = Math.min(10000, delay * 1.6);
  };
}

// ---- start ----

$("block").addEventListener("click", () => {
  $("block").disabled = true;
  showDemoState(`${hello.loop} is asked to block …`);
  send("block");
});
$("move").addEventListener("change", () => send("move " + ($("move").checked ? "on" : "off")));
$("level").addEventListener("change", () => {
  $("log").replaceChildren();
  shownLine = 0;
  showLog();
});
$("name").addEventListener("change", () => send("name " + $("name").value));
$("chat-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if ($("text").value.trim() !== "")
    send("chat " + $("text").value);
  $("text").value = "";
});
$("all").addEventListener("toggle", () => current && showMetrics());

function redraw() {
  readColours();
  drawScale();
  for (const group of groups.values())
    for (const row of group.rows.values())
      drawHeat(row.canvas, row.heat);
  for (const tile of tiles)
    drawSparkline(tile.canvas, history.get(tile.name) ?? []);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("resize", redraw);
readColours();
makeTiles();
makeCharts();
drawScale();
connect();
