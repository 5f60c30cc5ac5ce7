// @ts-check
// The form that chooses lines, their colours and their legend.

import { FLUSHED, NEVER_ARRIVED, OUTCOMES } from "./model.js";
import { everything } from "./choice.js";
import { element, fill } from "./dom.js";
import { palette } from "./colours.js";

/** What lines can be coloured by. */
const COLOURS = { group: "server", host: "host", stack: "stack", flow: "flow", outcome: "outcome" };
/** By what pictures of the command colour lines. */
const OWN = "own";
/** Entries of a legend; the others share colours. */
const LEGEND = 8;

/**
 * Fills the form. `changed` is called with what it says.
 * @param {HTMLFormElement} form @param {import("./model.js").Model} model @param {string} measurement
 * @param {(wish: import("./choice.js").Wish) => void} changed
 */
export function filters(form, model, measurement, changed) {
  const flows = [...model.flows.values()];
  const hosts = [...new Set(model.kinds.slice(0, model.points).map(([, host]) => host))];
  const stacks = [...new Set(flows.map((flow) => flow.stack))];
  const outcomes = OUTCOMES.map((name, at) => [String(at), name]).filter(([at]) => model.outcome.includes(Number(at)));
  const measurements = [...model.measurements()].map(([at, text]) => [String(at), `${at + 1}: ${text}`]);
  const picks = {
    measurement: pick("Measurement", [["", "all"], ...measurements], measurement),
    host: pick("Host", [["", "all"], ...hosts.map((host) => [host, host])]),
    stack: pick("Stack", [["", "all"], ...stacks.map((stack) => [stack, stack])]),
    outcome: pick("Outcome", [["", "all"], ...outcomes]),
    segment: pick("Segment", [["", "the whole line"]]),
  };
  const least = amount("at least, us");
  const most = amount("at most, us");
  const again = element("input", { type: "checkbox" });
  const connected = element("input", { type: "checkbox" });
  const both = new Set(Array.from({ length: model.lines }, (_, line) => model.isConnection(line))).size > 1;
  const warm = element("label", { class: "check" }, again, " warm-up runs");
  const shown = [picks.measurement, picks.host, picks.stack, picks.outcome].filter((one) => one.lastChild.options.length > 2);
  fill(form, ...shown, picks.segment, least, most, flows.some((flow) => flow.warmup) ? warm : null,
    both ? element("label", { class: "check" }, connected, " connections") : null,
    element("button", { type: "reset" }, "All lines"));
  form.addEventListener("input", () => changed(wish()));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => changed(wish())));
  return {
    wish,
    /** Chooses a measurement. @param {string} value */
    measure(value) {
      picks.measurement.lastChild.value = value;
      changed(wish());
    },
    /** Offers these segments. @param {{value: string, name: string}[]} segments */
    offer(segments) {
      const select = picks.segment.lastChild;
      const before = select.value;
      fill(select, option("", "the whole line"), ...segments.map(({ value, name }) => option(value, name)));
      if (segments.some(({ value }) => value === before)) select.value = before;
    },
    /** Asks for a segment that takes at least so many ns. @param {string} segment @param {number} ns */
    segment(segment, ns) {
      picks.segment.lastChild.value = segment;
      least.lastChild.value = String(ns / 1000);
      changed(wish());
    },
  };

  /** @returns {import("./choice.js").Wish} */
  function wish() {
    const value = (/** @type {any} */ label) => label.lastChild.value;
    return {
      ...everything(), measurement: value(picks.measurement), host: value(picks.host), stack: value(picks.stack),
      outcome: value(picks.outcome), segment: value(picks.segment), warmup: again.checked, connections: connected.checked,
      least: 1000 * (Number(value(least)) || 0), most: value(most) === "" ? Infinity : 1000 * Number(value(most)),
    };
  }
}

/** @param {string} name @param {string[][]} options @param {string} [chosen] */
function pick(name, options, chosen = "") {
  const select = element("select", {}, ...options.map(([value, text]) => option(value, text)));
  // A form that is reset goes back to everything, so this is not the default.
  select.value = chosen;
  return element("label", {}, `${name} `, select);
}

/** @param {string} value @param {string} text */
function option(value, text) {
  return element("option", { value }, text.length > 90 ? `${text.slice(0, 90)}…` : text);
}

/** @param {string} name */
function amount(name) {
  return element("label", {}, `${name} `, element("input", { type: "number", min: "0", step: "any", size: "8" }));
}

/**
 * The colour of every line, and the legend that says so.
 * @param {import("./model.js").Model} model @param {string} by @param {boolean} dark
 * @returns {{colour: Uint8Array, legend: Node[]}}
 */
export function coloured(model, by, dark) {
  const names = new Map(by === OWN ? model.head.colouring.names.map((/** @type {string} */ name, /** @type {number} */ at) => [name, at]) : []);
  const colour = new Uint8Array(model.lines);
  if (by === OWN) colour.set(model.colour);
  for (let line = 0; line < model.lines && by !== OWN; line++) {
    const name = nameOf(model, line, by);
    let number = names.get(name);
    if (number === undefined) names.set(name, (number = names.size));
    colour[line] = number % palette(dark).length;
  }
  const entries = [...names.keys()].slice(0, LEGEND).map((name, at) => {
    const swatch = element("span", { class: "swatch" });
    swatch.style.background = palette(dark)[at];
    return element("span", { class: "entry" }, swatch, name || "unknown");
  });
  if (names.size > LEGEND) entries.push(element("span", { class: "entry" }, `and ${names.size - LEGEND} more in the same colours`));
  for (const [outcome, said] of /** @type {[number, string][]} */ ([[FLUSHED, "flushed: | marks the end"], [NEVER_ARRIVED, "never arrived, × where it ends"]])) {
    if (model.outcome.includes(outcome)) entries.push(element("span", { class: "entry" }, element("span", { class: "dashed" }), said));
  }
  return { colour, legend: entries };
}

/** @param {import("./model.js").Model} model @param {number} line @param {string} by */
function nameOf(model, line, by) {
  const flow = model.flows.get(model.flow[line]);
  switch (by) {
    case "stack": return flow?.stack ?? "";
    case "flow": return flow ? `flow ${flow.id}` : "";
    case "host": return flow?.hosts[0] ?? model.kinds[model.kind[model.first[line]]]?.[1] ?? "";
    case "outcome": return OUTCOMES[model.outcome[line]];
    default: return model.head.groups[model.group[line]] ?? "";
  }
}

/** A choice of what lines are coloured by. @param {import("./model.js").Model} model @param {(by: string) => void} changed */
export function colourPick(model, changed) {
  const { by } = model.head.colouring;
  const own = by === "server" ? "group" : by;
  const others = Object.entries(COLOURS).filter(([one]) => one !== own && (one !== "group" || model.head.groups.length > 1));
  const label = pick("Colour by", [[OWN, by], ...others], OWN);
  label.addEventListener("input", () => changed(label.lastChild.value));
  return { label, by: OWN };
}
