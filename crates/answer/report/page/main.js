// @ts-check
// The page: reads its data, fills its parts, and ties them together.

import { unpack } from "./pack.js";
import { Model } from "./model.js";
import { choose } from "./choice.js";
import { causes, percentile, segments } from "./segments.js";
import { blocked, marks, series } from "./lanes.js";
import { take } from "./colours.js";
import { Picture } from "./picture.js";
import { control, zoomIn } from "./controls.js";
import { colourPick, coloured, filters } from "./filters.js";
import { breakdown } from "./breakdown.js";
import { waterfall } from "./waterfall.js";
import { environment, findings, inView, operation, overTime, parts, requestsByName, proofs, segmentTable, selected, sentence, statistics, sweep } from "./panels.js";
import { button, byId, element, fill } from "./dom.js";
import { firstFrom } from "./view.js";
import { count, counted, moment, percent, time } from "./format.js";

/** Segments that the filter offers. */
const OFFERED = 60;
/** Width of the picture on paper, px. */
const PAPER = 700;
/** Lines in the first view, one after the other, of a run that has more than can be told apart. */
const FIRST_SEEN = 8;
const FIRST_WHOLE = 400;

const model = new Model(await unpack(byId("data").textContent.trim()));
byId("data").textContent = "";
const { head } = model;
take(head.colours);
const lanes = series(model);
const picture = new Picture(model, byId("picture"), { marks: marks(model), blocked: blocked(model), series: lanes.filter((lane) => lane.wanted).slice(0, 6) });
const pick = colourPick(model, (by) => { pick.by = by; paint(); });
const measurements = model.measurements();
const beginning = String(head.findings[0]?.measurement ?? ([...measurements.keys()][0] ?? ""));
const form = filters(byId("filters"), model, measurements.size > 1 ? beginning : "", refilter);

/** The measurement that was last looked at. */
let seen = form.wish().measurement;

tools();
undrawn();
control(picture, select);
picture.listeners.push(status);
headline();
fill(byId("findings-body"), ...findings(head.findings, measurements, model.at.length ? show : null, head.run.scope));
fill(byId("curve"), ...sweep(head));
fill(byId("series-body"), ...overTime(head));
byId("series").hidden = byId("series-body").childElementCount === 0;
fill(byId("statistics-body"), ...statistics(head));
fill(byId("environment-body"), ...environment(model));
fill(byId("operation-body"), ...operation(head));
byId("operation").hidden = byId("operation-body").childElementCount === 0;
pickMeasurement();
theme();
refilter(form.wish());
begin(beginning);

/** For tests and for people at the browser's console. */
Object.assign(globalThis, { stackline: { model, picture, select, show, form, segments: () => segments(model, picture.mask), percentile, ready: false } });

/** What was measured, and the answer in one sentence. */
function headline() {
  document.title = `${head.title}: stackline`;
  byId("title").textContent = head.title;
  // A run of something else than measurements says what it is of.
  const { origin } = head.run;
  const world = !origin && head.run.world && measurements.size ? `${head.run.world} world` : "";
  const of = origin?.replace(/\.$/, "") ?? (measurements.size ? "" : "imported events");
  byId("measured").textContent = [head.started, world, of].filter(Boolean).join(", ");
  const warnings = [];
  if (head.run.complete === false) warnings.push(`The run is incomplete${head.run.reason ? `: ${head.run.reason}` : ""}. Its contents are shown.`);
  const lost = Object.values(head.hosts).reduce((sum, host) => sum + host.lost, 0);
  if (lost > 0) warnings.push(`${counted(lost, "event")} could not be kept because there was no room.`);
  const { kept } = head;
  if (kept.lines < kept.of_lines) warnings.push(`This page holds ${count(kept.lines)} of ${count(kept.of_lines)} lines: all that failed or that findings mention, and some of the others. Use --most-events to include more.`);
  if (kept.loose < kept.of_loose) warnings.push(`This page holds ${count(kept.loose)} of ${count(kept.of_loose)} events that are not on a line.`);
  fill(byId("warnings"), ...warnings.map((text) => element("p", { class: "warning" }, text)));
  fill(byId("footer"), `Made by stackline ${head.run.stackline ?? ""}. ${counted(kept.lines, "line")}, ${counted(model.at.length, "event")}. Times are relative to the first event, on the clock of ${head.reference || "its host"}. This page neither loads data from a network nor sends any.`);
}

