// @ts-check
// Where the time of one data unit went: the unit whose whole time is the median, and the one at the 99th percentile, cut into
// the pieces between the events it met.

import { LAYERS, palette } from "./colours.js";
import { button, element, fill, table } from "./dom.js";
import { counted, percent, time } from "./format.js";
import { pieces, typical } from "./segments.js";

/** What a kind of piece is called. */
const NAMES = {
  application: "the application", socket: "system calls and the host", protocol: "the protocol", queue: "in queues", network: "on links",
  between: "between hosts", display: "the display, its client and agents", other: "other",
};

/** Causes of a request's time that are named below its bar. */
const CAUSES = 6;
/** Steps by which a short bar is drawn longer than it is. */
const LONGER = [1000, 500, 200, 100, 50, 20, 10, 5, 2];

/**
 * @param {{bars: Element, about: Element, body: Element}} where @param {import("./model.js").Model} model @param {Uint8Array} mask @param {boolean} dark
 * @param {(line: number) => void} show
 */
export function breakdown(where, model, mask, dark, show) {
  const found = typical(model, mask);
  if (found.median < 0) {
    where.about.textContent = "";
    fill(where.bars);
    fill(where.body, element("p", {}, "No data unit passed two monitor points and arrived, so nothing is known about its time."));
    return null;
  }
  const what = model.names.texts.some((text) => text >= 0) ? "request" : "unit";
  const rows = /** @type {[string, number][]} */ ([[`The median ${found.name ?? what}`, found.median], ["99th percentile", found.p99]]);
  const longest = Math.max(...rows.map(([, line]) => model.took(line)), 1);
  const each = rows.some(([, line]) => model.account(line)) ? "each including connection set-up if it is the first on its connection" : "each from its first event to its last";
  where.about.textContent = `Of ${counted(found.lines, what)}${found.name ? `, all ${found.name},` : ""} that arrived: the median, and one that is slower than 99 in 100, ${each}.`;
  const cut = rows.map(([, line]) => model.account(line) ?? pieces(model, line));
  const bars = rows.map(([name, line], at) => bar(model, name, line, cut[at], longest, dark, show));
  fill(where.bars, ...bars, key(model, cut, dark));
  fill(where.body, steps(model, cut));
  return { line: found.median, pieces: cut[0] };
}

/** @param {import("./model.js").Model} model @param {string} name @param {number} line @param {import("./segments.js").pieces extends (...x: any) => infer R ? R : never} cut @param {number} longest @param {boolean} dark @param {(line: number) => void} show */
function bar(model, name, line, cut, longest, dark, show) {
  const whole = model.took(line);
  const longer = whole / longest < 0.15 ? LONGER.find((times) => whole * times <= 0.6 * longest) ?? 1 : 1;
  const drawn = whole * longer / longest;
  const strip = element("div", { class: "strip", role: "img", "aria-label": `${name}: ${time(whole)}. ${cut.map((piece) => `${model.segmentName(piece)} ${time(piece.time)}`).join(", ")}` });
  strip.style.width = `${100 * drawn}%`;
  // How long it is beside the other, whatever its strip.
  const length = element("div", { class: "length", title: time(whole) });
  length.style.width = `${100 * whole / longest}%`;
  for (const piece of cut) {
    if (piece.time <= 0) continue;
    const share = piece.time / Math.max(1, whole);
    const name = model.segmentKind(piece);
    const said = [`${model.segmentName(piece)} ${time(piece.time)}`, `${name} ${time(piece.time)}`, name, ""].find((one) => one.length * 6.6 < share * drawn * 600);
    const part = element("span", { title: `${model.segmentName(piece)}: ${time(piece.time)}, ${percent(share)}; ${model.explained(piece)}` }, said ?? "");
    part.style.width = `${100 * share}%`;
    part.style.background = palette(dark)[LAYERS[layer(model, piece)]];
    strip.append(part);
  }
  return element("div", { class: "unit" },
    element("p", {}, element("strong", {}, `${name}: ${time(whole)} `), element("span", { class: "soft" }, `${longer > 1 ? `(drawn ${longer} times longer) ` : ""}`),
      button(model.name(line), () => show(line), { class: "link", "aria-label": `Show the line of ${model.name(line)}` })), strip, length);
}

/** What the colours mean, and how much of the median unit's time each has. @param {import("./model.js").Model} model @param {import("./segments.js").Piece[][]} cut @param {boolean} dark */
function key(model, cut, dark) {
  if (cut[0].some((piece) => piece.cause !== undefined)) return causesKey(model, cut[0], dark);
  const layers = [...new Set(cut.flat().map((piece) => layer(model, piece)))];
  const whole = cut[0].reduce((sum, piece) => sum + piece.time, 0);
  const of = (/** @type {string} */ name) => cut[0].reduce((sum, piece) => sum + (layer(model, piece) === name ? piece.time : 0), 0);
  return element("p", { class: "legend" }, "Of the median: ", ...layers.filter((name) => of(name) > 0 || layers.length < 4).map((name) => {
    const swatch = element("span", { class: "swatch" });
    swatch.style.background = palette(dark)[LAYERS[name]];
    return element("span", { class: "entry" }, swatch, `${NAMES[name]}: ${time(of(name))} (${percent(of(name) / Math.max(1, whole))})`);
  }));
}

