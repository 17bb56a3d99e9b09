// The dashboard: follows `live`, draws the last hour, and fills the tables. Texts of others are only ever set as text.
"use strict";

const $ = (id) => document.getElementById(id);
const HOUR = 3600;
const SVG = "http://www.w3.org/2000/svg";

/** Makes an element; what is undefined among the children is left out. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

function draw(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// ---- Numbers as people read them ----

function short(value) {
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= size * 10 || (value >= size && size > 1e3)) return (value / size).toFixed(value >= size * 100 ? 0 : 1) + unit;
  }
  return value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toFixed(value < 10 ? 1 : 0);
}

function bytes(value) {
  for (const [size, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (value >= size) return (value / size).toFixed(value >= size * 100 ? 0 : 1) + " " + unit;
  }
  return value + " B";
}

function milliseconds(value) {
  if (value === undefined || value === null) return "–";
  if (value < 0.01) return "< 0.01 ms";
  if (value >= 60000) return Math.round(value / 60000).toLocaleString("en") + " min";
  if (value >= 10000) return (value / 1000).toFixed(0) + " s";
  if (value >= 1000) return (value / 1000).toFixed(1) + " s";
  return (value >= 10 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value.toFixed(2)) + " ms";
}

const percent = (part, whole) => (whole > 0 ? ((part / whole) * 100).toFixed(part === whole ? 0 : 1) + " %" : "–");
const clock = (time) => new Date(time).toLocaleTimeString([], { hour12: false });

// ---- What is known ----

let names = [];
let rows = [];
let tables = null;
let before = null;
let elapsed = 1;
let notes = [];
let token = sessionStorage.getItem("token");

const figure = (row, name) => row[names.indexOf(name)] || 0;
const sum = (of, name) => of.reduce((all, row) => all + figure(row, name), 0);

/** The rows of the last seconds. */
function lately(seconds) {
  if (rows.length === 0) return [];
  const since = figure(rows[rows.length - 1], "at") - seconds;
  return rows.filter((row) => figure(row, "at") > since);
}

// ---- Charts ----

const CHARTS = [
  { id: "requests", title: "Requests per second", unit: short, lines: [["served", (of, s) => sum(of, "requests") / s], ["failed", (of, s) => sum(of, "errors") / s]] },
  { id: "origin", title: "Requests per second to the API", unit: short, lines: [["with the cache", (of, s) => sum(of, "reached") / s], ["without it", (of, s) => sum(of, "without") / s]] },
  { id: "latency", title: "Response time", unit: (value) => milliseconds(value / 1000), lines: [["median", (of) => middle(of, "p50")], ["99th percentile", (of) => most(of, "p99")]] },
  { id: "ratio", title: "Served from the cache", unit: (value) => value.toFixed(0) + " %", top: 100, lines: [["of the requests handled by a cache", (of) => (sum(of, "cached") ? (sum(of, "hits") / sum(of, "cached")) * 100 : null)]] },
];

/** The longest of a time; nothing where nobody asked. */
const most = (of, name) => (sum(of, "requests") ? of.reduce((found, row) => Math.max(found, figure(row, name)), 0) : null);

/** The mean of a time, each second counting as its requests. */
function middle(of, name) {
  const weight = sum(of, "requests");
  return weight ? of.reduce((all, row) => all + figure(row, name) * figure(row, "requests"), 0) / weight : null;
}

function prepareCharts() {
  for (const chart of CHARTS) {
    chart.svg = draw("svg", { role: "img", viewBox: "0 0 400 140", preserveAspectRatio: "none", "aria-labelledby": chart.id + "-told" });
    chart.told = make("span", { id: chart.id + "-told" });
    [chart.top_label, chart.middle_label] = ["top", "middle"].map((place) => make("span", { class: "scale " + place, "aria-hidden": "true" }));
    chart.values = chart.lines.map(() => make("b"));
    const keys = chart.lines.map(([label], index) =>
      make("span", {}, make("span", { class: index ? "key second" : "key" }), label + " ", chart.values[index]));
    $("charts").append(make("figure", { id: chart.id }, make("figcaption", {}, make("strong", {}, chart.title), ...keys),
      make("div", { class: "plot" }, chart.svg, chart.top_label, chart.middle_label), make("figcaption", { class: "none" }, chart.told)));
  }
}

