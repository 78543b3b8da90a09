/* The computation of a head: its values, and each step with its formula. */

import { colourStrip } from "./colours.js";
import { div, h, span } from "./elements.js";
import { mexp, mfrac, mnumber, mproducts, mroot, msub, msum } from "./mathml.js";
import { abs, max, range, unpack } from "./numbers.js";
import { fetchHead } from "./source.js";
import { n, pieceText, t } from "./strings.js";
import { attentionAxes } from "./weights.js";

/** Request the intermediate values of a head; return them with the names of rows and columns.
    @type {(inspection: Inspection, kind: AttentionKind, layer: number, head: number) =>
      Promise<HeadValues>} */
export async function headSteps(inspection, kind, layer, head) {
  const [rows, columns] = attentionAxes(inspection, kind);
  const packed = await fetchHead(kind, layer, head);
  const arrays = Object.fromEntries(
    ["queries", "keys", "values", "scores", "mask", "weights", "outputs"].map((name) => [
      name,
      unpack(packed[name]),
    ]),
  );
  /** @type {HeadValues["at"]} */
  const at = (name, i, k) => arrays[name].data[i * arrays[name].shape[1] + k];
  /** @type {HeadValues["vector"]} */
  const vector = (name, i) => [...arrays[name].data.slice(i * width, (i + 1) * width)];
  const width = arrays.queries.shape[1];
  return { rows, columns, at, vector, width };
}

/** @type {(name: string, values: number[]) => string} */
const vectorText = (name, values) => `${name}: ${values.map((value) => n(value, 2)).join("  ")}`;

/** @type {(vectors: number[][]) => number} */
export const largestOf = (vectors) => max(...vectors.flat().map(abs), 0.01);

/** @type {(value: number) => HTMLElement} */
const weightCell = (value) =>
  div("share", span("bar", h("span", { style: { width: `${100 * value}%` } })), n(value));

/* The text of the score of a masked key. */
const MINUS_INFINITY = "−∞";

/** Each step: its formula, the formula with the numbers of a key, the cells of a key, further rows,
    the text of a vector, and the table.
    @type {{ [stage: string]: (values: HeadValues, query: number) => StageOfHead }} */
