/* Curves. */

import { aria, div, h, onResize, para, svg } from "./elements.js";
import { figure } from "./figure.js";
import { abs, ceil, clamp, floor, max, min, range, round } from "./numbers.js";
import { compact, n, t } from "./strings.js";

const DASHES = ["", "7 4", "2 3", "10 3 2 3", "5 5", "14 3", "1 4"];

const MARKERS = "●■▲◆✕✚○";

/* The high values of the first updates would flatten the rest of these charts. */
const LOGARITHMIC_CHARTS = ["training.loss", "training.perplexity"];

/** Create a figure of curves.
    @type {(key: string, series: Curve[], xTitle: string, yTitle: string,
      values?: { [name: string]: unknown }) => HTMLElement} */
export const curvesFigure = (key, series, xTitle, yTitle, values) =>
  figure({
    key,
    values,
    chart: curves({
      label: t(key, values),
      series,
      xTitle,
      yTitle,
      logarithmic: LOGARITHMIC_CHARTS.includes(key),
    }),
    table: () => curvesTable(series, xTitle),
  });

/** Return round numbers between two values as pairs [number, text].
    @type {(low: number, high: number, count: number) => [number, string][]} */
function ticks(low, high, count) {
  const power = 10 ** floor(Math.log10((high - low) / count));
  const step =
    [1, 2, 5].map((factor) => factor * power).find((size) => size >= (high - low) / count) ??
    10 * power;
  const first = ceil(low / step - 1e-9);
  /** @type {(value: number) => string} */
  const text = (value) =>
    step < 1e-3 || step >= 1e3 ? compact(value) : n(value, max(0, -floor(Math.log10(step) + 1e-9)));
  return range(max(1, floor(high / step + 1e-9) - first + 1)).map((k) => [
    (first + k) * step,
    text((first + k) * step),
  ]);
}

/** Return about the width of a text of 12 pixels, in pixels.
    @type {(text: string) => number} */
const textWidth = (text) =>
  [...text].reduce((width, letter) => width + (letter > "\u1100" ? 12 : 6.4), 0);

/** Return the index of the value in a list that is nearest to another.
    @type {(sorted: number[], value: number) => number} */
const nearest = (sorted, value) =>
  sorted.reduce((best, item, i) => (abs(item - value) <= abs(sorted[best] - value) ? i : best), 0);

/** Return the sorted x values of all curves.
    @type {(series: Curve[]) => number[]} */
const allX = (series) => [...new Set(series.flatMap((curve) => curve.x))].sort((a, b) => a - b);

/** Return numbers of a logarithmic axis as pairs [number, text]: 1, 2 and 5 times powers of ten; of
    a short axis those of `ticks`.
    @type {(low: number, high: number, count: number) => [number, string][]} */
function logarithmicTicks(low, high, count) {
  const [first, last] = [low, high].map((value) => floor(Math.log10(value)));
  const numbers = range(last - first + 1)
    .flatMap((power) =>
      (last - first > 3 ? [1] : [1, 2, 5]).map((factor) => factor * 10 ** (first + power)),
    )
    .filter((value) => value >= low && value <= high);
  if (numbers.length <= 2) return ticks(low, high, count);
  /** @type {(value: number) => string} */
  const text = (value) =>
    value < 1e-3 || value >= 1e4
      ? compact(value)
      : n(value, max(0, -floor(Math.log10(value) + 1e-9)));
  return numbers.map((value) => [value, text(value)]);
}

/** Return the heights of the names of curves in the plot, as near as possible to the ends of the
    curves, in which they cover no curve and no other name; null without room. The names reach to
    the left to `left`.
    @type {(paths: [x: number, y: number][][], left: number, top: number, bottom: number) =>
      number[] | null} */
