// @ts-check
// The picture of the lifelines: layers of canvas, drawn a frame at a time.
//
// Up to some thousand pieces are drawn as lines. More become a density (raster.js): each frame draws as many lines as fit in
// its time, in a scattered order, and the next frame goes on until all are there; so moving stays smooth whatever a run holds.

import { FLUSHED, NEVER_ARRIVED } from "./model.js";
import { inks, palette, pixel } from "./colours.js";
import { amount, furniture } from "./furniture.js";
import { isGone } from "./lanes.js";
import { HEIGHTS, layout, rowAt, seriesAt } from "./layout.js";
import { Raster } from "./raster.js";
import { View, firstFrom } from "./view.js";
import { Visible } from "./visible.js";
import { moment } from "./format.js";

/** Pieces that are drawn one by one. */
const PIECES = 4000;
/** Passages that get a dot each. */
const DOTS = 700;
/** Time a frame spends on lines, ms. */
const SLICE = 4;
/** Side of the squares that hold one end mark each where there are very many, px. */
const SQUARE = 9;
/** How near a click has to be, px. */
const NEAR = 10;

/** The lifelines of a run. */
export class Picture {
  /**
   * @param {import("./model.js").Model} model @param {HTMLElement} box holds the canvases, the base first and the top last
   * @param {{marks: import("./lanes.js").Marks[], blocked: import("./lanes.js").Blocked[], series: import("./lanes.js").Series[]}} lanes
   */
  constructor(model, box, lanes) {
    this.model = model;
    this.box = box;
    this.marks = lanes.marks;
    this.blocked = lanes.blocked;
    this.series = lanes.series;
    this.view = new View(model.total);
    this.visible = new Visible(model);
    this.mask = new Uint8Array(model.lines).fill(1);
    /** @type {{mask: Uint8Array, lines: Uint32Array, failed: Uint32Array} | null} */
    this.known = null;
    /** Number of each line's colour. */
    this.colour = model.colour;
    /** @type {number[]} the first is the one whose events are shown */
    this.selected = [];
    /** @type {number[]} events that a proof names */
    this.pointed = [];
    this.pointer = NaN;
    this.dark = false;
    const [base, over] = /** @type {HTMLCanvasElement[]} */ ([...box.querySelectorAll("canvas")]);
    this.density = inserted(over);
    this.fine = inserted(over);
    this.base = base;
    this.over = over;
    this.rows = Int32Array.from(model.stage);
    this.layout = layout(800, this.rows, this.marks.length + this.blocked.length, this.series.length);
    this.raster = new Raster(1, 1);
    this.image = new ImageData(1, 1);
    this.looked = 0;
    this.drawn = 0;
    /** Squares that have an end mark. */
    this.ends = new Set();
    this.done = false;
    this.asked = false;
    this.stale = true;
    /** When the first frame was drawn, ms since the page was asked for. */
    this.firstDrawn = 0;
    /** What is seen, for the status line: set while drawing. */
    this.seen = { lines: 0, whole: true, dense: false };
    /** @type {(() => void)[]} called when something changed and is drawn, and when all of it is */
    this.listeners = [];
    new ResizeObserver(() => this.resize()).observe(box);
    this.resize();
  }

  /** Shows these lines, and of the stages those that they pass. @param {Uint8Array} mask */
  choose(mask) {
    const { model } = this;
    this.mask = mask;
    const met = new Uint8Array(model.head.stages.names.length);
    for (let line = 0; line < model.lines; line++) {
      if (!mask[line]) continue;
      for (let event = model.first[line]; event < model.first[line] + model.count[line]; event++) met[model.stage[model.kind[event]]] = 1;
    }
    let row = 0;
    const places = Int32Array.from(met, (one) => (one ? row++ : -1));
    const rows = met.includes(1) ? Int32Array.from(model.stage, (stage) => places[stage]) : this.rows;
    const same = rows.every((row, point) => row === this.rows[point]);
    this.rows = rows;
    if (same) this.change();
    else this.resize();
  }