/** Cuts the time into steps that can be seen: each a list of its rows. */
function steps(seconds) {
  const size = Math.max(1, Math.ceil(seconds / 300));
  const now = rows.length ? figure(rows[rows.length - 1], "at") : 0;
  const all = Array.from({ length: Math.ceil(seconds / size) }, () => []);
  for (const row of lately(seconds)) all[all.length - 1 - Math.floor((now - figure(row, "at")) / size)]?.push(row);
  return { all, size };
}

/** A round number at or above a value. */
function ceiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 5, 7.5, 10].map((step) => step * power).find((step) => step >= value) || value;
}

/** The top of a scale. A few values far above all others are cut off, or they would flatten the rest. */
function topOf(values) {
  const sorted = values.filter((value) => value > 0).sort((a, b) => a - b);
  const most = sorted[sorted.length - 1] || 0;
  const usual = sorted[Math.floor(sorted.length * 0.95)] || 0;
  return most > 4 * usual && sorted.length >= 20 ? { top: ceiling(usual * 1.5), most } : { top: ceiling(most), most };
}

/** Areas below a line: one for each stretch without a gap, so that nothing is drawn where nothing was measured. */
function areas(points, ground) {
  const stretches = [[]];
  for (const point of points) {
    if (point[1] === null) stretches.push([]);
    else stretches[stretches.length - 1].push(point);
  }
  return stretches.filter((stretch) => stretch.length > 1).map((stretch) =>
    path(stretch) + "L" + stretch[stretch.length - 1][0].toFixed(1) + " " + ground + "L" + stretch[0][0].toFixed(1) + " " + ground + "Z").join("");
}

function path(points) {
  let text = "";
  let pen = "M";
  for (const [x, y] of points) {
    if (y === null) pen = "M";
    else {
      // A point alone is a dot.
      text += pen + x.toFixed(1) + " " + y.toFixed(1) + (pen === "M" ? "h.01" : "");
      pen = "L";
    }
  }
  return text;
}

function drawCharts() {
  const seconds = Number($("span").value);
  const { all, size } = steps(seconds);
  for (const chart of CHARTS) {
    const series = chart.lines.map(([, of]) => all.map((step) => (step.length ? of(step, Math.min(size, step.length)) : null)));
    const { top, most } = chart.top ? { top: chart.top, most: chart.top } : topOf(series.flat());
    const x = (index) => (index / Math.max(1, all.length - 1)) * 400;
    const y = (value) => (value === null ? null : 125 - (Math.min(value, top) / top) * 115);
    const shapes = [0, 0.5, 1].map((share) => draw("line", { class: "grid", x1: 0, x2: 400, y1: y(share * top), y2: y(share * top), "vector-effect": "non-scaling-stroke" }));
    const points = series[0].map((value, index) => [x(index), y(value)]);
    shapes.push(draw("path", { class: "area", d: areas(points, 125) }));
    series.forEach((values, line) => {
      const drawn = path(values.map((value, index) => [x(index), y(value)]));
      shapes.push(draw("path", { class: line ? "second" : "first", d: drawn, "vector-effect": "non-scaling-stroke" }));
    });
    chart.svg.replaceChildren(...shapes);
    const last = series.map((values) => values[values.length - 1] ?? undefined);
    last.forEach((value, line) => { chart.values[line].textContent = value === undefined ? "–" : chart.unit(value); });
    chart.top_label.textContent = chart.unit(top) + (most > top ? " (peak " + chart.unit(most) + ")" : "");
    chart.middle_label.textContent = chart.unit(top / 2);
    chart.told.textContent = "0 to " + chart.unit(top) + ", the last " + $("span").selectedOptions[0].textContent
      + (most > top ? "; the peak of " + chart.unit(most) + " is cut off" : "");
  }
  tell(seconds);
}

function tell(seconds) {
  const half = lately(30);
  const [reached, without] = [sum(half, "reached"), sum(half, "without")];
  const window = lately(seconds);
  const spared = sum(window, "without") - sum(window, "reached");
  $("story").replaceChildren(
    "In the last 30 seconds ", make("strong", { id: "reached" }, reached.toLocaleString("en")), " requests reached the API; without the cache, it would have been ",
    make("strong", { id: "without" }, without.toLocaleString("en")), ". ",
    spared > 0 ? "In the last " + $("span").selectedOptions[0].textContent + ", the cache saved " + spared.toLocaleString("en") + " requests." : "");
}

// ---- Tables ----

