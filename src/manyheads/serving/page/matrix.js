"use strict";
/* Matrices that can be walked through: as a table of cells with their numbers, or, when large, as a picture. */
(() => {
  const MOST_CELLS = 4096;

  /** Where the arrow keys lead from a cell, or null. */
  function moved(event, row, column, rows, columns) {
    const far = event.ctrlKey || event.metaKey;
    const to = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      Home: [far ? 0 : row, 0], End: [far ? rows - 1 : row, columns - 1], PageUp: [row - 10, column], PageDown: [row + 10, column],
    }[event.key];
    return to && [Math.min(rows - 1, Math.max(0, to[0])), Math.min(columns - 1, Math.max(0, to[1]))];
  }

  /** Rows and columns with names, values from `low` to `high`, cells that are hidden by a mask. */
  mh.matrix = (options) => (options.rows.length * options.columns.length > MOST_CELLS ? picture(options) : cells(options));

  function cells({ rows, columns, value, hidden = () => false, low = 0, high = 1, label, rowTitle, columnTitle, digits = 2 }) {
    const reading = mh.h("p", { class: "reading" }, " ");
    const heads = columns.map((name) => mh.h("th", { scope: "col", dir: "auto" }, mh.h("span", {}, mh.piece(name))));
    const sides = [];
    const grid = [];
    const body = rows.map((name, row) => {
      sides.push(mh.h("th", { scope: "row", dir: "auto" }, mh.h("span", {}, mh.piece(name))));
      grid.push(columns.map((_, column) => cell(row, column)));
      return mh.h("tr", {}, sides[row], grid[row]);
    });
    let [at, pinned] = [[0, 0], false];

    function cell(row, column) {
      if (hidden(row, column)) return mh.h("td", { class: "masked", tabindex: -1, "data-at": `${row} ${column}` }, mh.h("span", {}, mh.t("masked")));
      const amount = value(row, column);
      const colour = mh.shade((amount - low) / (high - low || 1));
      const text = digits === 2 && low >= 0 && high <= 1 ? short(amount) : mh.short(amount);
      return mh.h("td", { tabindex: -1, "data-at": `${row} ${column}`, style: { backgroundColor: `rgb(${colour})`, color: mh.ink(colour) } }, mh.h("span", {}, text));
    }

    const table = mh.h("table", { class: "matrix", role: "grid", "aria-label": label, "aria-rowcount": rows.length + 1, "aria-colcount": columns.length + 1 },
      mh.h("thead", {}, mh.h("tr", {}, mh.h("td", { class: "corner" }), heads)), mh.h("tbody", {}, body));

    function look(row, column, focus) {
      grid[at[0]][at[1]].tabIndex = -1;
      table.querySelectorAll(".looked").forEach((one) => one.classList.remove("looked"));
      at = [row, column];
      const chosen = grid[row][column];
      chosen.tabIndex = 0;
      for (const one of [heads[column], sides[row], chosen]) one.classList.add("looked");
      const said = hidden(row, column) ? mh.t("masked") : digits > 2 ? mh.short(value(row, column)) : mh.n(value(row, column), 4);
      reading.textContent = `${rowTitle} ${mh.piece(rows[row])} → ${columnTitle} ${mh.piece(columns[column])}: ${said}${pinned ? ` (${mh.t("pinned")})` : ""}`;
      if (focus) chosen.focus();
    }
    const target = (event) => event.target.closest("td[data-at]")?.dataset.at.split(" ").map(Number);
    table.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        pinned = !pinned;
        look(...at, false);
        return;
      }
      const to = moved(event, ...at, rows.length, columns.length);
      if (!to) return;
      event.preventDefault();
      look(...to, true);
    });
    table.addEventListener("focusin", (event) => target(event) && look(...target(event), false));
    table.addEventListener("pointerover", (event) => !pinned && target(event) && look(...target(event), false));
    table.addEventListener("click", (event) => {
      if (!target(event)) return;
      pinned = !pinned;
      look(...target(event), true);
    });
    grid[0][0].tabIndex = 0;

    const box = mh.h("div", { class: "matrix-box" }, table);
    mh.sized(box, (width) => {
      const side = Math.min(150, width * 0.3);
      const size = Math.max(16, Math.min(46, Math.floor((width - side) / columns.length)));
      table.style.setProperty("--cell", `${size}px`);
      table.classList.toggle("bare", size < 30);
    });
    return mh.h("div", {}, box, reading, mh.legend(mh.short(low), mh.short(high)));
  }

  /** .07 for 0.07: numbers that fit into cells. */
  const short = (amount) => (amount >= 0.995 ? "1.0" : amount < 0.005 ? "0" : amount.toFixed(2).slice(1));

  /** The same as a picture, with one cell that moves over it. */
  function picture({ rows, columns, value, hidden = () => false, low = 0, high = 1, label, rowTitle, columnTitle }) {
    const reading = mh.h("p", { class: "reading" }, " ");
    const canvas = mh.h("canvas", { width: columns.length, height: rows.length, "aria-hidden": "true" });
    paint(canvas, rows.length, columns.length, (row, column) => (hidden(row, column) ? null : (value(row, column) - low) / (high - low || 1)));
    const cell = mh.h("div", { role: "gridcell", tabindex: 0, class: "picked" });
    const line = mh.h("div", { role: "row" }, cell);
    const grid = mh.h("div", { class: "picture", role: "grid", "aria-label": label, "aria-rowcount": rows.length, "aria-colcount": columns.length }, line, canvas);
    let at = [0, 0];
    function look(row, column) {
      at = [row, column];
      Object.assign(cell.style, {
        left: `${(100 * column) / columns.length}%`, top: `${(100 * row) / rows.length}%`,
        width: `max(8px, ${100 / columns.length}%)`, height: `max(8px, ${100 / rows.length}%)`,
      });
      line.setAttribute("aria-rowindex", row + 1);
      cell.setAttribute("aria-colindex", column + 1);
      const said = hidden(row, column) ? mh.t("masked") : mh.short(value(row, column));
      reading.textContent = `${rowTitle} ${mh.piece(rows[row])} → ${columnTitle} ${mh.piece(columns[column])}: ${said}`;
      cell.setAttribute("aria-label", reading.textContent);
    }
    cell.addEventListener("keydown", (event) => {
      const to = moved(event, ...at, rows.length, columns.length);
      if (!to) return;
      event.preventDefault();
      look(...to);
    });
    const follow = (event) => {
      const box = canvas.getBoundingClientRect();
      const share = (where, from, size, count) => Math.min(count - 1, Math.max(0, Math.floor(((where - from) / size) * count)));
      look(share(event.clientY, box.top, box.height, rows.length), share(event.clientX, box.left, box.width, columns.length));
    };
    grid.addEventListener("pointermove", follow);
    grid.addEventListener("pointerdown", follow);
    look(0, 0);
    return mh.h("div", {}, grid, reading, mh.legend(mh.short(low), mh.short(high)));
  }

  /** Shares as colours on a canvas, a pixel each; null is a hole. */
  function paint(canvas, rows, columns, share) {
    const pen = canvas.getContext("2d");
    const image = pen.createImageData(columns, rows);
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const amount = share(row, column);
        if (amount !== null) image.data.set([...mh.shade(amount), 255], 4 * (row * columns + column));
      }
    }
    pen.putImageData(image, 0, 0);
  }
  mh.paint = paint;

  /** The values of a matrix as a table. */
  mh.matrixTable = ({ rows, columns, value, hidden = () => false, rowTitle }) => ({
    columns: [rowTitle, ...columns.map(mh.piece)],
    rows: rows.map((name, row) => [mh.piece(name), ...columns.map((_, column) => (hidden(row, column) ? mh.t("masked") : Number(value(row, column).toFixed(6))))]),
  });
})();
