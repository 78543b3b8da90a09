"use strict";
/* Figures with a chart and its values as a table and as CSV; bars and curves; colours that colour-blind users can tell apart. */

/* Cividis: Nunez, Anderton and Renslow (2018), dark for low and light for high values. As in inspection/colours.py. */
const CIVIDIS = "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838";
/* For signed values: vermilion below 0, white at 0, blue above. */
const DIVERGING = "7a3000 d55e00 f1a35e f9f9f9 78b4de 0072b2 00325c";
const DASHES = ["", "7 4", "2 3", "10 3 2 3", "5 5", "14 3", "1 4"];
const MARKERS = "●■▲◆✕✚○";
const MAX_ROWS = 2000;

/** Return 256 colours [red, green, blue] of a scale.
    @type {(scale: string) => Colour[]} */
function colourRamp(scale) {
  const colours = scale.split(" ").map((colour) => [0, 2, 4].map((i) => parseInt(colour.slice(i, i + 2), 16)));
  return range(256).map((i) => {
    const position = (i / 255) * (colours.length - 1);
    const lower = min(colours.length - 2, floor(position));
    return colours[lower].map((channel, k) => round(channel + (colours[lower + 1][k] - channel) * (position - lower)));
  });
}
const RAMPS = [colourRamp(CIVIDIS), colourRamp(DIVERGING)];
/** Return the colour of a share from 0 to 1; the scale for signed values if `low` is negative.
    @type {(share: number, low: number) => Colour} */
const shareColour = (share, low) => RAMPS[+(low < 0)][round(255 * clamp(share, 1))];
/** Return black or white, the one with more contrast to a colour.
    @type {(colour: Colour) => string} */
const textColourOn = ([red, green, blue]) => (0.2126 * red ** 2 + 0.7152 * green ** 2 + 0.0722 * blue ** 2 > 13500 ? "#000" : "#fff");
/** Create a legend of the colours; the style sheet has the same colours.
    @type {(low: number, high: number, text: string) => HTMLElement} */
const legend = (low, high, text) => span("legend", span("", text), span("scale", n(low, 2), span(low < 0 ? "ramp signed" : "ramp"), n(high, 2)));

/** Create a chart with a title and a note from the strings, to save as a picture, and its values as a table: `table` returns [titles, rows].
    @type {(options: FigureOptions) => HTMLElement} */
function figure({ key, values, title = t(key, values), about = localized(`${key}_note`) && t(`${key}_note`, values), chart, table }) {
  const holder = h("div", { class: "figure-table", hidden: true });
  const toggle = button(t("table.show"), () => {
    if (table && !holder.firstChild) holder.append(tableOf(table(), title));
    holder.hidden = !holder.hidden;
    aria(toggle, "expanded", !holder.hidden);
    toggle.textContent = t(holder.hidden ? "table.show" : "table.hide");
  }, { class: "quiet", "aria-expanded": "false" });
  const save = linkButton("CSV", () => table && download(`${key}.csv`, "text/csv", "\ufeff", csvOf(table())), t("table.csv", { title }));
  const pictures = /** @type {const} */ (["svg", "png"]).map((format) => linkButton(format.toUpperCase(), () => savePicture(section, key, format), t("figure.save", { format: format.toUpperCase(), title })));
  const section = h("section", { class: "figure", "data-figure": key },
    div("figure-head", h("h2", {}, title), table && div("actions", toggle, save, pictures)), about && note(about), chart, holder);
  return section;
}

/** Create a table [titles, rows] in a box that scrolls.
    @type {(table: Table, caption: string) => HTMLElement} */
