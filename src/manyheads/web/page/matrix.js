/* Matrices with a cursor: a table of cells with their numbers, or, if large, a canvas. */

import { legend, paint, shareColour, textColourOn } from "./colours.js";
import { aria, div, h, onResize, para, span } from "./elements.js";
import { abs, clamp, floor, max, min } from "./numbers.js";
import { n, pieceText, t } from "./strings.js";

const MAX_TABLE_CELLS = 4096;

/* Width of a cell, in pixels: the matrix takes the width of its card, and scrolls if its cells
   would be narrower. */
const [MIN_CELL, MAX_CELL] = [16, 96];

/* Height above the first row of cells, in pixels, of a view with a matrix: all cells fit into the
   rest of the window if they can. */
const ABOVE_CELLS = 440;

/** Format a number from 0 to 1 in at most three characters, as .07 for 0.07.
    @type {(value: number) => string} */
const cellText = (value) =>
  value >= 0.995 ? "1.0" : value < 0.005 ? "0" : value.toFixed(2).slice(1);

/** Create a matrix of values from `low` to `high`, with names of rows and columns; `hidden` returns
    whether a cell is masked, `before` are the last tokens that the rows read, if their names are
    tokens predicted.
    @type {(options: MatrixOptions) => HTMLElement} */
export function matrix({
  rows,
  before,
  columns,
  value,
  hidden = () => false,
  low = 0,
  high = 1,
  label,
  meaning,
  rowTitle,
  columnTitle,
  digits = 4,
  large = rows.length * columns.length > MAX_TABLE_CELLS,
}) {
  const reading = para("reading", " ");
  /** @type {(row: number, column: number) => number} */
  const share = (row, column) => (value(row, column) - low) / (high - low || 1);
  /** @type {(row: number, column: number) => string} */
  const describe = (row, column) => {
    const from = `${rowTitle} ${pieceText(rows[row])}`;
    const to = `${columnTitle} ${pieceText(columns[column])}`;
    const shown = hidden(row, column) ? t("masked") : n(value(row, column), digits);
    return `${from} → ${to}: ${shown}`;
  };
  const { grid, moveCursor, cellAt } = (large ? canvasGrid : tableGrid)({
    rows,
    before,
    columns,
    value,
    hidden,
    share,
    describe,
    label,
    low,
    high,
    rowTitle,
    columnTitle,
  });
  let [cursor, pinned] = [[0, 0], false];

  /** Move the cursor to a cell and show its value.
      @type {(row: number, column: number, focus?: boolean) => void} */
  function select(row, column, focus) {
    moveCursor(cursor, [row, column], focus);
    cursor = [row, column];
    reading.textContent = describe(row, column) + (pinned ? ` (${t("pinned")})` : "");
  }
  grid.addEventListener("keydown", (e) => {
    const [row, column] = cursor;
    const [last, end] = [rows.length - 1, columns.length - 1];
    const toCorner = e.ctrlKey || e.metaKey;
    if (e.key === "Enter" || e.key === " ") pinned = !pinned;
    const to = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      Home: [toCorner ? 0 : row, 0],
      End: [toCorner ? last : row, end],
      Enter: cursor,
      " ": cursor,
    }[e.key];
    if (!to) return;
    e.preventDefault();
    select(clamp(to[0], last), clamp(to[1], end), true);
  });
  /** @type {(e: Event) => void} */
  const follow = (e) => {
    const cell = cellAt(e);
    if (!pinned && cell) select(...cell);
  };
  grid.addEventListener("focusin", follow);
  grid.addEventListener("pointermove", follow);
  grid.addEventListener("click", (e) => {
    const cell = cellAt(e);
    if (!cell) return;
    pinned = !pinned;
    select(...cell, true);
  });
  select(0, 0);
  return div("", large ? grid : div("matrix-box", grid), reading, legend(low, high, meaning));
}

/** Create the matrix as a table; narrow cells hide their numbers. Returns the grid, the cell of an
    event, and how to move the cursor.
    @type {(options: GridOptions) => Grid} */
