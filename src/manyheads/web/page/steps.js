"use strict";
/* The computation of a head for one query, step by step as in the paper (section 3.2.1): scores, mask, softmax, weighted sum. */
const STAGES = ["scores", "mask", "softmax", "output"];
views.steps = { needsInspection: true, needsEngine: true, build: buildSteps };

/** Create a MathML element; in `mrow`, strings become identifiers, numbers or operators.
    @type {(tag: string, ...children: Child[]) => Element} */
const m = (tag, ...children) => populate(document.createElementNS("http://www.w3.org/1998/Math/MathML", tag), {}, children);
/** Return the name of the MathML element of a string.
    @type {(text: string) => string} */
const elementFor = (text) => (/^−?[\d.,]+$/.test(text) ? "mn" : /^[a-z]+$/i.test(text) ? "mi" : "mo");
/** @type {(...terms: Term[]) => Element} */
const mrow = (...terms) => m("mrow", terms.flat(9).map((term) => (typeof term === "string" ? m(elementFor(term), term) : term)));
/** @type {(name: Term, index: Term) => Element} */
const msub = (name, index) => m("msub", mrow(name), mrow(index));
/** @type {(upper: Term, lower: Term) => Element} */
const mfrac = (upper, lower) => m("mfrac", mrow(upper), mrow(lower));
/** @type {(content: Term) => Element} */
const mroot = (content) => m("msqrt", mrow(content));
/** @type {(power: Term) => Element} */
const mexp = (power) => m("msup", mrow("e"), mrow(power));
/** @type {(index: Term) => Element} */
const msum = (index) => m("munder", mrow("∑"), mrow(index));
/** Return a number after an operator, in brackets if it is negative.
    @type {(value: number) => Term} */
const mnumber = (value) => (value < 0 ? ["(", n(value, 2), ")"] : n(value, 2));
/** Return the first products of a sum, as many as fit, and dots for the others.
    @type {(pairs: [number, number][]) => Term} */
function mproducts(pairs) {
  const count = innerWidth < 700 ? 1 : 3;
  return [pairs.slice(0, count).map(([a, b], i) => [i ? "+" : [], mnumber(a), "·", mnumber(b)]), pairs.length > count ? ["+", "…"] : []];
}

/** Request the intermediate values of a head; return them with the names of rows and columns.
    @type {(inspection: Inspection, kind: AttentionKind, layer: number, head: number) => Promise<HeadValues>} */
async function headSteps(inspection, kind, layer, head) {
  const [rows, columns] = attentionAxes(inspection, kind);
  const packed = await fetchHead(kind, layer, head);
  const arrays = Object.fromEntries(["queries", "keys", "values", "scores", "mask", "weights", "outputs"].map((name) => [name, unpack(packed[name])]));
  /** @type {HeadValues["at"]} */
  const at = (name, i, k) => arrays[name].data[i * arrays[name].shape[1] + k];
  /** @type {HeadValues["vector"]} */
  const vector = (name, i) => [...arrays[name].data.slice(i * width, (i + 1) * width)];
  const width = arrays.queries.shape[1];
  return { rows, columns, at, vector, width };
}