/** A table that can be sorted and filtered; its rows are known by their keys, so that what a reader is at stays where it is. */
class Table {
  constructor(id, nothing, columns) {
    Object.assign(this, { place: $(id + "-table"), nothing, columns, sorted: columns.findIndex((column) => column.first), down: true, data: [], lines: new Map() });
    const title = $(id + "-title").textContent;
    this.filter = make("input", { type: "search", placeholder: "filter", "aria-label": "Filter: " + title, on: { input: () => this.show() } });
    $(id).querySelector(".titled").append(this.filter);
    this.heads = columns.map((column, index) => make("th", { scope: "col", class: column.left ? "left" : undefined },
      make("button", { type: "button", title: column.hint, on: { click: () => this.sort(index) } }, column.name)));
    this.body = make("tbody");
    this.table = make("table", { "aria-labelledby": id + "-title" }, make("thead", {}, make("tr", {}, ...this.heads)), this.body);
    this.empty = make("p", { class: "none" }, nothing);
    this.place.append(this.table, this.empty);
    this.show();
  }

  sort(index) {
    this.down = this.sorted === index ? !this.down : !this.columns[index].left;
    this.sorted = index;
    this.show();
  }

  fill(data) {
    this.data = data;
    this.show();
  }

  show() {
    const wanted = this.filter.value.trim().toLowerCase();
    const text = (row) => this.columns.filter((column) => column.left).map((column) => String(column.value(row))).join(" ").toLowerCase();
    const shown = this.data.filter((row) => !wanted || text(row).includes(wanted));
    if (this.sorted >= 0) {
      const { value } = this.columns[this.sorted];
      const order = (a, b) => (typeof a === "string" ? a.localeCompare(b) : (a ?? -1) - (b ?? -1));
      shown.sort((a, b) => (this.down ? -1 : 1) * order(value(a), value(b)));
    }
    this.heads.forEach((head, index) => {
      if (index === this.sorted) head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const lines = shown.map((row) => this.line(row));
    this.columns.forEach((column, index) => {
      // A column that may be empty and is takes no room.
      const hidden = Boolean(column.spare) && shown.every((row) => !column.value(row));
      this.heads[index].hidden = hidden;
      for (const line of lines) line.children[index].hidden = hidden;
    });
    lines.forEach((line, index) => {
      if (this.body.children[index] !== line) this.body.insertBefore(line, this.body.children[index] || null);
    });
    while (this.body.children.length > lines.length) this.body.lastChild.remove();
    for (const [key, line] of this.lines) if (!line.isConnected) this.lines.delete(key);
    this.table.hidden = shown.length === 0;
    this.empty.hidden = shown.length > 0;
    this.empty.textContent = this.data.length ? "no rows match the filter" : this.nothing;
  }

  line(row) {
    let line = this.lines.get(row.key);
    if (!line) {
      const cell = (column, index) => (index ? make("td", { "data-name": column.name, class: [column.left ? "left" : "", column.wide ? "wide" : ""].join(" ").trim() || undefined }) : make("th", { scope: "row", class: "left" }));
      line = make("tr", {}, ...this.columns.map(cell));
      this.lines.set(row.key, line);
    }
    this.columns.forEach((column, index) => {
      const shown = column.show ? column.show(column.value(row), row) : String(column.value(row) ?? "–");
      const cell = line.children[index];
      const text = typeof shown === "string" ? shown : shown.text;
      if (cell.dataset.shown === text) return;
      cell.dataset.shown = text;
      if (typeof shown === "string") cell.textContent = shown;
      else cell.replaceChildren(...shown.parts);
    });
    return line;
  }
}

/** How fast a count grows, in a second. */
function rate(kind, name, of) {
  const [now, then] = [tables[kind][name], before?.[kind]?.[name]];
  return now && then ? Math.max(0, of(now) - of(then)) / elapsed : 0;
}

const hits = (cache) => ["hit", "stale", "updating"].reduce((all, status) => all + (cache[status] || 0), 0);
const parts = (cache) => Object.values(cache).reduce((all, count) => all + count, 0);
const failing = (count) => (count ? { text: "!" + count, parts: [make("span", { class: "bad" }, short(count))] } : "0");

const ZONE = [
  { name: "name", left: true, value: (row) => row.name },
  { name: "requests/s", first: true, value: (row) => row.rate, show: short },
  { name: "requests", value: (row) => row.zone.requests, show: short },
  { name: "2xx", value: (row) => row.zone.responses["2xx"], show: short },
  { name: "3xx", value: (row) => row.zone.responses["3xx"], show: short },
  { name: "4xx", value: (row) => row.zone.responses["4xx"], show: short },
  { name: "5xx", value: (row) => row.zone.responses["5xx"], show: failing },
  { name: "no response", hint: "the client or Millstream closed the connection first", value: (row) => row.zone.discarded, show: short },
  { name: "median", hint: "median response time", value: (row) => row.zone.latency.p50, show: milliseconds },
  { name: "99 %", hint: "99th percentile of response times", value: (row) => row.zone.latency.p99, show: milliseconds },
  { name: "sent", value: (row) => row.zone.sent, show: bytes },
];

const LOCATION = [
  { name: "from the cache", hint: "of the requests handled by a cache", value: (row) => (parts(row.zone.cache) ? hits(row.zone.cache) / parts(row.zone.cache) : null), show: (_, row) => percent(hits(row.zone.cache), parts(row.zone.cache)) },
  { name: "to the API", hint: "requests to upstream servers on behalf of clients", value: (row) => row.zone.origin.requests, show: short },
  { name: "API time", hint: "total time that the API took for these requests", value: (row) => row.zone.origin.time, show: milliseconds },
  { name: "saved", hint: "estimated API time for the requests served from the cache", value: (row) => row.zone.origin.saved_time, show: milliseconds },
];

const UPSTREAM = [
  { name: "server", left: true, value: (row) => row.peer.server },
  { name: "upstream", left: true, value: (row) => row.upstream },
  { name: "state", left: true, value: (row) => row.peer.state, show: (state, row) => ({ text: state + row.peer.backup, parts: [make("span", { class: "light " + state }), state + (row.peer.backup ? ", backup" : "")] }) },
  { name: "requests/s", value: (row) => row.rate, show: short },
  { name: "active", value: (row) => row.peer.active, show: short },
  { name: "requests", first: true, value: (row) => row.peer.requests, show: short },
  { name: "5xx", value: (row) => row.peer.responses["5xx"], show: failing },
  { name: "failed", hint: "failed exchanges", value: (row) => row.peer.fails, show: failing },
  { name: "outages", spare: true, hint: "times that the server reached max_fails and became unavailable", value: (row) => row.peer.unavail, show: failing },
  { name: "ejections", spare: true, hint: "times that the server was ejected as an outlier", value: (row) => row.peer.ejections, show: failing },
  { name: "head", hint: "average time to the response header", value: (row) => row.peer.header_time, show: milliseconds },
  { name: "response", hint: "average time to the end of the response", value: (row) => row.peer.response_time, show: milliseconds },
  { name: "checks failed", spare: true, value: (row) => row.peer.health_checks.checks && row.peer.health_checks.fails + 0.5, show: (_, row) => (row.peer.health_checks.checks ? row.peer.health_checks.fails + " of " + short(row.peer.health_checks.checks) : "–") },
  { name: "down for", spare: true, value: (row) => row.peer.downtime, show: (time) => (time ? milliseconds(time) : "–") },
];

const CACHE = [
  { name: "zone", left: true, value: (row) => row.name },
  { name: "responses/s", first: true, value: (row) => row.rate, show: short },
  { name: "from the cache", value: (row) => hits(row.counts) / Math.max(1, parts(row.counts)), show: (_, row) => percent(hits(row.counts), parts(row.counts)) },
  { name: "hits", value: (row) => hits(row.counts), show: short },
  { name: "misses", value: (row) => row.counts.miss, show: short },
  { name: "bypassed", hint: "requests that bypassed the cache", value: (row) => row.counts.bypass, show: short },
  { name: "entries", value: (row) => row.zone.memory.entries, show: short },
  { name: "memory", value: (row) => row.zone.memory.bytes, show: (used, row) => bytes(used) + " of " + bytes(row.zone.memory.max_bytes) },
  { name: "evicted", hint: "entries removed to make room", value: (row) => row.zone.memory.evictions, show: short },
  { name: "disk", value: (row) => row.zone.disk?.bytes ?? null, show: (used, row) => (row.zone.disk ? bytes(used) + (row.zone.max_size ? " of " + bytes(row.zone.max_size) : "") : "–") },
  { name: "files", value: (row) => row.zone.disk?.files ?? null, show: (files) => (files === null ? "–" : short(files)) },
];

const MISS = [
  { name: "location", left: true, value: (row) => row.location, show: (name, row) => ({ text: name + row.at, parts: [name, make("br"), make("small", {}, row.at)] }) },
  { name: "cause", left: true, wide: true, value: (row) => row.text },
  { name: "count", value: (row) => row.count, show: short },
  { name: "API time per request", value: (row) => row.mean, show: milliseconds },
  { name: "API time", first: true, value: (row) => row.count * row.mean, show: milliseconds },
  { name: "advice", left: true, wide: true, value: (row) => row.help },
];

const MISSED_URL = [
  { name: "URL", left: true, wide: true, value: (row) => row.url },
  { name: "count", value: (row) => row.count, show: short },
  { name: "API time", first: true, value: (row) => row.time, show: milliseconds },
  { name: "last cause", left: true, wide: true, value: (row) => row.text },
];

const span = (seconds) => milliseconds(seconds * 1000);

const SHADOW = [
  { name: "route", left: true, value: (row) => row.route, show: (route, row) => ({ text: route + row.location, parts: [route, make("br"), make("small", {}, row.location)] }) },
  { name: "requests", value: (row) => row.requests, show: short },
  { name: "API time", first: true, value: (row) => row.api_seconds, show: span },
  { name: "keep for", hint: "how long a cache may keep responses", value: (row) => row.keep_seconds, show: (seconds, row) => (seconds !== null ? seconds + " s" : row.needs ? "not yet" : "never") },
  { name: "hit ratio", hint: "95 % interval", value: (row) => row.hit_ratio[1], show: (_, row) => (row.keep_seconds === null ? "–" : row.hit_ratio.map((share) => (share * 100).toFixed(0)).join(" to ") + " %") },
  { name: "saved", hint: "API time that a cache would save", value: (row) => row.saved_seconds, show: (seconds, row) => (row.keep_seconds === null ? "–" : span(seconds)) },
  { name: "varies by", left: true, wide: true, value: (row) => [...row.varies_by, ...row.ignores.map((name) => "not " + name)].join(", "), show: (text) => text || "–" },
  { name: "verdict", left: true, wide: true, value: (row) => row.reason },
];

const CLUSTER = [
  { name: "node", first: true, left: true, value: (row) => row.node, show: (name, row) => (row.nodes ? name + " (this node)" : name) },
  { name: "zone", left: true, value: (row) => row.zone },
  { name: "state", left: true, value: (row) => row.state, show: (state) => ({ text: state, parts: [make("span", { class: "light " + state }), state.replace("_", " ")] }) },
  { name: "lag", hint: "purges and invalidations that the node has not carried out yet", value: (row) => row.lag, show: short },
  { name: "sequence", hint: "number of the last one that it has carried out", value: (row) => row.sequence, show: short },
  { name: "cut off for", value: (row) => row.cut_off_seconds, show: (seconds) => (seconds === null ? "–" : span(seconds)) },
  { name: "last seen", value: (row) => row.silent_seconds ?? null, show: (seconds) => (seconds === null ? "–" : span(seconds)) },
  { name: "not published", hint: "purges and invalidations of this node that no other node knows yet", value: (row) => row.unpublished ?? null, show: (count) => (count === null ? "–" : failing(count)) },
  { name: "engine", left: true, wide: true, value: (row) => row.failure ?? "", show: (text) => text || "–" },
];

const shown = {};

function prepareTables() {
  shown.misses = new Table("misses", "no request missed the cache yet", MISS);
  shown.urls = new Table("urls", "no misses yet", MISSED_URL);
  shown.shadow = new Table("shadow", "no requests yet", SHADOW);
  shown.cluster = new Table("cluster", "no other node was seen yet", CLUSTER);
  shown.upstreams = new Table("upstreams", "no upstream is configured", UPSTREAM);
  shown.caches = new Table("caches", "no cache is configured: define one with proxy_cache_path", CACHE);
  shown.locations = new Table("locations", "no requests yet", [...ZONE, ...LOCATION]);
  shown.servers = new Table("servers", "no requests yet", ZONE);
}

function fillTables() {
  const zones = (kind) => Object.entries(tables[kind]).map(([name, zone]) => ({ key: name, name, zone, rate: rate(kind, name, (of) => of.requests) }));
  shown.servers.fill(zones("server_zones"));
  shown.locations.fill(zones("location_zones"));
  const peers = Object.entries(tables.upstreams).flatMap(([upstream, { peers }]) => peers.map((peer) => {
    const then = before?.upstreams?.[upstream]?.peers.find((other) => other.id === peer.id);
    return { key: upstream + " " + peer.id, upstream, peer, rate: then ? Math.max(0, peer.requests - then.requests) / elapsed : 0 };
  }));
  shown.upstreams.fill(peers);
  const served = (zone) => Object.fromEntries(Object.entries(zone).filter(([, value]) => value?.responses !== undefined).map(([status, value]) => [status, value.responses]));
  shown.caches.fill(Object.entries(tables.caches).map(([name, zone]) => ({ key: name, name, zone, counts: served(zone), rate: rate("caches", name, (of) => parts(served(of))) })));
}

function fillMisses() {
  const rows = tables.misses.flatMap(({ location, origin_time: mean, requests, not_stored: refused }) =>
    [[requests, ""], [refused, "not stored: "]].flatMap(([causes, prefix]) => Object.entries(causes).map(([cause, { count, text, help }]) =>
      ({ key: location.at + prefix + cause, location: location.name, at: location.at, text: prefix + text, help, count, mean }))));
  shown.misses.fill(rows);
  shown.urls.fill(tables.misses.flatMap(({ location, urls }) => (urls || []).map((row) => ({ ...row, key: location.at + " " + row.url }))));
}

/** What a cache could serve, where a location is observed for it. */
function fillShadow() {
  const report = tables.shadow;
  $("shadow").hidden = $("shadow-link").hidden = !report;
  if (!report) return;
  const named = (row) => report.locations[row.location] || "";
  shown.shadow.fill(report.routes.map((row) => ({ ...row, location: named(row), key: named(row) + " " + row.route })));
}

/** The nodes of each zone, where a zone is part of a cluster. */
function fillCluster() {
  const rows = (tables.cluster || []).flatMap((zone) => [zone, ...zone.nodes].map((node) => ({ ...node, zone: zone.zone, key: zone.cluster + " " + zone.zone + " " + (node.id || "") })));
  $("cluster").hidden = $("cluster-link").hidden = !rows.length;
  shown.cluster.fill(rows);
}

function fillNotes() {
  const line = ({ at, well, text }) => make("li", {}, make("time", { datetime: new Date(at).toISOString() }, clock(at)), make("span", { class: well ? undefined : "bad" }, text));
  $("notes").replaceChildren(...(notes.length ? notes.map(line) : [make("li", { class: "none" }, "no reloads or errors since the start")]));
}

// ---- Following ----

const authorized = (more = {}) => (token ? { ...more, Authorization: "Bearer " + token } : more);

async function ask(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: authorized(options.headers), cache: "no-store" });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error?.text || "the server responded with " + answer.status);
  return told;
}

