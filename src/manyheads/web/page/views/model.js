/* The model: its tensors and their sizes, its positions, its learning rate schedule, and the
   symbols of the paper with their code. */

import { curvesFigure } from "../curves.js";
import { div, facts, h, note, para, span } from "../elements.js";
import { bars, figure, tableOf } from "../figure.js";
import { matrix, matrixTable } from "../matrix.js";
import { abs, floor, max, range, unpack } from "../numbers.js";
import { currentModel, fetchInspection, loadModel } from "../source.js";
import { change, state } from "../state.js";
import { columnTitles, integer, localized, n, pieceText, t } from "../strings.js";

/** @type {(panel: HTMLElement) => Promise<void>} */
export async function buildModel(panel) {
  const { model, sources } = await loadModel(currentModel().name);
  const inspection = await fetchInspection().catch(() => null);
  const {
    total_steps: total,
    warmup_steps: warmup,
    schedule: name,
    steps: x,
    rates: y,
  } = model.learning_rate;
  const settings = [
    "parameters",
    "d_model",
    "d_ff",
    "num_heads",
    "num_encoder_layers",
    "num_decoder_layers",
    "norm",
    "positions",
  ].map((key) => [t(`model.${key}`), { ...model.model, parameters: model.parameters }[key]]);
  /** @type {Bar[]} */
  const blocks = model.blocks.map((block) => [
    block.name,
    block.parameters,
    `${integer(block.parameters)} (${n((100 * block.parameters) / model.parameters, 1)} %)`,
  ]);
  /** @type {() => Table} */
  const tensors = () => [
    columnTitles("name shape parameters deviation tied"),
    model.tensors.map((tensor) => [
      tensor.name,
      tensor.shape.join(" × "),
      tensor.parameters,
      tensor.deviation,
      tensor.tied_to,
    ]),
  ];
  panel.append(
    facts(
      settings.map(([label, value]) => [label, typeof value === "number" ? integer(value) : value]),
    ),
    symbolsFigure(model.symbols, sources),
    figure({
      key: "model.blocks",
      chart: bars(blocks),
      table: () => [
        columnTitles("block parameters"),
        model.blocks.map((block) => [block.name, block.parameters]),
      ],
    }),
    ...positionFigures(model.positions),
    curvesFigure("model.schedule", [{ name, x, y }], t("column.update"), t("unit.learning_rate"), {
      name,
      total: integer(total),
      warmup: integer(warmup),
    }),
    neighboursFigure(inspection),
    figure({
      key: "model.tensors",
      values: { count: model.tensors.length },
      chart: tableOf(tensors(), t("model.tensors")),
      table: tensors,
    }),
  );
}

/** Create the figure of the symbols of the paper, each with its equation and the code that computes
    it.
    @type {(symbols: PaperSymbol[], sources: { [location: string]: { line: number,
      text: string } }) => HTMLElement} */
function symbolsFigure(symbols, sources) {
  /** @type {(symbol: PaperSymbol) => string} */
  const meaning = (symbol) => localized(`symbol.${symbol.symbol}`) || symbol.meaning;
  const items = symbols.map((symbol) => {
    const code = sources[symbol.source];
    const lines = code.text
      .split("\n")
      .map((line, i) => [
        h("span", { class: "line-number", "aria-hidden": true }, String(code.line + i)),
        `${line}\n`,
      ]);
    return h(
      "details",
      {
        class: "symbol",
        open: state.symbol === symbol.symbol,
        ontoggle: (/** @type {{ target: HTMLDetailsElement }} */ e) =>
          change({ symbol: e.target.open ? symbol.symbol : "" }),
      },
      h(
        "summary",
        {},
        span("letter", symbol.symbol),
        span("", meaning(symbol)),
        h("small", {}, symbol.shape),
      ),
      para("equation", symbol.equation),
      note(t("model.where", { section: symbol.section, source: `src/manyheads/${symbol.source}` })),
      h(
        "pre",
        { class: "scroll code", tabindex: 0, role: "region", "aria-label": symbol.source },
        lines,
      ),
    );
  });
  return figure({
    key: "model.symbols",
    chart: div("", items),
    table: () => [
      columnTitles("symbol meaning equation section source_line shape"),
      symbols.map((symbol) => [
        symbol.symbol,
        meaning(symbol),
        symbol.equation,
        symbol.section,
        symbol.source,
        symbol.shape,
      ]),
    ],
  });
}

/** Create the figures of the position encoding.
    @type {(positions: ModelDocument["model"]["positions"]) => HTMLElement[]} */
function positionFigures({ kind, signal, products }) {
  const {
    shape: [count, width],
    data,
  } = unpack(signal);
  const [position, dimension] = [t("column.position"), t("column.dimension")];
  /** @type {(packed: PackedArray, rows: number, columns: number, columnTitle: string, key: string,
        about: string) => HTMLElement} */
  const heatMap = (packed, rows, columns, columnTitle, key, about) => {
    const values = unpack(packed).data;
    const high = values.reduce((largest, value) => max(largest, abs(value)), 0.01);
    /** @type {MatrixOptions} */
    const options = {
      rows: range(rows).map(String),
      columns: range(columns).map(String),
      value: (row, column) => values[row * columns + column],
      low: -high,
      high,
      label: t(key, { kind }),
      meaning: t("attention.axes", { rows: position, columns: columnTitle }),
      rowTitle: position,
      columnTitle,
      digits: 3,
      large: true,
    };
    return figure({
      key,
      values: { kind },
      about: t(`positions.${about}`),
      chart: matrix(options),
      table: () => matrixTable(options),
    });
  };
  const dimensions = [...new Set([0, 1, 2, 3].map((quarter) => floor((width * quarter) / 4)))];
  const series = dimensions.map((index) => ({
    name: `${dimension} ${index}`,
    x: range(count),
    y: range(count).map((row) => data[row * width + index]),
  }));
  return [
    heatMap(signal, count, width, dimension, "positions.encoding", kind),
    curvesFigure("positions.single", series, position, t("column.value")),
    heatMap(
      products,
      count,
      count,
      position,
      "positions.products",
      kind === "rotary" ? "cosines" : "dots",
    ),
  ];
}

/** Create the figure of the nearest tokens of each token of the user's text; empty without an
    inspection.
    @type {(inspection: Inspection | null) => HTMLElement | string} */
function neighboursFigure(inspection) {
  const all = /** @type {const} */ ([
    "neighbours",
    "source_neighbours",
    "target_neighbours",
  ]).flatMap((name) => inspection?.[name] || []);
  /** @type {() => Table} */
  const table = () => [
    columnTitles("piece near"),
    all.map((token) => [
      pieceText(token.piece),
      token.near
        .map((neighbour) => `${pieceText(neighbour.piece)} ${n(neighbour.cosine, 2)}`)
        .join("  "),
    ]),
  ];
  return all.length
    ? figure({ key: "model.near", chart: tableOf(table(), t("model.near")), table })
    : "";
}
