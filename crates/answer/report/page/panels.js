// @ts-check
// The parts of the page that are text and tables: findings, a selected line, lines in view, segments, statistics, environment.

import { button, element, fill, table } from "./dom.js";
import { bytes, count, counted, exact, percent, rate, time } from "./format.js";
import { histogram, percentile } from "./segments.js";
import { partName } from "./model.js";

/** Lines of a table before the rest is asked for. */
const SOME = 20;
/** Lines in view that the table lists. */
const LISTED = 100;

/** @param {any[]} found @param {Map<number, string>} measurements @param {((evidence: any, measurement: number | null) => void) | null} show without events there is nothing to show @param {string | null | undefined} scope @returns {Node[]} */
export function findings(found, measurements, show, scope) {
  // Of a sweep, the name of a measurement begins with the values swept.
  const place = (/** @type {any} */ finding) => (/^\w+ = /.test(measurements.get(finding.measurement) ?? "") ? "With" : `Measurement ${finding.measurement + 1}:`);
  const about = (/** @type {any} */ finding) => (measurements.size > 1 && measurements.has(finding.measurement) ? ` ${place(finding)} ${measurements.get(finding.measurement)}` : "");
  // Where nothing was measured, what was looked for is said, and what was not.
  if (scope) return [element("p", {}, `${found.length === 0 ? "No cause was found. " : ""}${scope}`), ...findings(found, measurements, show, "").filter(() => found.length > 0)];
  if (found.length === 0) return [element("p", {}, "Nothing was found that limits this run.")];
  return [element("ol", { class: "findings" }, ...found.map((finding) => element("li", {},
    element("p", { class: "sentence" }, sentence(finding.sentence)),
    element("p", { class: "soft" }, `${kindName(finding.kind)}, confidence ${percent(finding.confidence)}${finding.share === null ? "" : `, explains ${percent(finding.share)} of the time`}.${about(finding)}`),
    finding.gain ? element("p", {}, element("strong", {}, "Gain: "), finding.gain) : null,
    finding.evidence.length ? element("ul", {}, ...finding.evidence.map((/** @type {any} */ evidence) => element("li", {},
      `${evidence.what} `, show ? button(`Show at ${time(evidence.from)}`, () => show(evidence, finding.measurement), { class: "link" }) : null))) : null,
    finding.tries.length ? element("p", {}, element("strong", {}, "Try: "), finding.tries.join("; ")) : null)))];
}

/** A sentence that begins and ends as one. @param {string} text */
export function sentence(text) {
  return `${capital(text)}${/[.!?]$/.test(text) ? "" : "."}`;
}

/** @param {string} kind */
function kindName(kind) {
  const name = String(kind).replace(/_/g, " ").replace(/^cpu /, "CPU ");
  return name.charAt(0).toUpperCase() + name.slice(1);
}

/** The events of a line. @param {import("./model.js").Model} model @param {number} line @param {{before: () => void, after: () => void, zoom: () => void}} go @returns {Node[]} */
export function selected(model, line, go) {
  const first = model.first[line];
  const marks = first + model.count[line];
  const events = Array.from({ length: model.count[line] + model.marks[line] }, (_, at) => first + at);
  events.sort((a, b) => model.at[a] - model.at[b] || a - b);
  const size = model.bytes[line] >= 0 ? `, ${bytes(model.bytes[line])}` : "";
  return [
    element("h3", {}, `${capital(model.name(line))}: ${time(model.end[line] - model.start[line])}`),
    element("p", { class: "soft" }, `${model.fate(line)}${size}, ${counted(events.length, "event")}, id ${model.unit(line)}`),
    element("div", { class: "controls" }, button("Previous line", go.before), button("Next line", go.after), button("Zoom to it", go.zoom)),
    eventTable(model, "Its events", events, (event) => event >= marks),
  ];
}

/** The events that a proof of a finding names. @param {import("./model.js").Model} model @param {string} what @param {number[]} events @returns {Node[]} */
export function proofs(model, what, events) {
  return [element("h3", {}, capital(what)), eventTable(model, "The events that show it", [...events].sort((a, b) => model.at[a] - model.at[b] || a - b), () => false)];
}

