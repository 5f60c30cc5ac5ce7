// @ts-check
// Mouse, touch and keys over the picture.

import { firstFrom } from "./view.js";

/** How far a pointer may go for a press to be a click, px. */
const STILL = 4;

/**
 * @param {import("./picture.js").Picture} picture
 * @param {(lines: number[]) => void} select
 */
export function control(picture, select) {
  const { over } = picture;
  /** @type {Map<number, {x: number, y: number}>} */
  const pointers = new Map();
  let moved = 0;
  /** Whether the pointer moves the view on the strip that shows the whole run. */
  let far = false;

  over.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, place(event));
    if (pointers.size === 1) moved = 0;
    far = pointers.size === 1 && place(event).y < picture.layout.marks - 2;
    if (far) jump(place(event).x);
    over.setPointerCapture(event.pointerId);
  });
  over.addEventListener("pointermove", (event) => {
    const now = place(event);
    const before = pointers.get(event.pointerId);
    picture.pointer = event.pointerType === "mouse" ? now.x : NaN;
    if (!before) {
      picture.overlay();
      return;
    }
    const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, other]) => other);
    moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (far) {
      jump(now.x);
    } else if (others.length === 0) {
      if (moved > STILL) picture.view.pan((before.x - now.x) / width());
    } else {
      const [was, is] = [Math.abs(before.x - others[0].x), Math.abs(now.x - others[0].x)];
      if (was > 8 && is > 8) picture.view.zoom(was / is, picture.moment((now.x + others[0].x) / 2));
    }
    pointers.set(event.pointerId, now);
    picture.change();
  });
  over.addEventListener("pointerup", (event) => {
    pointers.delete(event.pointerId);
    if (far || moved > STILL || event.button !== 0) return;
    const { x, y } = place(event);
    const line = picture.nearest(x, y);
    select(line < 0 ? [] : [line]);
  });
  over.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
  over.addEventListener("pointerleave", () => {
    picture.pointer = NaN;
    picture.overlay();
  });
  over.addEventListener("dblclick", () => {
    picture.view.reset();
    picture.change();
  });
  over.addEventListener("wheel", (event) => {
    // The wheel moves the page until the picture has the focus, so that nobody is caught in it.
    if (document.activeElement !== over && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const far = event.deltaMode === 1 ? 30 : 1;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      picture.view.pan((event.deltaX || event.deltaY) * far / width());
    } else {
      picture.view.zoom(1.0018 ** (event.deltaY * far), picture.moment(place(event).x));
    }
    picture.change();
  }, { passive: false });
  over.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !key(picture, event.key, event.shiftKey, select)) return;
    event.preventDefault();
  });

  /** @param {MouseEvent} event */
  function place(event) {
    const box = over.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** The view around a place of the strip. @param {number} x */
  function jump(x) {
    const { view, model, layout } = picture;
    const [half, at] = [(view.to - view.from) / 2, (x - layout.left) / width() * model.total];
    view.show(at - half, at + half);
    picture.change();
  }

  function width() {
    return picture.layout.right - picture.layout.left;
  }
}

/** Does what a key asks for; whether it asks for anything. @param {import("./picture.js").Picture} picture @param {string} pressed @param {boolean} shift @param {(lines: number[]) => void} select */
function key(picture, pressed, shift, select) {
  const { view, model } = picture;
  const far = shift ? 0.5 : 0.1;
  const first = picture.selected[0] ?? -1;
  switch (pressed) {
    case "ArrowLeft": case "a": view.pan(-far); break;
    case "ArrowRight": case "d": view.pan(far); break;
    case "+": case "=": case "w": zoomIn(picture, 1 / 1.5); break;
    case "-": case "_": case "s": zoomIn(picture, 1.5); break;
    case "0": case "Home": view.reset(); break;
    case "ArrowDown": case "n": select(beside(picture, first, 1)); return true;
    case "ArrowUp": case "p": select(beside(picture, first, -1)); return true;
    case "Escape": select([]); return true;
    case "Enter":
      if (first < 0) return false;
      view.show(model.start[first], model.end[first], 0.15);
      break;
    default: return false;
  }
  picture.change();
  return true;
}

/** Makes the view `factor` times as wide around its middle. @param {import("./picture.js").Picture} picture @param {number} factor */
export function zoomIn(picture, factor) {
  const { view } = picture;
  view.zoom(factor, (view.from + view.to) / 2);
  picture.change();
}

/** The chosen line before or behind that one; without one, the first in view. @param {import("./picture.js").Picture} picture @param {number} line @param {number} step */
function beside(picture, line, step) {
  const { model, mask, view } = picture;
  let next = line < 0 ? firstFrom(model.start, view.from) : line + step;
  while (next >= 0 && next < model.lines && !mask[next]) next += step;
  if (next < 0 || next >= model.lines) return line < 0 ? [] : [line];
  if (model.end[next] < view.from || model.start[next] > view.to) {
    const half = (view.to - view.from) / 2;
    view.show(model.start[next] - half, model.start[next] + half);
    picture.change();
  }
  return [next];
}
