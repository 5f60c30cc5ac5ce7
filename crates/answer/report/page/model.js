// @ts-check
// A run as the page knows it: lines, their passages, all events, who they belong to. It computes no pixels.
//
// The events of a line are its passages, in the order of the monitor points, and behind them its marks: what happened beside
// its way. Clocks that are wrong make a passage earlier than the one before it; that is shown as it is.

import { counted } from "./format.js";

/** Outcomes of a line, by their number. */
export const OUTCOMES = ["complete", "cache hit", "retried", "flushed", "never arrived", "without its beginning", "unfinished"];
/** Outcomes of lines that end before the others. */
export const FLUSHED = 3;
export const NEVER_ARRIVED = 4;

/** Units of one flow, and what marks a connection: the ids of crates/record/events/src/unit_ids.rs. */
const CONNECTION = 2 ** 38;
const FLOW = 2 ** 39;

/** The whole run. Times are ns since its first event. */
export class Model {
  /** @param {import("./pack.js").Pack} pack */
  constructor(pack) {
    const { head } = pack;
    this.pack = pack;
    this.head = head;
    /** @type {[string, string, string][]} keyword, host, place */
    this.kinds = head.kinds;
    this.points = head.points;
    this.at = pack.sums("event.at");
    this.kind = Uint32Array.from(pack.numbers("event.kind"));
    this.count = Uint32Array.from(pack.numbers("line.count"));
    this.marks = Uint32Array.from(pack.numbers("line.marks"));
    const lines = this.count.length;
    this.lines = lines;
    this.group = Uint32Array.from(pack.numbers("line.group"));
    this.flow = Int32Array.from(pack.numbers("line.flow"), (flow) => flow - 1);
    this.bytes = pack.numbers("line.bytes").map((bytes) => bytes - 1);
    this.outcome = Uint8Array.from(pack.numbers("line.outcome"));
    this.detail = Uint32Array.from(pack.numbers("line.detail"));
    /** The kind of each line that its colour stands for: `head.colouring` names them. */
    this.colour = Uint8Array.from(pack.numbers("line.colour"));
    /** The stage of each monitor point: a row of the picture. */
    this.stage = Uint32Array.from(head.stages.of);
    this.first = new Uint32Array(lines);
    this.start = new Float64Array(lines);
    this.end = new Float64Array(lines);
    let first = 0;
    for (let line = 0; line < lines; line++) {
      this.first[line] = first;
      let [start, end] = [this.at[first], this.at[first]];
      for (let event = first; event < first + this.count[line]; event++) {
        if (this.at[event] < start) start = this.at[event];
        if (this.at[event] > end) end = this.at[event];
      }
      this.start[line] = start;
      this.end[line] = end;
      first += this.count[line] + this.marks[line];
    }
    /** Where events begin that are on no line. */
    this.loose = first;
    this.flows = new Map(head.flows.map((/** @type {any} */ flow) => [flow.id, flow]));
    this.total = this.#total();
    /** @type {Map<number, import("./pack.js").Field>} */
    this.fields = new Map();
    this.units = pack.field("line.unit");
    /** What lines of requests are called: the request and its status. */
    this.names = pack.field("line.name");
    /** What the time of requests went into: causes, and of each line its whole time and pairs of a cause's number and its time. @type {{causes: [string, string, string][], lines: (number[] | null)[]} | null} */
    this.accounts = head.accounts;
    /** Requests by name, and the row of each line. @type {{rows: {name: string, protocol: string, server: string, background: boolean, for_others: boolean, count: number, failed: number, p50: number | null, p99: number | null, most: string, share: number}[], of: number, of_line: (number | null)[]} | null} */
    this.named = head.named ?? null;
    /** @type {Map<string, number> | null} */
    this.lineOfUnit = null;
    /** Requests, each with that which it was made for. @type {{of_line: (number | null)[], rows: [number | null, number, number, string | null, number | null, number | null][]} | null} */
    this.requests = head.requests;
  }