function tools() {
  const monitors = element("details", { class: "menu" }, element("summary", {}, "Monitors"),
    ...lanes.slice(0, 80).map((lane) => {
      const box = element("input", { type: "checkbox", oninput: () => {
        picture.series = lanes.filter((_, at) => monitors.querySelectorAll("input")[at]?.checked);
        picture.resize();
      } });
      box.checked = picture.series.includes(lane);
      return element("label", { class: "check" }, box, ` ${lane.name}`);
    }));
  const input = element("input", { type: "search", id: "find", size: "14", placeholder: model.names.texts.some((text) => text >= 0) ? "GET /path" : "unit 12 of flow 0" });
  const said = element("span", { class: "soft", role: "status" });
  const found = element("label", {}, "Find ", input, " ", said);
  input.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter") find(input.value, said); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || document.activeElement instanceof HTMLInputElement) return;
    event.preventDefault();
    input.focus();
  });
  fill(byId("tools"), button("Zoom in", () => zoomIn(picture, 0.5)), button("Zoom out", () => zoomIn(picture, 2)),
    button("◀ Earlier", () => { picture.view.pan(-0.4); picture.change(); }), button("Later ▶", () => { picture.view.pan(0.4); picture.change(); }),
    found, button("Everything", () => { picture.view.reset(); picture.change(); }), pick.label, lanes.length ? monitors : null);
}

/** The page shows one measurement, which can be chosen on top too; it is the filter's. */
function pickMeasurement() {
  const select = byId("measurement");
  fill(select, ...[...measurements].map(([at, text]) => element("option", { value: at }, `${at + 1}: ${text}`)), element("option", { value: "" }, "all of them"));
  select.parentElement.hidden = measurements.size < 2;
  select.addEventListener("input", () => form.measure(select.value));
}

/** Shows the first counted run of a measurement: all of it, or of many lines as many as can be told apart around the one in the middle. @param {string} measurement */
function begin(measurement) {
  const runs = head.runs.filter((/** @type {any} */ run) => measurement === "" || String(run.measurement) === measurement);
  const run = runs.find((/** @type {any} */ run) => !run.warmup) ?? runs[0] ?? { from: 0, to: model.total };
  const lines = [];
  for (let line = firstFrom(model.start, run.from); line < model.lines && model.start[line] < run.to; line++) if (picture.mask[line]) lines.push(line);
  if (lines.length === 0) {
    picture.view.show(run.from, run.to, 0.02);
    picture.change();
    return;
  }
  const [begun, to] = [model.start[lines[0]], lines.reduce((last, line) => Math.max(last, model.end[line]), 0)];
  // What is near the beginning of the run is shown from there.
  const from = begun - run.from < 0.1 * (to - begun) ? run.from : begun;
  const times = Float64Array.from(lines, (line) => model.end[line] - model.start[line]).sort();
  const wide = FIRST_SEEN * Math.max(times[times.length >> 1], (to - from) / lines.length);
  const middle = lines[lines.length >> 1];
  if (lines.length <= FIRST_WHOLE || wide >= to - from) picture.view.show(from, to, 0.02);
  else picture.view.show(model.start[middle], model.start[middle] + wide, 0.02);
  picture.change();
}

/** @param {import("./choice.js").Wish} wish */
function refilter(wish) {
  picture.choose(choose(model, wish));
  byId("measurement").value = wish.measurement;
  if (wish.measurement !== seen) begin(wish.measurement);
  seen = wish.measurement;
  // What takes longer comes when the picture is there.
  clearTimeout(refilter.timer);
  refilter.timer = setTimeout(slow, 30);
}
refilter.timer = 0;

