// @ts-check
// Durations between the passages that follow each other on lines, segment by segment; and one line's time, piece by piece.

/**
 * The durations of one segment.
 * @typedef {{from: number, to: number, sorted: Float64Array, sum: number, share: number, waits?: boolean, cause?: number}} Segment
 */

/**
 * Every segment of the chosen lines, in the order in which units meet them. Durations are ns, sorted.
 * @param {import("./model.js").Model} model @param {Uint8Array} mask
 * @returns {Segment[]}
 */
export function segments(model, mask) {
  /** @type {Map<string, {from: number, to: number, waits: boolean, values: number[], place: number}>} */
  const found = new Map();
  let total = 0;
  for (let line = 0; line < model.lines; line++) {
    if (!mask[line]) continue;
    let place = 0;
    walk(model, line, (from, to, time, waits) => {
      const key = `${from}>${to}>${waits}`;
      const segment = found.get(key) ?? { from, to, waits, values: [], place: 0 };
      segment.values.push(time);
      segment.place += place++;
      total += time;
      found.set(key, segment);
    });
  }
  const made = [...found.values()].map(({ from, to, waits, values, place }) => ({ ...spread(values, total), from, to, waits, place: place / values.length }));
  return made.sort((a, b) => a.place - b.place);
}

/**
 * What the time of the requests on the chosen lines went into, by the account that findings have, what took most first.
 * @param {import("./model.js").Model} model @param {Uint8Array} mask
 * @returns {Segment[]}
 */
export function causes(model, mask) {
  /** @type {Map<number, number[]>} */
  const found = new Map();
  let total = 0;
  for (let line = 0; line < model.lines; line++) {
    if (!mask[line]) continue;
    for (const { cause, time } of model.account(line) ?? []) {
      if (cause === undefined) continue;
      const times = found.get(cause) ?? [];
      times.push(time);
      found.set(cause, times);
      total += time;
    }
  }
  return [...found].map(([cause, values]) => ({ ...spread(values, total), from: -1, to: -1, cause })).sort((a, b) => b.sum - a.sum);
}

/** @param {number[]} values @param {number} total */
function spread(values, total) {
  const sum = values.reduce((all, value) => all + value, 0);
  return { sorted: Float64Array.from(values).sort(), sum, share: total > 0 ? sum / total : 0 };
}

/**
 * A percentile of sorted values as crates/answer/analyze/src/percentiles.rs has it: the value at rank `share (n - 1)`, counted from 0,
 * and between two ranks on the line between their values.
 * @param {Float64Array} sorted @param {number} share
 */
export function percentile(sorted, share) {
  const rank = share * (sorted.length - 1);
  const low = Math.floor(rank);
  const high = Math.min(sorted.length - 1, low + 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (rank - low);
}

/**
 * A part of a line's time: from a point to the next one, or the wait before it for the protocol to send again; of a request by its cause.
 * @typedef {{from: number, to: number, time: number, times: number, waits?: boolean, cause?: number}} Piece
 */

/**
 * One line's time in pieces, in the order it met them; pieces between the same two points are one.
 * @param {import("./model.js").Model} model @param {number} line
 * @returns {Piece[]}
 */
export function pieces(model, line) {
  const made = new Map();
  walk(model, line, (from, to, time, waits) => {
    const key = `${from}>${to}>${waits}`;
    const piece = made.get(key) ?? { from, to, time: 0, times: 0, waits };
    piece.time += time;
    piece.times += 1;
    made.set(key, piece);
  });
  return [...made.values()];
}

/**
 * A line from point to point. What a link lost waits at its sender, and what came before it waits for it: no link takes that time.
 * @param {import("./model.js").Model} model @param {number} line @param {(from: number, to: number, time: number, waits: boolean) => void} visit
 */
function walk(model, line, visit) {
  const end = model.first[line] + model.count[line];
  const sentAgain = model.marks[line] ? retransmissions(model, line) : [];
  for (let event = model.first[line] + 1; event < end; event++) {
    const [from, to] = [model.kind[event - 1], model.kind[event]];
    const [start, stop] = [model.at[event - 1], model.at[event]];
    const again = sentAgain.length && model.entry(from)?.layer === "network" ? sentAgain.findLast((at) => start < at && at <= stop) : undefined;
    if (again !== undefined) visit(from, to, again - start, true);
    visit(from, to, stop - (again ?? start), false);
  }
}

/** When the protocol sent a line's data again, in the order of time. @param {import("./model.js").Model} model @param {number} line */
function retransmissions(model, line) {
  const first = model.first[line] + model.count[line];
  const times = [];
  for (let event = first; event < first + model.marks[line]; event++) {
    if (model.kinds[model.kind[event]][0].endsWith("_RETRANSMIT")) times.push(model.at[event]);
  }
  return times.sort((a, b) => a - b);
}

/**
 * The lines whose whole time is the median and the 99th percentile of the chosen ones that came; -1 where none did. The time of a
 * line that ends early is none of its unit. Of requests with several names, those of one name: the one that takes most time.
 * @param {import("./model.js").Model} model @param {Uint8Array} mask
 */
export function typical(model, mask) {
  /** @type {number[]} */
  const lines = [];
  const came = (/** @type {number} */ line) => mask[line] && model.count[line] > 1 && model.came(line);
  const name = costliest(model, came);
  for (let line = 0; line < model.lines; line++) if (came(line) && (name === null || model.named?.of_line[line] === name)) lines.push(line);
  const time = (/** @type {number} */ line) => model.took(line);
  lines.sort((a, b) => time(a) - time(b));
  const at = (/** @type {number} */ share) => lines[Math.min(lines.length - 1, Math.max(0, Math.ceil(share * lines.length) - 1))] ?? -1;
  return { median: at(0.5), p99: at(0.99), lines: lines.length, name: name === null ? null : model.named?.rows[name].name ?? null };
}

/** The number of the name that takes most time of users' requests among some lines, or null. @param {import("./model.js").Model} model @param {(line: number) => any} among */
function costliest(model, among) {
  const { named } = model;
  if (!named) return null;
  const met = new Set();
  for (let line = 0; line < model.lines; line++) if (among(line)) met.add(named.of_line[line]);
  const rows = [...met].filter((row) => row !== null).sort((a, b) => a - b);
  return rows.find((row) => !named.rows[row].background && !named.rows[row].for_others) ?? rows[0] ?? null;
}

/**
 * A histogram over a logarithmic axis: `size` bins from the least to the largest.
 * @param {Float64Array} sorted @param {number} size
 */
export function histogram(sorted, size) {
  const low = Math.max(1, sorted[0]);
  const high = Math.max(low * 1.001, sorted[sorted.length - 1]);
  const bins = new Uint32Array(size);
  const scale = size / Math.log(high / low);
  for (const value of sorted) bins[Math.min(size - 1, Math.max(0, Math.floor(Math.log(Math.max(low, value) / low) * scale)))]++;
  return { low, high, bins };
}
