// @ts-check
// The page's data: a JSON object and columns of numbers, deflated, in base64. The form is described where it is written,
// in `src/page/markup_safe_data.rs` and `src/page/columns.rs`.

/** Codes of a data field: nothing, a text, or a number from this on. */
const TEXT = 1;
const NUMBER = 2;

/**
 * A data field of every event.
 * @typedef {{numbers: Float64Array, texts: Int32Array}} Field `texts` is -2 where nothing is, -1 where `numbers` holds it
 */

/** What a page was given. */
export class Pack {
  /** @param {any} head @param {Uint8Array} bytes */
  constructor(head, bytes) {
    this.head = head;
    this.bytes = bytes;
  }

  /** How many numbers a column has; 0 where there is none. @param {string} name @returns {number} */
  count(name) {
    return this.head.columns[name]?.[2] ?? 0;
  }

  /** A column of plain numbers. @param {string} name @returns {Float64Array} */
  numbers(name) {
    const out = new Float64Array(this.count(name));
    let index = 0;
    this.#varints(name, (value) => { out[index++] = value; });
    return out;
  }

  /** A column of differences, summed. @param {string} name @returns {Float64Array} */
  sums(name) {
    const out = new Float64Array(this.count(name));
    let index = 0;
    let last = 0;
    this.#varints(name, (value) => { last += signed(value); out[index++] = last; });
    return out;
  }

  /** A data field. @param {string} name @returns {Field} */
  field(name) {
    const count = this.count(name);
    const numbers = new Float64Array(count);
    const texts = new Int32Array(count).fill(-2);
    let index = 0;
    let last = 0;
    let text = false;
    this.#varints(name, (value) => {
      if (text) {
        texts[index++] = value;
        text = false;
      } else if (value >= NUMBER) {
        last += signed(value - NUMBER);
        numbers[index] = last;
        texts[index++] = -1;
      } else if (value === TEXT) {
        text = true;
      } else {
        index++;
      }
    });
    return { numbers, texts };
  }

  /** @param {string} name @param {(value: number) => void} each */
  #varints(name, each) {
    const place = this.head.columns[name];
    if (!place) return;
    const { bytes } = this;
    const end = place[0] + place[1];
    let at = place[0];
    while (at < end) {
      let byte = bytes[at++];
      if (byte < 128) {
        each(byte);
        continue;
      }
      let value = byte & 127;
      let weight = 128;
      do {
        byte = bytes[at++];
        value += (byte & 127) * weight;
        weight *= 128;
      } while (byte >= 128 && at < end);
      each(value);
    }
  }
}

/** The number behind the small number that it is written as. @param {number} value */
function signed(value) {
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
}

/** Reads the page's data. @param {string} text @returns {Promise<Pack>} */
export async function unpack(text) {
  const stream = new Blob([/** @type {BlobPart} */ (fromBase64(text))]).stream().pipeThrough(new DecompressionStream("deflate"));
  const block = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(block.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(block.subarray(4, 4 + length)));
  return new Pack(head, block.subarray(4 + length));
}

/** @param {string} text @returns {Uint8Array} */
function fromBase64(text) {
  const direct = /** @type {any} */ (Uint8Array).fromBase64;
  if (direct) return direct.call(Uint8Array, text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}
