"use strict";
/* Alignment: which word of the output looked at which word of the source, and what is lost when a word is left out. */
(() => {
  mh.views.alignment = { tasks: ["translation"], needs: "inspection", build };
  const ROW = 34;

  function build(panel, found) {
    const cross = found.attention.find((one) => one.kind === "cross");
    const { shape: [layers, heads] } = mh.array(cross.weights);
    if (!found.alignment) return panel.append(mh.h("p", { class: "note" }, mh.t("alignment.none")));
    const state = { layer: found.alignment.layer, head: "mean" };
    const holder = mh.h("div", {});
    panel.append(mh.h("div", { class: "controls" },
      mh.select(mh.t("attention.layer"), [...Array(layers).keys()].map((one) => [one, one]), state.layer, (value) => { state.layer = Number(value); draw(); }),
      mh.select(mh.t("attention.head"), [["mean", mh.t("attention.mean")], ...[...Array(heads).keys()].map((one) => [one, one])], "mean", (value) => { state.head = value; draw(); }),
      mh.slider(mh.t("alignment.threshold"), { min: 0, max: 0.9, step: 0.05, value: mh.state.threshold, show: (value) => (value ? mh.n(value, 2) : mh.t("alignment.best")) },
        (threshold) => { mh.set({ threshold }); draw(); })), holder);
    draw();
    if (found.occlusion) panel.append(...occlusion(found));
    return undefined;

    function draw() {
      const words = { source: found.source.words, target: found.target.words };
      const standard = state.layer === found.alignment.layer && state.head === "mean";
      const weights = standard ? mh.array(found.alignment.weights).data : merged(state);
      const weight = (t, s) => weights[t * words.source.length + s];
      const limit = mh.state.threshold;
      const best = words.target.map((_, t) => words.source.reduce((top, __, s) => (weight(t, s) > weight(t, top) ? s : top), 0));
      const pairs = limit > 0
        ? words.target.flatMap((_, t) => words.source.flatMap((__, s) => (weight(t, s) >= limit ? [[s, t]] : [])))
        : standard ? found.alignment.links : best.map((s, t) => [s, t]);
      const pharaoh = pairs.map(([s, t]) => `${s}-${t}`).sort((one, other) => one.localeCompare(other, "en", { numeric: true })).join(" ");
      holder.replaceChildren(mh.figure({
        title: mh.t("alignment.title"), note: mh.t("alignment.note"), name: "alignment",
        chart: mh.h("div", {}, picture(words, pairs, weight, found), mh.h("p", { class: "pharaoh" }, mh.h("span", {}, "Pharaoh "), mh.h("code", {}, pharaoh || "–"))),
        table: () => ({ columns: [mh.t("column.target"), mh.t("column.source"), mh.t("column.weight")], rows: pairs.map(([s, t]) => [words.target[t], words.source[s], weight(t, s)]) }),
      }));
    }

    /** How much the words of the output looked at those of the source: the mean over the tokens of a word. */
    function merged({ layer, head }) {
      const value = mh.head(cross, layer, head);
      const [rows, columns] = [found.target.words.length, found.source.words.length];
      const sums = new Float32Array(rows * columns);
      const tokens = new Float32Array(rows);
      found.target.tokens.forEach(({ word }, t) => {
        if (word === null) return;
        tokens[word] += 1;
        found.source.tokens.forEach((one, s) => { if (one.word !== null) sums[word * columns + one.word] += value(t, s); });
      });
      return sums.map((sum, i) => sum / Math.max(1, tokens[Math.floor(i / columns)]));
    }
  }

  /** Two columns of words with lines between: long sentences grow downwards. */
  function picture(words, pairs, weight, found) {
    const height = Math.max(words.source.length, words.target.length) * ROW;
    const lines = mh.s("svg", { class: "links", height, "aria-hidden": "true" });
    const side = (name) => words[name].map((word, place) => mh.h("button", {
      type: "button", class: "word", dir: "auto", "aria-label": `${word}: ${partners(name, place).join(", ") || "–"}`,
      onfocus: () => light(name, place), onblur: () => light(), onpointerenter: () => light(name, place), onpointerleave: () => light(),
    }, word));
    const partners = (name, place) => pairs.filter(([s, t]) => (name === "source" ? s : t) === place).map(([s, t]) => (name === "source" ? words.target[t] : words.source[s]));
    const columns = { source: side("source"), target: side("target") };
    const paths = pairs.map(([s, t]) => mh.s("path", { class: "link", "stroke-width": (1 + 4 * Math.min(1, weight(t, s))).toFixed(1) }));
    const whole = (name) => {
      const holder = mh.h("div", { class: `words ${name}`, role: "group", lang: found[name].language, "aria-label": mh.t(`column.${name}`) }, columns[name]);
      mh.roving(holder, columns[name]);
      return holder;
    };
    function light(name, place) {
      pairs.forEach(([s, t], number) => {
        const on = name && (name === "source" ? s : t) === place;
        paths[number].classList.toggle("lit", Boolean(on));
        paths[number].classList.toggle("dim", Boolean(name) && !on);
      });
      for (const [one, buttons] of Object.entries(columns)) {
        buttons.forEach((button, number) => button.classList.toggle("lit", Boolean(name) && pairs.some(([s, t]) => (name === "source" ? s : t) === place && (one === "source" ? s : t) === number)));
      }
    }
    const middle = mh.sized(mh.h("div", { class: "between" }, lines), (width) => {
      lines.setAttribute("width", width);
      pairs.forEach(([s, t], number) => {
        const [from, to] = [(s + 0.5) * ROW, (t + 0.5) * ROW];
        paths[number].setAttribute("d", `M0 ${from}C${width / 2} ${from} ${width / 2} ${to} ${width} ${to}`);
      });
    });
    lines.append(...paths);
    return mh.h("div", { class: "alignment" }, whole("source"), middle, whole("target"));
  }

  /** Every word left out, one at a time. */
  function occlusion(found) {
    const { words } = found.occlusion;
    const text = (one) => found.source.words[one.word];
    return [mh.figure({
      title: mh.t("occlusion.title"), note: mh.t("occlusion.note"), name: "occlusion",
      chart: mh.h("div", {}, mh.bars(words.map((one) => ({ label: text(one), value: one.drop, text: mh.n(one.drop, 2) }))),
        mh.table({ columns: [mh.t("occlusion.without"), mh.t("occlusion.output")], rows: words.map((one) => [text(one), mh.different(one.output, found.target.text)]) }, mh.t("occlusion.title"))),
      table: () => ({ columns: [mh.t("occlusion.without"), mh.t("occlusion.drop"), ...found.occlusion.columns.map(mh.piece)], rows: words.map((one) => [text(one), one.drop, ...one.drops]) }),
    })];
  }
})();
