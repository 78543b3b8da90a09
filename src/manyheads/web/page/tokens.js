/* The tokens of an output with their probabilities. */

import { tokenRow } from "./controls.js";
import { h, span } from "./elements.js";
import { figure } from "./figure.js";
import { n, pieceText, t } from "./strings.js";

/* Tokens below this probability are marked. */
const LOW_PROBABILITY = 0.5;

/** Create the figure of the tokens of an output as buttons; those below LOW_PROBABILITY have a
    dotted underline.
    @type {(tokens: { piece: string, probability: number, forced?: boolean }[],
      onChoose: (index: number) => void, current?: number, table?: () => Table) => HTMLElement} */
export function tokenFigure(tokens, onChoose, current, table) {
  const buttons = tokens.map(({ piece, probability, forced }, i) =>
    h(
      "button",
      {
        type: "button",
        class: `token${probability < LOW_PROBABILITY ? " doubtful" : ""}${forced ? " given" : ""}`,
        "aria-pressed": i === current || "false",
        onclick: () => onChoose(i),
      },
      h("span", { class: "token-text", dir: "auto" }, pieceText(piece)),
      span("token-bar", h("span", { style: { width: `${100 * probability}%` } })),
      " ",
      span("token-number", n(probability, 2)),
      forced && span("hidden", ` ${t("words.given")}`),
    ),
  );
  return figure({
    key: "words.tokens",
    table,
    chart: tokenRow(
      t("words.tokens"),
      buttons,
      tokens.map(({ piece }) => piece),
      current,
    ),
  });
}
