"use strict";
/* A figure around every chart, with its values as a table and as CSV; bars and curves; colours that all eyes tell apart. */

/* Cividis: Nunez, Anderton and Renslow (2018), dark for little and light for much. As in inspection/colours.py. */
const CIVIDIS = "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838";
/* For signed values: vermilion below 0, white at 0, blue above. */
const DIVERGING = "7a3000 d55e00 f1a35e f9f9f9 78b4de 0072b2 00325c";
const DASHES = ["", "7 4", "2 3", "10 3 2 3", "5 5", "14 3", "1 4"];
const MARKS = "●■▲◆✕✚○";
const MOST_ROWS = 2000;

/** The colours of the shares from 0 to 1, in 256 steps. */
function rampOf(scale) {
  const colours = scale.split(" ").map((one) => [0, 2, 4].map((i) => parseInt(one.slice(i, i + 2), 16)));
  return range(256).map((i) => {
    const place = (i / 255) * (colours.length - 1);
    const lower = min(colours.length - 2, floor(place));
    return colours[lower].map((one, k) => round(one + (colours[lower + 1][k] - one) * (place - lower)));
  });
}
const RAMPS = [rampOf(CIVIDIS), rampOf(DIVERGING)];
/** The colour of a share; `low` tells the scale. */
const shade = (share, low) => RAMPS[+(low < 0)][round(255 * clamp(share, 1))];
/** Black or white, whichever is read more easily on a colour. */
const inkOn = ([red, green, blue]) => (0.2126 * red ** 2 + 0.7152 * green ** 2 + 0.0722 * blue ** 2 > 13500 ? "#000" : "#fff");
/** What the colours mean; the style sheet has them too. */
const legend = (low, high, text) => span("legend", span("", text), n(low, 2), span(low < 0 ? "ramp signed" : "ramp"), n(high, 2));

/** A chart with a title and a note from the strings, and its values as a table: `table` gives [heads, rows]. */
function figure({ key, values, title = t(key, values), about = known(`${key}_note`) && t(`${key}_note`, values), chart, table }) {
  const holder = h("div", { hidden: true });
  const toggle = button(t("table.show"), () => {
    if (!holder.firstChild) holder.append(tableOf(table(), title));
    holder.hidden = !holder.hidden;
    aria(toggle, "expanded", !holder.hidden);
    toggle.textContent = t(holder.hidden ? "table.show" : "table.hide");
  }, { class: "quiet", "aria-expanded": "false" });
  const save = quiet("CSV", () => download(`${key}.csv`, csvOf(table())), t("table.csv", { title }));
  return h("section", { class: "figure", "data-figure": key },
    div("figure-head", h("h2", {}, title), table && div("actions", toggle, save)), about && note(about), chart, holder);
}

/** Values as a table that scrolls in its own box. */
function tableOf([columns, rows], caption) {
  const look = (value) => (typeof value === "number" ? { class: "number" } : { dir: "auto" });
  const cell = (value) => h("td", look(value), typeof value === "number" ? (Number.isInteger(value) ? whole : brief)(value) : value ?? "–");
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", { class: "values" }, h("thead", {}, h("tr", {}, columns.map((one, i) => h("th", { scope: "col", ...look(rows[0]?.[i]) }, one)))), h("tbody", {}, rows.slice(0, MOST_ROWS).map((row) => h("tr", {}, row.map(cell))))),
    rows.length > MOST_ROWS && note(t("table.more", { count: whole(rows.length - MOST_ROWS) })));
}

