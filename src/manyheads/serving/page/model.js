"use strict";
/* The model as a whole: its tensors and their sizes, its positions, its schedule, and the letters of the paper in its code. */
(() => {
  const { h, t } = mh;
  mh.views.model = { tasks: ["translation", "classification", "language-modeling"], build };

  async function build(panel) {
    const { model: found, sources } = await mh.source.model(mh.current().name);
    const inspection = await mh.inspection().catch(() => null);
    panel.append(facts(found), ...symbols(found, sources), blocks(found), ...positions(found.positions), schedule(found.learning_rate), ...near(inspection), tensors(found));
  }

  function facts(found) {
    const shown = { ...found.model, parameters: found.parameters };
    const names = ["task", "parameters", "d_model", "d_ff", "num_heads", "num_encoder_layers", "num_decoder_layers", "norm", "positions"];
    return h("dl", { class: "facts" }, names.map((name) => h("div", {}, h("dt", {}, t(`model.${name}`)), h("dd", {}, typeof shown[name] === "number" ? mh.whole(shown[name]) : shown[name]))));
  }

  /** Each letter with its equation and the lines of code that compute it. */
  function symbols(found, sources) {
    const meaning = (one) => (mh.has(`symbol.${one.symbol}`) ? t(`symbol.${one.symbol}`) : one.meaning);
    const items = found.symbols.map((one) => {
      const code = sources[one.source];
      const opened = (event) => event.target.open && mh.set({ symbol: one.symbol });
      return h("details", { class: "symbol", open: mh.state.symbol === one.symbol, ontoggle: opened },
        h("summary", {}, h("span", { class: "letter" }, one.symbol), h("span", {}, meaning(one)), h("span", { class: "quiet-text" }, one.shape)),
        h("p", { class: "equation" }, one.equation),
        h("p", { class: "note" }, t("model.where", { section: one.section, source: `src/manyheads/${one.source}` })),
        code && h("pre", { class: "scroll code", tabindex: 0, role: "region", "aria-label": one.source },
          code.text.split("\n").map((line, i) => h("span", { class: "line-of-code" }, h("span", { class: "line-number", "aria-hidden": "true" }, String(code.line + i)), `${line}\n`))));
    });
    return [mh.figure({
      title: t("model.symbols"), note: t("model.symbols_note"), name: "symbols", chart: h("div", { class: "symbols" }, items),
      table: () => ({ columns: ["symbol", "meaning", "equation", "section", "source_line", "shape"].map((one) => t(`column.${one}`)), rows: found.symbols.map((one) => [one.symbol, meaning(one), one.equation, one.section, one.source, one.shape]) }),
    })];
  }

  function blocks(found) {
    const items = found.blocks.map((one) => ({ label: one.name, value: one.parameters, text: `${mh.whole(one.parameters)} (${mh.n((100 * one.parameters) / found.parameters, 1)} %)` }));
    return mh.figure({ title: t("model.blocks"), note: t("model.blocks_note"), name: "blocks", chart: mh.bars(items), table: () => ({ columns: [t("column.block"), t("column.parameters")], rows: found.blocks.map((one) => [one.name, one.parameters]) }) });
  }

  function tensors(found) {
    const columns = ["name", "shape", "parameters", "deviation", "tied"].map((one) => t(`column.${one}`));
    const rows = found.tensors.map((one) => [one.name, one.shape.join(" × "), one.parameters, one.deviation, one.tied_to || "–"]);
    return mh.figure({ title: t("model.tensors"), note: t("model.tensors_note", { count: rows.length }), name: "tensors", chart: mh.table({ columns, rows }, t("model.tensors")), table: () => ({ columns, rows }) });
  }

  function positions({ kind, signal, products }) {
    const values = mh.array(signal);
    const [count, width] = values.shape;
    const map = (array, rows, columns, rowTitle, columnTitle, title, note, name) => {
      const { data } = mh.array(array);
      let [low, high] = [Infinity, -Infinity];
      for (const one of data) [low, high] = [Math.min(low, one), Math.max(high, one)];
      const names = (many) => [...Array(many).keys()].map(String);
      const options = { rows: names(rows), columns: names(columns), value: (row, column) => data[row * columns + column], low, high, digits: 3, label: title, rowTitle, columnTitle };
      return mh.figure({ title, note, name, chart: mh.matrix({ ...options, large: true }), table: () => mh.matrixTable(options) });
    };
    const chosen = [...new Set([0, 1, 2, 3].map((quarter) => Math.min(width - 1, Math.floor((width * quarter) / 4))))];
    const series = chosen.map((one) => ({ name: t("positions.dimension", { one }), x: [...Array(count).keys()], y: [...Array(count).keys()].map((place) => values.data[place * width + one]) }));
    const [place, dimension] = [t("column.position"), t("column.dimension")];
    return [
      map(signal, count, width, place, dimension, t("positions.title", { kind }), t(`positions.${kind}`), "positions"),
      mh.figure({ title: t("positions.single"), note: t("positions.single_note"), name: "dimensions", chart: mh.lines({ label: t("positions.single"), series, xTitle: place, yTitle: t("column.value") }), table: () => mh.linesTable(series, place) }),
      map(products, count, count, place, place, t("positions.products"), t(kind === "rotary" ? "positions.cosine_note" : "positions.products_note"), "products"),
    ];
  }

  function schedule(found) {
    const series = [{ name: found.schedule, x: found.steps, y: found.rates }];
    const [title, xTitle] = [t("model.schedule", { name: found.schedule }), t("column.update")];
    return mh.figure({
      title, note: t("model.schedule_note", { total: mh.whole(found.total_steps), warmup: mh.whole(found.warmup_steps) }), name: "schedule",
      chart: mh.lines({ label: title, series, xTitle, yTitle: t("unit.learning_rate") }), table: () => mh.linesTable(series, xTitle),
    });
  }

  /** The nearest tokens of those that the reader's sentence has. */
  function near(inspection) {
    const all = inspection ? [inspection.neighbours, inspection.source_neighbours, inspection.target_neighbours].flatMap((one) => one || []) : [];
    if (!all.length) return [];
    const table = () => ({ columns: [t("column.piece"), t("column.near")], rows: all.map((one) => [mh.piece(one.piece), one.near.map((other) => `${mh.piece(other.piece)} ${mh.n(other.cosine, 2)}`).join("  ")]) });
    return [mh.figure({ title: t("model.near"), note: t("model.near_note"), name: "neighbours", chart: mh.table(table(), t("model.near")), table })];
  }
})();
