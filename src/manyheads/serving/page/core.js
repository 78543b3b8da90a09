"use strict";
/* What all parts of the page share: elements, words, numbers, arrays, controls, and the state in the address. */
/* The scripts are plain ones that see each other's names; they stand in index.html in the order in which they need. */

const { abs, ceil, floor, max, min, round } = Math;
const mh = { strings: {}, language: "en", key: "" };
const views = {};

/** An element. Text goes in as text, never as markup. */
const h = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => filled(document.createElementNS("http://www.w3.org/2000/svg", tag), { ...(tag === "svg" && { "aria-hidden": true }), ...attributes }, children);

const div = (look, ...children) => h("div", look && { class: look }, children);
const span = (look, ...children) => h("span", look && { class: look }, children);
const para = (look, ...children) => h("p", look && { class: look }, children);
const aria = (node, name, value) => node.setAttribute(`aria-${name}`, value);

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value === true && !name.startsWith("aria") ? "" : value);
  }
  node.append(...children.flat(9).filter(Boolean));
  return node;
}

/** The text of a key in the reader's language, with {names} filled in. */
const known = (key) => mh.strings[mh.language]?.[key];
const t = (key, values = {}) => (known(key) ?? key).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
/** The name of a language in the reader's language; its code if the browser does not know it. */
function languageName(code) {
  try { return new Intl.DisplayNames(mh.language, { type: "language" }).of(code); } catch { return code; }
}
/** The heads of the columns of a table. */
const heads = (names) => names.split(" ").map((name) => t(`column.${name}`));
const range = (count) => [...Array(count).keys()];
const clamp = (value, most) => min(most, max(0, value));