/** RFC 4180; what a spreadsheet would compute stands behind an apostrophe. */
function csvOf([columns, rows]) {
  const cell = (value) => {
    const text = value?.textContent ?? String(value ?? "");
    return `"${(typeof value !== "number" && /^[=+\-@\t\r]./.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  };
  return [columns, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

function download(name, text) {
  const address = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Bars with their numbers: [label, value, text, action, strong]. */
const bars = (items, high = max(...items.map(([, value]) => abs(value)), 1e-9)) =>
  h("ul", { class: "bars" }, items.map(([label, value, text, action, strong]) => h("li", { class: strong && "strong" },
    h("span", { class: "bar-label", dir: "auto" }, label),
    span(value < 0 ? "bar below" : "bar", h("span", { style: { width: `${max(0.5, (100 * abs(value)) / high)}%` } })),
    span("bar-value", text), action)));

/** Draw again whenever the width changes. */
function sized(holder, draw) {
  let width = 0;
  new ResizeObserver(() => {
    const now = floor(holder.clientWidth);
    if (now && now !== width) draw((width = now));
  }).observe(holder);
  return holder;
}

/** Round numbers between two values, each with its text. */
function ticks(low, high, count) {
  const power = 10 ** floor(Math.log10((high - low) / count));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= (high - low) / count);
  const first = ceil(low / step - 1e-9);
  const text = (value) => (step < 1e-3 || step >= 1e3 ? brief(value) : n(value, max(0, -floor(Math.log10(step) + 1e-9))));
  return range(max(1, floor(high / step + 1e-9) - first + 1)).map((k) => [(first + k) * step, text((first + k) * step)]);
}

const nearest = (sorted, value) => sorted.reduce((best, one, i) => (abs(one - value) <= abs(sorted[best] - value) ? i : best), 0);
const allOf = (series) => [...new Set(series.flatMap((one) => one.x))].sort((one, other) => one - other);

/** Curves of {name, x, y}; each has its colour, dash and mark. The arrow keys read the values. */
function curves({ label, series, xTitle, yTitle }) {
  const xs = allOf(series);
  const all = series.flatMap((one) => one.y);
  let [low, high] = [min(...all), max(...all)];
  if (low > 0 && low < high * 0.4) low = 0;
  if (low === high) [low, high] = [min(0, low), max(1, high * 1.2)];
  const [first, last] = [xs[0], xs.length > 1 ? xs.at(-1) : xs[0] + 1];
  const reading = para("reading", h("small", {}, t("chart.keys")));
  const cursor = svg("path", { class: "cursor" });
  const holder = h("div", { class: "chart", tabindex: 0, role: "slider", "aria-label": label, "aria-valuenow": 0, "aria-valuemin": 0, "aria-valuemax": xs.length - 1, "aria-valuetext": t("chart.keys") });
  const box = { left: 56, top: 10 };
  const toX = (value) => box.left + ((value - first) / (last - first)) * (box.right - box.left);
  const toY = (value) => box.bottom - ((value - low) / (high - low)) * (box.bottom - box.top);
  let at = -1;

  function read(to) {
    at = clamp(to, xs.length - 1);
    const said = series.map((one) => `${series.length > 1 ? `${one.name} ` : ""}${brief(one.y[nearest(one.x, xs[at])])}`);
    reading.textContent = `${xTitle} ${brief(xs[at])}: ${said.join(" · ")}`;
    aria(holder, "valuenow", at);
    aria(holder, "valuetext", reading.textContent);
    cursor.setAttribute("d", `M${toX(xs[at])} ${box.top}V${box.bottom}`);
  }
  holder.addEventListener("keydown", (e) => {
    const to = { ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: at - 1, ArrowDown: at - 1, Home: 0, End: xs.length - 1 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    read(to);
  });
  holder.addEventListener("pointermove", (e) => {
    const share = (e.clientX - holder.getBoundingClientRect().left - box.left) / (box.right - box.left);
    read(nearest(xs, first + share * (last - first)));
  });

  const text = (x, y, words, look = "tick") => svg("text", { class: look, x, y }, words);
  const mark = (k, x, y) => svg("text", { class: "mark", x, y: y + 4 }, MARKS[k % 7]);
  const line = (k, d) => svg("path", { class: "curve", d, "stroke-dasharray": DASHES[k % 7] });
  sized(holder, (width) => {
    const height = round(min(300, max(200, width * 0.4)));
    Object.assign(box, { right: width - 16, bottom: height - 40 });
    holder.replaceChildren(svg("svg", { width, height },
      ticks(low, high, 5).map(([y, said]) => [svg("path", { class: "grid", d: `M${box.left} ${toY(y)}H${box.right}` }), text(box.left - 8, toY(y) + 4, said, "tick end")]),
      ticks(first, last, max(2, floor(width / 80))).filter(([x]) => Number.isInteger(x)).map(([x]) => text(toX(x), box.bottom + 18, brief(x))), text((box.left + box.right) / 2, height - 4, xTitle),
      series.map(({ x, y }, k) => svg("g", { class: `c${k % 7}` }, line(k, x.map((one, i) => `${i ? "L" : "M"}${toX(one).toFixed(1)} ${toY(y[i]).toFixed(1)}`).join("")),
        x.flatMap((one, i) => (i % ceil(x.length / 12) ? [] : [mark(k, toX(one), toY(y[i]))])), svg("circle", { class: "ring", r: 4, cx: toX(x.at(-1)), cy: toY(y.at(-1)) }))), cursor));
    if (at >= 0) read(at);
  });
  return div("", para("axis", yTitle), holder, reading, h("ul", { class: "keys" }, series.map((one, k) =>
    h("li", {}, svg("svg", { width: 36, height: 14, class: `c${k % 7}` }, line(k, "M1 7H35"), mark(k, 18, 7)), `${one.name}: ${brief(one.y.at(-1))}`))));
}

/** The values of curves as a table: a row for each x. */
function curvesTable(series, xTitle) {
  const values = series.map((one) => new Map(one.x.map((x, i) => [x, one.y[i]])));
  return [[xTitle, ...series.map((one) => one.name)], allOf(series).map((x) => [x, ...values.map((one) => one.get(x))])];
}