function nameHeights(paths, left, top, bottom) {
  const pieces = paths.flatMap((path) =>
    path.flatMap(([x, y], i) => {
      const [startX, startY] = path[i - 1] ?? [x, y];
      return x < left
        ? []
        : [[y, startX < left ? startY + ((y - startY) * (left - startX)) / (x - startX) : startY]];
    }),
  );
  /** @type {number[]} */
  const taken = [];
  const ends = paths.map((path) => path[path.length - 1][1]);
  for (const end of ends) {
    const free = range(ceil((bottom - top) / 4))
      .map((k) => top + 4 * k)
      .filter(
        (y) =>
          pieces.every((piece) => y < min(...piece) - 11 || y > max(...piece) + 11) &&
          taken.every((other) => abs(other - y) > 15),
      );
    if (!free.length) return null;
    taken.push(free.reduce((best, y) => (abs(y - end) < abs(best - end) ? y : best)));
  }
  taken.sort((a, b) => a - b); // the names in the order of the ends
  const order = range(ends.length).sort((i, k) => ends[i] - ends[k]);
  return ends.map((_, i) => taken[order.indexOf(i)]);
}

/** Create a chart of curves {name, x, y}, each with its own colour, dash and marker, and its name
    with the last value near its end; the arrow keys move a cursor. On a logarithmic axis, values
    that are not positive are drawn at its low end.
    @type {(options: { label: string, series: Curve[], xTitle: string, yTitle: string,
      logarithmic?: boolean }) => HTMLElement} */
