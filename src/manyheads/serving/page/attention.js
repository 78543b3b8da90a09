"use strict";
/* Attention: where every head of every layer looked; one head large, or two side by side; masks. */
(() => {
  mh.views.attention = { tasks: ["translation", "classification", "language-modeling"], needs: "inspection", build };
  const PADDING = 3; // <pad> tokens that are put after the source to see the mask at work

  /** The weights of a head, or the mean of a layer's heads, as a function of row and column. */
  mh.head = (attention, layer, head) => {
    const { shape: [, heads, rows, columns], data } = mh.array(attention.weights);
    const from = (one) => (layer * heads + one) * rows * columns;
    if (head !== "mean") return (row, column) => data[from(Number(head)) + row * columns + column];
    return (row, column) => {
      let sum = 0;
      for (let one = 0; one < heads; one += 1) sum += data[from(one) + row * columns + column];
      return sum / heads;
    };
  };

  /** What the rows and columns of a kind stand for. */
  function names(found, kind) {
    const pieces = (tokens) => tokens.map((one) => one.piece);
    if (found.kind === "language-modeling") return Array(2).fill([...pieces(found.inputs), ...pieces(found.text.tokens).slice(-1)]);
    if (found.kind === "classification") return Array(2).fill(pieces(found.text.tokens));
    const [source, target] = [pieces(found.source.tokens), pieces(found.target.tokens)];
    return { encoder: [source, source], decoder: [target, pieces(found.inputs)], cross: [target, source] }[kind];
  }

  function build(panel, found) {
    const kinds = found.attention.map((one) => one.kind);
    const kind = kinds.includes(mh.state.kind) ? mh.state.kind : kinds.at(-1);
    const attention = found.attention.find((one) => one.kind === kind);
    const { shape: [layers, heads] } = mh.array(attention.weights);
    const fits = (layer, head) => layer >= 0 && layer < layers && (head === "mean" || (Number(head) >= 0 && Number(head) < heads));
    let layer = fits(mh.state.layer, mh.state.head) ? mh.state.layer : layers - 1;
    let head = fits(layer, mh.state.head) ? String(mh.state.head) : "mean";
    let other = fits(...mh.state.other.split(".").map((one, i) => (i ? one : Number(one)))) ? mh.state.other : "";
    const entropy = mh.array(attention.entropy).data;
    const large = mh.h("div", { class: "side-by-side" });
    const lists = {};
    const numbers = (count) => [...Array(count).keys()].map((one) => [one, one]);
    const both = [...Array(layers).keys()].flatMap((l) => ["mean", ...Array(heads).keys()].map((h) => [`${l}.${h}`, named(l, String(h))]));

    lists.layer = mh.select(mh.t("attention.layer"), numbers(layers), layer, (value) => look(Number(value), head));
    lists.head = mh.select(mh.t("attention.head"), [["mean", mh.t("attention.mean")], ...numbers(heads)], head, (value) => look(layer, value));
    const pad = found.kind === "translation" && mh.live && mh.h("label", { class: "field check" }, mh.h("input", {
      type: "checkbox", checked: mh.state.padding > 0, onchange: (event) => { mh.set({ padding: event.target.checked ? PADDING : 0 }); mh.render({ keep: true }); },
    }), mh.h("span", {}, mh.t("attention.padding", { count: PADDING })));
    panel.append(mh.h("div", { class: "controls" },
      kinds.length > 1 && mh.select(mh.t("attention.kind"), kinds.map((one) => [one, mh.t(`attention.${one}`)]), kind, (value) => { mh.set({ kind: value, other: "" }); mh.render({ keep: true }); }),
      lists.layer, lists.head,
      mh.select(mh.t("attention.compare"), [["", mh.t("attention.nothing")], ...both], other, (value) => { other = value; look(layer, head); }), pad),
    large, thumbnails());
    look(layer, head);

    function named(l, h) {
      return h === "mean" ? mh.t("attention.named_mean", { layer: l }) : mh.t("attention.named", { layer: l, head: h });
    }

    function look(l, h) {
      [layer, head] = [l, h];
      mh.set({ kind, layer, head, other });
      lists.layer.lastChild.value = String(layer);
      lists.head.lastChild.value = head;
      panel.querySelectorAll(".thumbnail").forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.head === `${layer}.${head}`)));
      large.replaceChildren(one(layer, head), ...(other ? [one(Number(other.split(".")[0]), other.split(".")[1])] : []));
      large.classList.toggle("two", Boolean(other));
    }

    function one(l, h) {
      const [rows, columns] = names(found, kind);
      const mask = mh.array(attention.mask).data;
      const options = {
        rows, columns, value: mh.head(attention, l, h), hidden: (row, column) => mask[row * columns.length + column] === 0,
        label: `${mh.t(`attention.${kind}`)}, ${named(l, h)}`, rowTitle: mh.t("attention.row"), columnTitle: mh.t("attention.column"),
      };
      return mh.figure({
        title: options.label, note: mh.t("attention.note"), name: `attention-${kind}-${l}-${h}`, table: () => mh.matrixTable(options),
        chart: mh.h("div", {}, mh.matrix(options), mh.h("p", { class: "note mask-note" }, mh.h("span", { class: "swatch masked", "aria-hidden": "true" }), mh.t(`mask.${kind}`))),
      });
    }

    /** All heads, small: a row for each layer. */
    function thumbnails() {
      const { shape: [, , rows, columns] } = mh.array(attention.weights);
      const buttons = [];
      const lines = [...Array(layers).keys()].map((l) => mh.h("div", { class: "heads-row" }, mh.h("span", { class: "heads-name" }, mh.t("attention.layer_n", { layer: l })),
        [...Array(heads).keys()].map((h) => {
          const canvas = mh.h("canvas", { width: columns, height: rows, "aria-hidden": "true" });
          mh.paint(canvas, rows, columns, mh.head(attention, l, h));
          const amount = entropy[l * heads + h];
          buttons.push(mh.h("button", {
            type: "button", class: "thumbnail", "data-head": `${l}.${h}`, "aria-label": `${named(l, h)}, ${mh.t("attention.entropy")} ${mh.n(amount, 2)}`, onclick: () => look(l, String(h)),
          }, canvas, mh.h("span", {}, mh.n(amount, 2))));
          return buttons.at(-1);
        })));
      const grid = mh.h("div", { class: "heads", role: "group", "aria-label": mh.t("attention.all") }, lines);
      mh.roving(grid, buttons, { current: head === "mean" ? 0 : layer * heads + Number(head) });
      return mh.figure({
        title: mh.t("attention.all"), note: mh.t("attention.all_note"), name: `heads-${kind}`, chart: grid,
        table: () => ({ columns: [mh.t("attention.layer"), ...[...Array(heads).keys()].map((h) => `${mh.t("attention.head")} ${h}`)], rows: [...Array(layers).keys()].map((l) => [l, ...entropy.slice(l * heads, (l + 1) * heads)]) }),
      });
    }
  }
})();