/** @param {import("./model.js").Model} model @param {string} caption @param {number[]} events @param {(event: number) => boolean} strong */
function eventTable(model, caption, events, strong) {
  const rows = events.map((event, index) => {
    const kind = model.kind[event];
    const [keyword, host, place] = model.kinds[kind];
    const data = element("span", {}, ...model.data(event).flatMap(([name, value], at) =>
      [at ? ", " : "", element("span", { class: "soft" }, `${name} `), value]));
    const error = host === model.head.reference || isOneClock(model.head, model.head.hosts[host]) ? 0 : model.head.hosts[host]?.error_ns;
    const way = events.slice(0, index).findLast((one) => model.kind[one] < model.points);
    const segment = way !== undefined && kind < model.points ? model.segment({ from: model.kind[way], to: kind })[0] : "";
    return [exact(model.at[event]), index === 0 ? "" : `+${time(model.at[event] - model.at[events[index - 1]])}`, segment,
      element(strong(event) ? "strong" : "span", { title: model.entry(kind)?.help }, keyword), place && place !== host ? `${host} ${place}` : host, data,
      error === 0 ? "none: same clock" : error === undefined || error === null ? "unknown" : `± ${time(error)}`];
  });
  return table(caption, ["#time", "#since previous", "segment", "event", "where", "data", "clock error"], rows);
}

/** @param {string} text */
function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** @param {import("./picture.js").Picture} picture @param {(line: number) => void} select @returns {Node[]} */
export function inView(picture, select) {
  const { model, view, mask } = picture;
  /** @type {number[]} */
  const lines = [];
  picture.visible.each(view, mask, 0, false, (line) => { lines.push(line); return lines.length < 100_000; });
  lines.sort((a, b) => model.start[a] - model.start[b]);
  const rows = lines.slice(0, LISTED).map((line) => [button(model.name(line), () => select(line), { class: "link" }),
    exact(model.start[line]), time(model.end[line] - model.start[line]), count(model.count[line]), model.fate(line)]);
  return [table(lines.length > LISTED ? `The first ${LISTED} of ${count(lines.length)} lines in view` : counted(lines.length, "line in view", "lines in view"),
    ["unit", "#begins", "#takes", "#events", "outcome"], rows)];
}

/** @param {import("./model.js").Model} model @param {import("./segments.js").Segment[]} found @param {(segment: import("./segments.js").Segment) => void} choose @returns {Node[]} */
export function segmentTable(model, found, choose) {
  if (found.length === 0) return [element("p", {}, "The selected lines have no segments.")];
  const byCause = found.filter((segment) => segment.cause !== undefined);
  if (byCause.length) return [segmentRows(model, "Where the time of requests went, as accounted for in the findings", byCause, null), ...segmentTable(model, found.slice(byCause.length), choose)];
  const weighty = new Set([...found].sort((a, b) => b.sum - a.sum).slice(0, SOME));
  const heading = found.length > SOME ? `The ${SOME} segments that took most of the time, in the order of the path` : "Segments in the order of the path";
  const made = [segmentRows(model, heading, found.filter((segment) => weighty.has(segment)), choose)];
  if (found.length > SOME) {
    const rest = element("details", {}, element("summary", {}, `All ${found.length} segments`));
    rest.addEventListener("toggle", () => { if (rest.open && rest.children.length === 1) rest.append(segmentRows(model, "All segments", found, choose)); });
    made.push(rest);
  }
  return made;
}

/** @param {import("./model.js").Model} model @param {string} caption @param {import("./segments.js").Segment[]} some @param {((segment: import("./segments.js").Segment) => void) | null} choose */
function segmentRows(model, caption, some, choose) {
  const rows = some.map((segment) => {
    const { sorted } = segment;
    const name = model.segmentName(segment);
    // Lines are chosen by points.
    const label = choose && !segment.waits ? button(name, () => choose(segment), { class: "link", title: model.explained(segment) }) : name;
    return [label, chart(sorted), count(sorted.length), time(sorted[0]), time(percentile(sorted, 0.5)), time(segment.sum / sorted.length),
      time(percentile(sorted, 0.9)), time(percentile(sorted, 0.99)), time(sorted[sorted.length - 1]), percent(segment.share)];
  });
  return table(caption, ["segment", "durations", "#n", "#min", "#median", "#mean", "#p90", "#p99", "#max", "#share"], rows);
}