function slow() {
  globalThis.stackline.ready = true;
  const dark = picture.dark;
  const wish = form.wish();
  const units = Uint8Array.from(picture.mask, (chosen, line) => Number(chosen && !model.isConnection(line)));
  const body = { bars: byId("bars"), about: byId("breakdown-about"), body: byId("breakdown-body") };
  const of = units.includes(1) ? units : picture.mask;
  const typical = breakdown(body, model, of, dark, (line) => { select([line]); focusOn(model.start[line], model.end[line]); });
  answer(typical);
  hops(picture.selected[0] ?? typical?.line ?? -1);
  const found = segments(model, picture.mask);
  byId("segments-about").textContent = `Time between successive events on ${counted(picture.mask.reduce((sum, one) => sum + one, 0), "selected line")}. Percentiles are exact. Durations are drawn on a logarithmic axis from the smallest to the largest.`;
  fill(byId("segments-body"), ...segmentTable(model, [...causes(model, of), ...found], (segment) => {
    const { sorted } = segment;
    form.segment(`${segment.from}>${segment.to}`, sorted[Math.floor((sorted.length - 1) * 0.99)]);
    byId("lifelines").scrollIntoView();
  }));
  if (wish.segment === "") {
    form.offer(found.filter(({ waits }) => !waits).sort((a, b) => b.sum - a.sum).slice(0, OFFERED).map(({ from, to }) => ({ value: `${from}>${to}`, name: model.segmentName({ from, to }) })));
  }
}

/** The request of a line, with those that were made for it. @param {number} line */
function hops(line) {
  waterfall(byId("waterfall"), model, line, picture.dark);
}

/** The answer: what limits the measurement that is shown, or where most of its median unit's time went. @param {{line: number, pieces: any[]} | null} typical */
function answer(typical) {
  const shown = form.wish().measurement;
  fill(byId("parts"), ...requestsByName(head), ...parts(head, shown));
  const found = head.findings.find((/** @type {any} */ one) => shown === "" || one.measurement === null || String(one.measurement) === shown);
  const most = typical?.pieces.reduce((a, b) => (b.time > a.time ? b : a), typical.pieces[0]);
  const whole = typical ? model.took(typical.line) : 0;
  byId("answer").textContent = found ? sentence(found.sentence)
    : most ? `${percent(most.time / Math.max(1, whole))} of the median ${unitWord(shown)}'s ${time(whole)} went here: ${model.segmentName(most)}.` : "";
}

/** What a unit of a measurement is. @param {string} shown */
function unitWord(shown) {
  const row = (head.run.measurements ?? []).find((/** @type {any} */ one) => String(one.measurement) === shown);
  return row?.main === "response" ? "request" : row?.main === "connect" ? "connection" : "unit";
}

/** Without lines there is no empty picture, but a sentence that says why. */
function undrawn() {
  if (model.lines > 0) return;
  byId("drawn").hidden = model.at.length === 0;
  for (const part of ["breakdown", "segments"]) byId(part).hidden = true;
  byId("undrawn").hidden = false;
  // Findings and figures come before what is missing.
  if (model.at.length === 0) byId("environment").before(byId("lifelines"));
  byId("undrawn").textContent = model.at.length ? "No event names a data unit, so there are no lifelines. Monitor data is drawn over time."
    : "This run kept no events, so there are no lifelines: use `stackline run SPEC --trace` to keep them.";
}

/** The lines that a text names: by their id, by their number and flow as in `unit 12 of flow 3`, or by the name of a request, also of one that was made for the line's request. @param {string} wanted */
function named(wanted) {
  const exact = model.find(wanted);
  if (exact >= 0) return [exact];
  const found = [];
  const requests = model.requests?.rows ?? [];
  // Those made for a request stand behind it: one that has the name makes those before it have it too.
  const has = requests.map((/** @type {any[]} */ row) => (row[3] ?? "").includes(wanted));
  for (let at = requests.length - 1; at >= 0; at--) if (has[at] && requests[at][0] !== null) has[requests[at][0]] = true;
  for (let line = 0; line < model.lines; line++) {
    const request = model.requests?.of_line[line] ?? null;
    if (model.name(line).includes(wanted) || request !== null && has[request]) found.push(line);
  }
  return found;
}