function tableOf([columns, rows], caption) {
  /** @type {(value: Cell) => Attributes} */
  const attributes = (value) => (typeof value === "number" ? { class: "number" } : { dir: "auto" });
  /** @type {(value: Cell) => HTMLElement} */
  const cell = (value) => h("td", attributes(value), typeof value === "number" ? (Number.isInteger(value) ? integer : compact)(value) : value ?? "–");
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", { class: "values" }, h("thead", {}, h("tr", {}, columns.map((title, i) => h("th", { scope: "col", ...attributes(rows[0]?.[i]) }, title)))), h("tbody", {}, rows.slice(0, MAX_ROWS).map((row) => h("tr", {}, row.map(cell))))),
    rows.length > MAX_ROWS && note(t("table.more", { count: integer(rows.length - MAX_ROWS) })));
}

/** Return a table as CSV (RFC 4180), with an apostrophe before texts that a spreadsheet would take for formulas.
    @type {(table: Table) => string} */
function csvOf([columns, rows]) {
  /** @type {(value: Cell) => string} */
  const cell = (value) => {
    const text = value instanceof Node ? value.textContent ?? "" : String(value ?? "");
    return `"${(typeof value !== "number" && /^[=+\-@\t\r]./.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  };
  return [columns, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** @type {(name: string, type: string, ...parts: BlobPart[]) => void} */
function download(name, type, ...parts) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Create a bar chart of items [label, value, text, action, strong].
    @type {(items: Bar[], high?: number) => HTMLElement} */
const bars = (items, high = max(...items.map(([, value]) => abs(value)), 1e-9)) =>
  h("ul", { class: "bars" }, items.map(([label, value, text, action, strong]) => h("li", { class: strong && "strong" },
    h("span", { class: "bar-label", dir: "auto" }, label),
    span(value < 0 ? "bar below" : "bar", h("span", { style: { width: `${max(0.5, (100 * abs(value)) / high)}%` } })),
    span("bar-value", text), action)));

/** Call `draw` with the width of an element, now and after each change.
    @type {<T extends Element>(holder: T, draw: (width: number) => void) => T} */
function onResize(holder, draw) {
  let width = 0;
  new ResizeObserver(() => {
    const newWidth = floor(holder.clientWidth);
    if (newWidth && newWidth !== width) draw((width = newWidth));
  }).observe(holder);
  return holder;
}

/** Return round numbers between two values as pairs [number, text].
    @type {(low: number, high: number, count: number) => [number, string][]} */
function ticks(low, high, count) {
  const power = 10 ** floor(Math.log10((high - low) / count));
  const step = [1, 2, 5].map((factor) => factor * power).find((size) => size >= (high - low) / count) ?? 10 * power;
  const first = ceil(low / step - 1e-9);
  /** @type {(value: number) => string} */
  const text = (value) => (step < 1e-3 || step >= 1e3 ? compact(value) : n(value, max(0, -floor(Math.log10(step) + 1e-9))));
  return range(max(1, floor(high / step + 1e-9) - first + 1)).map((k) => [(first + k) * step, text((first + k) * step)]);
}

/** Return about the width of a text of 12 pixels, in pixels.
    @type {(text: string) => number} */
const textWidth = (text) => [...text].reduce((width, letter) => width + (letter > "\u1100" ? 12 : 6.4), 0);

/** Return the index of the value in a list that is nearest to another.
    @type {(sorted: number[], value: number) => number} */
const nearest = (sorted, value) => sorted.reduce((best, item, i) => (abs(item - value) <= abs(sorted[best] - value) ? i : best), 0);
/** Return the sorted x values of all curves.
    @type {(series: Curve[]) => number[]} */
const allX = (series) => [...new Set(series.flatMap((curve) => curve.x))].sort((a, b) => a - b);

/** Return numbers of a logarithmic axis as pairs [number, text]: 1, 2 and 5 times powers of ten; of a short axis those of `ticks`.
    @type {(low: number, high: number, count: number) => [number, string][]} */
function logarithmicTicks(low, high, count) {
  const [first, last] = [low, high].map((value) => floor(Math.log10(value)));
  const numbers = range(last - first + 1).flatMap((power) => (last - first > 3 ? [1] : [1, 2, 5]).map((factor) => factor * 10 ** (first + power))).filter((value) => value >= low && value <= high);
  return numbers.length > 2 ? numbers.map((value) => [value, value < 1e-3 || value >= 1e4 ? compact(value) : n(value, max(0, -floor(Math.log10(value) + 1e-9)))]) : ticks(low, high, count);
}

/** Return the heights of the names of curves in the plot, as near as possible to the ends of the curves, in which they cover no curve and no
    other name; null without room. The names reach to the left to `left`.
    @type {(paths: [x: number, y: number][][], left: number, top: number, bottom: number) => number[] | null} */
function nameHeights(paths, left, top, bottom) {
  const pieces = paths.flatMap((path) => path.flatMap(([x, y], i) => {
    const [startX, startY] = path[i - 1] ?? [x, y];
    return x < left ? [] : [[y, startX < left ? startY + ((y - startY) * (left - startX)) / (x - startX) : startY]];
  }));
  /** @type {number[]} */
  const taken = [];
  const ends = paths.map((path) => path[path.length - 1][1]);
  for (const end of ends) {
    const free = range(ceil((bottom - top) / 4)).map((k) => top + 4 * k).filter((y) => pieces.every((piece) => y < min(...piece) - 11 || y > max(...piece) + 11) && taken.every((other) => abs(other - y) > 15));
    if (!free.length) return null;
    taken.push(free.reduce((best, y) => (abs(y - end) < abs(best - end) ? y : best)));
  }
  taken.sort((a, b) => a - b); // the names in the order of the ends
  const order = range(ends.length).sort((i, k) => ends[i] - ends[k]);
  return ends.map((_, i) => taken[order.indexOf(i)]);
}

/** Create a chart of curves {name, x, y}, each with its own colour, dash and marker, and its name with the last value near its end; the arrow
    keys move a cursor. On a logarithmic axis, values that are not positive are drawn at its low end.
    @type {(options: { label: string, series: Curve[], xTitle: string, yTitle: string, logarithmic?: boolean }) => HTMLElement} */
function curves({ label, series, xTitle, yTitle, logarithmic = false }) {
  const xs = allX(series);
  const ys = series.flatMap((curve) => curve.y).filter((y) => !logarithmic || y > 0);
  let [low, high] = ys.length ? [min(...ys), max(...ys)] : [1, 1];
  if (!logarithmic && low > 0 && low < high * 0.4) low = 0;
  if (low === high) [low, high] = logarithmic ? [low / 2, high * 2] : [min(0, low), max(1, high * 1.2)];
  const [first, last] = [xs[0], xs.length > 1 ? xs[xs.length - 1] : xs[0] + 1];
  const reading = para("reading", h("small", {}, t("chart.keys")));
  const cursor = svg("path", { class: "cursor" });
  const holder = h("div", { class: "chart", tabindex: 0, role: "slider", "aria-label": label, "aria-valuenow": 0, "aria-valuemin": 0, "aria-valuemax": xs.length - 1, "aria-valuetext": t("chart.keys") });
  const box = { left: 56, top: 10, right: 0, bottom: 0 };
  /** @type {(value: number) => number} */
  const toX = (value) => box.left + ((value - first) / (last - first)) * (box.right - box.left);
  /** @type {(value: number) => number} */
  const toY = (value) => box.bottom - (logarithmic ? Math.log(max(value, low) / low) / Math.log(high / low) : (value - low) / (high - low)) * (box.bottom - box.top);
  let index = -1;

  /** Show the values at an index of `xs`.
      @type {(to: number) => void} */
  function readValues(to) {
    index = clamp(to, xs.length - 1);
    const values = series.map((curve) => `${series.length > 1 ? `${curve.name} ` : ""}${compact(curve.y[nearest(curve.x, xs[index])])}`);
    reading.textContent = `${xTitle} ${compact(xs[index])}: ${values.join(" · ")}`;
    aria(holder, "valuenow", index);
    aria(holder, "valuetext", reading.textContent);
    cursor.setAttribute("d", `M${toX(xs[index])} ${box.top}V${box.bottom}`);
  }
  holder.addEventListener("keydown", (e) => {
    const to = { ArrowRight: index + 1, ArrowUp: index + 1, ArrowLeft: index - 1, ArrowDown: index - 1, Home: 0, End: xs.length - 1 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    readValues(to);
  });
  holder.addEventListener("pointermove", (e) => {
    const share = (e.clientX - holder.getBoundingClientRect().left - box.left) / (box.right - box.left);
    readValues(nearest(xs, first + share * (last - first)));
  });

  /** @type {(x: number, y: number, content: string, style?: string) => Element} */
  const text = (x, y, content, style = "tick") => svg("text", { class: style, x, y }, content);
  /** @type {(k: number, x: number, y: number) => Element} */
  const mark = (k, x, y) => svg("text", { class: "mark", x, y: y + 4 }, MARKERS[k % 7]);
  /** @type {(k: number, d: string) => Element} */
  const line = (k, d) => svg("path", { class: "curve", d, "stroke-dasharray": DASHES[k % 7] });
  const names = series.map((curve) => `${curve.name}: ${compact(curve.y[curve.y.length - 1])}`);
  const keys = h("ul", { class: "keys" }, names.map((name, k) => h("li", {}, svg("svg", { width: 36, height: 14, class: `c${k % 7}` }, line(k, "M1 7H35"), mark(k, 18, 7)), name)));
  onResize(holder, (width) => {
    const height = round(min(300, max(200, width * 0.4)));
    Object.assign(box, { right: width - 16, bottom: height - 40 });
    const left = box.right - max(...names.map(textWidth)) - 26;
    const paths = series.map(({ x, y }) => x.map((value, i) => /** @type {[number, number]} */ ([toX(value), toY(y[i])])));
    const heights = left > width / 3 ? nameHeights(paths, left, box.top + 6, box.bottom - 8) : null;
    keys.hidden = Boolean(heights);
    holder.replaceChildren(svg("svg", { width, height },
      (logarithmic ? logarithmicTicks : ticks)(low, high, 5).map(([y, tick]) => [svg("path", { class: "grid", d: `M${box.left} ${toY(y)}H${box.right}` }), text(box.left - 8, toY(y) + 4, tick, "tick end")]),
      ticks(first, last, max(2, floor(width / 80))).filter(([x]) => Number.isInteger(x)).map(([x]) => text(toX(x), box.bottom + 18, compact(x))), text((box.left + box.right) / 2, height - 4, xTitle),
      series.map(({ x, y }, k) => svg("g", { class: `c${k % 7}` }, line(k, x.map((value, i) => `${i ? "L" : "M"}${toX(value).toFixed(1)} ${toY(y[i]).toFixed(1)}`).join("")),
        x.flatMap((value, i) => (i % ceil(x.length / 12) ? [] : [mark(k, toX(value), toY(y[i]))])), svg("circle", { class: "ring", r: 4, cx: toX(x[x.length - 1]), cy: toY(y[y.length - 1]) }))),
      heights?.map((y, k) => svg("g", { class: `c${k % 7}` }, mark(k, box.right - textWidth(names[k]) - 14, y), text(box.right - 4, y + 4, names[k], "tick end name"))), cursor));
    if (index >= 0) readValues(index);
  });
  return div("", para("axis", `${yTitle}${logarithmic ? `, ${t("unit.logarithmic")}` : ""}`), holder, reading, keys);
}

/** Return the values of curves as a table with a row for each x.
    @type {(series: Curve[], xTitle: string) => Table} */
function curvesTable(series, xTitle) {
  const values = series.map((curve) => new Map(curve.x.map((x, i) => [x, curve.y[i]])));
  return [[xTitle, ...series.map((curve) => curve.name)], allX(series).map((x) => [x, ...values.map((byX) => byX.get(x))])];
}
