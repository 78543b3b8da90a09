"use strict";
/* The model as a whole: its tensors and their sizes, its positions, its schedule, and the letters of the paper in its code. */
views.model = { build: buildModel };

async function buildModel(panel) {
  const { model: found, sources } = await modelOf(theModel().name);
  const inspection = await inspected().catch(() => null);
  const { total_steps: total, warmup_steps: warmup, schedule: name, steps: x, rates: y } = found.learning_rate;
  const shown = ["parameters", "d_model", "d_ff", "num_heads", "num_encoder_layers", "num_decoder_layers", "norm", "positions"].map((one) => [t(`model.${one}`), { ...found.model, parameters: found.parameters }[one]]);
  const blocks = found.blocks.map((one) => [one.name, one.parameters, `${whole(one.parameters)} (${n((100 * one.parameters) / found.parameters, 1)} %)`]);
  const tensors = () => [heads("name shape parameters deviation tied"), found.tensors.map((one) => [one.name, one.shape.join(" × "), one.parameters, one.deviation, one.tied_to])];
  panel.append(facts(shown.map(([one, value]) => [one, typeof value === "number" ? whole(value) : value])), symbolsOf(found.symbols, sources),
    figure({ key: "model.blocks", chart: bars(blocks), table: () => [heads("block parameters"), found.blocks.map((one) => [one.name, one.parameters])] }),
    ...positionsOf(found.positions), curvesFigure("model.schedule", [{ name, x, y }], t("column.update"), t("unit.learning_rate"), { name, total: whole(total), warmup: whole(warmup) }),
    neighboursOf(inspection), figure({ key: "model.tensors", values: { count: found.tensors.length }, chart: tableOf(tensors(), t("model.tensors")), table: tensors }));
}

/** Each letter with its equation and the lines of code that compute it. */
function symbolsOf(symbols, sources) {
  const meaning = (one) => known(`symbol.${one.symbol}`) || one.meaning;
  const items = symbols.map((one) => {
    const code = sources[one.source];
    const lines = code.text.split("\n").map((line, i) => [h("span", { class: "line-number", "aria-hidden": true }, String(code.line + i)), `${line}\n`]);
    return h("details", { class: "symbol", open: state.symbol === one.symbol, ontoggle: (e) => change({ symbol: e.target.open ? one.symbol : "" }) },
      h("summary", {}, span("letter", one.symbol), span("", meaning(one)), h("small", {}, one.shape)), para("equation", one.equation),
      note(t("model.where", { section: one.section, source: `src/manyheads/${one.source}` })), h("pre", { class: "scroll code", tabindex: 0, role: "region", "aria-label": one.source }, lines));
  });
  return figure({ key: "model.symbols", chart: div("", items), table: () => [heads("symbol meaning equation section source_line shape"), symbols.map((one) => [one.symbol, meaning(one), one.equation, one.section, one.source, one.shape])] });
}

function positionsOf({ kind, signal, products }) {
  const { shape: [count, width], data } = unpack(signal);
  const [place, dimension] = [t("column.position"), t("column.dimension")];
  const map = (packed, rows, columns, columnTitle, key, about) => {
    const values = unpack(packed).data;
    const high = values.reduce((most, one) => max(most, abs(one)), 0.01);
    const options = { rows: range(rows).map(String), columns: range(columns).map(String), value: (row, column) => values[row * columns + column], low: -high, high, label: t(key, { kind }), meaning: t("attention.axes", { rows: place, columns: columnTitle }), rowTitle: place, columnTitle, digits: 3, large: true };
    return figure({ key, values: { kind }, about: t(`positions.${about}`), chart: matrix(options), table: () => matrixTable(options) });
  };
  const chosen = [...new Set([0, 1, 2, 3].map((quarter) => floor((width * quarter) / 4)))];
  const series = chosen.map((one) => ({ name: `${dimension} ${one}`, x: range(count), y: range(count).map((row) => data[row * width + one]) }));
  return [map(signal, count, width, dimension, "positions.encoding", kind), curvesFigure("positions.single", series, place, t("column.value")),
    map(products, count, count, place, "positions.products", kind === "rotary" ? "cosines" : "dots")];
}

/** The nearest tokens of those that the reader's sentence has. */
function neighboursOf(found) {
  const all = ["neighbours", "source_neighbours", "target_neighbours"].flatMap((name) => found?.[name] || []);
  const table = () => [heads("piece near"), all.map((one) => [spell(one.piece), one.near.map((other) => `${spell(other.piece)} ${n(other.cosine, 2)}`).join("  ")])];
  return all.length ? figure({ key: "model.near", chart: tableOf(table(), t("model.near")), table }) : "";
}
