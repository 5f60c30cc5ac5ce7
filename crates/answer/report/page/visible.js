// @ts-check
// Which lines are in view, quickly: by their beginnings, which ascend, and apart from them the few that last long.

import { firstFrom } from "./view.js";

/** Finds the lines of a part of the time axis. */
export class Visible {
  /** @param {import("./model.js").Model} model */
  constructor(model) {
    this.model = model;
    const times = Float64Array.from(model.end, (end, line) => end - model.start[line]).sort();
    /** Most lines are not longer than this. */
    this.usual = times.length ? times[Math.floor((times.length - 1) * 0.95)] : 0;
    /** @type {number[]} */
    this.long = [];
    for (let line = 0; line < model.lines; line++) if (model.end[line] - model.start[line] > this.usual) this.long.push(line);
  }

  /**
   * Visits chosen lines that are in view, from the `first`-th candidate on until `visit` says false. Candidates are the long
   * lines, then the others in their order or scattered. Returns how many candidates were looked at, and how many there are.
   * @param {import("./view.js").View} view @param {Uint8Array} mask @param {number} first @param {boolean} scattered
   * @param {(line: number) => boolean} visit
   */
  each(view, mask, first, scattered, visit) {
    const { model, long, usual } = this;
    const low = firstFrom(model.start, view.from - usual);
    const high = firstFrom(model.start, view.to);
    const others = Math.max(0, high - low);
    const size = long.length + others;
    const stride = scattered ? scatter(others) : 1;
    let looked = first;
    while (looked < size) {
      const other = looked - long.length;
      const line = other < 0 ? long[looked] : low + ((other * stride) % others);
      looked++;
      if (!mask[line] || model.end[line] < view.from || model.start[line] > view.to) continue;
      if (other >= 0 && model.end[line] - model.start[line] > usual) continue;
      if (!visit(line)) break;
    }
    return { looked, size };
  }
}

/** A stride that meets every one of `size` once, far apart from each other. @param {number} size */
function scatter(size) {
  let stride = Math.max(1, Math.floor(size * 0.381966));
  while (common(stride, size) > 1) stride++;
  return stride;
}

/** @param {number} a @param {number} b @returns {number} */
function common(a, b) {
  return b === 0 ? a : common(b, a % b);
}
