/* The whole model as in figure 1 of the paper: the encoder at the left, the decoder at the
   right. */

import { svg } from "./elements.js";
import { ATTENTION_CELLS } from "./modelblocks.js";
import { max } from "./numbers.js";
import { addressOf } from "./state.js";
import { t } from "./strings.js";

const [BLOCK_HEIGHT, THIN_HEIGHT, ATTENTION_HEIGHT, BLOCK_GAP, FRAME_TOP, FRAME_BOTTOM] = [
  23, 18, 48, 7, 15, 5,
];

/** Draw the columns of blocks; return the picture, and its links with their blocks.
    @type {(steps: ModelStep[], columns: ModelBlock[][]) =>
      { element: Element, links: HTMLElement[], blocks: ModelBlock[] }} */
export function modelPicture(steps, columns) {
  /** @type {HTMLElement[]} */
  const links = [];
  /** @type {ModelBlock[]} */
  const blocks = [];
  /** @type {(block: ModelBlock) => number} */
  const heightOf = ({ cells, thin }) =>
    cells ? ATTENTION_HEIGHT : thin ? THIN_HEIGHT : BLOCK_HEIGHT;
  /** @type {(block: ModelBlock) => number} */
  const frameOf = ({ layers, endsLayers }) => (layers ? FRAME_BOTTOM : endsLayers ? FRAME_TOP : 0);
  const heights = columns.map((column) =>
    column.reduce((sum, block) => sum + heightOf(block) + frameOf(block) + BLOCK_GAP, 0),
  );
  const height = max(...heights) + BLOCK_GAP;
  const width = columns.length > 1 ? 46 : 100;
  let [memory, crossing] = [0, 0];

  /** Add the link of a block, or of a part of an attention block, with its accessible name if that
      is not its text.
      @type {(block: ModelBlock, children: Element[], label?: string) => Element} */
  const link = (block, children, label) => {
    const element = svg(
      "a",
      { class: "block", href: addressOf(steps[block.step].door), "aria-label": label },
      children,
    );
    links.push(/** @type {HTMLElement} */ (element));
    blocks.push(block);
    return element;
  };
  /** @type {(x1: number, y1: number, x2: number, y2: number, arrow?: boolean) => Element} */
  const wire = (x1, y1, x2, y2, arrow) =>
    svg("line", {
      class: "wire",
      x1: `${x1}%`,
      y1,
      x2: `${x2}%`,
      y2,
      "marker-end": arrow && "url(#arrow)",
    });
  /** @type {(x: number, y: number, content: string, style: string) => Element} */
  const text = (x, y, content, style) =>
    svg("text", { class: style, x: `${x}%`, y, "dominant-baseline": "central" }, content);

  /** @type {(column: ModelBlock[], index: number) => Element} */
  const drawColumn = (column, index) => {
    let [y, below, bottom, layers, isPre] = [height - BLOCK_GAP, 0, 0, 0, false];
    /** The place at which the current residual connection begins.
        @type {[x: number, y: number] | null} */
    let start = null;
    /** @type {Element[]} */
    const wires = [];
    /** @type {Element[]} */
    const boxes = [];
    column.forEach((block, i) => {
      const size = heightOf(block);
      if (block.layers) {
        bottom = y + BLOCK_GAP / 2;
        layers = block.layers;
        isPre = Boolean(block.thin);
        start = [53, y - FRAME_BOTTOM + BLOCK_GAP / 2 + 1];
        y -= FRAME_BOTTOM;
      }
      y -= size;
      const middle = y + size / 2;
      if (i) wires.push(wire(53, below, 53, y + size + 1, true));
      const label = block.label || block.value;
      const lineAt = block.cells ? y + 13 : middle;
      boxes.push(
        link(block, [
          svg("rect", {
            x: "8%",
            y,
            width: "90%",
            height: size,
            rx: 5,
            class: !block.label && !block.tokens && "text-box",
          }),
          text(block.label ? 11 : 53, lineAt, label, block.label ? "label" : "middle"),
          ...(block.label && block.value ? [text(96, lineAt, block.value, "value")] : []),
        ]),
      );
      let left = 10;
      ATTENTION_CELLS.slice(0, block.cells?.length ?? 0).forEach(([name, share], k) => {
        const cellWidth = (share / 100) * 86;
        boxes.push(
          link(
            { ...block, step: block.cells?.[k] ?? 0 },
            [
              svg("rect", {
                x: `${left}%`,
                y: y + size - 23,
                width: `${cellWidth - 1}%`,
                height: 19,
                rx: 4,
              }),
              text(left + (cellWidth - 1) / 2, y + size - 13, t(`whole.${name}`), "middle small"),
            ],
            `${label}: ${t(`whole.${name}`)}`,
          ),
        );
        left += cellWidth;
      });
      if (start && block.thin && !block.layers) {
        wires.push(
          wire(start[0], start[1], 4, start[1]),
          wire(4, start[1], 4, middle),
          wire(4, middle, 8, middle, true),
        );
        start = isPre ? [4, middle] : [53, y - BLOCK_GAP / 2];
      }
      if (block.readsEncoder) crossing = y + size - 13;
      below = y;
      y -= BLOCK_GAP;
      if (block.endsLayers) {
        start = null;
        y -= FRAME_TOP;
        wires.unshift(
          svg("rect", {
            class: "frame",
            x: "1%",
            y: y + BLOCK_GAP / 2,
            width: "98.5%",
            height: bottom - y - BLOCK_GAP / 2,
            rx: 8,
          }),
          text(97, y + FRAME_TOP - 3, `${layers} ×`, "value"),
        );
      }
    });
    if (!index) memory = below;
    return svg(
      "svg",
      { x: index ? `${100 - width}%` : 0, y: 0, width: `${width}%`, height, "aria-hidden": false },
      wires,
      boxes,
    );
  };
  const drawn = columns.map(drawColumn);
  const top = width / 2 + 1.4;
  const between = columns.length > 1 && [
    wire(top, memory, top, memory - 8),
    wire(top, memory - 8, 50, memory - 8),
    wire(50, memory - 8, 50, crossing),
    wire(50, crossing, 57.6, crossing, true),
  ];
  const element = svg(
    "svg",
    {
      class: "whole-model",
      width: "100%",
      height,
      role: "group",
      "aria-label": t("whole.model"),
      "aria-hidden": false,
    },
    svg(
      "marker",
      {
        id: "arrow",
        viewBox: "0 0 8 8",
        refX: 7,
        refY: 4,
        markerWidth: 7,
        markerHeight: 7,
        orient: "auto",
      },
      svg("path", { d: "M0 0L8 4L0 8Z", class: "arrow" }),
    ),
    drawn,
    between,
  );
  return { element, links, blocks };
}
