/* Colours that colour-blind users can tell apart, for values. */

import { h, span } from "./elements.js";
import { clamp, floor, min, range, round } from "./numbers.js";
import { n } from "./strings.js";

/* Cividis: Nunez, Anderton and Renslow (2018), dark for low and light for high values. As in
   views/colours.py. */
const CIVIDIS = "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838";

/* For signed values: vermilion below 0, white at 0, blue above. */
const DIVERGING = "7a3000 d55e00 f1a35e f9f9f9 78b4de 0072b2 00325c";

/** Return 256 colours [red, green, blue] of a scale.
    @type {(scale: string) => Colour[]} */
function colourRamp(scale) {
  const colours = scale
    .split(" ")
    .map((colour) => [0, 2, 4].map((i) => parseInt(colour.slice(i, i + 2), 16)));
  return range(256).map((i) => {
    const position = (i / 255) * (colours.length - 1);
    const lower = min(colours.length - 2, floor(position));
    return colours[lower].map((channel, k) =>
      round(channel + (colours[lower + 1][k] - channel) * (position - lower)),
    );
  });
}

const RAMPS = [colourRamp(CIVIDIS), colourRamp(DIVERGING)];

/** Return the colour of a share from 0 to 1; the scale for signed values if `low` is negative.
    @type {(share: number, low: number) => Colour} */
export const shareColour = (share, low) => RAMPS[+(low < 0)][round(255 * clamp(share, 1))];

/** Return black or white, the one with more contrast to a colour.
    @type {(colour: Colour) => string} */
export const textColourOn = ([red, green, blue]) =>
  0.2126 * red ** 2 + 0.7152 * green ** 2 + 0.0722 * blue ** 2 > 13500 ? "#000" : "#fff";

/** Create a legend of the colours; the style sheet has the same colours.
    @type {(low: number, high: number, text: string) => HTMLElement} */
export const legend = (low, high, text) =>
  span(
    "legend",
    span("", text),
    span("scale", n(low, 2), span(low < 0 ? "ramp signed" : "ramp"), n(high, 2)),
  );

/** Draw shares on a canvas, a pixel each; null leaves a pixel transparent.
    @type {(canvas: HTMLCanvasElement, share: (row: number, column: number) => number | null,
      low?: number) => void} */
export function paint(canvas, share, low = 0) {
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(canvas.width, canvas.height);
  range(canvas.width * canvas.height).forEach((i) => {
    const amount = share(floor(i / canvas.width), i % canvas.width);
    if (amount !== null) image.data.set([...shareColour(amount, low), 255], 4 * i);
  });
  context.putImageData(image, 0, 0);
}

/** Draw a vector as a strip of colours.
    @type {(values: number[], high: number) => HTMLElement} */
export function colourStrip(values, high) {
  const canvas = h("canvas", {
    class: "strip",
    width: values.length,
    height: 1,
    "aria-hidden": true,
  });
  paint(canvas, (_, i) => (values[i] + high) / (2 * high), -high);
  return canvas;
}