  /** Everything is drawn anew. */
  change() {
    this.stale = true;
    this.ask();
  }

  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.frame();
    });
  }

  resize() {
    const width = Math.max(280, Math.floor(this.box.clientWidth));
    this.layout = layout(width, this.rows, this.marks.length + this.blocked.length, this.series.length);
    const { left, right, top, bottom, height } = this.layout;
    this.box.style.height = `${height}px`;
    const dots = Math.min(3, window.devicePixelRatio || 1);
    for (const canvas of [this.base, this.over, this.fine]) size(canvas, 0, 0, width, height, dots);
    size(this.density, left, top, right - left, bottom - top, 1);
    this.raster = new Raster(this.density.width, this.density.height);
    this.image = new ImageData(this.density.width, this.density.height);
    this.change();
  }

  /** Draws all of it at once in that width, for paper; 0 for the width there is. @param {number} width */
  print(width) {
    this.box.style.width = width ? `${width}px` : "";
    this.resize();
    do this.frame(); while (width && !this.done);
  }

  frame() {
    const begun = performance.now();
    const anew = this.stale;
    this.stale = false;
    if (anew) this.begin();
    const unfinished = !this.done;
    if (unfinished) this.dense(begun);
    if (anew || (unfinished && this.done)) for (const listener of this.listeners) listener();
    this.firstDrawn ||= performance.now();
    if (!this.done) this.ask();
  }

  begin() {
    const { model, view, mask } = this;
    const overview = this.overview();
    furniture(context(this.base), { model, view, layout: this.layout, inks: inks(this.dark), marks: this.marks, blocked: this.blocked, colours: palette(this.dark), series: this.series, overview });
    this.overlay();
    const lines = [];
    let pieces = 0;
    this.visible.each(view, mask, 0, false, (line) => {
      lines.push(line);
      pieces += model.count[line];
      return pieces <= PIECES;
    });
    const dense = pieces > PIECES;
    this.seen = { lines: dense ? 0 : lines.length, whole: true, dense };
    const fine = context(this.fine);
    fine.clearRect(0, 0, this.layout.width, this.layout.height);
    context(this.density).clearRect(0, 0, this.density.width, this.density.height);
    this.done = !dense;
    if (dense) {
      this.raster.clear();
      this.looked = 0;
      this.drawn = 0;
      this.ends.clear();
    } else {
      this.lines(fine, lines, pieces);
    }
  }

  /** How many chosen lines begin in each column of the strip that shows the whole run, and how many of them fail. */
  overview() {
    const { model, mask, layout } = this;
    const columns = Math.max(1, Math.floor(layout.right - layout.left));
    const known = this.known;
    if (known && known.mask === mask && known.lines.length === columns) return known;
    const [lines, failed] = [new Uint32Array(columns), new Uint32Array(columns)];
    for (let line = 0; line < model.lines; line++) {
      if (!mask[line]) continue;
      const column = Math.min(columns - 1, Math.floor(model.start[line] / model.total * columns));
      lines[column]++;
      if (model.marks[line] > 0 || broken(model, line)) failed[column]++;
    }
    this.known = { mask, lines, failed };
    return this.known;
  }

  /** Draws lines one by one. @param {CanvasRenderingContext2D} to @param {number[]} lines @param {number} pieces */
  lines(to, lines, pieces) {
    const { model, layout } = this;
    const colours = palette(this.dark);
    const x = this.scale();
    const groups = new Map();
    for (const line of lines) {
      const key = this.colour[line] * 2 + Number(broken(model, line));
      if (groups.has(key)) groups.get(key).push(line);
      else groups.set(key, [line]);
    }
    to.save();
    to.beginPath();
    to.rect(layout.left, 0, layout.right - layout.left, layout.height);
    to.clip();
    to.lineWidth = 1.3;
    for (const [key, members] of groups) {
      to.strokeStyle = to.fillStyle = colours[(key >> 1) % colours.length];
      to.setLineDash(key & 1 ? [5, 3] : []);
      to.beginPath();
      for (const line of members) this.path(to, line, x);
      to.stroke();
      if (pieces > DOTS) continue;
      for (const line of members) this.dots(to, line, x, 2);
    }
    to.setLineDash([]);
    for (const line of lines) this.beside(to, line, x);
    for (const line of lines) if (broken(model, line)) this.endMark(to, line, x);
    to.restore();
  }

  /** @param {CanvasRenderingContext2D} to @param {number} line @param {(at: number) => number} x */
  path(to, line, x) {
    const { model, layout } = this;
    const end = model.first[line] + model.count[line];
    for (let event = model.first[line]; event < end; event++) {
      const [px, py] = [x(model.at[event]), rowAt(layout, model.kind[event])];
      if (event === model.first[line]) to.moveTo(px, py);
      else to.lineTo(px, py);
    }
  }

  /** @param {CanvasRenderingContext2D} to @param {number} line @param {(at: number) => number} x @param {number} radius */
  dots(to, line, x, radius) {
    const { model, layout } = this;
    const end = model.first[line] + model.count[line];
    for (let event = model.first[line]; event < end; event++) {
      to.beginPath();
      to.arc(x(model.at[event]), rowAt(layout, model.kind[event]), radius, 0, 7);
      to.fill();
    }
  }

  /** What happened beside a line's way, as a wedge on it: upright where it was sent again, hanging where it was dropped. @param {CanvasRenderingContext2D} to @param {number} line @param {(at: number) => number} x */
  beside(to, line, x) {
    const { model } = this;
    const first = model.first[line] + model.count[line];
    for (let event = first; event < first + model.marks[line]; event++) {
      if (!model.head.fates[model.kind[event]]) continue;
      const gone = isGone(model, model.kind[event]);
      const [px, py, size] = [x(model.at[event]), this.heightAt(line, model.at[event]), gone ? 6 : -6];
      to.fillStyle = gone ? inks(this.dark).bad : inks(this.dark).again;
      to.beginPath();
      to.moveTo(px, py);
      to.lineTo(px - 4, py - size);
      to.lineTo(px + 4, py - size);
      to.fill();
    }
  }

  /** How high a line is at a moment. @param {number} line @param {number} at */
  heightAt(line, at) {
    const { model, layout } = this;
    const [first, last] = [model.first[line], model.first[line] + model.count[line] - 1];
    let event = first;
    while (event < last && model.at[event + 1] < at) event++;
    const [y0, y1] = [event, Math.min(last, event + 1)].map((one) => rowAt(layout, model.kind[one]));
    const wide = model.at[Math.min(last, event + 1)] - model.at[event];
    const share = wide > 0 ? Math.min(1, Math.max(0, (at - model.at[event]) / wide)) : 0;
    return y0 + (y1 - y0) * share;
  }

  /** A cross where a line was lost, a wall where it was flushed. @param {CanvasRenderingContext2D} to @param {number} line @param {(at: number) => number} x */
  endMark(to, line, x) {
    const { model, layout } = this;
    const last = model.first[line] + model.count[line] - 1;
    const [px, py] = [x(model.at[last]), rowAt(layout, model.kind[last])];
    to.strokeStyle = inks(this.dark).bad;
    to.lineWidth = 1.6;
    to.beginPath();
    if (model.outcome[line] === FLUSHED) {
      to.moveTo(px, py - 6);
      to.lineTo(px, py + 6);
    } else {
      to.moveTo(px - 4, py - 4);
      to.lineTo(px + 4, py + 4);
      to.moveTo(px - 4, py + 4);
      to.lineTo(px + 4, py - 4);
    }
    to.stroke();
    to.lineWidth = 1.3;
  }

  /** An end mark where there is none near it. @param {CanvasRenderingContext2D} to @param {number} line @param {(at: number) => number} x */
  thinEnd(to, line, x) {
    const { model, layout, ends } = this;
    const last = model.first[line] + model.count[line] - 1;
    const px = x(model.at[last]);
    const square = Math.floor(px / SQUARE) * 1e5 + model.kind[last];
    if (px < layout.left || px > layout.right || ends.has(square)) return;
    ends.add(square);
    this.endMark(to, line, x);
  }

  /** Draws as many lines as fit in this frame. @param {number} begun */
  dense(begun) {
    const { model, view, mask, raster, layout, colour } = this;
    const wide = this.density.width;
    const factor = wide / (view.to - view.from);
    const rows = Float64Array.from({ length: model.points }, (_, point) => rowAt(layout, point) - layout.top);
    const [first, end] = [view.from - 1 / factor, view.to + 1 / factor];
    const ends = context(this.fine);
    const x = this.scale();
    let count = 0;
    const { looked, size } = this.visible.each(view, mask, this.looked, true, (line) => {
      const gap = broken(model, line);
      const hue = colour[line];
      const last = model.first[line] + model.count[line];
      for (let event = model.first[line] + 1; event < last; event++) {
        const [from, to] = [model.at[event - 1], model.at[event]];
        if (to < first || from > end) continue;
        raster.piece((from - view.from) * factor, rows[model.kind[event - 1]], (to - view.from) * factor, rows[model.kind[event]], hue, gap);
      }
      if (gap) this.thinEnd(ends, line, x);
      this.drawn++;
      return (++count & 63) !== 0 || performance.now() - begun < SLICE;
    });
    this.looked = looked;
    this.done = looked >= size;
    const colours = palette(this.dark).map(pixel);
    raster.paint(new Uint32Array(this.image.data.buffer), Array.from({ length: 256 }, (_, at) => colours[at % colours.length]));
    context(this.density).putImageData(this.image, 0, 0);
    this.seen = { lines: this.drawn, whole: this.done, dense: true };
  }

  /** The selection, and the moment under the pointer. */
  overlay() {
    const to = context(this.over);
    const { layout, selected, view } = this;
    const [x, ink] = [this.scale(), inks(this.dark)];
    to.clearRect(0, 0, layout.width, layout.height);
    to.save();
    to.beginPath();
    to.rect(layout.left, 0, layout.right - layout.left, layout.height);
    to.clip();
    to.lineJoin = "round";
    for (const [style, width] of /** @type {[string, number][]} */ ([[ink.paper, 6], [ink.chosen, 2.5]])) {
      to.strokeStyle = to.fillStyle = style;
      to.lineWidth = width;
      for (const line of selected.slice(0, 200)) {
        to.beginPath();
        this.path(to, line, x);
        to.stroke();
        if (selected.length > 20) continue;
        this.dots(to, line, x, width / 2 + 2);
        if (style === ink.chosen) this.beside(to, line, x);
        to.strokeStyle = to.fillStyle = style;
      }
    }
    this.proofs(to, x, ink);
    if (this.pointer >= layout.left && this.pointer <= layout.right) {
      to.fillStyle = ink.soft;
      to.fillRect(this.pointer, layout.top, 1, layout.axis - layout.top);
      to.font = "11px system-ui, sans-serif";
      const right = this.pointer > layout.right - 110;
      to.textAlign = right ? "right" : "left";
      to.textBaseline = "bottom";
      const beside = this.pointer + (right ? -5 : 5);
      to.fillText(moment(this.moment(this.pointer), (view.to - view.from) / 500), beside, layout.bottom - 3);
      to.fillStyle = ink.ink;
      this.series.forEach((lane, index) => {
        const value = valueAt(lane, this.moment(this.pointer));
        if (value !== null) to.fillText(amount(lane.unit, value), beside, seriesAt(layout, index) + HEIGHTS.series - 2);
      });
    }
    to.restore();
  }

  /** The events that a proof names, each as an upright line with its name where there is room. @param {CanvasRenderingContext2D} to @param {(at: number) => number} x @param {any} ink */
  proofs(to, x, ink) {
    const { model, layout } = this;
    to.font = "11px system-ui, sans-serif";
    to.textAlign = "left";
    to.textBaseline = "top";
    let free = -Infinity;
    for (const event of [...this.pointed].sort((a, b) => model.at[a] - model.at[b])) {
      const px = x(model.at[event]);
      to.fillStyle = ink.bad;
      to.fillRect(px - 1, layout.marks, 2, layout.axis - layout.marks);
      const name = model.pointName(model.kind[event]);
      if (px < layout.left || px > layout.right || px < free) continue;
      const wide = to.measureText(name).width;
      const left = Math.min(px + 4, layout.right - wide - 4);
      to.fillStyle = ink.paper;
      to.fillRect(left - 2, layout.top + 2, wide + 4, 14);
      to.fillStyle = ink.bad;
      to.fillText(name, left, layout.top + 3);
      free = px + wide + 12;
    }
  }

  /** The line nearest to a place in the picture, or -1. @param {number} px @param {number} py */
  nearest(px, py) {
    const { model, layout, view } = this;
    const x = this.scale();
    let [best, least] = [-1, NEAR];
    const near = new View(this.model.total);
    const margin = (view.to - view.from) / (layout.right - layout.left) * NEAR;
    [near.from, near.to] = [this.moment(px) - margin, this.moment(px) + margin];
    this.visible.each(near, this.mask, 0, false, (line) => {
      const end = model.first[line] + model.count[line];
      for (let event = model.first[line]; event < end; event++) {
        const before = Math.max(model.first[line], event - 1);
        const distance = away(px, py, x(model.at[before]), rowAt(layout, model.kind[before]), x(model.at[event]), rowAt(layout, model.kind[event]));
        if (distance < least) [best, least] = [line, distance];
      }
      return true;
    });
    return best;
  }

  /** The moment at a place. @param {number} px */
  moment(px) {
    const { view, layout } = this;
    return view.from + (px - layout.left) / (layout.right - layout.left) * (view.to - view.from);
  }

  /** The place of a moment. @returns {(at: number) => number} */
  scale() {
    const { view, layout } = this;
    const factor = (layout.right - layout.left) / (view.to - view.from);
    return (at) => layout.left + (at - view.from) * factor;
  }
}