export const STEPS = {
  scores({ rows, columns, at, vector, width }, query) {
    const q = vector("queries", query);
    const keys = columns.names.map((_, i) => vector("keys", i));
    const high = largestOf([q, ...keys]);
    /** @type {(i: number) => number} */
    const score = (i) => at("scores", query, i);
    /** @type {(i: number) => number} */
    const dot = (i) => score(i) * Math.sqrt(width);
    const name = `q ${pieceText(rows.names[query])}`;
    return {
      high,
      titles: [t("steps.keys"), "q · k", t("column.score")],
      formula: [msub("s", "j"), "=", mfrac(["q", "·", msub("k", "j")], mroot(msub("d", "k")))],
      numbers: (i) => [
        mfrac(mproducts(q.map((value, e) => [value, keys[i][e]])), mroot(String(width))),
        "=",
        mfrac(n(dot(i), 2), n(Math.sqrt(width), 2)),
        "=",
        n(score(i), 2),
      ],
      cells: (i) => [colourStrip(keys[i], high), n(dot(i), 2), n(score(i), 2)],
      firstRow: [name, [colourStrip(q, high), "", ""]],
      vectorOf: (i) => vectorText(`k ${pieceText(columns.names[i])}`, keys[i]),
      table: () => [
        [t("column.piece"), "q · k", t("column.score"), ...range(width)],
        [
          [name, "", "", ...q],
          ...keys.map((components, i) => [
            `k ${pieceText(columns.names[i])}`,
            dot(i),
            score(i),
            ...components,
          ]),
        ],
      ],
    };
  },
  mask({ columns, at }, query) {
    /** @type {(i: number) => number} */
    const score = (i) => at("scores", query, i);
    /** @type {(i: number) => boolean} */
    const visible = (i) => at("mask", query, i) > 0.5;
    /** @type {(i: number) => string[]} */
    const cells = (i) => [
      n(score(i), 2),
      visible(i) ? "0" : MINUS_INFINITY,
      visible(i) ? n(score(i), 2) : MINUS_INFINITY,
    ];
    const titles = [t("column.score"), t("steps.mask_short"), t("steps.masked")];
    return {
      titles,
      formula: [msub("s", "j"), "+", msub("m", "j")],
      numbers: (i) => [
        n(score(i), 2),
        "+",
        visible(i) ? "0" : ["(", MINUS_INFINITY, ")"],
        "=",
        visible(i) ? n(score(i), 2) : MINUS_INFINITY,
      ],
      cells: (i) => cells(i).map((cell, k) => span(k > 0 && !visible(i) && "hatched", cell)),
      table: () => [
        [t("column.piece"), ...titles],
        columns.names.map((piece, i) => [
          pieceText(piece),
          score(i),
          visible(i) ? 0 : MINUS_INFINITY,
          visible(i) ? score(i) : MINUS_INFINITY,
        ]),
      ],
    };
  },
  softmax({ columns, at }, query) {
    const all = range(columns.names.length);
    /** @type {(i: number) => boolean} */
    const visible = (i) => at("mask", query, i) > 0.5;
    const largest = max(...all.filter(visible).map((i) => at("scores", query, i)));
    /** @type {(i: number) => number} */
    const power = (i) => (visible(i) ? Math.exp(at("scores", query, i) - largest) : 0);
    const total = all.reduce((sum, i) => sum + power(i), 0);
    /** @type {(i: number) => string} */
    const score = (i) => (visible(i) ? n(at("scores", query, i), 2) : MINUS_INFINITY);
    const titles = [t("steps.masked"), t("steps.power"), t("column.weight")];
    return {
      titles,
      formula: [
        msub("a", "j"),
        "=",
        mfrac(mexp(msub("s", "j")), [msum("i"), mexp(msub("s", "i"))]),
        "=",
        mfrac(mexp([msub("s", "j"), "−", "max"]), [msum("i"), mexp([msub("s", "i"), "−", "max"])]),
      ],
      numbers: (i) => [
        mfrac(mexp([score(i), "−", mnumber(largest)]), n(total)),
        "=",
        mfrac(n(power(i)), n(total)),
        "=",
        n(at("weights", query, i)),
      ],
      cells: (i) => [score(i), n(power(i)), weightCell(at("weights", query, i))],
      lastRow: [t("steps.sum"), ["", n(total), n(1)]],
      table: () => [
        [t("column.piece"), ...titles],
        all.map((i) => [
          pieceText(columns.names[i]),
          visible(i) ? at("scores", query, i) : MINUS_INFINITY,
          power(i),
          at("weights", query, i),
        ]),
      ],
    };
  },
  output({ rows, columns, at, vector, width }, query) {
    const values = columns.names.map((_, i) => vector("values", i));
    const output = vector("outputs", query);
    const high = largestOf([...values, output]);
    /** @type {(i: number) => number} */
    const weight = (i) => at("weights", query, i);
    /** @type {(i: number) => number[]} */
    const order = (i) => [
      i,
      ...range(values.length)
        .filter((k) => k !== i)
        .sort((a, b) => weight(b) - weight(a)),
    ];
    const name = t("steps.result", { piece: pieceText(rows.names[query]) });
    return {
      high,
      titles: [t("column.weight"), t("steps.values")],
      formula: ["o", "=", msum("j"), msub("a", "j"), msub("v", "j")],
      numbers: (i) => [
        msub("o", "0"),
        "=",
        mproducts(order(i).map((k) => [weight(k), values[k][0]])),
        "=",
        n(output[0], 2),
      ],
      cells: (i) => [weightCell(weight(i)), colourStrip(values[i], high)],
      lastRow: [name, ["", colourStrip(output, high)]],
      vectorOf: (i) => vectorText(`v ${pieceText(columns.names[i])}`, values[i]),
      table: () => [
        [t("column.piece"), t("column.weight"), ...range(width)],
        [
          ...values.map((components, i) => [
            `v ${pieceText(columns.names[i])}`,
            weight(i),
            ...components,
          ]),
          [name, "", ...output],
        ],
      ],
    };
  },
};
