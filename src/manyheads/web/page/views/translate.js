/* Translate: a text box whose text is translated as it is typed, and the hypotheses of the
   beam. */

import { confidenceOf } from "../confidence.js";
import { button, choice, copyButton, linkButton, setPressed } from "../controls.js";
import { correctionForm } from "../correction.js";
import { markDifferences } from "../differences.js";
import { showEffect } from "../effect.js";
import { aria, byId, div, h, para, span, stack } from "../elements.js";
import { fileButton, fileState } from "../files.js";
import { figure, tableOf } from "../figure.js";
import { matrix, matrixTable } from "../matrix.js";
import { unpack } from "../numbers.js";
import {
  currentModel,
  fetchInspection,
  modelChanges,
  sentenceOf,
  textFor,
  translateText,
} from "../source.js";
import { AS_TRAINED, change, goTo, mh, OWN_OUTPUT, state } from "../state.js";
import { columnTitles, integer, languageName, n, t } from "../strings.js";
import { availableViews } from "../tabs.js";
import { textBox, TYPING_DELAY } from "../textbox.js";
import { tokenFigure } from "../tokens.js";
import { attentionAxes, attentionOfKind, weightsOf } from "../weights.js";

const BEAMS = [1, 2, 3, 4, 5, 8, 12, 16];

/** @type {(panel: HTMLElement) => Promise<void>} */
export async function buildTranslate(panel) {
  const model = currentModel();
  const output = h("div", {
    class: "output",
    dir: "auto",
    lang: model.target,
    "aria-live": "polite",
  });
  const speed = para("count");
  const notices = h("div", { class: "notices", "aria-live": "polite" });
  const below = stack();
  let [runCount, text] = [0, ""];

  const reverse = mh.about.models.find(
    (other) => other.source === model.target && other.target === model.source,
  );
  const swap = button(
    "⇄",
    () => goTo({ ...OWN_OUTPUT, ...AS_TRAINED, model: reverse?.name, q: text, sentence: 0 }),
    {
      class: "round",
      "aria-label": t("translate.swap"),
      title: t(reverse ? "translate.swap" : "translate.no_swap"),
      disabled: !reverse,
    },
  );
  const languages = languageLists();
  const copy = copyButton(t("copy"), () => text);
  const correction = mh.about.suggestions && correctionForm(() => text);
  const hasFiles = mh.about.files?.length;
  panel.append(
    div(
      "pair",
      textBox(languageName(model.source), run),
      swap,
      div(
        "card side",
        div("side-head", languageName(model.target)),
        output,
        notices,
        div("side-foot", speed, copy),
        correction,
      ),
    ),
    div(
      "controls",
      languages,
      choice(
        t("translate.beam"),
        [["", t("translate.beam_default", { beam: model.beam })], ...BEAMS],
        state.beam,
        (beam) => {
          change({ ...OWN_OUTPUT, beam });
          run();
        },
      ),
      button(t("translate.go"), run, { class: "primary" }),
      availableViews().includes("whole") &&
        button(t("translate.whole"), () => goTo({ tab: "whole", part: 0 })),
      hasFiles && fileButton(),
      span("hint", t("translate.keys")),
    ),
    hasFiles ? fileState() : "",
    below,
  );
  await run();

  async function run() {
    const number = (runCount += 1);
    below.replaceChildren();
    showEffect();
    const slow = setTimeout(() => {
      if (number === runCount) {
        speed.textContent = t("translate.busy");
        aria(output, "busy", "true");
      }
    }, TYPING_DELAY);
    let shown;
    try {
      const result = state.q.trim()
        ? await translateText(state.q, modelChanges())
        : { translation: "", sentences: [], tokens: 0, seconds: 0 };
      if (number !== runCount) return;
      text = result.translation;
      notices.replaceChildren(
        ...warningsOf(result.sentences).map((name) => para("notice", t(`warning.${name}`))),
      );
      shown = para("translation", text);
      const facts = t("translate.facts", {
        seconds: n(result.seconds, 2),
        speed: integer(result.tokens / result.seconds),
      });
      const shownFacts = [facts, confidenceOf(result.sentences)].filter(Boolean);
      speed.textContent = text && shownFacts.join(", ");
      if (result.sentences.length) {
        below.append(
          sentencesFigure(result.sentences, below),
          div("preview"),
          sentenceDetails(sentenceOf(result)),
        );
        previewAttention(below);
      }
    } catch (error) {
      shown = para("wrong", error.message);
      if (number === runCount) speed.textContent = "";
    }
    clearTimeout(slow);
    if (number !== runCount) return;
    aria(output, "busy", "false");
    output.replaceChildren(shown);
  }
}

/** Create the lists of source and target languages; none for one direction.
    @type {() => HTMLElement[]} */
