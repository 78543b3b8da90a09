"use strict";
/* Alignment: which source word each output word attends to, and the effect of leaving out a word. */
const WORD_ROW = 34;
views.alignment = { tasks: ["translation"], needsInspection: true, build: buildAlignment };

/** @type {(panel: HTMLElement, inspection: Inspection) => void} */
function buildAlignment(panel, inspection) {
  const { alignment, source, target } = inspection;
  if (!alignment) {
    panel.append(note(t("alignment.none")));
    return;
  }
  const links = alignment;
  const cross = attentionOfKind(inspection, "cross");
  const [layers, count] = unpack(cross.weights).shape;
  const selected = { layer: links.layer, head: "mean" };
  const holder = div("");
  panel.append(div("controls",
    choice(t("attention.layer"), range(layers), selected.layer, (value) => { selected.layer = Number(value); draw(); }),
    choice(t("attention.head"), headOptions(count), "mean", (value) => { selected.head = value; draw(); }),
    slider(t("alignment.threshold"), { min: 0, max: 0.9, step: 0.05, value: state.threshold, show: (value) => (value ? `≥ ${n(value, 2)}` : t("alignment.best")) }, (threshold) => { change({ threshold }); draw(); })),
  holder, inspection.occlusion ? occlusionFigure(inspection.occlusion, source.words, { output: target.text }) : "");
  draw();

  function draw() {
    const standard = selected.layer === links.layer && selected.head === "mean";
    const weights = standard ? unpack(links.weights).data : wordWeights();
    /** @type {(to: number, from: number) => number} */
    const weight = (to, from) => weights[to * source.words.length + from];
    const limit = state.threshold;
    /** @type {(to: number) => number} */
    const best = (to) => range(source.words.length).reduce((top, from) => (weight(to, from) > weight(to, top) ? from : top), 0);
    /** @type {Link[]} */
    let pairs = standard ? links.links : range(target.words.length).map((to) => [best(to), to]);
    if (limit) pairs = range(target.words.length).flatMap((to) => range(source.words.length).filter((from) => weight(to, from) >= limit).map((from) => /** @type {Link} */ ([from, to])));
    const pharaoh = [...pairs].sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((pair) => pair.join("-")).join(" ");
    holder.replaceChildren(figure({
      key: "alignment.links", chart: div("", wordLinks(inspection, pairs, weight), para("pharaoh", "Pharaoh ", h("code", {}, pharaoh || "–"))),
      table: () => [columnTitles("target source weight"), pairs.map(([from, to]) => [target.words[to], source.words[from], weight(to, from)])],
    }));
  }

  /** Return the attention of output words to source words, summed over the tokens of a source word and averaged over those of an output word. */
  function wordWeights() {
    const value = weightsOf(cross, selected.layer, selected.head);
    const sums = new Float32Array(target.words.length * source.words.length);
    const tokens = target.words.map(() => 0);
    target.tokens.forEach(({ word }, row) => {
      if (word === null) return;
      tokens[word] += 1;
      source.tokens.forEach((token, column) => { if (token.word !== null) sums[word * source.words.length + token.word] += value(row, column); });
    });
    return sums.map((sum, i) => sum / max(1, tokens[floor(i / source.words.length)]));
  }
}

/** Draw two columns of words, with lines between aligned words.
    @type {(inspection: Inspection, pairs: Link[], weight: (to: number, from: number) => number) => HTMLElement} */
function wordLinks(inspection, pairs, weight) {
  const names = /** @type {const} */ (["source", "target"]);
  const paths = pairs.map(([from, to]) => svg("path", { class: "link", "stroke-width": 1 + 4 * min(1, weight(to, from)) }));
  const lines = svg("svg", { class: "links", height: max(...names.map((name) => inspection[name].words.length)) * WORD_ROW }, paths);
  /** @type {(side: number, i: number) => Link[]} */
  const pairsOf = (side, i) => pairs.filter((pair) => pair[side] === i);
  const sides = names.map((name, side) => inspection[name].words.map((word, i) => {
    const [on, off] = [() => highlight(side, i), () => highlight()];
    const partners = pairsOf(side, i).map((pair) => inspection[names[1 - side]].words[pair[1 - side]]);
    return h("button", { type: "button", class: "word", dir: "auto", "aria-label": `${word}: ${partners.join(", ") || "–"}`, onfocus: on, onblur: off, onpointerenter: on, onpointerleave: off }, word);
  }));
  /** Highlight a word and its partners; without arguments none.
      @type {(side?: number, i?: number) => void} */
  function highlight(side, i) {
    const highlighted = side === undefined || i === undefined ? [] : pairsOf(side, i);
    pairs.forEach((pair, k) => { paths[k].setAttribute("class", `link ${highlighted.includes(pair) ? "lit" : side === undefined ? "" : "dim"}`); });
    sides.forEach((words, index) => words.forEach((word, k) => word.classList.toggle("lit", highlighted.some((pair) => pair[index] === k))));
  }
  /** @type {(side: number) => HTMLElement} */
  const wordList = (side) => roving(h("div", { class: `words ${names[side]}`, role: "group", lang: inspection[names[side]].language, "aria-label": t(`column.${names[side]}`) }, sides[side]), sides[side]);
  const middle = onResize(div("", lines), (width) => {
    lines.setAttribute("width", String(width));
    pairs.forEach((pair, k) => {
      const [from, to] = pair.map((word) => (word + 0.5) * WORD_ROW);
      paths[k].setAttribute("d", `M0 ${from}C${width / 2} ${from} ${width / 2} ${to} ${width} ${to}`);
    });
  });
  const titles = names.map((name) => para(`axis ${name}`, sideName(name, inspection[name])));
  return div("alignment", titles, wordList(0), middle, wordList(1));
}

/** Create the figure of the effect of leaving out each word; `output` is a translation, `label` a class.
    @type {(occlusion: Occlusion, texts: string[], shown: { output?: string, label?: string }) => HTMLElement} */
function occlusionFigure({ words, columns }, texts, { output, label }) {
  /** @type {Bar[]} */
  const rows = words.map((omitted) => [texts[omitted.word], omitted.drop, `${n(omitted.drop, 2)}${label && omitted.output !== label ? ` → ${omitted.output}` : ""}`]);
  const outputs = words.map((omitted) => [texts[omitted.word], output && markDifferences(omitted.output, output)]);
  return figure({
    key: "occlusion.words", about: label && t("classify.occlusion_note", { label }),
    chart: stack(bars(rows), output && tableOf([[t("occlusion.without"), t("occlusion.output")], outputs], t("occlusion.output"))),
    table: () => [[t("occlusion.without"), t("occlusion.drop"), ...columns.map(pieceText)], words.map((omitted) => [texts[omitted.word], omitted.drop, ...omitted.drops])],
  });
}
