/* The whole model, with what each part computes for the text, step by step. */

import { button, roving, setPressed, stepper, tokenRow } from "../controls.js";
import { div, h, note, para, span, stack } from "../elements.js";
import { figure } from "../figure.js";
import { modelPicture } from "../modelpicture.js";
import { modelSteps } from "../modelsteps.js";
import { max, min } from "../numbers.js";
import { addressOf, change, state } from "../state.js";
import { columnTitles, pieceText, t } from "../strings.js";

/* Milliseconds for each step of Play, which is time to read it. */
const READING_TIME = 2600;

/** @type {(panel: HTMLElement, inspection: Inspection) => Promise<void>} */
export async function buildWhole(panel, inspection) {
  const tokens = inspection.target?.tokens ?? [];
  let { steps, columns } = await modelSteps(inspection);
  let picture = modelPicture(steps, columns);
  const last = steps.length - 1;
  const pieces = tokens.map(({ piece }) => piece);
  const chosen = tokens.map((token, i) =>
    button(pieceText(token.piece), () => chooseToken(i), { class: "token", dir: "auto" }),
  );
  const drawing = div("whole");
  const detail = h("div", { class: "whole-detail", "aria-live": "polite" });
  const control = stepper(
    {
      label: t("column.step"),
      last,
      value: min(state.part, last),
      time: READING_TIME,
      onEnd: tokens.length ? nextToken : undefined,
    },
    showStep,
  );
  panel.append(
    figure({
      key: "whole.model",
      chart: div(
        "whole-figure",
        control.field,
        drawing,
        detail,
        tokens.length > 0 &&
          div("", note(t("whole.tokens")), tokenRow(t("whole.tokens"), chosen, pieces, state.at)),
      ),
      table: () => [
        columnTitles("step name meaning"),
        steps.map(({ name, note: text }, i) => [i + 1, t(`whole.${name}_title`), text]),
      ],
    }),
  );
  draw();

  function draw() {
    const titles = columns.length > 1 ? ["encoder", "decoder"] : [inspection.attention[0].kind];
    const { links, blocks } = picture;
    const current = blocks.findIndex(({ step }) => step === state.part);
    links.forEach((link, i) =>
      link.addEventListener("focus", () => {
        if (blocks[i].step !== state.part) control.set(blocks[i].step);
      }),
    );
    drawing.replaceChildren(
      div(
        "whole-titles",
        titles.map((name) => span("", t(`whole.${name}`))),
      ),
      roving(div("", picture.element), [...links].reverse(), links.length - 1 - max(0, current)),
    );
    setPressed(chosen, min(state.at, tokens.length - 1));
    showStep(min(state.part, last));
  }

  /** Show the computation of an output token.
      @type {(at: number) => Promise<void>} */
  async function chooseToken(at) {
    change({ at });
    ({ steps, columns } = await modelSteps(inspection));
    picture = modelPicture(steps, columns);
    draw();
  }

  /** Choose the next token of the output; return the step at which its computation begins, 0 after
      the last token.
      @type {() => number} */
  function nextToken() {
    const hasNext = state.at < tokens.length - 1;
    chooseToken(hasNext ? state.at + 1 : 0);
    return hasNext ? steps.findIndex(({ name }) => name === "read") : 0;
  }

  /** Mark the blocks of a step, and explain it.
      @type {(to: number) => void} */
  function showStep(to) {
    change({ part: to });
    const { name, note: text, chart, door } = steps[to];
    picture.links.forEach((link, i) => {
      const { step } = picture.blocks[i];
      link.setAttribute("class", `block${step === to ? " now" : step < to ? " done" : ""}`);
    });
    detail.replaceChildren(
      stack(
        div("", h("h3", {}, t(`whole.${name}_title`)), para("", text)),
        chart(),
        door.tab &&
          h("a", { href: addressOf(door) }, t("whole.open", { view: t(`tab.${door.tab}`) })),
      ),
    );
  }
}