let redraw = 0;

/** Draws once for all that came; not at all while nobody looks. */
function draws() {
  if (redraw || document.hidden) return;
  redraw = requestAnimationFrame(() => {
    redraw = 0;
    drawCharts();
    if (tables) {
      fillTables();
      fillMisses();
      fillShadow();
      fillCluster();
    }
    fillNotes();
  });
}

function take(event, data) {
  const told = JSON.parse(data);
  if (event === "history") {
    ({ names, rows } = told);
    before = null;
  } else {
    const at = figure(told.second, "at");
    elapsed = Math.max(1, at - (rows.length ? figure(rows[rows.length - 1], "at") : at - 1));
    // A frame may come that is in the history already.
    rows = rows.filter((row) => figure(row, "at") < at).slice(1 - HOUR);
    rows.push(told.second);
    before = tables;
  }
  ({ tables, notes } = told);
  draws();
}

async function follow() {
  const answer = await fetch("live", { headers: authorized(), cache: "no-store" });
  if (answer.status === 403) {
    say("access denied", "bad");
    $("token").hidden = false;
    $("token-text").focus();
    return false;
  }
  if (!answer.ok) throw new Error("the server responded with " + answer.status);
  $("token").hidden = true;
  say("live", "good");
  identify();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return true;
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const [name, data] = event.split("\n");
      take(name.slice("event: ".length), data.slice("data: ".length));
    }
  }
}