/** Shows the next line that a text names. @param {string} text @param {HTMLElement} said */
function find(text, said) {
  const wanted = text.trim();
  const found = wanted === "" ? [] : named(wanted);
  const now = found.indexOf(picture.selected[0] ?? -1);
  const next = (now + 1) % Math.max(1, found.length);
  said.textContent = wanted === "" ? "" : found.length === 0 ? "nothing found" : `${next + 1} of ${found.length}`;
  if (found.length === 0) return;
  const line = found[next];
  select([line]);
  focusOn(model.start[line], model.end[line]);
}

/** @param {number[]} lines */
function select(lines) {
  picture.selected = lines;
  picture.pointed = [];
  picture.overlay();
  const line = lines[0];
  if (line === undefined) {
    fill(byId("selected"));
    return;
  }
  const step = (/** @type {string} */ key) => () => picture.over.dispatchEvent(new KeyboardEvent("keydown", { key }));
  hops(line);
  fill(byId("selected"), ...selected(model, line, { before: step("ArrowUp"), after: step("ArrowDown"), zoom: step("Enter") }));
  status();
}

/** Shows a proof of a finding: its units, or else the events that it names. @param {{what: string, from: number, to: number, units: string[], events: number[]}} evidence @param {number | null} measurement */
function show(evidence, measurement) {
  const wanted = form.wish().measurement;
  if (wanted !== "" && measurement !== null && wanted !== String(measurement)) form.measure(String(measurement));
  const lines = evidence.units.map((unit) => model.find(unit)).filter((line) => line >= 0);
  if (lines.some((line) => !picture.mask[line])) byId("filters").reset();
  select(lines);
  picture.pointed = evidence.events;
  picture.overlay();
  if (lines.length === 0 && evidence.events.length) fill(byId("selected"), ...proofs(model, evidence.what, evidence.events));
  focusOn(evidence.from, evidence.to);
}

/** @param {number} from @param {number} to */
function focusOn(from, to) {
  picture.view.show(from, to, 0.25);
  picture.change();
  byId("lifelines").scrollIntoView();
  picture.over.focus({ preventScroll: true });
}

function status() {
  const { view, seen, selected } = picture;
  const step = (view.to - view.from) / 1000;
  const how = seen.dense ? (seen.whole ? `${counted(seen.lines, "line")}, darker where there are more` : "drawing") : counted(seen.lines, "line");
  const text = `${moment(Math.max(0, view.from), step)} to ${moment(view.to, step)}: ${how}${selected.length ? `; selected: ${model.name(selected[0])}${selected.length > 1 ? ` and ${selected.length - 1} more` : ""}` : ""}`;
  if (byId("status").textContent !== text) byId("status").textContent = text;
  clearTimeout(status.timer);
  status.timer = setTimeout(() => { if (byId("in-view").open) fill(byId("in-view-body"), ...inView(picture, (line) => select([line]))); }, 150);
}
status.timer = 0;
byId("in-view").addEventListener("toggle", status);

/** Light or dark: as the system says until the button is pressed. */
function theme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const set = (/** @type {boolean} */ dark) => {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    byId("theme").textContent = dark ? "Light" : "Dark";
    byId("theme").setAttribute("aria-label", dark ? "Light colours" : "Dark colours");
    picture.dark = dark;
    paint();
    slow();
  };
  byId("theme").addEventListener("click", () => set(!picture.dark));
  let wasDark = false;
  addEventListener("beforeprint", () => {
    wasDark = picture.dark;
    set(false);
    picture.print(PAPER);
  });
  addEventListener("afterprint", () => {
    picture.print(0);
    set(wasDark);
  });
  system.addEventListener("change", () => set(system.matches));
  picture.dark = system.matches;
  document.documentElement.dataset.theme = system.matches ? "dark" : "light";
  byId("theme").textContent = system.matches ? "Light" : "Dark";
  paint();
}

/** Colours the lines. */
function paint() {
  const { colour, legend } = coloured(model, pick.by, picture.dark);
  picture.colour = colour;
  fill(byId("legend"), ...legend);
  picture.change();
}
