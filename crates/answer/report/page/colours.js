// @ts-check
// The colours of the page; those of lines come with its data (crates/answer/report/src/colours.rs), for light and dark grounds.

/** @type {{light: string[], dark: string[]}} */
const palettes = { light: [], dark: [] };

/** Takes the colours of lines before anything is drawn. @param {{light: string[], dark: string[]}} colours */
export function take(colours) {
  Object.assign(palettes, colours);
}

/** What a piece of a line is spent in, by layer: its colour's number. */
export const LAYERS = { application: 0, socket: 5, protocol: 2, queue: 1, network: 4, between: 3, display: 6, other: 7 };

/** The colours of lines. @param {boolean} dark */
export function palette(dark) {
  return dark ? palettes.dark : palettes.light;
}

/** The colours of everything else. @param {boolean} dark */
export function inks(dark) {
  return dark
    ? { paper: "#14181d", ink: "#e4e7eb", soft: "#9aa5b1", rule: "#2b333d", band: "#1b222a", bad: "#ff7a66", again: "#ffb84d", bar: "#4f6b86", chosen: "#ffffff" }
    : { paper: "#ffffff", ink: "#1f2933", soft: "#52606d", rule: "#dde3ea", band: "#f3f6f9", bad: "#c62f1d", again: "#b86e00", bar: "#9db4ca", chosen: "#000000" };
}

/** A colour as a pixel of ImageData without its opacity. @param {string} colour */
export function pixel(colour) {
  const number = parseInt(colour.slice(1), 16);
  return ((number & 255) << 16) | (number & 0xff00) | (number >> 16);
}
