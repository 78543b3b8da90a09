/* Figures with a chart and its values as a table and as CSV; bars. */

import { button, linkButton } from "./controls.js";
import { aria, div, download, h, note, span } from "./elements.js";
import { abs, max } from "./numbers.js";
import { savePicture } from "./picture.js";
import { compact, integer, localized, t } from "./strings.js";

const MAX_ROWS = 2000;

/** Create a chart with a title and a note from the strings, to save as a picture, and its values as
    a table: `table` returns [titles, rows].
    @type {(options: FigureOptions) => HTMLElement} */
export function figure({
  key,
  values,
  title = t(key, values),
  about = localized(`${key}_note`) && t(`${key}_note`, values),
  chart,
  table,
}) {
  const holder = h("div", { class: "figure-table", hidden: true });
  const toggle = button(
    t("table.show"),
    () => {
      if (table && !holder.firstChild) holder.append(tableOf(table(), title));
      holder.hidden = !holder.hidden;
      aria(toggle, "expanded", !holder.hidden);
      toggle.textContent = t(holder.hidden ? "table.show" : "table.hide");
    },
    { class: "quiet", "aria-expanded": "false" },
  );
  const save = linkButton(
    "CSV",
    () => table && download(`${key}.csv`, "text/csv", "\ufeff", csvOf(table())),
    t("table.csv", { title }),
  );
  const pictures = /** @type {const} */ (["svg", "png"]).map((format) =>
    linkButton(
      format.toUpperCase(),
      () => savePicture(section, key, format),
      t("figure.save", { format: format.toUpperCase(), title }),
    ),
  );
  const section = h(
    "section",
    { class: "figure", "data-figure": key },
    div("figure-head", h("h2", {}, title), table && div("actions", toggle, save, pictures)),
    about && note(about),
    chart,
    holder,
  );
  return section;
}

/** Create a table [titles, rows] in a box that scrolls.
    @type {(table: Table, caption: string) => HTMLElement} */
export function tableOf([columns, rows], caption) {
  /** @type {(value: Cell) => Attributes} */
  const attributes = (value) => (typeof value === "number" ? { class: "number" } : { dir: "auto" });
  /** @type {(value: Cell) => HTMLElement} */
  const cell = (value) =>
    h(
      "td",
      attributes(value),
      typeof value === "number"
        ? (Number.isInteger(value) ? integer : compact)(value)
        : (value ?? "–"),
    );
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      { class: "values" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map((title, i) => h("th", { scope: "col", ...attributes(rows[0]?.[i]) }, title)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.slice(0, MAX_ROWS).map((row) => h("tr", {}, row.map(cell))),
      ),
    ),
    rows.length > MAX_ROWS && note(t("table.more", { count: integer(rows.length - MAX_ROWS) })),
  );
}

/** Return a table as CSV (RFC 4180), with an apostrophe before texts that a spreadsheet would take
    for formulas.
    @type {(table: Table) => string} */
function csvOf([columns, rows]) {
  /** @type {(value: Cell) => string} */
  const cell = (value) => {
    const text = value instanceof Node ? (value.textContent ?? "") : String(value ?? "");
    const isFormula = typeof value !== "number" && /^[=+\-@\t\r]./.test(text);
    return `"${isFormula ? "'" : ""}${text.replaceAll('"', '""')}"`;
  };
  return [columns, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** Create a bar chart of items [label, value, text, action, strong].
    @type {(items: Bar[], high?: number) => HTMLElement} */
export const bars = (items, high = max(...items.map(([, value]) => abs(value)), 1e-9)) =>
  h(
    "ul",
    { class: "bars" },
    items.map(([label, value, text, action, strong]) =>
      h(
        "li",
        { class: strong && "strong" },
        h("span", { class: "bar-label", dir: "auto" }, label),
        span(
          value < 0 ? "bar below" : "bar",
          h("span", { style: { width: `${max(0.5, (100 * abs(value)) / high)}%` } }),
        ),
        span("bar-value", text),
        action,
      ),
    ),
  );