/** A number with so many decimals; a whole one; one of any size, short. */
function n(value, digits = 3) {
  return value == null ? "–" : value.toLocaleString(mh.language, { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−");
}
const whole = (value) => n(value, 0);
function brief(value) {
  const size = abs(value);
  if (size >= 1e4) return size >= 1e6 ? `${n(value / 1e6, 1)}M` : `${whole(value / 1e3)}k`;
  if (size && size < 1e-3) return value.toExponential(1).replace(/-/g, "−");
  return n(value, size >= 100 || Number.isInteger(value) ? 0 : size >= 1 ? 2 : 4);
}
/** A piece of a word as it is shown. */
const SIGNS = { "▁": "␣", "\n": "↵", "\t": "⇥" };
const spell = (piece) => (piece || "∅").replace(/[▁\n\t]/g, (sign) => SIGNS[sign]);

/** An array of the JSON, base64 of 16-bit numbers, as numbers with their shape. */
const unpacked = new WeakMap();
function unpack(packed) {
  if (!unpacked.has(packed)) {
    const { shape, low, high, uint16 } = packed;
    const view = new DataView(Uint8Array.from(atob(uint16), (letter) => letter.charCodeAt(0)).buffer);
    const data = Float32Array.from({ length: view.byteLength / 2 }, (_, i) => low + ((high - low) * view.getUint16(2 * i, true)) / 65535);
    unpacked.set(packed, { shape, data });
  }
  return unpacked.get(packed);
}

/** What the reader looks at. All of it stands in the address after "#", which no server ever sees. */
const START = {
  tab: "", model: "", q: "", beam: "", sentence: 0, prefix: "", target: "", padding: 0, more: 0, at: 0, kind: "", layer: -1, head: "mean",
  other: "", threshold: 0, step: -1, checkpoint: -1, symbol: "", temperature: 1, topk: 0, topp: 1, query: 0, stage: 0, off: "", mask: 1, positions: 1,
};
/* The model's own output; the model as it was trained. */
const OWN = { prefix: "", target: "", more: 0, at: 0, step: -1, query: 0 };
const TRAINED = { off: "", mask: 1, positions: 1 };
const state = { ...START };

function readAddress() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const given = new URLSearchParams(query);
  for (const [name, start] of Object.entries(START)) {
    const value = name === "tab" ? path : given.get(name);
    const number = Number(value);
    state[name] = !value ? start : typeof start === "string" ? value : Number.isFinite(number) ? number : start;
  }
}

function addressOf() {
  const changed = Object.keys(START).filter((name) => name !== "tab" && state[name] !== START[name]);
  const query = new URLSearchParams(changed.map((name) => [name, state[name]]));
  return `#/${state.tab}${changed.length ? `?${query}` : ""}`;
}

/** Change the state, and the address with it; a change of the tab can be gone back from. */
function change(changes) {
  const other = changes.tab && changes.tab !== state.tab;
  Object.assign(state, changes);
  history[other ? "pushState" : "replaceState"](null, "", addressOf());
}

/** What is remembered between visits, where the browser lets us. */
function recall(name, value) {
  try {
    if (value) localStorage.setItem(`manyheads-${name}`, value);
    return localStorage.getItem(`manyheads-${name}`);
  } catch { return null; }
}

/** Tell who cannot see. */
const say = (text) => { document.getElementById("live").textContent = text; };

/** Call once things have been quiet for a while. */
function debounce(milliseconds, call) {
  let timer = 0;
  return () => { clearTimeout(timer); timer = setTimeout(call, milliseconds); };
}

/** One focus for a group of elements, moved by the arrow keys. */
function roving(holder, elements, current, moved = () => {}) {
  const only = (to) => elements.forEach((element, i) => { element.tabIndex = i === to ? 0 : -1; });
  only(clamp(current || 0, elements.length - 1));
  holder.addEventListener("keydown", (e) => {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -elements.length, End: elements.length };
    const from = elements.indexOf(document.activeElement);
    if (from < 0 || !(e.key in steps) || e.altKey || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    const to = clamp(from + steps[e.key], elements.length - 1);
    only(to);
    elements[to].focus();
    moved(to);
  });
  return holder;
}

/** Of some buttons one is chosen. */
const press = (buttons, at) => buttons.forEach((one, i) => aria(one, "pressed", i === at));

const button = (text, onclick, attributes) => h("button", { type: "button", onclick, ...attributes }, text);

/** A button that looks like a link; `label` says more than its text. */
const quiet = (text, onclick, label) => button(text, onclick, { class: "quiet", "aria-label": label });
/** A button that copies what `text` returns. */
function copyButton(name, text, label) {
  const copy = quiet(name, async () => {
    const done = await navigator.clipboard?.writeText(text()).then(() => true, () => false);
    copy.textContent = t(done ? "copied" : "copy_failed");
    say(copy.textContent);
  }, label);
  return copy;
}
const note = (...text) => para("note", text);
const stack = (...content) => div("stack", content);

/** A choice from a list of [value, text], or of values. */
function choice(label, options, value, chosen) {
  const list = h("select", { "data-focus": label, onchange: () => chosen(list.value) }, options.map((one) => [one, one].flat().slice(-2)).map(([one, text]) => h("option", { value: one }, String(text))));
  list.value = String(value);
  return h("label", { class: "field" }, span("", label), list);
}

/** A number by a slider, with its value beside it. */
function slider(label, { show = String, value, ...limits }, moved) {
  const said = h("b", {}, show(value));
  const bar = h("input", {
    type: "range", ...limits, "aria-valuetext": show(value), oninput: () => {
      said.textContent = show(Number(bar.value));
      aria(bar, "valuetext", said.textContent);
      moved(Number(bar.value));
    },
  });
  bar.value = value;
  return h("label", { class: "field slider" }, span("", label, " ", said), bar);
}

/** A choice that is on or off. */
const check = (label, checked, changed) => h("label", { class: "field check" }, h("input", { type: "checkbox", "data-focus": label, checked, onchange: (e) => changed(e.target.checked) }), span("", label));
/** Names and values. */
const facts = (pairs, look = "facts") => h("dl", { class: look }, pairs.map(([name, value]) => div("", h("dt", {}, name), h("dd", { dir: "auto" }, value))));
