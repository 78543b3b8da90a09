/* Alignment: which source word each output word attends to, and the effect of leaving out a
   word. */

import { choice, roving, slider } from "../controls.js";
import { div, h, note, onResize, para, svg } from "../elements.js";
import { figure } from "../figure.js";
import { max, min, range, unpack } from "../numbers.js";
import { occlusionFigure } from "../occlusion.js";
import { change, state } from "../state.js";
import { columnTitles, n, t } from "../strings.js";
import { attentionOfKind, headOptions, sideName, weightsOf } from "../weights.js";

const WORD_ROW = 34;

/* Weights that differ by less are equal: the first one counts. */
const LEAST_WEIGHT = 1e-6;

/** @type {(panel: HTMLElement, inspection: Inspection) => void} */
export function buildAlignment(panel, inspection) {
  const { alignment, source, target } = inspection;
  if (!alignment) {
    panel.append(note(t("alignment.none")));
    return;
  }
  const cross = attentionOfKind(inspection, "cross");
  const [layers, count] = unpack(cross.weights).shape;
  const selected = { layer: alignment.layer, head: "mean" };
  const [shown, words] = [true, false].map((apart) =>
    [source, target].map((text) => unitsOf(text, apart)),
  );
  const holder = div("");
  panel.append(
    div(
      "controls",
      choice(t("attention.layer"), range(layers), selected.layer, (value) => {
        selected.layer = Number(value);
        draw();
      }),
      choice(t("attention.head"), headOptions(count), "mean", (value) => {
        selected.head = value;
        draw();
      }),
      slider(
        t("alignment.threshold"),
        {
          min: 0,
          max: 0.9,
          step: 0.05,
          value: state.threshold,
          show: (value) => (value ? `≥ ${n(value, 2)}` : t("alignment.best")),
        },
        (threshold) => {
          change({ threshold });
          draw();
        },
      ),
    ),
    holder,
    inspection.occlusion
      ? occlusionFigure(inspection.occlusion, source.words, { output: target.text })
      : "",
  );
  draw();

  function draw() {
    const value = weightsOf(cross, selected.layer, selected.head);
    const weights = unitWeights(value, shown);
    const pairs = linksOf(weights);
    const pharaoh = linksOf(unitWeights(value, words))
      .sort((a, b) => a[0] - b[0] || a[1] - b[1])
      .map((pair) => pair.join("-"))
      .join(" ");
    /** @type {(to: number, from: number) => number} */
    const weight = (to, from) => weights[to][from];
    holder.replaceChildren(
      figure({
        key: "alignment.links",
        chart: div(
          "",
          wordLinks(
            inspection,
            shown.map(({ texts }) => texts),
            pairs,
            weight,
          ),
          para("pharaoh", "Pharaoh ", h("code", {}, pharaoh || "–")),
        ),
        table: () => [
          columnTitles("target source weight"),
          pairs.map(([from, to]) => [shown[1].texts[to], shown[0].texts[from], weight(to, from)]),
        ],
      }),
    );
  }

  /** Return the attention of the units of the output to those of the source, summed over the tokens
      of a source unit and averaged over those of an output unit.
      @type {(value: (row: number, column: number) => number, units: Units[]) => number[][]} */
  function unitWeights(value, [from, to]) {
    /** @type {(unitOf: (number | null)[], unit: number) => number[]} */
    const tokensOf = (unitOf, unit) => range(unitOf.length).filter((i) => unitOf[i] === unit);
    /** @type {(values: number[]) => number} */
    const sum = (values) => values.reduce((a, b) => a + b, 0);
    return to.texts.map((_, row) =>
      from.texts.map((__, column) => {
        const rows = tokensOf(to.unitOf, row);
        return (
          sum(rows.flatMap((i) => tokensOf(from.unitOf, column).map((k) => value(i, k)))) /
          max(1, rows.length)
        );
      }),
    );
  }

  /** Return the links that are shown: of each unit of the output the best one, or all from the
      threshold on.
      @type {(weights: number[][]) => Link[]} */
  function linksOf(weights) {
    const { threshold } = state;
    return weights.flatMap((row, to) => {
      const limit = threshold || max(...row) - LEAST_WEIGHT;
      const columns = range(row.length).filter((from) => row[from] >= limit);
      return (threshold ? columns : columns.slice(0, 1)).map(
        (from) => /** @type {Link} */ ([from, to]),
      );
    });
  }
}

