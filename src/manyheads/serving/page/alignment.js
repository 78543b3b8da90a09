"use strict";
/* Alignment: which word of the output looked at which word of the source, and what is lost when a word is left out. */
const WORD_ROW = 34;
views.alignment = { tasks: ["translation"], inside: true, build: buildAlignment };

function buildAlignment(panel, found) {
  const { alignment, source, target } = found;
  if (!alignment) return void panel.append(note(t("alignment.none")));
  const cross = found.attention.find((one) => one.kind === "cross");
  const [layers, count] = unpack(cross.weights).shape;
  const chosen = { layer: alignment.layer, head: "mean" };
  const holder = div("");
  panel.append(div("controls",
    choice(t("attention.layer"), range(layers), chosen.layer, (value) => { chosen.layer = Number(value); draw(); }),
    choice(t("attention.head"), headsOf(count), "mean", (value) => { chosen.head = value; draw(); }),
    slider(t("alignment.threshold"), { min: 0, max: 0.9, step: 0.05, value: state.threshold, show: (value) => (value ? `≥ ${n(value, 2)}` : t("alignment.best")) }, (threshold) => { change({ threshold }); draw(); })),
  holder, found.occlusion ? missingWords(found.occlusion, source.words, { output: target.text }) : "");
  draw();

  function draw() {
    const standard = chosen.layer === alignment.layer && chosen.head === "mean";
    const weights = standard ? unpack(alignment.weights).data : merged();
    const weight = (to, from) => weights[to * source.words.length + from];
    const limit = state.threshold;
    const best = (to) => range(source.words.length).reduce((top, from) => (weight(to, from) > weight(to, top) ? from : top), 0);
    let pairs = standard ? alignment.links : range(target.words.length).map((to) => [best(to), to]);
    if (limit) pairs = range(target.words.length).flatMap((to) => range(source.words.length).filter((from) => weight(to, from) >= limit).map((from) => [from, to]));
    const pharaoh = [...pairs].sort((one, other) => one[0] - other[0] || one[1] - other[1]).map((one) => one.join("-")).join(" ");
    holder.replaceChildren(figure({
      key: "alignment.links", chart: div("", wordLinks(found, pairs, weight), para("pharaoh", "Pharaoh ", h("code", {}, pharaoh || "–"))),
      table: () => [heads("target source weight"), pairs.map(([from, to]) => [target.words[to], source.words[from], weight(to, from)])],
    }));
  }

  /** How much the words of the output looked at those of the source: the mean over the tokens of a word. */
  function merged() {
    const value = weightsOf(cross, chosen.layer, chosen.head);
    const sums = new Float32Array(target.words.length * source.words.length);
    const tokens = target.words.map(() => 0);
    target.tokens.forEach(({ word }, row) => {
      if (word === null) return;
      tokens[word] += 1;
      source.tokens.forEach((one, column) => { if (one.word !== null) sums[word * source.words.length + one.word] += value(row, column); });
    });
    return sums.map((sum, i) => sum / max(1, tokens[floor(i / source.words.length)]));
  }
}

/** Two columns of words with lines between: long sentences grow downwards. */
function wordLinks(found, pairs, weight) {
  const names = ["source", "target"];
  const paths = pairs.map(([from, to]) => svg("path", { class: "link", "stroke-width": 1 + 4 * min(1, weight(to, from)) }));
  const lines = svg("svg", { class: "links", height: max(...names.map((name) => found[name].words.length)) * WORD_ROW }, paths);
  const of = (side, i) => pairs.filter((pair) => pair[side] === i);
  const sides = names.map((name, side) => found[name].words.map((word, i) => {
    const [on, off] = [() => light(side, i), () => light()];
    const others = of(side, i).map((pair) => found[names[1 - side]].words[pair[1 - side]]);
    return h("button", { type: "button", class: "word", dir: "auto", "aria-label": `${word}: ${others.join(", ") || "–"}`, onfocus: on, onblur: off, onpointerenter: on, onpointerleave: off }, word);
  }));
  function light(side, i) {
    const lit = side === undefined ? [] : of(side, i);
    pairs.forEach((pair, k) => { paths[k].setAttribute("class", `link ${lit.includes(pair) ? "lit" : side === undefined ? "" : "dim"}`); });
    sides.forEach((words, one) => words.forEach((word, k) => word.classList.toggle("lit", lit.some((pair) => pair[one] === k))));
  }
  const whole = (side) => roving(h("div", { class: `words ${names[side]}`, role: "group", lang: found[names[side]].language, "aria-label": t(`column.${names[side]}`) }, sides[side]), sides[side]);
  const middle = sized(div("", lines), (width) => {
    lines.setAttribute("width", width);
    pairs.forEach((pair, k) => {
      const [from, to] = pair.map((one) => (one + 0.5) * WORD_ROW);
      paths[k].setAttribute("d", `M0 ${from}C${width / 2} ${from} ${width / 2} ${to} ${width} ${to}`);
    });
  });
  const titles = names.map((name) => para(`axis ${name}`, sideName(name, found[name])));
  return div("alignment", titles, whole(0), middle, whole(1));
}

/** Every word left out, one at a time; `output` is a translation, `label` a class. */
function missingWords({ words, columns }, texts, { output, label }) {
  const rows = words.map((one) => [texts[one.word], one.drop, `${n(one.drop, 2)}${label && one.output !== label ? ` → ${one.output}` : ""}`]);
  const without = words.map((one) => [texts[one.word], output && different(one.output, output)]);
  return figure({
    key: "occlusion.words", about: label && t("classify.occlusion_note", { label }),
    chart: stack(bars(rows), output && tableOf([[t("occlusion.without"), t("occlusion.output")], without], t("occlusion.output"))),
    table: () => [[t("occlusion.without"), t("occlusion.drop"), ...columns.map(spell)], words.map((one) => [texts[one.word], one.drop, ...one.drops])],
  });
}
