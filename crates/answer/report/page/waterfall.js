// @ts-check
// One request and those that were made for it, each where it lies in the time of the first: who calls whom, and what waits for what.

import { palette } from "./colours.js";
import { button, element, fill } from "./dom.js";
import { counted, percent, time } from "./format.js";

/** Requests of one name for one other, from so many on, share a row. */
const ALIKE = 3;
/** Rows before the rest is counted. */
const MOST_ROWS = 60;

/**
 * A row: its requests, and how deep it stands.
 * @typedef {{lines: number[], depth: number}} Row
 */

/**
 * @param {Element} where @param {import("./model.js").Model} model @param {number} line @param {boolean} dark
 * @param {(line: number) => void} show
 */
export function waterfall(where, model, line, dark, show) {
  const root = line < 0 ? -1 : model.root(line);
  const all = root < 0 ? [] : rows(model, root);
  if (all.length < 2) {
    fill(where);
    return;
  }
  const begin = model.begin(root);
  const whole = Math.max(model.took(root), 1);
  const servers = [...new Set(all.map((row) => model.server(row.lines[0])))];
  const shown = all.slice(0, MOST_ROWS);
  const left = all.slice(MOST_ROWS).reduce((sum, row) => sum + row.lines.length, 0);
  const colours = palette(dark);
  const drawn = shown.map((row) => {
    const [first] = row.lines;
    const colour = colours[servers.indexOf(model.server(first)) % (colours.length - 1)];
    const sum = row.lines.reduce((total, one) => total + model.took(one), 0);
    const bars = row.lines.map((one) => {
      const bar = element("span", { title: `${model.name(one)}: ${time(model.took(one))}${mostly(model, one)}` });
      bar.style.left = `${100 * (model.begin(one) - begin) / whole}%`;
      bar.style.width = `${100 * model.took(one) / whole}%`;
      bar.style.background = colour;
      return bar;
    });
    const label = element("div", { class: "name" },
      button(row.lines.length > 1 ? `${row.lines.length} × ${model.request(first)}` : model.request(first), () => show(first), { class: "link" }),
      element("span", { class: "soft" }, ` ${model.server(first)}`));
    label.style.paddingLeft = `${row.depth * 0.9}rem`;
    const each = row.lines.length > 1 ? `${time(sum / row.lines.length)} each, ${time(sum)}` : `${time(sum)}${mostly(model, first)}`;
    return element("div", { class: "hop" }, label, element("div", { class: "track" }, ...bars), element("div", { class: "said" }, each));
  });
  fill(where,
    element("h2", {}, "One request, hop by hop"),
    element("p", { class: "soft" }, `${model.name(root)}: ${time(whole)}. Each bar lies where it is in this time; select a line below to see its request.`),
    ...drawn,
    left > 0 ? element("p", { class: "soft" }, `${counted(left, "further request")} not shown.`) : null);
}

/** What took most of a request. @param {import("./model.js").Model} model @param {number} line */
function mostly(model, line) {
  const pieces = model.account(line) ?? [];
  if (pieces.length === 0) return "";
  const most = pieces.reduce((a, b) => (b.time > a.time ? b : a));
  return `, ${model.segmentKind(most)} ${percent(most.time / Math.max(1, model.took(line)))}`;
}

/** A request's rows: itself, then those made for it as they began. Many of one name are one row, without those made for them. @param {import("./model.js").Model} model @param {number} root @returns {Row[]} */
function rows(model, root) {
  /** @type {Row[]} */
  const found = [];
  /** @param {number} line @param {number} depth */
  const walk = (line, depth) => {
    found.push({ lines: [line], depth });
    const children = [...model.children(line)].sort((a, b) => model.begin(a) - model.begin(b));
    /** @type {Map<string, number[]>} */
    const alike = new Map();
    for (const child of children) {
      const key = `${kind(model.request(child))} ${model.server(child)}`;
      alike.set(key, [...alike.get(key) ?? [], child]);
    }
    for (const same of alike.values()) {
      if (same.length >= ALIKE) found.push({ lines: same, depth: depth + 1 });
      else same.forEach((child) => walk(child, depth + 1));
    }
  };
  walk(root, 0);
  return found;
}

/** A request without what differs in each of its name: numbers and its status. @param {string} name */
function kind(name) {
  return name.replace(/\d+/g, "#");
}
