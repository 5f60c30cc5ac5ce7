// @ts-check
// The part of the time axis that is shown. Plain arithmetic.

/** The narrowest view, ns. */
const NARROWEST = 20;

/** A window on the time axis. */
export class View {
  /** @param {number} total the whole run, ns */
  constructor(total) {
    this.total = total;
    this.from = 0;
    this.to = total;
    this.reset();
  }

  /** Shows from there to there, with that share of it as margin. @param {number} from @param {number} to @param {number} [margin] */
  show(from, to, margin = 0) {
    const least = Math.max(to - from, NARROWEST);
    const middle = (from + to) / 2;
    const half = least / 2 * (1 + 2 * margin);
    this.#set(middle - half, middle + half);
  }

  /** Shows everything. */
  reset() {
    const margin = this.total * 0.01;
    this.from = -margin;
    this.to = this.total + margin;
  }

  /** Makes the view `factor` times as wide; the moment `at` stays where it is. @param {number} factor @param {number} at */
  zoom(factor, at) {
    const wide = this.to - this.from;
    const wider = Math.min(Math.max(wide * factor, NARROWEST), this.total * 1.02);
    const from = at - (at - this.from) * (wider / wide);
    this.#set(from, from + wider);
  }

  /** Moves by a share of what is shown. @param {number} share */
  pan(share) {
    const by = (this.to - this.from) * share;
    this.#set(this.from + by, this.to + by);
  }

  /** @param {number} from @param {number} to */
  #set(from, to) {
    const wide = Math.min(to - from, this.total * 1.02);
    const least = -this.total * 0.01;
    this.from = Math.min(Math.max(from, least), this.total * 1.01 - wide);
    this.to = this.from + wide;
  }
}

/** Moments for marks on the axis, at most about `most` of them, and the step between them. @param {number} from @param {number} to @param {number} most */
export function ticks(from, to, most) {
  const rough = (to - from) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10));
  const marks = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) marks.push(at);
  return { step, marks };
}

/** Index of the first of ascending values that is not below `value`. @param {ArrayLike<number>} values @param {number} value */
export function firstFrom(values, value) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
