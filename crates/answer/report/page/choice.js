// @ts-check
// Which lines are shown: what the filters say, as one byte a line.

/**
 * What the filters say; an empty text chooses everything.
 * @typedef {{measurement: string, host: string, stack: string, outcome: string, segment: string, least: number, most: number, warmup: boolean, connections: boolean}} Wish
 * Without `connections` lines of connections are left out, unless there are no others.
 * `segment` is two kinds, as in `3>4`, or empty for the whole line; `least` and `most` are its duration in ns
 */

/** Chooses everything. @returns {Wish} */
export function everything() {
  return { measurement: "", host: "", stack: "", outcome: "", segment: "", least: 0, most: Infinity, warmup: true, connections: true };
}

/** How long a segment of a line takes, ns; NaN where the line has none. @param {import("./model.js").Model} model @param {number} line @param {number} from @param {number} to */
export function duration(model, line, from, to) {
  const { at, kind } = model;
  let sum = NaN;
  const end = model.first[line] + model.count[line];
  for (let event = model.first[line] + 1; event < end; event++) {
    if (kind[event - 1] === from && kind[event] === to) sum = (sum || 0) + at[event] - at[event - 1];
  }
  return sum;
}

/**
 * One byte a line: whether it is chosen.
 * @param {import("./model.js").Model} model @param {Wish} wish
 * @returns {Uint8Array}
 */
export function choose(model, wish) {
  const mask = new Uint8Array(model.lines).fill(1);
  const flows = new Map();
  for (const [id, flow] of model.flows) flows.set(id, ofFlow(flow, wish));
  const unknown = !wish.measurement && !wish.stack;
  const onHost = model.kinds.map(([, host]) => host === wish.host);
  const outcome = wish.outcome === "" ? -1 : Number(wish.outcome);
  const bounded = wish.least > 0 || wish.most < Infinity || wish.segment !== "";
  const [from, to] = wish.segment.split(">").map(Number);
  for (let line = 0; line < model.lines; line++) {
    if (!(flows.get(model.flow[line]) ?? unknown)) mask[line] = 0;
    else if (outcome >= 0 && model.outcome[line] !== outcome) mask[line] = 0;
    else if (wish.host && !meets(model, line, onHost)) mask[line] = 0;
    else if (bounded) {
      const time = wish.segment ? duration(model, line, from, to) : model.end[line] - model.start[line];
      if (!(time >= wish.least && time <= wish.most)) mask[line] = 0;
    }
  }
  return wish.connections ? mask : withoutConnections(model, mask);
}

/** The data units among chosen lines, if there are any. @param {import("./model.js").Model} model @param {Uint8Array} mask */
function withoutConnections(model, mask) {
  const units = mask.map((chosen, line) => Number(chosen === 1 && !model.isConnection(line)));
  return units.includes(1) ? units : mask;
}

/** @param {any} flow @param {Wish} wish */
function ofFlow(flow, wish) {
  return (!wish.measurement || String(flow.measurement) === wish.measurement)
    && (!wish.stack || flow.stack === wish.stack) && (wish.warmup || !flow.warmup);
}

/** @param {import("./model.js").Model} model @param {number} line @param {boolean[]} kinds */
function meets(model, line, kinds) {
  const end = model.first[line] + model.count[line];
  for (let event = model.first[line]; event < end; event++) if (kinds[model.kind[event]]) return true;
  return false;
}
