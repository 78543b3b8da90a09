"use strict";
/* Matrices that can be walked through: as a table of cells with their numbers, or, when large, as a picture. */
const MOST_CELLS = 4096;

/** .07 for 0.07: numbers that fit into cells. */
const cellText = (value) => (value >= 0.995 ? "1.0" : value < 0.005 ? "0" : value.toFixed(2).slice(1));

/** Rows and columns with names, values from `low` to `high`; `hidden` says which cells a mask hides. */
function matrix({ rows, columns, value, hidden = () => false, low = 0, high = 1, label, meaning, rowTitle, columnTitle, digits = 4, large = rows.length * columns.length > MOST_CELLS }) {
  const reading = para("reading", " ");
  const share = (row, column) => (value(row, column) - low) / (high - low || 1);
  const said = (row, column) => `${rowTitle} ${spell(rows[row])} → ${columnTitle} ${spell(columns[column])}: ${hidden(row, column) ? t("masked") : n(value(row, column), digits)}`;
  const { grid, show, where } = (large ? pictureOf : cellsOf)({ rows, columns, value, hidden, share, said, label, low, high, rowTitle, columnTitle });
  let [at, pinned] = [[0, 0], false];

  function look(row, column, focus) {
    show(at, [row, column], focus);
    at = [row, column];
    reading.textContent = said(row, column) + (pinned ? ` (${t("pinned")})` : "");
  }
  grid.addEventListener("keydown", (e) => {
    const [row, column] = at;
    const [last, end] = [rows.length - 1, columns.length - 1];
    const far = e.ctrlKey || e.metaKey;
    if (e.key === "Enter" || e.key === " ") pinned = !pinned;
    const to = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      Home: [far ? 0 : row, 0], End: [far ? last : row, end], Enter: at, " ": at,
    }[e.key];
    if (!to) return;
    e.preventDefault();
    look(clamp(to[0], last), clamp(to[1], end), true);
  });
  const point = (e) => !pinned && where(e) && look(...where(e));
  grid.addEventListener("focusin", point);
  grid.addEventListener("pointermove", point);
  grid.addEventListener("click", (e) => {
    if (!where(e)) return;
    pinned = !pinned;
    look(...where(e), true);
  });
  look(0, 0);
  return div("", large ? grid : div("matrix-box", grid), reading, legend(low, high, meaning));
}

/** A table whose cells hold their numbers, which are hidden where there is no room. */
function cellsOf({ rows, columns, value, hidden, share, label, low, high, rowTitle, columnTitle }) {
  const head = (scope) => (name) => h("th", { scope, dir: "auto" }, span("", spell(name)));
  const [tops, sides] = [columns.map(head("col")), rows.map(head("row"))];
  const text = (amount) => (high > 1 ? n(amount, 2) : (amount > -0.005 ? "" : "−") + cellText(abs(amount)));
  const cell = (row, column) => {
    const colour = shade(share(row, column), low);
    const said = text(value(row, column));
    const [look, shown] = hidden(row, column) ? [{ class: "masked" }, t("masked")] : [{ class: said === "0" && "nil", style: { backgroundColor: `rgb(${colour})`, color: inkOn(colour) } }, said];
    return h("td", { ...look, tabindex: -1, "data-at": `${row} ${column}` }, span("", shown));
  };
  const cells = rows.map((_, row) => columns.map((__, column) => cell(row, column)));
  const grid = h("table", { class: "matrix", role: "grid", "aria-label": label }, h("caption", {}, columnTitle), h("thead", {}, h("tr", {}, h("td", { class: "corner" }, rowTitle), tops)), h("tbody", {}, cells.map((row, i) => h("tr", {}, sides[i], row))));
  requestAnimationFrame(() => sized(grid.parentNode, (width) => {
    const size = max(16, min(46, floor((width - min(150, width * 0.3)) / columns.length)));
    grid.style.setProperty("--cell", `${size}px`);
    grid.classList.toggle("bare", size < 30);
  }));
  return {
    grid, where: (e) => e.target.closest("td[data-at]")?.dataset.at.split(" ").map(Number),
    show: (from, to, focus) => {
      for (const [[row, column], on] of [[from, false], [to, true]]) {
        for (const one of [tops[column], sides[row], cells[row][column]]) one.classList.toggle("looked", on);
        cells[row][column].tabIndex = on ? 0 : -1;
      }
      if (focus) cells[to[0]][to[1]].focus();
    },
  };
}

/** A picture with one cell that moves over it. */
function pictureOf({ rows, columns, hidden, share, said, label, low }) {
  const canvas = h("canvas", { width: columns.length, height: rows.length });
  paint(canvas, (row, column) => (hidden(row, column) ? null : share(row, column)), low);
  const cell = h("div", { role: "gridcell", tabindex: 0, class: "picked" });
  const line = h("div", { role: "row" }, cell);
  const grid = h("div", { class: rows.length === columns.length ? "picture square" : "picture", role: "grid", "aria-label": label, "aria-rowcount": rows.length, "aria-colcount": columns.length }, line, canvas);
  return {
    grid, where: (e) => {
      if (e.clientX === undefined) return null;
      const { left, top, width, height } = canvas.getBoundingClientRect();
      const place = (part, count) => clamp(floor(part * count), count - 1);
      return [place((e.clientY - top) / height, rows.length), place((e.clientX - left) / width, columns.length)];
    },
    show: (_, [row, column]) => {
      const part = (one, many) => `${(100 * one) / many}%`;
      Object.assign(cell.style, { left: part(column, columns.length), top: part(row, rows.length), width: part(1, columns.length), height: part(1, rows.length) });
      aria(line, "rowindex", row + 1);
      aria(cell, "colindex", column + 1);
      aria(cell, "label", said(row, column));
    },
  };
}

/** Shares as colours on a canvas, a pixel each; null is a hole. */
function paint(canvas, share, low) {
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(canvas.width, canvas.height);
  range(canvas.width * canvas.height).forEach((i) => {
    const amount = share(floor(i / canvas.width), i % canvas.width);
    if (amount !== null) image.data.set([...shade(amount, low), 255], 4 * i);
  });
  pen.putImageData(image, 0, 0);
}

/** The values of a matrix as a table. */
const matrixTable = ({ rows, columns, value, hidden = () => false, rowTitle }) =>
  [[rowTitle, ...columns.map(spell)], rows.map((name, row) => [spell(name), ...columns.map((_, column) => (hidden(row, column) ? t("masked") : value(row, column)))])];
