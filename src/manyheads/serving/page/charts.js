"use strict";
/* A figure around every chart, with its values as a table and as CSV; bars and lines; colours that all eyes tell apart. */
(() => {
  /* Cividis: Nunez, Anderton and Renslow (2018), dark for little and light for much. */
  const CIVIDIS = [
    [0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115],
    [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56],
  ];
  const DASHES = ["", "7 4", "2 3", "10 3 2 3", "5 5", "14 3", "1 4"];
  const MARKS = ["circle", "square", "triangle", "diamond", "cross", "plus", "ring"];
  const MOST_ROWS = 2000;

  /** The colour of a share from 0 to 1. */
  mh.shade = (share) => {
    const place = Math.min(1, Math.max(0, share)) * (CIVIDIS.length - 1);
    const lower = Math.min(CIVIDIS.length - 2, Math.floor(place));
    return CIVIDIS[lower].map((one, i) => Math.round(one + (CIVIDIS[lower + 1][i] - one) * (place - lower)));
  };
  /** Black or white, whichever is read more easily on a colour. */
  mh.ink = (colour) => {
    const [red, green, blue] = colour.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) ** 2 > 1.05 * 0.05 ? "#000" : "#fff";
  };

  /** What the colours mean. */
  mh.legend = (low, high) => {
    const canvas = mh.h("canvas", { width: 64, height: 1, class: "ramp", "aria-hidden": "true" });
    const pen = canvas.getContext("2d");
    for (let x = 0; x < 64; x += 1) {
      pen.fillStyle = `rgb(${mh.shade(x / 63)})`;
      pen.fillRect(x, 0, 1, 1);
    }
    return mh.h("span", { class: "legend" }, low, canvas, high);
  };

  /** A chart with a title, and its values as a table: `table` gives {columns, rows}. */
  mh.figure = ({ title, note, name, level = 3, chart, table, extra }) => {
    const holder = mh.h("div", { class: "table-holder", hidden: true });
    const toggle = mh.button(mh.t("table.show"), () => {
      const shown = holder.hidden;
      if (shown && !holder.firstChild) holder.append(mh.table(table(), title));
      holder.hidden = !shown;
      toggle.setAttribute("aria-expanded", String(shown));
      toggle.textContent = mh.t(shown ? "table.hide" : "table.show");
    }, { class: "quiet", "aria-expanded": "false" });
    const save = mh.button("CSV", () => download(`${name}.csv`, csv(table())), { class: "quiet", "aria-label": mh.t("table.csv", { title }) });
    return mh.h("section", { class: "figure", "data-figure": name },
      mh.h("div", { class: "figure-head" }, mh.h(`h${level}`, {}, title), mh.h("div", { class: "actions" }, extra, toggle, save)),
      note && mh.h("p", { class: "note" }, note), chart, holder);
  };

  /** Values as a table that scrolls in its own box. */
  mh.table = ({ columns, rows }, caption) => {
    const cell = (value) => (typeof value === "number"
      ? mh.h("td", { class: "number" }, Number.isInteger(value) ? mh.whole(value) : mh.short(value))
      : mh.h("td", { dir: "auto" }, value instanceof Node ? value : String(value ?? "–")));
    const more = rows.length > MOST_ROWS && mh.h("p", { class: "note" }, mh.t("table.more", { count: mh.whole(rows.length - MOST_ROWS) }));
    return mh.h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
      mh.h("table", { class: "values" },
        mh.h("caption", { class: "hidden" }, caption),
        mh.h("thead", {}, mh.h("tr", {}, columns.map((one) => mh.h("th", { scope: "col" }, one)))),
        mh.h("tbody", {}, rows.slice(0, MOST_ROWS).map((row) => mh.h("tr", {}, row.map(cell))))), more);
  };

  /** RFC 4180; what a spreadsheet would compute stands behind an apostrophe. */
  function csv({ columns, rows }) {
    const cell = (value) => {
      const text = value instanceof Node ? value.textContent : String(value ?? "");
      const safe = typeof value !== "number" && /^[=+\-@\t\r]./.test(text) ? `'${text}` : text;
      return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    return [columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
  }

  function download(name, text) {
    const address = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
    mh.h("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  /** Bars with their numbers: {label, value, text, strong, action}. */
  mh.bars = (items, { high = Math.max(...items.map((one) => Math.abs(one.value)), 1e-9) } = {}) =>
    mh.h("ul", { class: "bars" }, items.map((one) => mh.h("li", { class: one.strong ? "strong" : "" },
      mh.h("span", { class: "bar-label", dir: "auto" }, one.label),
      mh.h("span", { class: `bar${one.value < 0 ? " below" : ""}`, "aria-hidden": "true" },
        mh.h("span", { style: { width: `${Math.max(0.5, (100 * Math.abs(one.value)) / high)}%` } })),
      mh.h("span", { class: "bar-value" }, one.text), one.action)));

  /** Draw again whenever the width changes. */
  mh.sized = (holder, draw) => {
    let width = 0;
    new ResizeObserver(() => {
      const now = Math.floor(holder.clientWidth);
      if (now && now !== width) draw((width = now));
    }).observe(holder);
    return holder;
  };

  /** Round numbers between two values. */
  mh.ticks = (low, high, count) => {
    const raw = (high - low) / count || 1;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) found.push(k * step);
    return found;
  };

  function mark(kind, x, y, size) {
    const d = {
      square: `M${x - size} ${y - size}h${2 * size}v${2 * size}h${-2 * size}z`,
      triangle: `M${x} ${y - size}l${size} ${2 * size}h${-2 * size}z`,
      diamond: `M${x} ${y - size * 1.3}l${size * 1.3} ${size * 1.3}l${-size * 1.3} ${size * 1.3}l${-size * 1.3} ${-size * 1.3}z`,
      cross: `M${x - size} ${y - size}l${2 * size} ${2 * size}m0 ${-2 * size}l${-2 * size} ${2 * size}`,
      plus: `M${x - size} ${y}h${2 * size}m${-size} ${-size}v${2 * size}`,
    }[kind];
    return d ? mh.s("path", { d, class: "mark" }) : mh.s("circle", { cx: x, cy: y, r: size, class: `mark ${kind}` });
  }

  /** Curves: series of {name, x, y}; each has its colour, dash and mark. Arrow keys read the values. */
  mh.lines = ({ label, series, xTitle, yTitle }) => {
    const reading = mh.h("p", { class: "reading" }, " ");
    const holder = mh.h("div", { class: "chart", tabindex: 0, role: "slider", "aria-label": label, "aria-valuenow": 0, "aria-valuetext": mh.t("chart.keys") });
    const xs = [...new Set(series.flatMap((one) => [...one.x]))].sort((one, other) => one - other);
    const all = series.flatMap((one) => [...one.y]);
    let [low, high] = [Math.min(...all), Math.max(...all)];
    if (low > 0 && low < high * 0.4) low = 0;
    if (low === high) [low, high] = [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1];
    const [first, last] = [xs[0], xs.length > 1 ? xs.at(-1) : xs[0] + 1];
    holder.setAttribute("aria-valuemin", "0");
    holder.setAttribute("aria-valuemax", String(xs.length - 1));
    let at = -1;
    let place = { x: () => 0 };
    let cursor = null;

    const read = (index) => {
      at = Math.min(xs.length - 1, Math.max(0, index));
      const said = series.map((one) => {
        const found = nearest(one.x, xs[at]);
        return `${series.length > 1 ? `${one.name} ` : ""}${mh.short(one.y[found])}`;
      });
      reading.textContent = `${xTitle} ${mh.short(xs[at])}: ${said.join(" · ")}`;
      holder.setAttribute("aria-valuenow", String(at));
      holder.setAttribute("aria-valuetext", reading.textContent);
      cursor?.setAttribute("d", `M${place.x(xs[at])} ${place.top}V${place.bottom}`);
    };
    holder.addEventListener("keydown", (event) => {
      const leap = Math.max(1, Math.round(xs.length / 10));
      const to = { ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: at - 1, ArrowDown: at - 1, Home: 0, End: xs.length - 1, PageUp: at + leap, PageDown: at - leap }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      read(to);
    });
    holder.addEventListener("pointermove", (event) => {
      const x = event.clientX - holder.getBoundingClientRect().left;
      read(nearest(xs, first + ((x - place.left) / (place.right - place.left)) * (last - first)));
    });

    mh.sized(holder, (width) => {
      const height = Math.round(Math.min(320, Math.max(200, width * 0.45)));
      place = { left: 56, right: width - 12, top: 10, bottom: height - 40 };
      place.x = (value) => place.left + ((value - first) / (last - first)) * (place.right - place.left);
      place.y = (value) => place.bottom - ((value - low) / (high - low)) * (place.bottom - place.top);
      cursor = mh.s("path", { class: "cursor" });
      const grid = mh.ticks(low, high, 5).map((value) => [
        mh.s("path", { class: "grid", d: `M${place.left} ${place.y(value)}H${place.right}` }),
        mh.s("text", { class: "tick", x: place.left - 8, y: place.y(value) + 4, "text-anchor": "end" }, mh.short(value))]);
      const below = mh.ticks(first, last, Math.max(2, Math.floor(width / 110))).map((value) =>
        mh.s("text", { class: "tick", x: place.x(value), y: place.bottom + 18, "text-anchor": "middle" }, mh.short(value)));
      const curves = series.map((one, number) => {
        const d = [...one.x].map((x, i) => `${i ? "L" : "M"}${place.x(x).toFixed(1)} ${place.y(one.y[i]).toFixed(1)}`).join("");
        const every = Math.max(1, Math.ceil(one.x.length / 12));
        const marks = [...one.x].flatMap((x, i) => (i % every ? [] : [mark(MARKS[number % 7], place.x(x), place.y(one.y[i]), 3.5)]));
        return mh.s("g", { class: `line c${number % 7}` }, mh.s("path", { class: "curve", d, "stroke-dasharray": DASHES[number % 7] }), marks);
      });
      const title = mh.s("text", { class: "tick", x: (place.left + place.right) / 2, y: height - 4, "text-anchor": "middle" }, xTitle);
      holder.replaceChildren(mh.s("svg", { width, height, "aria-hidden": "true" }, grid, below, curves, cursor, title));
      if (at >= 0) read(at);
    });

    const names = mh.h("ul", { class: "keys" }, series.length > 1 && series.map((one, number) => mh.h("li", {},
      mh.s("svg", { width: 36, height: 12, class: `line c${number % 7}`, "aria-hidden": "true" },
        mh.s("path", { class: "curve", d: "M1 6H35", "stroke-dasharray": DASHES[number % 7] }), mark(MARKS[number % 7], 18, 6, 3.5)), one.name)));
    return mh.h("div", {}, mh.h("p", { class: "axis" }, yTitle), holder, reading, series.length > 1 && names);
  };

  function nearest(sorted, value) {
    let best = 0;
    for (let i = 1; i < sorted.length; i += 1) if (Math.abs(sorted[i] - value) <= Math.abs(sorted[best] - value)) best = i;
    return best;
  }

  /** The values of curves as a table: one row for each x. */
  mh.linesTable = (series, xTitle) => {
    const xs = [...new Set(series.flatMap((one) => [...one.x]))].sort((one, other) => one - other);
    const values = series.map((one) => new Map([...one.x].map((x, i) => [x, one.y[i]])));
    return { columns: [xTitle, ...series.map((one) => one.name)], rows: xs.map((x) => [x, ...values.map((one) => one.get(x) ?? null)]) };
  };
})();
