/* Word by word: the probability of each output token, its likeliest alternatives, and the
   output with an alternative. */

import { debounce, linkButton, setPressed, slider } from "../controls.js";
import { announce, div, facts, h, note, span } from "../elements.js";
import { bars, figure } from "../figure.js";
import { max, min } from "../numbers.js";
import { canCompute, fetchInspection } from "../source.js";
import { change, mh, OWN_OUTPUT, state } from "../state.js";
import { columnTitles, integer, n, pieceText, t } from "../strings.js";
import { tokenFigure } from "../tokens.js";

/** @type {(panel: HTMLElement, inspection: Inspection) => Promise<void>} */
export async function buildWords(panel, inspection) {
  const { predictions } = inspection;
  const [list, detail] = [div(""), div("")];
  let atTemperature = predictions; // with the logits divided by the temperature
  if (canCompute) {
    panel.append(
      div(
        "controls",
        slider(
          t("words.temperature"),
          { min: 0.1, max: 3, step: 0.1, value: state.temperature, show: (value) => n(value, 1) },
          (temperature) => {
            change({ temperature });
            later();
          },
        ),
      ),
    );
  }
  panel.append(list, detail);
  const later = debounce(200, applyTemperature);
  await applyTemperature();

  /** Request the predictions at the temperature of the state. */
  async function applyTemperature() {
    const { temperature } = state;
    try {
      const adjusted =
        canCompute && temperature !== 1
          ? ((await fetchInspection({ temperature, occlusion: false }))?.predictions ?? predictions)
          : predictions;
      if (temperature !== state.temperature) return;
      atTemperature = adjusted;
      draw();
    } catch (error) {
      if (temperature === state.temperature) {
        list.replaceChildren(h("p", { class: "wrong", role: "alert" }, error.message));
      }
    }
  }

  function draw() {
    const first = min(state.at, predictions.length - 1);
    list.replaceChildren(
      tokenFigure(
        predictions.map((token, i) => ({ ...token, probability: atTemperature[i].probability })),
        showToken,
        first,
        () => [
          columnTitles("place piece probability rank entropy best_alternative"),
          atTemperature.map((token, i) => [
            i + 1,
            token.piece,
            token.probability,
            token.rank,
            token.entropy,
            token.alternatives[0]
              ? `${pieceText(token.alternatives[0].piece)} ${n(token.alternatives[0].probability)}`
              : "–",
          ]),
        ],
      ),
    );
    showToken(first);
  }

  /** Show a token and its alternatives.
      @type {(at: number) => void} */
  function showToken(at) {
    change({ at });
    setPressed(list.querySelectorAll(".token"), at);
    const [prediction, original] = [atTemperature[at], predictions[at]];
    const before = predictions
      .slice(max(0, at - 6), at)
      .map((token) => pieceText(token.piece))
      .join(" ");
    const [all, originals] = [prediction, original].map((token) => [token, ...token.alternatives]);
    /** @type {(alternative: Alternative) => Child} */
    const use = (alternative) =>
      canCompute &&
      linkButton(
        t("words.use"),
        () => {
          const prefix = [
            ...predictions.slice(0, at).map((token) => token.id),
            alternative.id,
          ].join(".");
          change({
            ...OWN_OUTPUT,
            prefix,
            at,
            more: inspection.kind === "translation" ? 0 : max(8, predictions.length - at - 1),
          });
          announce(t("words.used", { piece: pieceText(alternative.piece) }));
          mh.render(true);
        },
        t("words.use_this", { piece: pieceText(alternative.piece) }),
      );
    const tag = span("tag", t(original.forced ? "words.given" : "words.chosen"));
    /** @type {(i: number) => string} */
    const shown = (i) =>
      atTemperature === predictions
        ? n(all[i].probability)
        : `${n(all[i].probability)} (${n(originals[i].probability)})`;
    detail.replaceChildren(
      figure({
        key: "words.alternatives",
        values: { place: at + 1, piece: pieceText(prediction.piece) },
        about: before ? t("words.after", { before }) : t("words.first"),
        chart: div(
          "",
          facts([
            [t("column.probability"), n(prediction.probability, 4)],
            [t("column.rank"), integer(prediction.rank)],
            [t("words.entropy"), n(prediction.entropy)],
          ]),
          bars(
            all.map((alternative, i) => [
              pieceText(alternative.piece),
              alternative.probability,
              shown(i),
              i ? use(alternative) : tag,
              !i,
            ]),
            1,
          ),
          atTemperature !== predictions &&
            note(t("words.temperature_note", { temperature: n(state.temperature, 1) })),
          !canCompute && note(t("words.needs_server")),
        ),
        table: () => [
          columnTitles("piece probability log_probability"),
          all.map((alternative) => [
            alternative.piece,
            alternative.probability,
            alternative.log_probability,
          ]),
        ],
      }),
    );
  }
}
