// @ts-check
// Bars over time: what was sent again and dropped, and what monitors saw of each interval.

/**
 * Instants, ascending.
 * @typedef {{name: string, bad: boolean, at: Float64Array, events: Uint32Array}} Marks
 * Intervals of a group of lines, ascending; `colour` is the number of its colour, -1 where lines have others.
 * @typedef {{name: string, colour: number, intervals: [number, number][]}} Blocked
 * Intervals that end at `to`, ascending.
 * @typedef {{name: string, unit: "share" | "rate" | "bytes" | "per_s" | "time", from: Float64Array, to: Float64Array, value: Float64Array, most: number, wanted: boolean}} Series
 */

/** Data fields that tell which one of several a monitor means. */
const WHICH = ["core", "interface", "port", "resource", "stream", "pid"];
/** Data fields that are levels; other numbers are counts in the interval. */
const LEVELS = ["available_bytes", "free_bytes", "dirty_bytes", "cwnd_bytes", "in_flight_bytes", "unsent_bytes", "receive_queue_bytes", "send_window_bytes"];

/** Whether events of a kind say that data went no further. @param {import("./model.js").Model} model @param {number} kind */
export function isGone(model, kind) {
  return ["dropped", "given up"].includes(model.head.fates[kind]);
}

/** What was sent again and what was dropped. @param {import("./model.js").Model} model @returns {Marks[]} */
export function marks(model) {
  const again = model.kinds.map((_, kind) => model.head.fates[kind] === "retransmitted");
  const gone = model.kinds.map((_, kind) => isGone(model, kind));
  return [marked(model, "retransmitted", again, false), marked(model, "dropped", gone, true)].filter((lane) => lane.at.length > 0);
}

/** When each server was blocked: something of it was under way, and nothing came. @param {import("./model.js").Model} model @returns {Blocked[]} */
export function blocked(model) {
  const { colouring, groups, servers } = model.head;
  return servers.blocked.map((/** @type {any} */ { group, intervals }) => ({
    name: `${groups[group]} blocked`, colour: colouring.by === "server" ? colouring.names.indexOf(groups[group]) : -1, intervals,
  }));
}

/** @param {import("./model.js").Model} model @param {string} name @param {boolean[]} wanted @param {boolean} bad */
function marked(model, name, wanted, bad) {
  const found = [];
  for (let event = 0; event < model.at.length; event++) if (wanted[model.kind[event]]) found.push(event);
  found.sort((a, b) => model.at[a] - model.at[b]);
  return { name, bad, at: Float64Array.from(found, (event) => model.at[event]), events: Uint32Array.from(found) };
}

/** What monitors saw, those that are worth a look wanted first. @param {import("./model.js").Model} model @returns {Series[]} */
export function series(model) {
  /** @type {Map<string, {name: string, field: string, rows: [number, number, number][]}>} */
  const found = new Map();
  const monitors = model.kinds.map((_, kind) => model.entry(kind)?.data?.[0] === "interval_ns");
  for (let event = model.loose; event < model.at.length; event++) {
    const kind = model.kind[event];
    if (monitors[kind]) collect(model, event, kind, found);
  }
  const made = [...found.values()].map(finished).filter((one) => one.most > 0);
  return made.sort((a, b) => Number(b.wanted) - Number(a.wanted) || (a.name < b.name ? -1 : 1));
}

/** @param {import("./model.js").Model} model @param {number} event @param {number} kind @param {Map<string, any>} found */
function collect(model, event, kind, found) {
  const names = model.entry(kind).data;
  const [keyword, host] = model.kinds[kind];
  const interval = Number(model.value(event, 0)) || 0;
  const which = names.map((/** @type {string} */ name, /** @type {number} */ field) => (WHICH.includes(name) ? `${name === "stream" ? "stream " : name === "core" ? "core " : ""}${model.value(event, field) ?? ""}` : "")).join(" ").trim();
  for (let field = 1; field < names.length; field++) {
    const value = model.value(event, field);
    if (WHICH.includes(names[field]) || typeof value !== "number") continue;
    const cpu = keyword === "CPU_USE" && names[field] === "idle_ppm";
    const name = `${host} ${keyword === "CPU_USE" ? "CPU" : keyword} ${which} ${cpu ? "busy" : names[field].replace(/_(ppm|ns)$/, "")}`.replace(/ +/g, " ");
    const series = found.get(name) ?? { name, field: cpu ? "busy_ppm" : names[field], rows: [] };
    series.rows.push([model.at[event] - interval, model.at[event], cpu ? 1e6 - value : value]);
    found.set(name, series);
  }
}

/** @param {{name: string, field: string, rows: [number, number, number][]}} one @returns {Series} */
function finished({ name, field, rows }) {
  const level = LEVELS.includes(field);
  const share = field.endsWith("_ppm");
  const rate = !level && field.endsWith("_bytes");
  const time = field.endsWith("_ns");
  const value = Float64Array.from(rows, ([from, to, raw]) => {
    if (share) return raw / 1e6;
    if (level || time) return raw;
    return (rate ? raw * 8 : raw) * 1e9 / Math.max(1, to - from);
  });
  let most = 0;
  for (const one of value) if (one > most) most = one;
  const wanted = (/ CPU .*busy$/.test(name) || / NETIF (?!lo ).* (sent|received)_bytes$/.test(name) || /drops|discards/.test(field)) && most > 0.001;
  return {
    name, unit: share ? "share" : level ? "bytes" : rate ? "rate" : time ? "time" : "per_s", most: share ? Math.max(1, most) : most, wanted,
    from: Float64Array.from(rows, (row) => row[0]), to: Float64Array.from(rows, (row) => row[1]), value,
  };
}