/** What each host did: of each stretch of the way inside it, how much of the time units were in it; and when servers were blocked. @param {any} head @returns {Node[]} */
export function operation({ servers, groups }) {
  const { profiles, blocked, together } = servers;
  const nodes = [];
  if (profiles.length) {
    nodes.push(element("p", { class: "soft" }, "Share of the time from the first event to the last during which units were in each stretch of the path inside the host. Several stretches can be occupied at once, so the bars of a host do not add up. A pale bar is a waiting room; the limit is the stretch that units wait for while none waits after it."));
    nodes.push(element("div", { class: "profiles" }, ...profiles.map((/** @type {any} */ { host, idle, stretches }) => element("div", { class: "profile" },
      element("h3", {}, host),
      ...stretches.filter((/** @type {any} */ one) => one.share >= 0.001).map((/** @type {any} */ one) => profileBar(one.name, one.share, one.waits ? "waits" : "works",
        `${percent(one.share)}${one.at_once >= 1.05 ? `, ${one.at_once.toFixed(1)} at once` : ""}${(one.limits ?? 0) >= 0.05 ? `; the limit ${percent(one.limits)}` : ""}`)),
      profileBar("idle", idle, "idle", percent(idle))))));
  }
  if (blocked.length) {
    const rows = blocked.map((/** @type {any} */ one) => [groups[one.group], count(one.intervals.length),
      time(Math.max(...one.intervals.map((/** @type {[number, number]} */ [from, to]) => to - from))), time(one.blocked_ns), percent(one.blocked_ns / Math.max(1, one.busy_ns)), time(one.threshold_ns)]);
    nodes.push(table("Blocked: units were in flight, and none arrived for longer than five usual gaps", ["server", "#intervals", "#longest", "#total", "#of its busy time", "#longer than"], rows));
  }
  if (together) {
    nodes.push(element("p", { id: "together" }, `Several of ${together.groups} were blocked at once for ${percent(together.share)} of the time; ${percent(together.expected)} would be expected if they were independent.`));
  }
  return nodes;
}

/** @param {string} name @param {number} share @param {string} kind @param {string} said */
function profileBar(name, share, kind, said) {
  const bar = element("span", { class: `share ${kind}` });
  bar.style.width = `${100 * Math.min(1, share)}%`;
  return element("div", { class: "stretch", title: `${name}: ${said}` }, element("span", { class: "name" }, name),
    element("span", { class: "whole", role: "img", "aria-label": `${name}: ${said}` }, bar), element("span", { class: "said" }, said));
}

/** A small histogram; the axis is logarithmic from the least to the largest. @param {Float64Array} sorted */
function chart(sorted) {
  const { low, high, bins } = histogram(sorted, 40);
  const most = Math.max(...bins);
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  for (const [name, value] of [["viewBox", "0 0 120 24"], ["class", "histogram"], ["role", "img"], ["aria-label", `from ${time(low)} to ${time(high)}`]]) svg.setAttribute(name, value);
  bins.forEach((size, at) => {
    if (!size) return;
    const bar = document.createElementNS(space, "rect");
    const height = Math.max(1, 24 * Math.sqrt(size / most));
    for (const [name, value] of [["x", at * 3], ["y", 24 - height], ["width", 2.5], ["height", height]]) bar.setAttribute(String(name), String(value));
    svg.append(bar);
  });
  return /** @type {any} */ (svg);
}

/** The curve of a sweep. @param {any} head @returns {Node[]} */
export function sweep(head) {
  const { curve } = head.run;
  if (!curve) return [];
  const words = `${capital(curve.words)}. ${curve.notes.map(sentence).join(" ")} \`stackline plot\` draws others.`;
  return [element("figure", {}, element("img", { src: curve.picture, alt: curve.words, class: "curve" }), element("figcaption", { class: "soft" }, words))];
}

/** What happened when in a run. @param {any} head @returns {Node[]} */
export function overTime(head) {
  const { series } = head.run;
  if (!series) return [];
  const words = `${capital(series.words)}. \`stackline series\` draws other runs and lengths of intervals.`;
  return [element("figure", {}, element("img", { src: series.picture, alt: series.words, class: "curve" }), element("figcaption", { class: "soft" }, words))];
}

