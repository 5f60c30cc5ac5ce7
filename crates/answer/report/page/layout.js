// @ts-check
// Where in the picture everything stands, in CSS pixels.

/** Heights. */
const OVERVIEW = 24;
const MARKS = 18;
const SERIES = 30;
const AXIS = 26;
const RIGHT = 10;

/**
 * Where everything stands; rows are stages, the first at the bottom.
 * @typedef {{width: number, height: number, left: number, right: number, overview: number, marks: number, top: number, row: number, bottom: number, series: number, axis: number, rows: Int32Array}} Layout
 * `overview`, `marks`, `series` and `axis` are where these begin; `top` and `bottom` hold the rows, `rows` says which row a
 * monitor point has, -1 for none
 */

/** @param {number} width @param {Int32Array} rows @param {number} marks @param {number} series @returns {Layout} */
export function layout(width, rows, marks, series) {
  const stages = rows.reduce((most, row) => Math.max(most, row + 1), 0);
  const left = Math.round(Math.min(230, Math.max(104, width * 0.19)));
  const row = Math.min(34, Math.max(16, 300 / Math.max(1, stages)));
  const top = OVERVIEW + 8 + marks * MARKS;
  const bottom = Math.round(top + row * stages);
  const axis = bottom + 6 + series * SERIES;
  return { width, height: axis + AXIS, left, right: width - RIGHT, overview: 2, marks: OVERVIEW + 6, top, row, bottom, series: bottom + 6, axis, rows };
}

/** Middle of a monitor point's row. @param {Layout} layout @param {number} point */
export function rowAt(layout, point) {
  return layout.bottom - (layout.rows[point] + 0.5) * layout.row;
}

/** Middle of the bars of a kind of marks. @param {Layout} layout @param {number} lane */
export function marksAt(layout, lane) {
  return layout.marks + lane * MARKS;
}

/** Upper edge of a monitor's bars. @param {Layout} layout @param {number} lane */
export function seriesAt(layout, lane) {
  return layout.series + lane * SERIES;
}

/** Heights of bars. */
export const HEIGHTS = { overview: OVERVIEW - 4, marks: MARKS - 4, series: SERIES - 6 };
