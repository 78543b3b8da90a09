/* The text box, and the summary of the inspected text. */

import { button, debounce, linkButton } from "./controls.js";
import { div, h } from "./elements.js";
import { canCompute, currentModel } from "./source.js";
import { change, mh, OWN_OUTPUT, state, update } from "./state.js";
import { integer, n, t } from "./strings.js";

/* Milliseconds from the last key until the text is translated. */
export const TYPING_DELAY = 450;

/** Create a text box with examples and the number of characters left; `run` is called after each
    change.
    @type {(title: string, run: () => void) => HTMLElement} */
export function textBox(title, run) {
  const { source, examples } = currentModel();
  const count = h("p", { class: "count", id: "count" });
  const later = debounce(TYPING_DELAY, submit);
  const box = h("textarea", {
    id: "source",
    rows: 3,
    dir: "auto",
    lang: source,
    spellcheck: "false",
    placeholder: t("translate.placeholder"),
    "aria-describedby": "count",
    oninput: () => {
      updateCount();
      later();
    },
    onkeydown: (/** @type {KeyboardEvent} */ e) => {
      if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
        e.preventDefault();
        submit();
      }
    },
  });
  box.value = state.q;
  updateCount();
  function updateCount() {
    const left = mh.about.char_limit - [...box.value].length;
    count.textContent = t("translate.left", { left: integer(left) });
    count.classList.toggle("wrong", left < 0);
  }
  function submit() {
    if (box.value !== state.q) change({ ...OWN_OUTPUT, q: box.value, sentence: 0 });
    run();
  }
  return div(
    "card side",
    h("label", { class: "side-head", for: "source" }, title),
    box,
    div(
      "side-foot",
      count,
      examples.length > 0 &&
        linkButton(t("translate.example"), () => {
          box.value = examples[(examples.indexOf(box.value) + 1) % examples.length];
          updateCount();
          submit();
        }),
    ),
  );
}

/** Create the summary of the inspected text, with a notice if its output was forced.
    @type {(inspection: Inspection) => HTMLElement} */
export function textSummary({ kind, source, target, text, label, score }) {
  /** @type {(side: { text: string, language: string }, style: string, more?: string) =>
        HTMLElement} */
  const line = (side, style, more) =>
    h(
      "p",
      { dir: "auto", lang: side.language, class: style },
      side.text,
      more && h("small", {}, more),
    );
  const texts =
    kind === "translation"
      ? [
          line(source, "about-source"),
          line(target, "about-target", `${t("column.score")} ${n(score)}`),
        ]
      : line(text, "about-target", label);
  const reset = button(t("about.reset"), () => update(OWN_OUTPUT));
  return div(
    "about",
    texts,
    canCompute &&
      (state.prefix || state.target) &&
      div("changed", t(state.prefix ? "about.prefix" : "about.target"), reset),
  );
}
