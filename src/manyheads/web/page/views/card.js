/* The model card: what the model is, its licence, how it was trained, and its scores. */

import { facts, h, note, para } from "../elements.js";
import { currentModel, loadModel } from "../source.js";
import { mh } from "../state.js";
import { integer, n, t } from "../strings.js";

/** @type {(panel: HTMLElement) => Promise<void>} */
export async function buildCard(panel) {
  const { model, card } = await loadModel(currentModel().name);
  const { licence } = card,
    blocks = mh.language === "ko" ? card.korean : card.blocks;
  const { weights } = mh.about;
  const pairs = [
    ["licence", licence || t("card.no_licence")],
    ["parameters", integer(model.parameters)],
  ];
  if (weights) {
    pairs.push(["precision", weights.precision], ["bytes", `${n(weights.bytes / 2 ** 20, 1)} MiB`]);
  }
  panel.append(
    facts(pairs.map(([name, value]) => [t(`card.${name}`), value])),
    blocks.length
      ? h("article", { class: "card model-card" }, cardBlocks(blocks))
      : note(t("card.none")),
  );
}

/** Create the elements of blocks [tag, text]; consecutive items form one list.
    @type {(blocks: [string, string][]) => HTMLElement[]} */
function cardBlocks(blocks) {
  /** @type {HTMLElement[]} */
  const elements = [];
  for (const [tag, text] of blocks) {
    if (tag === "li") {
      if (elements.at(-1)?.tagName !== "UL") elements.push(h("ul"));
      elements[elements.length - 1].append(h("li", {}, text));
    } else if (/^h[1-6]$/.test(tag)) elements.push(h(tag === "h1" ? "h2" : "h3", {}, text));
    else elements.push(para("", text));
  }
  return elements;
}