/** @type {(panel: HTMLElement, inspection: Inspection) => Promise<void>} */
async function buildSteps(panel, inspection) {
  const kinds = inspection.attention.map((part) => part.kind);
  const attention = attentionOfKind(inspection, state.kind);
  const { kind } = attention;
  const [layers, count] = unpack(attention.weights).shape;
  const layer = range(layers).includes(state.layer) ? state.layer : layers - 1;
  const head = range(count).includes(Number(state.head)) ? Number(state.head) : 0;
  const steps = await headSteps(inspection, kind, layer, head);
  const { rows, columns } = steps;
  let [query, key] = [0, 0];

  /** @type {(name: "kind" | "layer" | "head", options: Choice[], current: string | number) => HTMLElement} */
  const stateChoice = (name, options, current) => choice(t(`attention.${name}`), options, current, (value) => {
    change({ kind, layer, head: String(head), [name]: name === "layer" ? Number(value) : value, ...(name === "kind" && { query: 0 }) });
    render(true);
  });
  const tokens = rows.names.map((name, i) => button(pieceText(name), () => selectQuery(i), { class: "token", dir: "auto" }));
  const stages = STAGES.map((name, i) => button(`${i + 1}. ${t(`steps.${name}_short`)}`, () => showStage(i)));
  const back = button(t("steps.back"), () => showStage(state.stage - 1));
  const next = button(t("steps.next"), () => showStage(state.stage + 1), { class: "primary" });
  const holder = h("div", {});
  holder.addEventListener("keydown", changeStage, true);
  panel.append(
    div("controls", kinds.length > 1 && stateChoice("kind", kinds.map((name) => [name, t(`attention.${name}`)]), kind), stateChoice("layer", range(layers), layer), stateChoice("head", range(count), head)),
    figure({ key: "steps.query", about: `${t("steps.query_note", { side: rows.title })} ${shiftNote(inspection, attention, [rows, columns])}`, chart: tokenRow(rows.title, tokens, rows.names, min(state.query, tokens.length - 1)) }),
    div("controls stages", roving(h("div", { class: "segments", role: "group", "aria-label": t("tab.steps") }, stages), stages, state.stage, showStage), back, next), holder);
  selectQuery(min(state.query, tokens.length - 1));

  /** Select a query, and the key with the largest weight.
      @type {(i: number) => void} */
  function selectQuery(i) {
    query = i;
    key = columns.names.reduce((best, _, k) => (steps.at("weights", i, k) > steps.at("weights", i, best) ? k : best), 0);
    change({ query });
    setPressed(tokens, i);
    showStage(state.stage);
  }

  /** Show a step of the computation.
      @type {(to: number) => void} */
  function showStage(to) {
    change({ stage: clamp(to, STAGES.length - 1) });
    setPressed(stages, state.stage);
    stages.forEach((stage, i) => { stage.tabIndex = i === state.stage ? 0 : -1; });
    back.disabled = state.stage === 0;
    next.disabled = state.stage === STAGES.length - 1;
    holder.replaceChildren(draw(STAGES[state.stage]));
  }

  /** Change the step by the left and right arrow keys in the table.
      @type {(e: KeyboardEvent) => void} */
  function changeStage(e) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!by || !(e.target instanceof Element && e.target.closest(".strips")) || e.altKey || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    e.stopPropagation();
    showStage(state.stage + by);
    /** @type {NodeListOf<HTMLElement>} */ (holder.querySelectorAll(".strips button"))[key].focus();
  }

  /** Create the figure of a step: formula, formula with numbers, and table.
      @type {(name: string) => HTMLElement} */
  function draw(name) {
    const { formula, numbers, titles, cells, firstRow, lastRow, vectorOf, table, high } = STEPS[name](steps, query);
    const [filledIn, reading] = [div("formula-numbers"), para("reading vector")];
    const buttons = columns.names.map((piece, i) => button(pieceText(piece), () => selectKey(i), { dir: "auto", onfocus: () => selectKey(i) }));
    /** @type {(style: string, title: Child, content: Child[]) => HTMLElement} */
    const line = (style, title, content) => h("tr", { class: style }, h("th", { scope: "row", dir: "auto" }, title), content.map((cell) => h("td", {}, cell)));
    const lines = buttons.map((keyButton, i) => line("", keyButton, cells(i)));
    lines.forEach((row, i) => row.addEventListener("pointerenter", () => selectKey(i)));
    const strips = h("table", { class: "strips" }, h("thead", {}, h("tr", {}, [columns.title, ...titles].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, firstRow && line("summary", ...firstRow), lines, lastRow && line("summary", ...lastRow)));
    selectKey(key);
    return figure({
      key: `steps.${name}`, title: `${state.stage + 1}. ${t(`steps.${name}`)}`, table,
      chart: stack(div("formulas", formulaBox(formula), filledIn), stack(h("div", { class: "scroll-x" }, roving(strips, buttons, key)), reading, high && legend(-high, high, t("steps.component"))),
        name === "scores" && inspection.model.positions === "rotary" && kind !== "cross" && note(t("steps.rotary")),
        name === "output" && disabledHeads().includes(`${kind}.${layer}.${head}`) && note(t("steps.off"))),
    });

    /** Show the numbers of a key.
        @type {(i: number) => void} */
    function selectKey(i) {
      key = i;
      lines.forEach((row, k) => row.classList.toggle("current", k === i));
      filledIn.replaceChildren(formulaBox(numbers(i)));
      reading.textContent = vectorOf ? vectorOf(i) : "";
    }
  }
}