/** @param {any} head @returns {Node[]} */
export function statistics(head) {
  const rows = (head.run.measurements ?? []).map((/** @type {any} */ row) => {
    const [s, show] = judged(row);
    const spread = s?.ci95 ? (s.ci95[1] - s.ci95[0]) / 2 : null;
    const deterministic = spread !== null && row.world === "simulated" && spread <= 1e-12 * s.mean;
    const half = deterministic ? ", deterministic" : spread === null ? "" : ` ± ${show(spread)}`;
    return [element("span", {}, `${row.measurement + 1}: ${partName(row)}`), row.stack, String(row.runs), NAMES[row.main] ?? "–",
      s ? `${show(s.mean)}${half}` : "–", s ? show(s.median) : "–", s ? show(s.p99) : "–", s ? `${show(s.min)} to ${show(s.max)}` : "–",
      (row.flags ?? []).join(", ")];
  });
  return [
    rows.length ? table("Each measurement", ["measurement", "stack", "#runs", "what", "#mean", "#median", "#p99", "#min to max", "flags"], rows) : element("p", {}, head.run.origin ?? "This run has no measurements; its events were imported."),
    head.printed ? element("details", rows.length ? {} : { open: "" }, element("summary", {}, "As printed, with notes"), element("pre", {}, head.printed)) : null,
  ].filter((node) => node !== null);
}

/** Parts that the first screen lists. */
const FIRST = 6;

/** Requests of other programs by name: how many, how many failed, how long, and what takes most of that. @param {any} head @returns {Node[]} */
export function requestsByName({ named }) {
  if (!named) return [];
  const alone = (/** @type {any} */ row) => named.rows.filter((/** @type {any} */ one) => one.name === row.name && one.protocol === row.protocol).length === 1;
  const cells = (/** @type {any} */ row) => [
    element("span", { title: `${row.protocol}, answered by ${row.server}` }, row.name, alone(row) ? null : element("span", { class: "soft" }, ` ${row.server}`)),
    count(row.count), row.failed ? element("strong", {}, count(row.failed)) : "0", row.p50 === null ? "–" : time(row.p50), row.p99 === null ? "–" : time(row.p99),
    `${row.most} ${percent(row.share)}`];
  const asked = named.rows.filter((/** @type {any} */ row) => !row.background);
  const rows = asked.length ? asked : named.rows;
  const columns = ["request", "#count", "#failed", "#p50", "#p99", "main part"];
  const shown = [table("Requests by name", columns, rows.slice(0, FIRST).map(cells))];
  if (rows.length > FIRST) shown.push(element("details", {}, element("summary", {}, `${counted(rows.length - FIRST, "other name")}${named.of > named.rows.length ? `; ${count(named.of - named.rows.length)} more are not on this page` : ""}`), table("Further requests by name", columns, rows.slice(FIRST).map(cells))));
  return shown;
}

/** The parts of the shown measurement, with their figures. @param {any} head @param {string} measurement @returns {Node[]} */
export function parts(head, measurement) {
  const all = (head.run.measurements ?? []).filter((/** @type {any} */ row) => measurement === "" || String(row.measurement) === measurement);
  if (all.length === 0) return [];
  const [together, ones] = [all.filter((/** @type {any} */ row) => row.part === "all"), all.filter((/** @type {any} */ row) => row.part !== "all")];
  const shown = ones.length > FIRST ? ones.slice(0, FIRST - 1) : ones;
  // Of one run there is one throughput.
  const spread = all.some((row) => judged(row)[0]?.n > 1);
  const most = Math.max(...all.map((row) => judged(row)[0]?.max ?? 0));
  const rows = [...shown, ...together].map((row) => {
    const [s, show] = judged(row);
    const cells = [element("span", { title: row.stack }, partName(row)), s ? show(s.median) : "–"];
    return spread ? [...cells, s ? range(s, most, `${show(s.min)} to ${show(s.max)}`) : "–", s ? (s.min === s.max ? "all equal" : `${show(s.min)} to ${show(s.max)}`) : "–"] : cells;
  });
  const what = NAMES[all[0].main] ?? "what was measured";
  const more = ones.length > shown.length ? element("a", { href: "#statistics", class: "soft" }, `and ${counted(ones.length - shown.length, "other part")}`) : null;
  return [table(`${capital(what)} over ${counted(all[0].runs, "run")}`, ["part", "#median", ...(spread ? ["from zero", "#min to max"] : [])], rows), more].filter((node) => node !== null);
}