function curves({ label, series, xTitle, yTitle, logarithmic = false }) {
  const xs = allX(series);
  const ys = series.flatMap((curve) => curve.y).filter((y) => !logarithmic || y > 0);
  let [low, high] = ys.length ? [min(...ys), max(...ys)] : [1, 1];
  if (!logarithmic && low > 0 && low < high * 0.4) low = 0;
  if (low === high) {
    [low, high] = logarithmic ? [low / 2, high * 2] : [min(0, low), max(1, high * 1.2)];
  }
  const [first, last] = [xs[0], xs.length > 1 ? xs[xs.length - 1] : xs[0] + 1];
  const reading = para("reading", h("small", {}, t("chart.keys")));
  const cursor = svg("path", { class: "cursor" });
  const holder = h("div", {
    class: "chart",
    tabindex: 0,
    role: "slider",
    "aria-label": label,
    "aria-valuenow": 0,
    "aria-valuemin": 0,
    "aria-valuemax": xs.length - 1,
    "aria-valuetext": t("chart.keys"),
  });
  const box = { left: 56, top: 10, right: 0, bottom: 0 };
  /** @type {(value: number) => number} */
  const toX = (value) => box.left + ((value - first) / (last - first)) * (box.right - box.left);
  /** @type {(value: number) => number} */
  const toY = (value) => {
    const share = logarithmic
      ? Math.log(max(value, low) / low) / Math.log(high / low)
      : (value - low) / (high - low);
    return box.bottom - share * (box.bottom - box.top);
  };
  /** @type {(curve: Curve) => string} */
  const pathOf = ({ x, y }) =>
    x
      .map((value, i) => `${i ? "L" : "M"}${toX(value).toFixed(1)} ${toY(y[i]).toFixed(1)}`)
      .join("");
  let index = -1;

  /** Show the values at an index of `xs`.
      @type {(to: number) => void} */
  function readValues(to) {
    index = clamp(to, xs.length - 1);
    const values = series.map(({ name, x, y }) => {
      const value = compact(y[nearest(x, xs[index])]);
      return series.length > 1 ? `${name} ${value}` : value;
    });
    reading.textContent = `${xTitle} ${compact(xs[index])}: ${values.join(" · ")}`;
    aria(holder, "valuenow", index);
    aria(holder, "valuetext", reading.textContent);
    cursor.setAttribute("d", `M${toX(xs[index])} ${box.top}V${box.bottom}`);
  }
  holder.addEventListener("keydown", (e) => {
    const to = {
      ArrowRight: index + 1,
      ArrowUp: index + 1,
      ArrowLeft: index - 1,
      ArrowDown: index - 1,
      Home: 0,
      End: xs.length - 1,
    }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    readValues(to);
  });
  holder.addEventListener("pointermove", (e) => {
    const share =
      (e.clientX - holder.getBoundingClientRect().left - box.left) / (box.right - box.left);
    readValues(nearest(xs, first + share * (last - first)));
  });

  /** @type {(x: number, y: number, content: string, style?: string) => Element} */
  const text = (x, y, content, style = "tick") => svg("text", { class: style, x, y }, content);
  /** @type {(k: number, x: number, y: number) => Element} */
  const mark = (k, x, y) => svg("text", { class: "mark", x, y: y + 4 }, MARKERS[k % 7]);
  /** @type {(k: number, d: string) => Element} */
  const line = (k, d) => svg("path", { class: "curve", d, "stroke-dasharray": DASHES[k % 7] });
  const names = series.map((curve) => `${curve.name}: ${compact(curve.y[curve.y.length - 1])}`);
  const keys = h(
    "ul",
    { class: "keys" },
    names.map((name, k) =>
      h(
        "li",
        {},
        svg(
          "svg",
          { width: 36, height: 14, class: `c${k % 7}` },
          line(k, "M1 7H35"),
          mark(k, 18, 7),
        ),
        name,
      ),
    ),
  );
  onResize(holder, (width) => {
    const height = round(min(300, max(200, width * 0.4)));
    Object.assign(box, { right: width - 16, bottom: height - 40 });
    const left = box.right - max(...names.map(textWidth)) - 26;
    const paths = series.map(({ x, y }) =>
      x.map((value, i) => /** @type {[number, number]} */ ([toX(value), toY(y[i])])),
    );
    const heights = left > width / 3 ? nameHeights(paths, left, box.top + 6, box.bottom - 8) : null;
    keys.hidden = Boolean(heights);
    holder.replaceChildren(
      svg(
        "svg",
        { width, height },
        (logarithmic ? logarithmicTicks : ticks)(low, high, 5).map(([y, tick]) => [
          svg("path", { class: "grid", d: `M${box.left} ${toY(y)}H${box.right}` }),
          text(box.left - 8, toY(y) + 4, tick, "tick end"),
        ]),
        ticks(first, last, max(2, floor(width / 80)))
          .filter(([x]) => Number.isInteger(x))
          .map(([x]) => text(toX(x), box.bottom + 18, compact(x))),
        text((box.left + box.right) / 2, height - 4, xTitle),
        series.map(({ x, y }, k) =>
          svg(
            "g",
            { class: `c${k % 7}` },
            line(k, pathOf(series[k])),
            x.flatMap((value, i) =>
              i % ceil(x.length / 12) ? [] : [mark(k, toX(value), toY(y[i]))],
            ),
            svg("circle", {
              class: "ring",
              r: 4,
              cx: toX(x[x.length - 1]),
              cy: toY(y[y.length - 1]),
            }),
          ),
        ),
        heights?.map((y, k) =>
          svg(
            "g",
            { class: `c${k % 7}` },
            mark(k, box.right - textWidth(names[k]) - 14, y),
            text(box.right - 4, y + 4, names[k], "tick end name"),
          ),
        ),
        cursor,
      ),
    );
    if (index >= 0) readValues(index);
  });
  return div(
    "",
    para("axis", `${yTitle}${logarithmic ? `, ${t("unit.logarithmic")}` : ""}`),
    holder,
    reading,
    keys,
  );
}

/** Return the values of curves as a table with a row for each x.
    @type {(series: Curve[], xTitle: string) => Table} */
function curvesTable(series, xTitle) {
  const values = series.map((curve) => new Map(curve.x.map((x, i) => [x, curve.y[i]])));
  return [
    [xTitle, ...series.map((curve) => curve.name)],
    allX(series).map((x) => [x, ...values.map((byX) => byX.get(x))]),
  ];
}
