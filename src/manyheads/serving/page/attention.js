"use strict";
/* Attention: where every head of every layer looked; one head large, or two side by side; masks. */
/* <pad> tokens that are put after the source to see the mask at work. */
const PADDING = 3;
views.attention = { tasks: ["translation", "classification", "language-modeling"], inside: true, build: buildAttention };

const headsOf = (count) => [["mean", t("attention.mean")], ...range(count)];

/** The weights of a head, or the mean of a layer's heads, as a function of row and column. */
function weightsOf({ weights }, layer, head) {
  const { shape: [, count, rows, columns], data } = unpack(weights);
  const chosen = head === "mean" ? range(count) : [Number(head)];
  return (row, column) => chosen.reduce((sum, one) => sum + data[((layer * count + one) * rows + row) * columns + column], 0) / chosen.length;
}

/** What the rows and columns of a kind stand for. */
function attentionNames({ kind: task, text, inputs, source, target }, kind) {
  const pieces = (tokens) => tokens.map((one) => one.piece);
  if (task === "classification") return [pieces(text.tokens), pieces(text.tokens)];
  if (task === "language-modeling") return Array(2).fill(pieces([...inputs, text.tokens.at(-1)]));
  return [pieces(kind === "encoder" ? source.tokens : target.tokens), pieces(kind === "decoder" ? inputs : source.tokens)];
}

function buildAttention(panel, found) {
  const kinds = found.attention.map((one) => one.kind);
  const kind = kinds.includes(state.kind) ? state.kind : kinds.at(-1);
  const attention = found.attention.find((one) => one.kind === kind);
  const [layers, count, height, width] = unpack(attention.weights).shape;
  const [mask, entropy] = [unpack(attention.mask).data, unpack(attention.entropy).data];
  const named = (layer, head) => t(head === "mean" ? "attention.named_mean" : "attention.named", { layer, head });
  const all = range(layers).flatMap((layer) => ["mean", ...range(count)].map((head) => [`${layer}.${head}`, named(layer, head)]));
  const there = (name) => all.some(([one]) => one === name);
  let now = there(`${state.layer}.${state.head}`) ? `${state.layer}.${state.head}` : `${layers - 1}.mean`;
  let other = there(state.other) ? state.other : "";
  const large = div("side-by-side");
  const layerList = choice(t("attention.layer"), range(layers), "", (layer) => look(`${layer}.${now.split(".")[1]}`));
  const headList = choice(t("attention.head"), headsOf(count), "", (head) => look(`${now.split(".")[0]}.${head}`));
  const changed = (changes) => { change(changes); render(true); };
  panel.append(h("div", { class: "controls" },
    kinds.length > 1 && choice(t("attention.kind"), kinds.map((one) => [one, t(`attention.${one}`)]), kind, (value) => changed({ kind: value, other: "" })), layerList, headList,
    choice(t("attention.compare"), [["", t("attention.nothing")], ...all], other, (value) => { other = value; look(now); }),
    live && found.kind === "translation" && check(t("attention.padding", { count: PADDING }), state.padding > 0, (on) => changed({ padding: on ? PADDING : 0 }))), large, thumbnails());
  look(now);

  function look(name) {
    now = name;
    const [layer, head] = name.split(".");
    change({ kind, layer: Number(layer), head, other });
    layerList.lastChild.value = layer;
    headList.lastChild.value = head;
    panel.querySelectorAll(".thumbnail").forEach((one) => one.setAttribute("aria-pressed", one.dataset.head === name));
    large.replaceChildren(...[name, other].filter(Boolean).map(largeOf));
    large.classList.toggle("two", Boolean(other));
  }

  function largeOf(name) {
    const [layer, head] = name.split(".");
    const [rows, columns] = attentionNames(found, kind);
    const options = {
      rows, columns, value: weightsOf(attention, Number(layer), head), hidden: (row, column) => !mask[row * width + column],
      label: `${t(`attention.${kind}`)}, ${named(layer, head)}`, rowTitle: t("attention.row"), columnTitle: t("attention.column"),
    };
    return figure({
      key: `attention.${kind}`, title: options.label, about: t("attention.note"), table: () => matrixTable(options),
      chart: div("", matrix(options), note(h("span", { class: "swatch masked" }), t(`mask.${kind}`))),
    });
  }

  /** All heads, small: a row for each layer. */
  function thumbnails() {
    const buttons = [];
    const lines = range(layers).map((layer) => div("heads-row", h("span", { class: "heads-name" }, t("attention.layer_n", { layer })), range(count).map((head) => {
      const canvas = h("canvas", { width, height });
      paint(canvas, weightsOf(attention, layer, head));
      const amount = n(entropy[layer * count + head], 2);
      const name = `${layer}.${head}`;
      buttons.push(h("button", { type: "button", class: "thumbnail", "data-head": name, "aria-label": `${named(layer, head)}, ${t("column.entropy")} ${amount}`, onclick: () => look(name) }, canvas, amount));
      return buttons.at(-1);
    })));
    return figure({
      key: "attention.all", chart: roving(h("div", { class: "heads", role: "group", "aria-label": t("attention.all") }, lines), buttons),
      table: () => [[t("attention.layer"), ...range(count).map((head) => `${t("attention.head")} ${head}`)], range(layers).map((layer) => [layer, ...entropy.slice(layer * count, (layer + 1) * count)])],
    });
  }
}