function tableGrid({
  rows,
  before,
  columns,
  value,
  hidden,
  share,
  label,
  low,
  high,
  rowTitle,
  columnTitle,
}) {
  /** @type {(scope: string) => (name: string) => HTMLElement} */
  const headerCell = (scope) => (name) =>
    h("th", { scope, dir: "auto" }, span("", pieceText(name)));
  /** @type {(side: HTMLElement, row: number) => void} */
  const addPrevious = (side, row) =>
    side.prepend(before ? h("small", { "aria-hidden": true }, `${pieceText(before[row])} → `) : "");
  const [tops, sides] = [columns.map(headerCell("col")), rows.map(headerCell("row"))];
  sides.forEach(addPrevious);
  /** @type {(amount: number) => string} */
  const text = (amount) =>
    high > 1 ? n(amount, 2) : (amount > -0.005 ? "" : "−") + cellText(abs(amount));
  /** @type {(row: number, column: number) => HTMLElement} */
  const cell = (row, column) => {
    const colour = shareColour(share(row, column), low);
    const number = text(value(row, column));
    const isMasked = hidden(row, column);
    const style = { backgroundColor: `rgb(${colour})`, color: textColourOn(colour) };
    const look = isMasked ? { class: "masked" } : { class: number === "0" && "nil", style };
    const place = { tabindex: -1, "data-at": `${row} ${column}` };
    return h("td", { ...look, ...place }, span("", isMasked ? t("masked") : number));
  };
  const cells = rows.map((_, row) => columns.map((__, column) => cell(row, column)));
  const grid = h(
    "table",
    { class: "matrix", role: "grid", "aria-label": label },
    h("caption", {}, columnTitle),
    h("thead", {}, h("tr", {}, h("td", { class: "corner" }, rowTitle), tops)),
    h(
      "tbody",
      {},
      cells.map((row, i) => h("tr", {}, sides[i], row)),
    ),
  );
  requestAnimationFrame(() =>
    onResize(/** @type {Element} */ (grid.parentNode), (width) => {
      const names = before ? min(190, width * 0.4) : min(150, width * 0.3);
      const size = max(MIN_CELL, min(MAX_CELL, floor((width - names) / columns.length)));
      const share = max(MIN_CELL * 1.5, floor((innerHeight - ABOVE_CELLS) / rows.length));
      const height = max(MIN_CELL, min(size, MAX_CELL / 2, share));
      grid.style.setProperty("--cell", `${size}px`);
      grid.style.setProperty("--cell-height", `${height}px`);
      grid.classList.toggle("bare", size < 30);
    }),
  );
  /** @type {(cell: number[], on: boolean) => void} */
  const mark = ([row, column], on) => {
    for (const element of [tops[column], sides[row], cells[row][column]]) {
      element.classList.toggle("current", on);
    }
    cells[row][column].tabIndex = on ? 0 : -1;
  };
  return {
    grid,
    cellAt: (e) => {
      const place = /** @type {Element} */ (e.target)
        .closest("td[data-at]")
        ?.getAttribute("data-at")
        ?.split(" ")
        .map(Number);
      return place ? [place[0], place[1]] : null;
    },
    moveCursor: (from, to, focus) => {
      mark(from, false);
      mark(to, true);
      tops.forEach((top, column) => top.classList.toggle("unread", hidden(to[0], column)));
      if (focus) cells[to[0]][to[1]].focus();
    },
  };
}

/** Create the matrix as a canvas, with one cell over it as cursor; returns the same as `tableGrid`.
    @type {(options: GridOptions) => Grid} */
function canvasGrid({ rows, columns, hidden, share, describe, label, low }) {
  const canvas = h("canvas", { width: columns.length, height: rows.length });
  paint(canvas, (row, column) => (hidden(row, column) ? null : share(row, column)), low);
  const cell = h("div", { role: "gridcell", tabindex: 0, class: "picked" });
  const line = h("div", { role: "row" }, cell);
  const grid = h(
    "div",
    {
      class: rows.length === columns.length ? "picture square" : "picture",
      role: "grid",
      "aria-label": label,
      "aria-rowcount": rows.length,
      "aria-colcount": columns.length,
    },
    line,
    canvas,
  );
  return {
    grid,
    cellAt: (e) => {
      if (!(e instanceof MouseEvent)) return null;
      const { left, top, width, height } = canvas.getBoundingClientRect();
      /** @type {(fraction: number, count: number) => number} */
      const indexAt = (fraction, count) => clamp(floor(fraction * count), count - 1);
      return [
        indexAt((e.clientY - top) / height, rows.length),
        indexAt((e.clientX - left) / width, columns.length),
      ];
    },
    moveCursor: (_, [row, column]) => {
      /** @type {(index: number, count: number) => string} */
      const percent = (index, count) => `${(100 * index) / count}%`;
      Object.assign(cell.style, {
        left: percent(column, columns.length),
        top: percent(row, rows.length),
        width: percent(1, columns.length),
        height: percent(1, rows.length),
      });
      aria(line, "rowindex", row + 1);
      aria(cell, "colindex", column + 1);
      aria(cell, "label", describe(row, column));
    },
  };
}

/** Return the values of a matrix as a table.
    @type {(options: MatrixOptions) => Table} */
export const matrixTable = ({ rows, columns, value, hidden = () => false, rowTitle }) => [
  [rowTitle, ...columns.map(pieceText)],
  rows.map((name, row) => [
    pieceText(name),
    ...columns.map((_, column) => (hidden(row, column) ? t("masked") : value(row, column))),
  ]),
];