async function go() {
  for (;;) {
    try {
      if (!(await follow())) return;
    } catch {
      // What went wrong is that it is not there, which is said below.
    }
    say("disconnected; reconnecting", "bad");
    await new Promise((done) => setTimeout(done, 1000));
  }
}

function say(text, kind) {
  if ($("state").textContent === text) return;
  $("state").textContent = text;
  $("state").className = kind;
}

async function identify() {
  try {
    const { version, pid, generation, load_timestamp: loaded } = await ask("api/9/nginx");
    $("process").textContent = `${version}, process ${pid}, configuration ${generation} loaded at ${clock(loaded)}`;
  } catch {
    $("process").textContent = "";
  }
}

// ---- Purge and explain ----

function told(...parts) {
  $("told").replaceChildren(...parts);
}

const pairs = (list) => make("dl", {}, ...list.filter(([, text]) => text).flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]));
const wrong = (error) => told(make("p", { class: "bad" }, error.message));
const ago = (time) => milliseconds(time) + " ago";

const explanation = (url, fields = []) => ask("api/9/explain?url=" + encodeURIComponent(url) + fields.map((field) => "&header=" + encodeURIComponent(field)).join(""));

function explained(found) {
  const { url, location, zone, key, now, stored, last_refusal: refusal, last_purge: purge } = found;
  return pairs([
    ["URL", url],
    ["location", location.name + " (" + location.at + ")"],
    ["cache zone", zone || "none (not cached)"],
    ["key", key?.text],
    ["result of a request now", (now.status || "") + (now.why ? ": " + now.why : "")],
    ["stored", stored.length + (stored.length === 1 ? " response" : " responses")],
    ["last not stored", refusal && refusal.text + " " + refusal.help + " (" + ago(refusal.milliseconds_ago) + ")"],
    ["last purge", purge && "by " + purge.by + (purge.node ? " on node " + purge.node : "") + ", " + ago(purge.milliseconds_ago)],
  ]);
}

