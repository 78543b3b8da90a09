"use strict";
/* One head step by step for one query, in the order of the paper (section 3.2.1): scores, mask, softmax, weighted sum. */
const STAGES = ["scores", "mask", "softmax", "output"];
views.steps = { inside: true, served: true, build: buildSteps };

/** An element of MathML; text within a row becomes names, numbers and signs. */
const m = (tag, ...children) => filled(document.createElementNS("http://www.w3.org/1998/Math/MathML", tag), {}, children);
const kindOf = (text) => (/^−?[\d.,]+$/.test(text) ? "mn" : /^[a-z]+$/i.test(text) ? "mi" : "mo");
const mrow = (...terms) => m("mrow", terms.flat(9).map((one) => (typeof one === "string" ? m(kindOf(one), one) : one)));
const msub = (name, index) => m("msub", mrow(name), mrow(index));
const over = (upper, lower) => m("mfrac", mrow(upper), mrow(lower));
const mroot = (content) => m("msqrt", mrow(content));
const mexp = (power) => m("msup", mrow("e"), mrow(power));
const msum = (index) => m("munder", mrow("∑"), mrow(index));
/** A number behind a sign: a negative one stands in brackets. */
const mnumber = (value) => (value < 0 ? ["(", n(value, 2), ")"] : n(value, 2));
/** The first products of a sum, as many as fit, and dots for the others. */
function mproducts(pairs) {
  const written = innerWidth < 700 ? 1 : 3;
  return [pairs.slice(0, written).map(([one, other], i) => [i ? "+" : [], mnumber(one), "·", mnumber(other)]), pairs.length > written ? ["+", "…"] : []];
}

/** What a head computed, as numbers, with the names of its rows and columns. */
async function headSteps(found, kind, layer, head) {
  const [rows, columns] = attentionAxes(found, kind);
  const told = await headOf(kind, layer, head);
  const arrays = Object.fromEntries(["queries", "keys", "values", "scores", "mask", "weights", "outputs"].map((name) => [name, unpack(told[name])]));
  const at = (name, i, k) => arrays[name].data[i * arrays[name].shape[1] + k];
  const vector = (name, i) => [...arrays[name].data.slice(i * width, (i + 1) * width)];
  const width = arrays.queries.shape[1];
  return { rows, columns, at, vector, width, arrays };
}

