// @ts-check
// Everything of the picture but the lines: names of rows, runs, bars of what was dropped and of monitors, the axis.

import { bytes, digits, moment, percent, rate, time } from "./format.js";
import { HEIGHTS, marksAt, rowAt, seriesAt } from "./layout.js";
import { firstFrom, ticks } from "./view.js";

const FONT = "system-ui, sans-serif";

/**
 * @param {CanvasRenderingContext2D} to
 * @param {{model: import("./model.js").Model, view: import("./view.js").View, layout: import("./layout.js").Layout, inks: any, marks: import("./lanes.js").Marks[], blocked: import("./lanes.js").Blocked[], colours: string[], series: import("./lanes.js").Series[], overview: {lines: Uint32Array, failed: Uint32Array}}} what
 */
export function furniture(to, what) {
  const { layout, inks } = what;
  to.fillStyle = inks.paper;
  to.fillRect(0, 0, layout.width, layout.height);
  overview(to, what);
  runs(to, what);
  points(to, what);
  what.marks.forEach((lane, index) => marks(to, what, lane, index));
  what.blocked.forEach((lane, index) => blocked(to, what, lane, what.marks.length + index));
  what.series.forEach((lane, index) => series(to, what, lane, index));
  axis(to, what);
}

/** @param {any} what @returns {(at: number) => number} */
function scale({ view, layout }) {
  const factor = (layout.right - layout.left) / (view.to - view.from);
  return (at) => layout.left + (at - view.from) * factor;
}

/** The whole run: how many lines begin when, which of them fail, and what is in view. @param {CanvasRenderingContext2D} to @param {any} what */
function overview(to, what) {
  const { model, view, layout, inks, overview } = what;
  const [top, height] = [layout.overview, HEIGHTS.overview];
  name(to, what, "whole run", "", top + height / 2);
  to.fillStyle = inks.band;
  to.fillRect(layout.left, top, layout.right - layout.left, height);
  const most = overview.lines.reduce((/** @type {number} */ a, /** @type {number} */ b) => Math.max(a, b), 1);
  for (const [counts, style] of [[overview.lines, inks.bar], [overview.failed, inks.bad]]) {
    to.fillStyle = style;
    for (let column = 0; column < counts.length; column++) {
      if (counts[column]) to.fillRect(layout.left + column, top + height, 1, -Math.max(2, height * Math.sqrt(counts[column] / most)));
    }
  }
  const place = (/** @type {number} */ at) => layout.left + Math.min(1, Math.max(0, at / model.total)) * (layout.right - layout.left);
  const [from, end] = [place(view.from), place(view.to)];
  to.strokeStyle = inks.ink;
  to.lineWidth = 1.5;
  to.strokeRect(Math.min(from, layout.right - 3), top - 0.5, Math.max(3, end - from), height + 1);
  to.lineWidth = 1;
}

/** Every other run on a band, with its name where there is room. @param {CanvasRenderingContext2D} to @param {any} what */
function runs(to, what) {
  const { model, view, layout, inks } = what;
  const x = scale(what);
  to.font = `10px ${FONT}`;
  to.textAlign = "left";
  to.textBaseline = "top";
  model.head.runs.forEach((/** @type {any} */ run, /** @type {number} */ index) => {
    if (run.to < view.from || run.from > view.to) return;
    const [from, end] = [Math.max(layout.left, x(run.from)), Math.min(layout.right, x(run.to))];
    to.fillStyle = inks.band;
    if (index % 2 === 0) to.fillRect(from, layout.top, Math.max(1, end - from), layout.bottom - layout.top);
    const name = `measurement ${run.measurement + 1}, ${run.warmup ? "warm-up" : "run"} ${run.run + 1}`;
    to.fillStyle = inks.soft;
    if (model.head.runs.length > 1 && end - from > to.measureText(name).width + 8) to.fillText(name, from + 4, layout.top + 2);
  });
}

/** @param {CanvasRenderingContext2D} to @param {any} what */
function points(to, { model, layout, inks }) {
  to.textAlign = "right";
  to.textBaseline = "middle";
  const two = layout.row >= 25;
  const room = layout.left - 12;
  const { names, places } = model.head.stages;
  const drawn = new Set();
  for (let point = 0; point < model.points; point++) {
    const stage = model.stage[point];
    if (layout.rows[point] < 0 || drawn.has(stage)) continue;
    drawn.add(stage);
    const [name, where] = [names[stage], places[stage]];
    const y = rowAt(layout, point);
    to.fillStyle = inks.rule;
    to.fillRect(layout.left, Math.round(y), layout.right - layout.left, 1);
    to.fillStyle = inks.ink;
    to.font = `11px ${FONT}`;
    if (two) {
      to.fillText(fitted(to, name, room), layout.left - 8, y - 6);
      to.fillStyle = inks.soft;
      to.font = `10px ${FONT}`;
      to.fillText(fitted(to, where, room), layout.left - 8, y + 7);
    } else {
      to.font = `10px ${FONT}`;
      to.fillText(fitted(to, `${name} ${where}`, room), layout.left - 8, y);
    }
  }
}