/** What a monitor saw at a moment, or null. @param {import("./lanes.js").Series} lane @param {number} at */
function valueAt(lane, at) {
  const bar = firstFrom(lane.to, at);
  return bar < lane.to.length && lane.from[bar] <= at ? lane.value[bar] : null;
}

/** Whether a line ends before the others. @param {import("./model.js").Model} model @param {number} line */
export function broken(model, line) {
  return model.outcome[line] === FLUSHED || model.outcome[line] === NEVER_ARRIVED;
}

/** How far a place is from a piece of a line. @param {number} px @param {number} py @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
function away(px, py, x0, y0, x1, y1) {
  const [dx, dy] = [x1 - x0, y1 - y0];
  const length = dx * dx + dy * dy;
  const along = length > 0 ? Math.min(1, Math.max(0, ((px - x0) * dx + (py - y0) * dy) / length)) : 0;
  return Math.hypot(px - x0 - along * dx, py - y0 - along * dy);
}

/** A canvas below that one. @param {HTMLCanvasElement} above @returns {HTMLCanvasElement} */
function inserted(above) {
  const canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true");
  above.before(canvas);
  return canvas;
}

/** @param {HTMLCanvasElement} canvas @param {number} left @param {number} top @param {number} width @param {number} height @param {number} dots */
function size(canvas, left, top, width, height, dots) {
  canvas.width = Math.max(1, Math.round(width * dots));
  canvas.height = Math.max(1, Math.round(height * dots));
  Object.assign(canvas.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
  context(canvas).setTransform(dots, 0, 0, dots, 0, 0);
}

/** @param {HTMLCanvasElement} canvas @returns {CanvasRenderingContext2D} */
function context(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}
