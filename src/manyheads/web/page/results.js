/* The predictions for the user's text, below a text box. */

import { showEffect } from "./effect.js";
import { h, stack } from "./elements.js";
import { canCompute } from "./source.js";
import { t } from "./strings.js";
import { textBox, textSummary } from "./textbox.js";

/** Create the summary of the text in a document without a model, which has no text box.
    @type {(inspection: Inspection | null) => HTMLElement | string} */
export const documentText = (inspection) =>
  inspection && !canCompute ? textSummary(inspection) : "";

/** Add a text box, and below it the elements that `show` returns; return the function that updates
    them.
    @type {(panel: HTMLElement, show: () => Promise<(HTMLElement | string)[]>) =>
      Promise<() => Promise<void>>} */
export async function resultsUnderText(panel, show) {
  const holder = stack();
  let runCount = 0;
  const run = async () => {
    const number = (runCount += 1);
    showEffect();
    const elements = await show().catch((error) => [
      h("p", { class: "wrong", role: "alert" }, error.message),
    ]);
    if (number === runCount) holder.replaceChildren(...elements);
  };
  const box = canCompute && textBox(t("classify.text"), run);
  const intro = panel.querySelector(".intro");
  if (box && intro) intro.after(box);
  else if (box) panel.prepend(box);
  panel.append(holder);
  await run();
  return run;
}