/** Return the words of a text as units, each with its tokens; `apart`: punctuation at the beginning
    and the end of a word is a unit of its own.
    @type {(text: ShownText, apart: boolean) => Units} */
export function unitsOf({ words, tokens }, apart) {
  /** @type {Units} */
  const units = { texts: [], unitOf: tokens.map(() => null) };
  words.forEach((word, index) => {
    const own = range(tokens.length).filter((i) => tokens[i].word === index);
    const signs = own
      .map((i) => tokens[i].piece.replace("▁", ""))
      .map((piece) => (apart && /^\p{P}+$/u.test(piece) ? piece : ""));
    const [first, last] = [signs.findIndex((sign) => !sign), signs.findLastIndex((sign) => !sign)];
    const [before, after] = [signs.slice(0, max(0, first)), signs.slice(last + 1)];
    const isSplit = first >= 0 && word.startsWith(before.join("")) && word.endsWith(after.join(""));
    const inner = word.slice(before.join("").length, word.length - after.join("").length);
    const texts = isSplit ? [...before, inner, ...after] : [word];
    own.forEach((i, k) => {
      units.unitOf[i] =
        units.texts.length + (isSplit ? (k <= first ? k : max(first, first + k - last)) : 0);
    });
    units.texts.push(...texts);
  });
  return units;
}

/** Draw two columns of words, `texts`, with lines between aligned words.
    @type {(inspection: Inspection, texts: string[][], pairs: Link[],
      weight: (to: number, from: number) => number) => HTMLElement} */
function wordLinks(inspection, texts, pairs, weight) {
  const names = /** @type {const} */ (["source", "target"]);
  const paths = pairs.map(([from, to]) =>
    svg("path", { class: "link", "stroke-width": 1 + 4 * min(1, weight(to, from)) }),
  );
  const lines = svg(
    "svg",
    { class: "links", height: max(...texts.map((words) => words.length)) * WORD_ROW },
    paths,
  );
  /** @type {(side: number, i: number) => Link[]} */
  const pairsOf = (side, i) => pairs.filter((pair) => pair[side] === i);
  const sides = texts.map((words, side) =>
    words.map((word, i) => {
      const [on, off] = [() => highlight(side, i), () => highlight()];
      const partners = pairsOf(side, i).map((pair) => texts[1 - side][pair[1 - side]]);
      return h(
        "button",
        {
          type: "button",
          class: "word",
          dir: "auto",
          "aria-label": `${word}: ${partners.join(", ") || "–"}`,
          onfocus: on,
          onblur: off,
          onpointerenter: on,
          onpointerleave: off,
        },
        word,
      );
    }),
  );
  /** Highlight a word and its partners; without arguments none.
      @type {(side?: number, i?: number) => void} */
  function highlight(side, i) {
    const highlighted = side === undefined || i === undefined ? [] : pairsOf(side, i);
    pairs.forEach((pair, k) => {
      paths[k].setAttribute(
        "class",
        `link ${highlighted.includes(pair) ? "lit" : side === undefined ? "" : "dim"}`,
      );
    });
    sides.forEach((words, index) =>
      words.forEach((word, k) =>
        word.classList.toggle(
          "lit",
          highlighted.some((pair) => pair[index] === k),
        ),
      ),
    );
  }
  /** @type {(side: number) => HTMLElement} */
  const wordList = (side) =>
    roving(
      h(
        "div",
        {
          class: `words ${names[side]}`,
          role: "group",
          lang: inspection[names[side]].language,
          "aria-label": t(`column.${names[side]}`),
        },
        sides[side],
      ),
      sides[side],
    );
  const middle = onResize(div("", lines), (width) => {
    lines.setAttribute("width", String(width));
    pairs.forEach((pair, k) => {
      const [from, to] = pair.map((word) => (word + 0.5) * WORD_ROW);
      paths[k].setAttribute(
        "d",
        `M0 ${from}C${width / 2} ${from} ${width / 2} ${to} ${width} ${to}`,
      );
    });
  });
  const titles = names.map((name) => para(`axis ${name}`, sideName(name, inspection[name])));
  return div("alignment", titles, wordList(0), middle, wordList(1));
}
