// @ts-check
// Numbers as people read them, each with its unit.

/** Three digits that count, as everywhere in stackline. @param {number} value */
export function digits(value) {
  const size = Math.abs(value);
  if (size >= 100 || size === 0) return value.toFixed(0);
  return value.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

/** A time in ns. @param {number} ns */
export function time(ns) {
  const size = Math.abs(ns);
  if (size === 0) return "0 s";
  if (size < 999.5) return `${digits(ns)} ns`;
  if (size < 999_500) return `${digits(ns / 1e3)} us`;
  if (size < 999_500_000) return `${digits(ns / 1e6)} ms`;
  return `${digits(ns / 1e9)} s`;
}

/** A moment in ns, with as many digits as steps of `step` ns need. @param {number} ns @param {number} step */
export function moment(ns, step) {
  const [unit, name] = step >= 1e8 ? [1e9, "s"] : step >= 1e5 ? [1e6, "ms"] : step >= 100 ? [1e3, "us"] : [1, "ns"];
  const places = Math.max(0, Math.ceil(Math.log10(Number(unit) / step) - 1e-9));
  return `${(ns / Number(unit)).toFixed(places)} ${name}`;
}

/** A moment to the nanosecond, in s. @param {number} ns */
export function exact(ns) {
  const whole = Math.floor(ns / 1e9);
  return `${whole}.${String(Math.round(ns - whole * 1e9)).padStart(9, "0")} s`;
}

/** A rate in bit/s. @param {number} rate */
export function rate(rate) {
  for (const [unit, name] of /** @type {[number, string][]} */ ([[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"]])) {
    if (Math.abs(rate) >= unit * 0.9995) return `${digits(rate / unit)} ${name}`;
  }
  return `${digits(rate)} bit/s`;
}

/** Bytes. @param {number} size */
export function bytes(size) {
  for (const [unit, name] of /** @type {[number, string][]} */ ([[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]])) {
    if (size >= unit * 10) return `${digits(size / unit)} ${name}`;
  }
  return `${size} B`;
}

/** A share from 0 to 1. @param {number} share */
export function percent(share) {
  const value = share * 100;
  return value > 0 && value < 0.1 ? "< 0.1 %" : `${value >= 99.95 || value >= 10 ? value.toFixed(0) : value.toFixed(1)} %`;
}

/** A whole number with its thousands apart. @param {number} number */
export function count(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, " ");
}

/** `1 line`, `2 lines`. @param {number} number @param {string} one @param {string} [more] */
export function counted(number, one, more) {
  return `${count(number)} ${number === 1 ? one : more ?? `${one}s`}`;
}