/** As much of a text as fits. @param {CanvasRenderingContext2D} to @param {string} text @param {number} room */
function fitted(to, text, room) {
  if (text.length > 200) text = `${text.slice(0, 200)}…`;
  if (to.measureText(text).width <= room) return text;
  while (text.length > 1 && to.measureText(`${text}…`).width > room) text = text.slice(0, Math.max(1, Math.floor(text.length * 0.9)));
  return `${text}…`;
}

/** @param {CanvasRenderingContext2D} to @param {any} what @param {import("./lanes.js").Marks} lane @param {number} index */
function marks(to, what, lane, index) {
  const { view, layout, inks } = what;
  const y = marksAt(layout, index);
  name(to, what, lane.name, "", y + HEIGHTS.marks / 2);
  to.fillStyle = lane.bad ? inks.bad : inks.again;
  const x = scale(what);
  let last = -1;
  for (let mark = firstFrom(lane.at, view.from); mark < lane.at.length && lane.at[mark] <= view.to; mark++) {
    const at = Math.floor(x(lane.at[mark]));
    if (at === last) continue;
    // A shape as well as a colour: what is dropped is lower.
    to.fillRect(at, lane.bad ? y + 5 : y, 2, HEIGHTS.marks - (lane.bad ? 5 : 0));
    last = at;
  }
}

/** When a server was blocked, as bars in its colour. @param {CanvasRenderingContext2D} to @param {any} what @param {import("./lanes.js").Blocked} lane @param {number} index */
function blocked(to, what, lane, index) {
  const { view, layout, inks, colours } = what;
  const y = marksAt(layout, index);
  name(to, what, lane.name, "", y + HEIGHTS.marks / 2);
  to.fillStyle = lane.colour < 0 ? inks.soft : colours[lane.colour % colours.length];
  const x = scale(what);
  for (const [from, end] of lane.intervals) {
    if (end < view.from || from > view.to) continue;
    const left = Math.max(layout.left, x(from));
    to.fillRect(left, y + 3, Math.max(1, Math.min(layout.right, x(end)) - left), HEIGHTS.marks - 5);
  }
}

/** @param {CanvasRenderingContext2D} to @param {any} what @param {import("./lanes.js").Series} lane @param {number} index */
function series(to, what, lane, index) {
  const { view, layout, inks } = what;
  const top = seriesAt(layout, index);
  name(to, what, lane.name, `0 to ${amount(lane.unit, lane.most)}`, top + HEIGHTS.series / 2);
  to.fillStyle = inks.band;
  to.fillRect(layout.left, top, layout.right - layout.left, HEIGHTS.series);
  to.fillStyle = inks.bar;
  const x = scale(what);
  let [column, high] = [-1, 0];
  for (let bar = firstFrom(lane.to, view.from); bar < lane.to.length && lane.from[bar] <= view.to; bar++) {
    const [from, end] = [Math.max(layout.left, x(lane.from[bar])), Math.min(layout.right, x(lane.to[bar]))];
    const height = HEIGHTS.series * lane.value[bar] / lane.most;
    if (end - from >= 2) {
      to.fillRect(from, top + HEIGHTS.series - height, end - from - 0.5, height);
    } else if (Math.floor(from) !== column || height > high) {
      [column, high] = [Math.floor(from), height];
      to.fillRect(column, top + HEIGHTS.series - height, 1, height);
    }
  }
}

/** An amount of a monitor with its unit. @param {string} unit @param {number} value */
export function amount(unit, value) {
  switch (unit) {
    case "share": return percent(value);
    case "rate": return rate(value);
    case "bytes": return bytes(Math.round(value));
    case "time": return time(value);
    default: return `${digits(value)} /s`;
  }
}

/** @param {CanvasRenderingContext2D} to @param {any} what @param {string} text @param {string} below @param {number} y */
function name(to, { layout, inks }, text, below, y) {
  to.textAlign = "right";
  to.textBaseline = "middle";
  to.fillStyle = inks.soft;
  to.font = `10px ${FONT}`;
  to.fillText(fitted(to, text, layout.left - 12), layout.left - 8, below ? y - 6 : y);
  if (below) to.fillText(fitted(to, below, layout.left - 12), layout.left - 8, y + 6);
}

/** @param {CanvasRenderingContext2D} to @param {any} what */
function axis(to, what) {
  const { view, layout, inks } = what;
  const x = scale(what);
  const { step, marks: moments } = ticks(view.from, view.to, (layout.right - layout.left) / 100);
  to.strokeStyle = inks.soft;
  to.beginPath();
  to.moveTo(layout.left, layout.axis + 0.5);
  to.lineTo(layout.right, layout.axis + 0.5);
  to.stroke();
  to.fillStyle = inks.ink;
  to.font = `11px ${FONT}`;
  to.textAlign = "center";
  to.textBaseline = "top";
  for (const at of moments) {
    const place = x(at);
    to.fillRect(Math.round(place), layout.axis, 1, 5);
    const half = to.measureText(moment(at, step)).width / 2;
    if (place + half < layout.width) to.fillText(moment(at, step), place, layout.axis + 8);
  }
}