  #total() {
    let last = 1000;
    for (const at of this.at) if (at > last) last = at;
    for (const run of this.head.runs) if (run.to > last) last = run.to;
    return last;
  }

  /** The id of a line's unit, as text. @param {number} line */
  unit(line) {
    const text = this.units.texts[line];
    return text === -1 ? String(this.units.numbers[line]) : this.head.texts[text] ?? "";
  }

  /** A line's unit for people. @param {number} line */
  name(line) {
    const name = this.names.texts[line];
    if (name >= 0) return this.head.texts[name] ?? "";
    const id = this.unit(line);
    const number = Number(id);
    if (this.flow[line] < 0 || !this.flows.has(this.flow[line]) || !Number.isSafeInteger(number)) return id;
    const within = number % FLOW;
    const what = within >= CONNECTION ? "connection" : "unit";
    return `${what} ${within % CONNECTION} of flow ${this.flow[line]}`;
  }

  /** The line of a unit's id, or -1. @param {string} unit */
  find(unit) {
    if (!this.lineOfUnit) {
      this.lineOfUnit = new Map();
      for (let line = this.lines - 1; line >= 0; line--) this.lineOfUnit.set(this.unit(line), line);
    }
    return this.lineOfUnit.get(unit) ?? -1;
  }

  /** Index of the measurement that a line belongs to, or -1. @param {number} line */
  measurement(line) {
    return this.flows.get(this.flow[line])?.measurement ?? -1;
  }

  /** Whether a line's unit is a connection. @param {number} line */
  isConnection(line) {
    const number = this.units.texts[line] === -1 ? this.units.numbers[line] : 0;
    return this.flow[line] >= 0 && number % FLOW >= CONNECTION;
  }

  /** Whether all of a line is there, from its first point to its last. @param {number} line */
  came(line) {
    return this.outcome[line] < FLUSHED;
  }

  /** What became of a line, for people. @param {number} line */
  fate(line) {
    const outcome = OUTCOMES[this.outcome[line]];
    const point = this.kinds[this.detail[line]];
    switch (this.outcome[line]) {
      case 2: return `${outcome} ${counted(this.detail[line], "time")}`;
      case FLUSHED: case NEVER_ARRIVED: return point ? `${outcome}; last seen at ${this.pointName(this.detail[line])}` : outcome;
      case 5: return point ? `its beginning is missing; first seen at ${this.pointName(this.detail[line])}` : outcome;
      case 6: return point ? `in flight when recording ended; last seen at ${this.pointName(this.detail[line])}` : outcome;
      default: return outcome;
    }
  }

  /** How long a line took: of a request with the set-up of its connection time, where it is the first there. @param {number} line */
  took(line) {
    return this.accounts?.lines[line]?.[0] ?? this.end[line] - this.start[line];
  }

  /** What the time of a line's request went into, by the account that findings have; null where it is of none. @param {number} line @returns {import("./segments.js").Piece[] | null} */
  account(line) {
    const account = this.accounts?.lines[line];
    if (!account) return null;
    const pieces = [];
    for (let at = 1; at < account.length; at += 2) pieces.push({ from: -1, to: -1, time: account[at + 1], times: 1, cause: account[at] });
    return pieces;
  }

  /** The time between two points, or by a cause: what it is called, and where it is spent. @param {{from: number, to: number, waits?: boolean, cause?: number}} piece @returns {[string, string | null]} */
  segment({ from, to, waits, cause }) {
    if (cause !== undefined && this.accounts) return [this.accounts.causes[cause][0], this.accounts.causes[cause][1]];
    if (waits) return ["wait for retransmission", null];
    return this.head.segments[`${from}>${to}`] ?? [`to ${this.kinds[to][0]}`, this.kinds[to][1]];
  }

  /** What it is called without its place. @param {{from: number, to: number, waits?: boolean, cause?: number}} piece */
  segmentKind(piece) {
    const [name, place] = this.segment(piece);
    if (piece.waits || piece.cause !== undefined) return name;
    return place === null ? name.replace(/ \S+$/, "") : name;
  }

  /** The same in one text. @param {{from: number, to: number, waits?: boolean, cause?: number}} piece */
  segmentName(piece) {
    const [name, place] = this.segment(piece);
    return place === null ? name : `${name} ${place}`;
  }

  /** What happens between two points, as long as it takes to say it. @param {{from: number, to: number, cause?: number}} piece */
  explained({ from, to, cause }) {
    if (cause !== undefined) return "as accounted for in the findings";
    const said = (/** @type {number} */ kind) => `${this.pointName(kind)}${this.entry(kind) ? ` (${this.entry(kind).help.split(";")[0]})` : ""}`;
    return `from ${said(from)} to ${said(to)}`;
  }

  /** A monitor point for people. @param {number} kind */
  pointName(kind) {
    const [keyword, host, place] = this.kinds[kind];
    return place && place !== host ? `${keyword} ${host} ${place}` : `${keyword} ${host}`;
  }

  /** The row of a kind's keyword in the catalogue. @param {number} kind */
  entry(kind) {
    return this.head.catalogue[this.kinds[kind][0]];
  }

  /** A data field of an event: a number, a text, or null. @param {number} event @param {number} field */
  value(event, field) {
    const column = this.field(field);
    const text = column.texts[event] ?? -2;
    if (text === -2) return null;
    return text === -1 ? column.numbers[event] : this.head.texts[text];
  }

  /** A column of data. @param {number} field */
  field(field) {
    let column = this.fields.get(field);
    if (!column) {
      column = this.pack.field(`event.${field}`);
      this.fields.set(field, column);
    }
    return column;
  }

  /** All data of an event with their names. @param {number} event @returns {[string, string][]} */
  data(event) {
    const names = this.entry(this.kind[event])?.data ?? [];
    const data = [];
    for (let field = 0; this.head.columns[`event.${field}`]; field++) {
      const value = this.value(event, field);
      if (value !== null) data.push([names[field] ?? `data ${field + 1}`, String(value)]);
    }
    const more = this.head.more[event];
    if (more) data.push(["more", more]);
    return /** @type {[string, string][]} */ (data);
  }

  /** Measurements of the run: their names by index. @returns {Map<number, string>} */
  measurements() {
    const texts = new Map();
    /** @type {any[]} */
    const rows = this.head.run.measurements ?? [];
    for (const row of rows) if (!texts.has(row.measurement)) texts.set(row.measurement, named(rows.filter((one) => one.measurement === row.measurement)));
    for (const flow of this.head.flows) if (!texts.has(flow.measurement)) texts.set(flow.measurement, `measurement ${flow.measurement + 1}`);
    return new Map([...texts].sort((a, b) => a[0] - b[0]));
  }
}

/** What a part of a measurement is called: its text without its stack, which stands beside it. @param {any} row @returns {string} */
export function partName(row) {
  if (row.part === "all") return "all together";
  return String(row.part || row.text || "").replace(/ over [\s\S]*$/, "");
}

/** A measurement in few words: the values swept there, and its part, or how many it has. @param {any[]} rows its rows */
function named(rows) {
  const parts = rows.filter((row) => row.part !== "all");
  const stacks = [...new Set(parts.map((row) => row.stack))];
  const first = partName(parts[0] ?? rows[0]);
  const what = parts.length > 1 ? `${first} and ${counted(parts.length - 1, "other part")}` : first;
  const whole = stacks.length === 1 && parts.length === 1 ? `${what} over ${stacks[0]}` : what;
  const { swept } = rows[0];
  return swept ? `${swept}: ${whole}` : whole;
}