/** What took most of the median request: its causes, each in the colour of its piece. @param {import("./model.js").Model} model @param {import("./segments.js").Piece[]} cut @param {boolean} dark */
function causesKey(model, cut, dark) {
  const whole = cut.reduce((sum, piece) => sum + piece.time, 0);
  const most = [...cut].sort((a, b) => b.time - a.time).slice(0, CAUSES).filter((piece) => piece.time > 0.005 * whole);
  return element("p", { class: "legend" }, "Of the median: ", ...most.map((piece) => {
    const swatch = element("span", { class: "swatch" });
    swatch.style.background = palette(dark)[LAYERS[layer(model, piece)]];
    return element("span", { class: "entry" }, swatch, `${model.segmentName(piece)}: ${time(piece.time)} (${percent(piece.time / Math.max(1, whole))})`);
  }));
}

/** Both units side by side, stage by stage: they may be of different hosts. @param {import("./model.js").Model} model @param {import("./segments.js").Piece[][]} cut */
function steps(model, cut) {
  /** @type {Map<string | number, {order: number, pieces: any[][]}>} */
  const all = new Map();
  cut.forEach((of, unit) => of.forEach((piece) => {
    const key = piece.cause ?? `${model.stage[piece.from]}>${model.stage[piece.to]}>${piece.waits ?? false}`;
    const order = piece.cause ?? model.stage[piece.from] * 1e6 + model.stage[piece.to];
    const row = all.get(key) ?? { order, pieces: cut.map(() => []) };
    row.pieces[unit].push(piece);
    all.set(key, row);
  }));
  const sum = (/** @type {{time: number}[]} */ of) => of.reduce((total, piece) => total + piece.time, 0);
  const wholes = cut.map(sum);
  const taken = [...all.values()].filter((row) => row.pieces.some((of) => sum(of) !== 0)).sort((a, b) => a.order - b.order);
  const rows = taken.map(({ pieces: of }) => {
    const names = new Set(of.flat().map((piece) => model.segmentName(piece)));
    const often = Math.max(...of.flat().map((piece) => piece.times));
    const name = (names.size === 1 ? [...names][0] : model.segmentKind(of.flat()[0])) + (often > 1 ? `, ${often} times` : "");
    const shown = of.map((one, unit) => (one.length ? element("span", { title: model.segmentName(one[0]) }, `${time(sum(one))} (${percent(sum(one) / Math.max(1, wholes[unit]))})`) : "–"));
    return [element("span", { title: model.explained(of.flat()[0]) }, name), ...shown];
  });
  const without = all.size - taken.length;
  return table(`Piece by piece, in the order of the path${without ? `; ${counted(without, "piece")} that took no time omitted` : ""}`, ["segment", "#the median unit", "#99th percentile"], rows);
}

/** Which kind of piece that is. @param {import("./model.js").Model} model @param {{from: number, to: number, waits?: boolean, cause?: number}} piece @returns {keyof typeof LAYERS} */
export function layer(model, { from, to, waits, cause }) {
  if (cause !== undefined) return /** @type {any} */ (model.accounts?.causes[cause][2] ?? "other");
  if (waits) return "protocol";
  // The further round trips of a request pass the way and the other side: none of it is this program's.
  if (model.kinds[from][0] === "APP_TURN") return "between";
  const [a, b] = [model.entry(from)?.layer, model.entry(to)?.layer];
  if (a === "network" && b === "network") return model.kinds[from][0] === "NET_ENQUEUE" && model.kinds[to][0] === "NET_DEQUEUE" ? "queue" : "network";
  if (model.kinds[from][1] !== model.kinds[to][1]) return a === "network" || b === "network" ? "network" : "between";
  // What has been handed over and has not left yet waits for the protocol: a window, an acknowledgement, a message.
  if (b === "network" && (a === "application" || a === "socket")) return "protocol";
  // What the protocol has sent waits for the host's interface, and what has been delivered for its reader: links have neither.
  if (a === "network" || b === "network") return "socket";
  const deeper = ["application", "socket", "protocol", "network"].indexOf(b ?? "") > ["application", "socket", "protocol", "network"].indexOf(a ?? "") ? b : a;
  return a === undefined || b === undefined ? "other" : /** @type {any} */ (deeper in LAYERS ? deeper : "other");
}