async function explain(event) {
  event.preventDefault();
  try {
    const fields = $("explain-fields").value.split("\n").map((line) => line.trim()).filter((line) => line);
    told(make("h3", {}, "Result"), explained(await explanation($("explain-url").value.trim(), fields)));
  } catch (error) {
    wrong(error);
  }
}

const PURGES = { url: "URL", prefix: "URL prefix", tags: "Tag", all: "Zone" };

/** Says what a purge would go for; it is done only behind this. */
async function preview(event) {
  event.preventDefault();
  const [by, text, soft] = [$("purge-by").value, $("purge-text").value.trim(), $("purge-soft").checked];
  const path = by === "all" ? "api/9/http/caches/" + encodeURIComponent(text) + "/purge" : "api/9/purge";
  const body = { [by]: by === "all" ? true : text, soft };
  try {
    const seen = [];
    if (by === "url") seen.push(explained(await explanation(text)));
    else if (by === "all") {
      const zone = await ask("api/9/http/caches/" + encodeURIComponent(text));
      seen.push(pairs([["zone", text], ["entries", zone.memory.entries.toLocaleString("en") + " in memory" + (zone.disk ? ", " + zone.disk.files.toLocaleString("en") + " files" : "")]]));
    } else seen.push(pairs([[PURGES[by], text], ["zones", "all"]]));
    const doing = make("button", { type: "button", class: "bad", on: { click: () => purge(path, body) } }, soft ? "Make it stale" : "Purge");
    const leaving = make("button", { type: "button", class: "plain", on: { click: () => { told(); $("purge-text").focus(); } } }, "Cancel");
    told(make("h3", {}, soft ? "This would be made stale" : "This would be purged"), ...seen, make("div", { class: "acts" }, doing, leaving));
    doing.focus();
  } catch (error) {
    wrong(error);
  }
}

async function purge(path, body) {
  try {
    const { purged, notes } = await ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    const kinds = purged.length + (purged.length === 1 ? " purge" : " purges");
    told(make("p", { class: "good" }, (body.soft ? "Made stale: " : "Purged: ") + kinds + " in force."), ...(notes || []).map((note) => make("p", {}, note)));
  } catch (error) {
    wrong(error);
  }
}

// ---- Beginning ----

prepareCharts();
prepareTables();
drawCharts();
$("span").addEventListener("change", drawCharts);
$("explain").addEventListener("submit", explain);
$("purge").addEventListener("submit", preview);
$("purge-by").addEventListener("change", () => { $("purge-label").textContent = PURGES[$("purge-by").value]; });
$("token").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token-text").value.trim();
  sessionStorage.setItem("token", token);
  $("token").hidden = true;
  go();
});
document.addEventListener("visibilitychange", draws);
go();
