// @ts-check
// One request and those that were made for it, each where it lies in the time of the first: who calls whom, and what waits for what.

import { palette } from "./colours.js";
import { element, fill } from "./dom.js";
import { counted, percent, time } from "./format.js";

/** Requests of one name to one server, from so many on, share a row. */
const ALIKE = 3;
/** Rows before the rest is counted. */
const MOST_ROWS = 60;

/** A request as the page's data has it. @typedef {{parent: number | null, begin: number, took: number, name: string, server: string, cause: number | null, causeTook: number}} Request */
/** A row: its requests, and how deep it stands. @typedef {{requests: Request[], depth: number}} Row */

/** @param {Element} where @param {import("./model.js").Model} model @param {number} line @param {boolean} dark */
export function waterfall(where, model, line, dark) {
  const all = (model.requests?.rows ?? []).map(request);
  const of = model.requests?.of_line[line] ?? null;
  const root = of === null ? -1 : rootOf(all, of);
  const found = root < 0 ? [] : rows(all, root);
  if (found.length < 2) {
    fill(where);
    return;
  }
  const first = all[root];
  const awaited = waitedFor(all, root);
  const servers = [...new Set(found.map((row) => row.requests[0].server))];
  const colours = palette(dark);
  const shown = found.slice(0, MOST_ROWS);
  const left = found.slice(MOST_ROWS).reduce((sum, row) => sum + row.requests.length, 0);
  fill(where,
    element("h2", {}, "One request, hop by hop"),
    element("p", { class: "soft" }, `${first.name}: ${time(first.took)}. Each bar lies where it is in this time; those with a dark line are what it waited for. Click a lifeline below to see its request.`),
    axis(first.took),
    ...shown.map((row) => hop(model, row, first, awaited, colours[servers.indexOf(row.requests[0].server) % colours.length])),
    left > 0 ? element("p", { class: "soft" }, `${counted(left, "further request")} not shown.`) : null);
}

/** The times above the bars. @param {number} took */
function axis(took) {
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const tick = element("span", {}, time(took * part));
    tick.style.left = `${100 * part}%`;
    return tick;
  });
  return element("div", { class: "hop axis", "aria-hidden": "true" }, element("div", {}), element("div", { class: "ticks" }, ...ticks), element("div", {}));
}

/** A row's label, its bars and its time. @param {import("./model.js").Model} model @param {Row} row @param {Request} first @param {Set<Request>} awaited @param {string} colour */
function hop(model, { requests, depth }, first, awaited, colour) {
  const whole = Math.max(first.took, 1);
  const bars = requests.map((one) => {
    const bar = element("span", { title: `${one.name}: ${time(one.took)}${mostly(model, one)}`, class: awaited.has(one) ? "awaited" : "" });
    bar.style.left = `${100 * (one.begin - first.begin) / whole}%`;
    bar.style.width = `${100 * one.took / whole}%`;
    bar.style.background = colour;
    return bar;
  });
  const [one] = requests;
  const sum = requests.reduce((total, each) => total + each.took, 0);
  const many = requests.length > 1;
  const label = element("div", { class: "name", title: one.name }, many ? `${requests.length} × ${one.name}` : one.name, element("span", { class: "soft" }, ` ${one.server}`));
  label.style.paddingLeft = `${depth * 0.9}rem`;
  const said = many ? `${time(sum / requests.length)} each, ${time(sum)} in all` : `${time(sum)}${mostly(model, one)}`;
  return element("div", { class: "hop" }, label, element("div", { class: "track" }, ...bars), element("div", { class: "said" }, said));
}

/** What took most of a request, and where. @param {import("./model.js").Model} model @param {Request} one */
function mostly(model, one) {
  if (one.cause === null || !model.accounts) return "";
  const [words, place] = model.accounts.causes[one.cause];
  return `, ${words} ${percent(one.causeTook / Math.max(1, one.took))} (${place.replace(/ \(port (\d+)\)/g, ":$1")})`;
}

/** The requests that the first one waited for, with those that these waited for: of the ones made for each, from its end back, always the one that ended last before. @param {Request[]} all @param {number} root */
function waitedFor(all, root) {
  /** @type {Set<Request>} */
  const found = new Set([all[root]]);
  const made = all.filter(({ parent }) => parent !== null);
  for (const of of found) {
    const children = made.filter((one) => all[/** @type {number} */ (one.parent)] === of);
    let until = of.begin + of.took;
    for (;;) {
      const last = children.filter((one) => one.begin + one.took <= until && one.begin < until && !found.has(one))
        .reduce((/** @type {Request | null} */ best, one) => best && best.begin + best.took >= one.begin + one.took ? best : one, null);
      if (!last) break;
      found.add(last);
      until = last.begin;
    }
  }
  return found;
}

/** @param {[number | null, number, number, string | null, number | null, number | null]} row @returns {Request} */
function request([parent, begin, took, name, cause, causeTook]) {
  const [, asked, server] = /^(.*?)(?:, [^,]* > ([^,]*))?$/s.exec(name ?? "a request") ?? [];
  return { parent, begin, took, name: asked, server: server ?? "", cause, causeTook: causeTook ?? 0 };
}

/** The request at the beginning of a chain. @param {Request[]} all @param {number} at */
function rootOf(all, at) {
  const { parent } = all[at];
  return parent === null || parent >= at ? at : rootOf(all, parent);
}

/** A request's rows: itself, then those made for it as they began. Many of one name are one row, without those made for them. @param {Request[]} all @param {number} root @returns {Row[]} */
function rows(all, root) {
  /** @type {Map<number, number[]>} */
  const madeFor = new Map();
  all.forEach(({ parent }, at) => { if (parent !== null) madeFor.set(parent, [...madeFor.get(parent) ?? [], at]); });
  /** @type {Row[]} */
  const found = [];
  /** @param {number} at @param {number} depth */
  const walk = (at, depth) => {
    found.push({ requests: [all[at]], depth });
    const children = [...madeFor.get(at) ?? []].sort((a, b) => all[a].begin - all[b].begin);
    /** @type {Map<string, number[]>} */
    const alike = new Map();
    for (const child of children) {
      const key = `${all[child].name.replace(/\d+/g, "#")} ${all[child].server}`;
      alike.set(key, [...alike.get(key) ?? [], child]);
    }
    for (const same of alike.values()) {
      if (same.length >= ALIKE) found.push({ requests: same.map((child) => all[child]), depth: depth + 1 });
      else same.forEach((child) => walk(child, depth + 1));
    }
  };
  walk(root, 0);
  return found;
}
