/* The weights of attention: of a head or a layer, with the names of rows and columns. */

import { min, range, unpack } from "./numbers.js";
import { languageName, pieceText, t } from "./strings.js";

/** Return the attention of a kind; without it, the last one.
    @type {(inspection: Inspection, kind: string) => ShownAttention} */
export const attentionOfKind = ({ attention }, kind) =>
  attention.find((part) => part.kind === kind) ?? attention[attention.length - 1];

/** Return the options of a list of heads.
    @type {(count: number) => Choice[]} */
export const headOptions = (count) => [["mean", t("attention.mean")], ...range(count)];

/** Return the weights of a head, or the mean of the heads of a layer, as a function of row and
    column.
    @type {(attention: ShownAttention, layer: number | string, head: number | string) =>
      (row: number, column: number) => number} */
export function weightsOf({ weights }, layer, head) {
  const {
    shape: [, count, rows, columns],
    data,
  } = unpack(weights);
  const indices = head === "mean" ? range(count) : [Number(head)];
  return (row, column) =>
    indices.reduce(
      (sum, index) => sum + data[((Number(layer) * count + index) * rows + row) * columns + column],
      0,
    ) / indices.length;
}

/** Return the name of source or target, with its language.
    @type {(side: string, text: { language: string }) => string} */
export const sideName = (side, { language }) =>
  `${t(`column.${side}`)} (${languageName(language)})`;

/** Return the names and titles of the rows and columns of a kind of attention.
    @type {(inspection: Inspection, kind: AttentionKind) => Axis[]} */
export function attentionAxes({ text, inputs, source, target }, kind) {
  /** @type {(tokens: { piece: string }[], side: string, role: string) => Axis} */
  const axis = (tokens, side, role) => ({
    names: tokens.map((token) => token.piece),
    title: `${side}, ${t(`attention.${role}`)}`,
  });
  if (!source) {
    const tokens = inputs ? [...inputs, ...text.tokens.slice(-1)] : text.tokens;
    return ["query", "key"].map((role) => axis(tokens, t("classify.text"), role));
  }
  const [from, to] = [sideName("source", source), sideName("target", target)];
  return [
    kind === "encoder"
      ? axis(source.tokens, from, "query")
      : axis(target.tokens, to, "query_predicted"),
    kind === "decoder" ? axis(inputs, to, "key_read") : axis(source.tokens, from, "key"),
  ];
}

/** Return a sentence about the tokens that the decoder of a translator predicts and those that it
    reads; "" for all other attention.
    @type {(inspection: Inspection, attention: ShownAttention, axes: Axis[]) => string} */
export function shiftNote({ source }, { kind, mask }, [rows, columns]) {
  const example = min(1, rows.names.length - 1);
  const hasCausalMask = !unpack(mask).data[columns.names.length - 1];
  return source && kind === "decoder" && hasCausalMask
    ? t("attention.shift", {
        piece: pieceText(rows.names[example]),
        before: pieceText(columns.names[example]),
      })
    : "";
}