function languageLists() {
  const { source, target } = currentModel();
  const directions = mh.about.models.filter((model) => model.source);
  /** @type {(model: ModelFacts | undefined) => void} */
  const open = (model) => {
    // It may have been typed just now.
    const q = /** @type {HTMLTextAreaElement} */ (byId("source")).value;
    goTo({
      ...OWN_OUTPUT,
      ...AS_TRAINED,
      model: model?.name,
      q: textFor(model?.name, q),
      sentence: 0,
    });
  };
  /** @type {(codes: (string | undefined)[]) => [string, string][]} */
  const named = (codes) => [...new Set(codes)].map((code = "") => [code, languageName(code)]);
  return directions.length < 2
    ? []
    : [
        choice(
          t("translate.from"),
          named(directions.map((model) => model.source)),
          source,
          (chosen) => {
            const from = directions.filter((model) => model.source === chosen);
            open(from.find((model) => model.target === target) || from[0]);
          },
        ),
        choice(
          t("translate.to"),
          named(directions.filter((model) => model.source === source).map((model) => model.target)),
          target,
          (chosen) =>
            open(directions.find((model) => model.source === source && model.target === chosen)),
        ),
      ];
}

/** Return the names of the warnings about any of several sentences.
    @type {(sentences: SentenceTranslation[]) => string[]} */
const warningsOf = (sentences) => [...new Set(sentences.flatMap(({ warnings }) => warnings))];

/** Show the cross-attention of the selected sentence, which readers see without opening a view.
    @type {(below: HTMLElement) => Promise<void>} */
async function previewAttention(below) {
  if (!currentModel().watched) return;
  const inspection = await fetchInspection().catch(() => null);
  const holder = below.querySelector(".preview");
  if (!inspection || !holder?.isConnected) return;
  const cross = attentionOfKind(inspection, "cross");
  const layer = inspection.alignment?.layer ?? unpack(cross.weights).shape[0] - 1;
  const [rows, columns] = attentionAxes(inspection, "cross");
  const title = `${t("attention.cross")}, ${t("attention.named_mean", { layer })}`;
  /** @type {MatrixOptions} */
  const options = {
    rows: rows.names,
    columns: columns.names,
    value: weightsOf(cross, layer, "mean"),
    label: title,
    meaning: t("attention.weight"),
    rowTitle: rows.title,
    columnTitle: columns.title,
  };
  holder.replaceChildren(
    figure({
      key: "translate.attention",
      table: () => matrixTable(options),
      chart: div(
        "",
        matrix(options),
        linkButton(t("translate.heads"), () =>
          goTo({ tab: "attention", kind: "cross", layer, head: "mean" }),
        ),
      ),
    }),
  );
}

/** Create the buttons that select one of several sentences.
    @type {(sentences: SentenceTranslation[], below: HTMLElement) => HTMLElement | string} */
function sentencesFigure(sentences, below) {
  if (sentences.length < 2) return "";
  const buttons = sentences.map((sentence, i) =>
    button(
      sentence.source,
      () => {
        change({ ...OWN_OUTPUT, sentence: i });
        setPressed(buttons, i);
        showEffect();
        previewAttention(below);
        below.lastChild?.replaceWith(sentenceDetails(sentence));
      },
      { class: "sentence", dir: "auto", "aria-pressed": i === state.sentence || "false" },
    ),
  );
  return figure({ key: "translate.sentences", chart: div("sentences", buttons) });
}

/** Create the figures of the tokens and the hypotheses of a sentence.
    @type {(sentence: SentenceTranslation) => HTMLElement | string} */
function sentenceDetails({ hypotheses }) {
  if (!hypotheses.length) return "";
  const [best] = hypotheses;
  const tokens = best.tokens.map((piece, i) => ({
    piece,
    probability: Math.exp(best.token_scores[i]),
  }));
  /** @type {(target: string) => () => void} */
  const inspect = (target) => () => goTo({ ...OWN_OUTPUT, tab: "words", target });
  const rows = hypotheses.map((hypothesis, rank) => [
    rank + 1,
    rank ? markDifferences(hypothesis.text, best.text) : hypothesis.text,
    hypothesis.score,
    hypothesis.log_probability,
    hypothesis.tokens.length,
    linkButton(
      t("translate.inside"),
      inspect(rank ? hypothesis.text : ""),
      `${t("translate.inside")}: ${hypothesis.text}`,
    ),
  ]);
  return stack(
    tokenFigure(tokens, (at) => goTo({ ...OWN_OUTPUT, tab: "words", at })),
    figure({
      key: "translate.alternatives",
      chart: tableOf(
        [columnTitles("rank text score log_probability length look"), rows],
        t("translate.alternatives"),
      ),
    }),
  );
}
