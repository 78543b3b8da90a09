/* Continue: the likeliest next tokens of a language model. */

import { button, debounce, linkButton, slider } from "../controls.js";
import { div, h } from "../elements.js";
import { bars, figure } from "../figure.js";
import { floor } from "../numbers.js";
import { documentText, resultsUnderText } from "../results.js";
import { canCompute, currentModel, fetchInspection, modelChanges, request } from "../source.js";
import { change, OWN_OUTPUT, state, update } from "../state.js";
import { columnTitles, integer, n, pieceText, t } from "../strings.js";

/** Show the likeliest next tokens of a language model, under temperature, top-k and top-p.
    @type {(panel: HTMLElement) => Promise<void>} */
export async function buildContinue(panel) {
  const generated = h("p", { class: "translation", dir: "auto", "aria-live": "polite" });
  /** @type {(options?: { write?: number, seed?: number }) => Promise<NextTokens>} */
  const requestNext = (options) =>
    request("api/next", {
      model: currentModel().name,
      q: state.q,
      temperature: state.temperature,
      top_k: state.topk,
      top_p: state.topp,
      changes: modelChanges(),
      ...options,
    });
  const later = debounce(200, () => run());
  /** @type {(name: "temperature" | "topk" | "topp", options: Omit<SliderOptions, "value">) =>
        HTMLElement} */
  const stateSlider = (name, options) =>
    slider(t(`continue.${name}`), { value: state[name], ...options }, (value) => {
      change({ [name]: value });
      later();
    });
  if (canCompute) {
    panel.append(
      div(
        "controls",
        stateSlider("temperature", { min: 0.1, max: 3, step: 0.1, show: (value) => n(value, 1) }),
        stateSlider("topk", {
          min: 0,
          max: 50,
          show: (value) => (value ? String(value) : t("continue.all")),
        }),
        stateSlider("topp", { min: 0.05, max: 1, step: 0.05, show: (value) => n(value, 2) }),
        button(
          t("continue.write"),
          () =>
            requestNext({ write: 24, seed: floor(Math.random() * 1e6) }).then(
              ({ text }) => generated.replaceChildren(state.q, h("mark", {}, text)),
              ({ message }) => generated.replaceChildren(message),
            ),
          { class: "primary" },
        ),
      ),
    );
  }
  panel.append(generated);
  const run = await resultsUnderText(panel, async () => {
    const result = canCompute ? await requestNext() : null;
    const inspection = canCompute ? null : await fetchInspection();
    const tokens =
      result?.tokens ??
      inspection?.next.map((token) => ({ ...token, share: token.probability })) ??
      [];
    /** @type {(token: NextToken) => Child} */
    const append = (token) =>
      canCompute &&
      token.text &&
      linkButton(
        t("continue.append"),
        () => update({ ...OWN_OUTPUT, q: state.q + token.text }),
        `${t("continue.append")}: ${pieceText(token.piece)}`,
      );
    return [
      documentText(inspection),
      figure({
        key: "continue.next",
        about: result && t("continue.note", { kept: integer(result.kept) }),
        chart: bars(
          tokens.map((token) => [
            pieceText(token.piece),
            token.share,
            canCompute ? `${n(token.share)} (${n(token.probability)})` : n(token.share),
            append(token),
          ]),
          1,
        ),
        table: () => [
          columnTitles("piece share probability"),
          tokens.map((token) => [token.piece, token.share, token.probability]),
        ],
      }),
    ];
  });
}
