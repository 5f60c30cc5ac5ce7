// @ts-check
// Elements. Texts go in as text nodes and nowhere else: nothing that a run holds is ever read as markup.

/**
 * An element with attributes, listeners (`onclick`) and children.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | null)} children
 * @returns {any}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null) made.append(child);
  return made;
}

/** The element of that id, which page.html has. @param {string} id @returns {any} */
export function byId(id) {
  return document.getElementById(id);
}

/** Puts children in place of what is there. @param {Element} parent @param {...(Node | string | null)} children */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.filter((child) => child !== null).map((child) => /** @type {Node} */ (child)));
}

/**
 * A table in a box that scrolls when it is too wide.
 * @param {string} caption
 * @param {string[]} heads those that begin with `#` stand right, as numbers
 * @param {(string | Node)[][]} rows the first cell of each is its heading
 */
export function table(caption, heads, rows) {
  const right = heads.map((head) => (head.startsWith("#") ? "number" : null));
  const head = element("tr", {}, ...heads.map((text, at) =>
    element("th", { scope: "col", class: right[at] }, text.replace(/^#/, ""))));
  const body = rows.map((row) => element("tr", {}, ...row.map((cell, at) =>
    element(at === 0 ? "th" : "td", { class: right[at], scope: at === 0 ? "row" : null }, cell))));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element("table", {}, element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, ...body)));
}

/** A button. @param {string} text @param {() => void} action @param {Record<string, any>} [attributes] */
export function button(text, action, attributes = {}) {
  return element("button", { type: "button", onclick: action, ...attributes }, text);
}