/** The least and most, the 95 % interval and the mean, on an axis from zero. @param {any} s @param {number} most @param {string} said */
function range(s, most, said) {
  const across = (/** @type {number} */ value) => `${most > 0 ? 100 * Math.min(1, Math.max(0, value / most)) : 0}%`;
  const bar = (/** @type {string} */ kind, /** @type {number} */ from, /** @type {number} */ to) => {
    const made = element("span", { class: kind });
    made.style.left = across(from);
    if (kind !== "mean") made.style.width = across(to - from);
    return made;
  };
  const sure = s.ci95 ? [bar("sure", s.ci95[0], s.ci95[1])] : [];
  return element("span", { class: "range", role: "img", "aria-label": said }, bar("all", s.min, s.max), ...sure, bar("mean", s.mean, s.mean));
}

const NAMES = /** @type {Record<string, string>} */ ({ throughput: "throughput", response: "response time", connect: "connect time" });

/** What a measurement is judged by, and how it is written. @param {any} row @returns {[any, (value: number) => string]} */
export function judged(row) {
  const seconds = (/** @type {number} */ value) => time(value * 1e9);
  switch (row.main) {
    case "throughput": return [row.throughput_bit_s, rate];
    case "response": return [row.response_s, seconds];
    case "connect": return [row.connect_s, seconds];
    default: return [null, String];
  }
}

/** Whether a host's times are those of the one clock that all hosts of the run have: virtual time, or one machine's. @param {any} head @param {any} host */
function isOneClock(head, host) {
  const isOne = ["simulated", "emulated"].includes(head.run.world) || String(head.run.origin ?? "").startsWith("Requests of programs");
  return isOne && host !== undefined && host.error_ns === null && host.exchanges === 0 && host.offset_ns === 0 && host.drift_ppm === 0;
}

/** @param {import("./model.js").Model} model @returns {Node[]} */
export function environment(model) {
  const { head } = model;
  const hosts = Object.entries(head.hosts).map(([name, host]) => [
    name, count(host.recorded), count(host.lost), name === head.reference || host.error_ns === 0 || isOneClock(head, host) ? "reference" : `${time(host.offset_ns)} ahead, ${host.drift_ppm.toFixed(2)} ppm fast`,
    isOneClock(head, host) ? "none: one clock" : host.error_ns === null ? "unknown" : `± ${time(host.error_ns)}`, Object.entries(host.cost_s).map(([what, s]) => `${what} ${time(Number(s) * 1e9)}`).join(", ") || "–",
    [...Object.entries(host.absent).map(([what, why]) => `no ${what}: ${why}`), ...host.notes].join("; ") || "–"]);
  const flows = head.flows.slice(0, 200).map((/** @type {any} */ flow) => [`flow ${flow.id}`, String(flow.measurement + 1), `${flow.warmup ? "warm-up " : ""}${flow.run + 1}`, flow.hosts.join(" to "), flow.stack]);
  return [
    head.run.map ? element("figure", {}, element("figcaption", {}, "Line load: each line with its busier direction"), element("img", { class: "map", alt: "The network and the load of its lines", src: `data:image/svg+xml,${encodeURIComponent(head.run.map)}` })) : null,
    hosts.length ? table("Hosts, their events and their clocks", ["host", "#events", "#lost", "clock", "#error", "cost of tracing", "notes"], hosts) : null,
    flows.length ? element("details", {}, element("summary", {}, counted(head.flows.length, "flow")), table(flows.length < head.flows.length ? "The first flows" : "Flows", ["flow", "#measurement", "#run", "hosts", "stack"], flows)) : null,
    head.specification ? element("details", { open: true }, element("summary", {}, "Specification"), element("pre", {}, head.specification)) : null,
    head.environment ? element("details", {}, element("summary", {}, "Environment"), tree(head.environment, 0)) : null,
  ].filter((node) => node !== null);
}

/** A value of JSON as nested lists. @param {any} value @param {number} depth @returns {Node} */
function tree(value, depth) {
  if (value === null || typeof value !== "object") return document.createTextNode(value === null ? "–" : String(value));
  if (depth > 12) return document.createTextNode(JSON.stringify(value));
  const entries = Object.entries(value);
  if (Array.isArray(value) && entries.every(([, one]) => one === null || typeof one !== "object")) return document.createTextNode(value.join(", "));
  return element("dl", {}, ...entries.flatMap(([name, one]) => [element("dt", {}, name), element("dd", {}, tree(one, depth + 1))]));
}