/** Create a formula, in a box that scrolls if the formula is too wide.
    @type {(...terms: Term[]) => HTMLElement} */
const formulaBox = (...terms) => h("div", { class: "formula", tabindex: 0, role: "group", "aria-label": t("steps.formula") }, populate(m("math", mrow(terms)), { display: "block" }, []));

/** Draw a vector as a strip of colours.
    @type {(values: number[], high: number) => HTMLElement} */
function colourStrip(values, high) {
  const canvas = h("canvas", { class: "strip", width: values.length, height: 1, "aria-hidden": true });
  paint(canvas, (_, i) => (values[i] + high) / (2 * high), -high);
  return canvas;
}
/** @type {(name: string, values: number[]) => string} */
const vectorText = (name, values) => `${name}: ${values.map((value) => n(value, 2)).join("  ")}`;
/** @type {(vectors: number[][]) => number} */
const largestOf = (vectors) => max(...vectors.flat().map(abs), 0.01);
/** @type {(value: number) => HTMLElement} */
const weightCell = (value) => div("share", span("bar", h("span", { style: { width: `${100 * value}%` } })), n(value));
/* The text of the score of a masked key. */
const MINUS_INFINITY = "−∞";

/** Each step: its formula, the formula with the numbers of a key, the cells of a key, further rows, the text of a vector, and the table.
    @type {{ [stage: string]: (values: HeadValues, query: number) => StageOfHead }} */
