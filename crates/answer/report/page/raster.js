// @ts-check
// Many lines as a picture of how many go through each pixel. It knows pixels and numbers only.
//
// A pixel holds how many lines went through it and the colour of the last; lines are drawn in a scattered order, so where
// colours mix each shows as often as it is there, and a part of the lines looks as all of them do.

/** The density of lines over some pixels. */
export class Raster {
  /** @param {number} width @param {number} height */
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.cells = new Uint32Array(width * height);
    /** Pieces that stay in one column, as +1 where they begin and -1 behind their end. */
    this.upright = new Int32Array(width * (height + 1));
    this.columns = new Uint8Array(width);
    /** Most lines through one pixel, as last seen. */
    this.most = 1;
  }

  clear() {
    this.cells.fill(0);
    this.upright.fill(0);
  }

  /**
   * Draws a piece of a line, in pixels; a broken one leaves gaps.
   * @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 @param {number} colour @param {boolean} broken
   */
  piece(x0, y0, x1, y1, colour, broken) {
    const { width, height, cells } = this;
    if (x1 < 0 || x0 >= width) return;
    const column = x0 | 0;
    if (column === (x1 | 0) && !broken) {
      const low = Math.min(y0, y1) | 0;
      const high = (Math.max(y0, y1) | 0) + 1;
      this.upright[low * width + column]++;
      this.upright[Math.min(high, height) * width + column]--;
      this.columns[column] = colour;
      return;
    }
    const steps = Math.max(Math.abs(x1 - x0), Math.abs(y1 - y0), 1);
    const [dx, dy] = [(x1 - x0) / steps, (y1 - y0) / steps];
    // Only the steps that can be seen.
    const first = x0 < 0 ? Math.ceil(-x0 / dx) : 0;
    const last = x1 >= width ? Math.floor((width - 1 - x0) / dx) : Math.floor(steps);
    let [x, y] = [x0 + dx * first, y0 + dy * first];
    for (let step = first; step <= last; step++) {
      if (!broken || (step & 7) < 4) {
        const cell = (y | 0) * width + (x | 0);
        cells[cell] = (((cells[cell] >>> 8) + 1) << 8) | colour;
      }
      x += dx;
      y += dy;
    }
  }

  /**
   * The pixels, each in its colour and the more opaque the more lines go through it.
   * @param {Uint32Array} out @param {number[]} colours pixels without opacity
   */
  paint(out, colours) {
    const { width, height, cells, upright, columns } = this;
    const opacity = opacities(this.most);
    const running = new Int32Array(width);
    let most = 1;
    for (let y = 0, cell = 0; y < height; y++) {
      for (let x = 0; x < width; x++, cell++) {
        const standing = (running[x] += upright[cell]);
        const seen = cells[cell];
        const count = (seen >>> 8) + standing;
        if (count === 0) {
          out[cell] = 0;
          continue;
        }
        if (count > most) most = count;
        out[cell] = (opacity[count > 255 ? 255 : count] << 24) | colours[seen !== 0 && (!standing || (cell & 1)) ? seen & 255 : columns[x]];
      }
    }
    this.most = most;
  }
}

/** The opacity of a pixel by how many lines go through it. @param {number} most */
function opacities(most) {
  const top = Math.log1p(Math.min(255, most));
  return Uint8Array.from({ length: 256 }, (_, count) => Math.round(255 * (0.3 + 0.7 * Math.min(1, Math.log1p(count) / top))));
}