async function buildSteps(panel, found) {
  const kinds = found.attention.map((one) => one.kind);
  const kind = kinds.includes(state.kind) ? state.kind : kinds.at(-1);
  const [layers, count] = unpack(found.attention.find((one) => one.kind === kind).weights).shape;
  const layer = range(layers).includes(state.layer) ? state.layer : layers - 1;
  const head = range(count).includes(Number(state.head)) ? Number(state.head) : 0;
  const steps = await headSteps(found, kind, layer, head);
  const { rows, columns } = steps;
  let [query, key] = [0, 0];

  const pick = (name, options, now) => choice(t(`attention.${name}`), options, now, (value) => {
    change({ kind, layer, head: String(head), [name]: name === "layer" ? Number(value) : value, ...(name === "kind" && { query: 0 }) });
    render(true);
  });
  const tokens = rows.names.map((name, i) => button(spell(name), () => choose(i), { class: "token", dir: "auto" }));
  const stages = STAGES.map((name, i) => button(`${i + 1}. ${t(`steps.${name}_short`)}`, () => go(i)));
  const back = button(t("steps.back"), () => go(state.stage - 1));
  const next = button(t("steps.next"), () => go(state.stage + 1), { class: "primary" });
  const holder = h("div", {});
  holder.addEventListener("keydown", turn, true);
  panel.append(
    div("controls", kinds.length > 1 && pick("kind", kinds.map((one) => [one, t(`attention.${one}`)]), kind), pick("layer", range(layers), layer), pick("head", range(count), head)),
    figure({ key: "steps.query", about: t("steps.query_note", { side: rows.title }), chart: roving(h("div", { class: "tokens", role: "group", "aria-label": rows.title }, tokens), tokens, min(state.query, tokens.length - 1)) }),
    div("controls stages", roving(h("div", { class: "segments", role: "group", "aria-label": t("tab.steps") }, stages), stages, state.stage, go), back, next), holder);
  choose(min(state.query, tokens.length - 1));

  /** Choose the query; of the keys first that with the largest weight. */
  function choose(i) {
    query = i;
    key = columns.names.reduce((best, _, k) => (steps.at("weights", i, k) > steps.at("weights", i, best) ? k : best), 0);
    change({ query });
    press(tokens, i);
    go(state.stage);
  }

  function go(to) {
    change({ stage: clamp(to, STAGES.length - 1) });
    press(stages, state.stage);
    stages.forEach((one, i) => { one.tabIndex = i === state.stage ? 0 : -1; });
    back.disabled = state.stage === 0;
    next.disabled = state.stage === STAGES.length - 1;
    holder.replaceChildren(draw(STAGES[state.stage]));
  }

  /** Within the table, the left and right arrows change the step. */
  function turn(e) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!by || !e.target.closest(".strips") || e.altKey || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    e.stopPropagation();
    go(state.stage + by);
    holder.querySelectorAll(".strips button")[key].focus();
  }

  function draw(name) {
    const { formula, numbers, titles, cells, own, last, vectorOf, table, high } = STEPS[name](steps, query);
    const [filledIn, reading] = [div("formula-numbers"), para("reading vector")];
    const buttons = columns.names.map((one, i) => button(spell(one), () => look(i), { dir: "auto", onfocus: () => look(i) }));
    const line = (style, title, content) => h("tr", { class: style }, h("th", { scope: "row", dir: "auto" }, title), content.map((one) => h("td", {}, one)));
    const lines = buttons.map((one, i) => line("", one, cells(i)));
    lines.forEach((one, i) => one.addEventListener("pointerenter", () => look(i)));
    const strips = h("table", { class: "strips" }, h("thead", {}, h("tr", {}, [columns.title, ...titles].map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, own && line("own", ...own), lines, last && line("own", ...last)));
    look(key);
    return figure({
      key: `steps.${name}`, title: `${state.stage + 1}. ${t(`steps.${name}`)}`, table,
      chart: stack(div("formulas", formulaBox(formula), filledIn), stack(h("div", { class: "scroll-x" }, roving(strips, buttons, key)), reading, high && legend(-high, high, t("steps.component"))),
        name === "scores" && found.model.positions === "rotary" && kind !== "cross" && note(t("steps.rotary")),
        name === "output" && headsOff().includes(`${kind}.${layer}.${head}`) && note(t("steps.off"))),
    });

    function look(i) {
      key = i;
      lines.forEach((one, k) => one.classList.toggle("looked", k === i));
      filledIn.replaceChildren(formulaBox(numbers(i)));
      reading.textContent = vectorOf ? vectorOf(i) : "";
    }
  }
}

/** A formula that can be scrolled where it is wider than the page. */
const formulaBox = (...terms) => h("div", { class: "formula", tabindex: 0, role: "group", "aria-label": t("steps.formula") }, filled(m("math", mrow(terms)), { display: "block" }, []));

/** A vector as a strip of colours. */
function stripOf(values, high) {
  const canvas = h("canvas", { class: "strip", width: values.length, height: 1, "aria-hidden": true });
  paint(canvas, (_, i) => (values[i] + high) / (2 * high), -high);
  return canvas;
}
const spoken = (name, values) => `${name}: ${values.map((one) => n(one, 2)).join("  ")}`;
const largestOf = (vectors) => max(...vectors.flat().map(abs), 0.01);
const weightCell = (value) => div("share", span("bar", h("span", { style: { width: `${100 * value}%` } })), n(value));
/** What stands in a cell for a weight that a mask hides. */
const INFINITE = "−∞";