const STEPS = {
  scores({ rows, columns, at, vector, width }, query) {
    const q = vector("queries", query);
    const keys = columns.names.map((_, i) => vector("keys", i));
    const high = largestOf([q, ...keys]);
    /** @type {(i: number) => number} */
    const score = (i) => at("scores", query, i);
    /** @type {(i: number) => number} */
    const dot = (i) => score(i) * Math.sqrt(width);
    const name = `q ${pieceText(rows.names[query])}`;
    return {
      high, titles: [t("steps.keys"), "q · k", t("column.score")],
      formula: [msub("s", "j"), "=", mfrac(["q", "·", msub("k", "j")], mroot(msub("d", "k")))],
      numbers: (i) => [mfrac(mproducts(q.map((value, e) => [value, keys[i][e]])), mroot(String(width))), "=", mfrac(n(dot(i), 2), n(Math.sqrt(width), 2)), "=", n(score(i), 2)],
      cells: (i) => [colourStrip(keys[i], high), n(dot(i), 2), n(score(i), 2)],
      firstRow: [name, [colourStrip(q, high), "", ""]],
      vectorOf: (i) => vectorText(`k ${pieceText(columns.names[i])}`, keys[i]),
      table: () => [[t("column.piece"), "q · k", t("column.score"), ...range(width)], [[name, "", "", ...q], ...keys.map((components, i) => [`k ${pieceText(columns.names[i])}`, dot(i), score(i), ...components])]],
    };
  },
  mask({ columns, at }, query) {
    /** @type {(i: number) => number} */
    const score = (i) => at("scores", query, i);
    /** @type {(i: number) => boolean} */
    const visible = (i) => at("mask", query, i) > 0.5;
    /** @type {(i: number) => string[]} */
    const cells = (i) => [n(score(i), 2), visible(i) ? "0" : MINUS_INFINITY, visible(i) ? n(score(i), 2) : MINUS_INFINITY];
    const titles = [t("column.score"), t("steps.mask_short"), t("steps.masked")];
    return {
      titles, formula: [msub("s", "j"), "+", msub("m", "j")],
      numbers: (i) => [n(score(i), 2), "+", visible(i) ? "0" : ["(", MINUS_INFINITY, ")"], "=", visible(i) ? n(score(i), 2) : MINUS_INFINITY],
      cells: (i) => cells(i).map((cell, k) => span(k > 0 && !visible(i) && "hatched", cell)),
      table: () => [[t("column.piece"), ...titles], columns.names.map((piece, i) => [pieceText(piece), score(i), visible(i) ? 0 : MINUS_INFINITY, visible(i) ? score(i) : MINUS_INFINITY])],
    };
  },
  softmax({ columns, at }, query) {
    const all = range(columns.names.length);
    /** @type {(i: number) => boolean} */
    const visible = (i) => at("mask", query, i) > 0.5;
    const largest = max(...all.filter(visible).map((i) => at("scores", query, i)));
    /** @type {(i: number) => number} */
    const power = (i) => (visible(i) ? Math.exp(at("scores", query, i) - largest) : 0);
    const total = all.reduce((sum, i) => sum + power(i), 0);
    /** @type {(i: number) => string} */
    const score = (i) => (visible(i) ? n(at("scores", query, i), 2) : MINUS_INFINITY);
    const titles = [t("steps.masked"), t("steps.power"), t("column.weight")];
    return {
      titles, formula: [msub("a", "j"), "=", mfrac(mexp(msub("s", "j")), [msum("i"), mexp(msub("s", "i"))]), "=", mfrac(mexp([msub("s", "j"), "−", "max"]), [msum("i"), mexp([msub("s", "i"), "−", "max"])])],
      numbers: (i) => [mfrac(mexp([score(i), "−", mnumber(largest)]), n(total)), "=", mfrac(n(power(i)), n(total)), "=", n(at("weights", query, i))],
      cells: (i) => [score(i), n(power(i)), weightCell(at("weights", query, i))],
      lastRow: [t("steps.sum"), ["", n(total), n(1)]],
      table: () => [[t("column.piece"), ...titles], all.map((i) => [pieceText(columns.names[i]), visible(i) ? at("scores", query, i) : MINUS_INFINITY, power(i), at("weights", query, i)])],
    };
  },
  output({ rows, columns, at, vector, width }, query) {
    const values = columns.names.map((_, i) => vector("values", i));
    const output = vector("outputs", query);
    const high = largestOf([...values, output]);
    /** @type {(i: number) => number} */
    const weight = (i) => at("weights", query, i);
    /** @type {(i: number) => number[]} */
    const order = (i) => [i, ...range(values.length).filter((k) => k !== i).sort((a, b) => weight(b) - weight(a))];
    const name = t("steps.result", { piece: pieceText(rows.names[query]) });
    return {
      high, titles: [t("column.weight"), t("steps.values")],
      formula: ["o", "=", msum("j"), msub("a", "j"), msub("v", "j")],
      numbers: (i) => [msub("o", "0"), "=", mproducts(order(i).map((k) => [weight(k), values[k][0]])), "=", n(output[0], 2)],
      cells: (i) => [weightCell(weight(i)), colourStrip(values[i], high)],
      lastRow: [name, ["", colourStrip(output, high)]],
      vectorOf: (i) => vectorText(`v ${pieceText(columns.names[i])}`, values[i]),
      table: () => [[t("column.piece"), t("column.weight"), ...range(width)], [...values.map((components, i) => [`v ${pieceText(columns.names[i])}`, weight(i), ...components]), [name, "", ...output]]],
    };
  },
};
