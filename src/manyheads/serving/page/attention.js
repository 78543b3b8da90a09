"use strict";
/* Attention: where every head of every layer looked; one head large, or two side by side; masks. */
/* <pad> tokens that are put after the source to see the mask at work. */
const PADDING = 3;
views.attention = { inside: true, build: buildAttention };

const headsOf = (count) => [["mean", t("attention.mean")], ...range(count)];

/** The weights of a head, or the mean of a layer's heads, as a function of row and column. */
function weightsOf({ weights }, layer, head) {
  const { shape: [, count, rows, columns], data } = unpack(weights);
  const chosen = head === "mean" ? range(count) : [Number(head)];
  return (row, column) => chosen.reduce((sum, one) => sum + data[((layer * count + one) * rows + row) * columns + column], 0) / chosen.length;
}

/** The name of a side of a pair, with its language. */
const sideName = (side, { language }) => `${t(`column.${side}`)} (${languageName(language)})`;

/** What the rows and columns of a kind stand for, and their titles. */
function attentionAxes({ kind: task, text, inputs, source, target }, kind) {
  const axis = (tokens, side, use) => ({ names: tokens.map((one) => one.piece), title: `${side}, ${t(`attention.${use}`)}` });
  if (!source) {
    const tokens = inputs ? [...inputs, text.tokens.at(-1)] : text.tokens;
    return ["query", "key"].map((use) => axis(tokens, t("classify.text"), use));
  }
  const [from, to] = [sideName("source", source), sideName("target", target)];
  return [kind === "encoder" ? axis(source.tokens, from, "query") : axis(target.tokens, to, "query"), kind === "decoder" ? axis(inputs, to, "key_so_far") : axis(source.tokens, from, "key")];
}

/** Names along a side of a small map, where there is room. */
const labels = (names, side) => h("span", { class: `names ${side}`, "aria-hidden": true }, names.map((one, i) => span("", i % ceil(names.length / 12) ? "" : spell(one))));

function buildAttention(panel, found) {
  const kinds = found.attention.map((one) => one.kind);
  const kind = kinds.includes(state.kind) ? state.kind : kinds.at(-1);
  const attention = found.attention.find((one) => one.kind === kind);
  const [layers, count, height, width] = unpack(attention.weights).shape;
  const [mask, entropy] = [unpack(attention.mask).data, unpack(attention.entropy).data];
  const [rows, columns] = attentionAxes(found, kind);
  const named = (layer, head) => t(head === "mean" ? "attention.named_mean" : "attention.named", { layer, head });
  const all = range(layers).flatMap((layer) => ["mean", ...range(count)].map((head) => [`${layer}.${head}`, named(layer, head)]));
  const there = (name) => all.some(([one]) => one === name);
  let now = there(`${state.layer}.${state.head}`) ? `${state.layer}.${state.head}` : `${layers - 1}.mean`;
  let other = there(state.other) ? state.other : "";
  const [large, switches] = [div("side-by-side"), div("")];
  const layerList = choice(t("attention.layer"), range(layers), "", (layer) => look(`${layer}.${now.split(".")[1]}`));
  const headList = choice(t("attention.head"), headsOf(count), "", (head) => look(`${now.split(".")[0]}.${head}`));
  const changed = (changes) => { change(changes); render(true); };
  panel.append(div("controls",
    kinds.length > 1 && choice(t("attention.kind"), kinds.map((one) => [one, t(`attention.${one}`)]), kind, (value) => changed({ kind: value, other: "" })), layerList, headList,
    choice(t("attention.compare"), [["", t("attention.nothing")], ...all], other, (value) => { other = value; look(now); }),
    live && !offline && found.kind === "translation" && check(t("attention.padding", { count: PADDING }), state.padding > 0, (on) => changed({ padding: on ? PADDING : 0 })),
    live && !offline && button(t("steps.open"), () => { change({ tab: "steps" }); render(); })), large, switches, thumbnails());
  look(now);

  function look(name) {
    now = name;
    const [layer, head] = name.split(".");
    change({ kind, layer: Number(layer), head, other });
    layerList.lastChild.value = layer;
    headList.lastChild.value = head;
    panel.querySelectorAll(".thumbnail").forEach((one) => aria(one, "pressed", one.dataset.head === name));
    large.replaceChildren(...(other ? [[name], [other], [name, other]] : [[name]]).map(largeOf));
    large.classList.toggle("two", Boolean(other));
    if (live) switches.replaceChildren(whatIf(kind, layer, head, count, kinds.includes("decoder")));
  }

  /** One head, or the difference of two. */
  function largeOf(both) {
    const [first, second] = both.map((name) => weightsOf(attention, ...name.split(".")));
    const value = second ? (row, column) => first(row, column) - second(row, column) : first;
    const high = second ? max(0.01, ...range(height * width).map((i) => abs(value(floor(i / width), i % width)))) : 1;
    const options = {
      rows: rows.names, columns: columns.names, value, high, low: second ? -high : 0, hidden: (row, column) => !mask[row * width + column],
      label: `${t(`attention.${kind}`)}, ${both.map((name) => named(...name.split("."))).join(" − ")}`, rowTitle: rows.title, columnTitle: columns.title, meaning: t(second ? "attention.difference" : "attention.weight"),
    };
    return figure({
      key: `attention.${kind}`, title: options.label, about: t(second ? "attention.difference_note" : "attention.note"), table: () => matrixTable(options),
      chart: div("", matrix(options), note(span("swatch masked"), t(`mask.${kind}`))),
    });
  }

  /** All heads, small: a row for each layer. */
  function thumbnails() {
    const buttons = [];
    const lines = range(layers).map((layer) => div("heads-row", span("heads-name", t("attention.layer_n", { layer })), labels(rows.names, "beside"), range(count).map((head) => {
      const canvas = h("canvas", { width, height });
      paint(canvas, weightsOf(attention, layer, head));
      const amount = n(entropy[layer * count + head], 2);
      const name = `${layer}.${head}`;
      const off = headsOff().includes(`${kind}.${name}`) ? `, ${t("change.off")}` : "";
      buttons.push(h("button", { type: "button", class: `thumbnail${off && " off"}`, "data-head": name, onclick: () => look(name) }, span("hidden", `${t("attention.layer_n", { layer })}, `), span("", t("attention.head_n", { head }), off), labels(layer ? [] : columns.names, "above"), canvas, span("hidden", `, ${t("column.entropy")} `), span("", amount)));
      return buttons.at(-1);
    })));
    return figure({
      key: "attention.all", chart: stack(note(t("attention.axes", { rows: rows.title, columns: columns.title })), roving(h("div", { class: "heads", role: "group", "aria-label": t("attention.all") }, lines), buttons), legend(0, 1, t("attention.weight"))),
      table: () => [[t("attention.layer"), ...range(count).map((head) => `${t("attention.head")} ${head}`)], range(layers).map((layer) => [layer, ...entropy.slice(layer * count, (layer + 1) * count)])],
    });
  }
}