/* Each step: its formula; with the numbers of a key; the table; further rows of it; the numbers of a vector. */
const STEPS = {
  scores({ rows, columns, at, vector, width }, query) {
    const q = vector("queries", query);
    const keys = columns.names.map((_, i) => vector("keys", i));
    const high = largestOf([q, ...keys]);
    const score = (i) => at("scores", query, i);
    const dot = (i) => score(i) * Math.sqrt(width);
    const name = `q ${spell(rows.names[query])}`;
    return {
      high, titles: [t("steps.keys"), "q · k", t("column.score")],
      formula: [msub("s", "j"), "=", over(["q", "·", msub("k", "j")], mroot(msub("d", "k")))],
      numbers: (i) => [over(mproducts(q.map((one, e) => [one, keys[i][e]])), mroot(String(width))), "=", over(n(dot(i), 2), n(Math.sqrt(width), 2)), "=", n(score(i), 2)],
      cells: (i) => [stripOf(keys[i], high), n(dot(i), 2), n(score(i), 2)],
      own: [name, [stripOf(q, high), "", ""]],
      vectorOf: (i) => spoken(`k ${spell(columns.names[i])}`, keys[i]),
      table: () => [[t("column.piece"), "q · k", t("column.score"), ...range(width)], [[name, "", "", ...q], ...keys.map((one, i) => [`k ${spell(columns.names[i])}`, dot(i), score(i), ...one])]],
    };
  },
  mask({ columns, at }, query) {
    const score = (i) => at("scores", query, i);
    const open = (i) => at("mask", query, i) > 0.5;
    const cells = (i) => [n(score(i), 2), open(i) ? "0" : INFINITE, open(i) ? n(score(i), 2) : INFINITE];
    const titles = [t("column.score"), t("steps.mask_short"), t("steps.masked")];
    return {
      titles, formula: [msub("s", "j"), "+", msub("m", "j")],
      numbers: (i) => [n(score(i), 2), "+", open(i) ? "0" : ["(", INFINITE, ")"], "=", open(i) ? n(score(i), 2) : INFINITE],
      cells: (i) => cells(i).map((one, k) => span(k && !open(i) && "hatched", one)),
      table: () => [[t("column.piece"), ...titles], columns.names.map((one, i) => [spell(one), score(i), open(i) ? 0 : INFINITE, open(i) ? score(i) : INFINITE])],
    };
  },
  softmax({ columns, at }, query) {
    const all = range(columns.names.length);
    const open = (i) => at("mask", query, i) > 0.5;
    const most = max(...all.filter(open).map((i) => at("scores", query, i)));
    const power = (i) => (open(i) ? Math.exp(at("scores", query, i) - most) : 0);
    const total = all.reduce((found, i) => found + power(i), 0);
    const score = (i) => (open(i) ? n(at("scores", query, i), 2) : INFINITE);
    const titles = [t("steps.masked"), t("steps.power"), t("column.weight")];
    return {
      titles, formula: [msub("a", "j"), "=", over(mexp(msub("s", "j")), [msum("i"), mexp(msub("s", "i"))]), "=", over(mexp([msub("s", "j"), "−", "max"]), [msum("i"), mexp([msub("s", "i"), "−", "max"])])],
      numbers: (i) => [over(mexp([score(i), "−", mnumber(most)]), n(total)), "=", over(n(power(i)), n(total)), "=", n(at("weights", query, i))],
      cells: (i) => [score(i), n(power(i)), weightCell(at("weights", query, i))],
      last: [t("steps.sum"), ["", n(total), n(1)]],
      table: () => [[t("column.piece"), ...titles], all.map((i) => [spell(columns.names[i]), open(i) ? at("scores", query, i) : INFINITE, power(i), at("weights", query, i)])],
    };
  },
  output({ rows, columns, at, vector, width }, query) {
    const values = columns.names.map((_, i) => vector("values", i));
    const output = vector("outputs", query);
    const high = largestOf([...values, output]);
    const weight = (i) => at("weights", query, i);
    const order = (i) => [i, ...range(values.length).filter((one) => one !== i).sort((one, other) => weight(other) - weight(one))];
    const name = t("steps.result", { piece: spell(rows.names[query]) });
    return {
      high, titles: [t("column.weight"), t("steps.values")],
      formula: ["o", "=", msum("j"), msub("a", "j"), msub("v", "j")],
      numbers: (i) => [msub("o", "0"), "=", mproducts(order(i).map((one) => [weight(one), values[one][0]])), "=", n(output[0], 2)],
      cells: (i) => [weightCell(weight(i)), stripOf(values[i], high)],
      last: [name, ["", stripOf(output, high)]],
      vectorOf: (i) => spoken(`v ${spell(columns.names[i])}`, values[i]),
      table: () => [[t("column.piece"), t("column.weight"), ...range(width)], [...values.map((one, i) => [`v ${spell(columns.names[i])}`, weight(i), ...one]), [name, "", ...output]]],
    };
  },
};
