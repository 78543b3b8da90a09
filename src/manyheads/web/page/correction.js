/* The form that sends a corrected translation to the server. */

import { button } from "./controls.js";
import { aria, div, h } from "./elements.js";
import { currentModel, fetchAnswer } from "./source.js";
import { state } from "./state.js";
import { t } from "./strings.js";

/** Create the button "Correct this", and the form that it opens: the output of `text` to be
    corrected and sent to the server.
    @type {(text: () => string) => HTMLElement} */
export function correctionForm(text) {
  const { source, target } = currentModel();
  const box = h("textarea", { id: "correction", rows: 3, dir: "auto", lang: target });
  const status = h("p", { class: "count", role: "status" });
  const send = button(t("correct.send"), submit, { class: "primary" });
  const form = h(
    "div",
    { hidden: true, role: "group", "aria-label": t("correct.open") },
    h("label", { for: "correction" }, t("correct.label")),
    box,
    div("controls", send, button(t("correct.cancel"), close)),
  );
  const opener = button(
    t("correct.open"),
    () => {
      (form.hidden ? open : close)();
    },
    { class: "quiet", "aria-expanded": "false" },
  );
  /** What is corrected: another text may be typed meanwhile. */
  let [q, output] = ["", ""];
  form.addEventListener("keydown", (e) => {
    if (e.key === "Escape") close();
  });
  return div("correct", div("side-foot", opener, status), form);
  function open() {
    [q, output] = [state.q, text()];
    if (!output) {
      status.textContent = t("correct.empty");
      return;
    }
    box.value = output;
    status.textContent = "";
    show(true);
    box.focus();
  }
  function close() {
    show(false);
    opener.focus();
  }
  /** @type {(visible: boolean) => void} */
  function show(visible) {
    form.hidden = !visible;
    aria(opener, "expanded", visible);
  }
  async function submit() {
    const s = box.value.trim();
    if (!s || s === output) {
      status.textContent = t("correct.same");
      return;
    }
    send.disabled = true;
    try {
      await fetchAnswer("suggest", { q, s, source, target }, new AbortController().signal);
      close();
      status.textContent = t("correct.thanks");
    } catch (error) {
      status.textContent = error.message;
    }
    send.disabled = false;
  }
}
