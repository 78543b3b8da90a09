"use strict";
/* Helpers of all scripts: elements, strings, numbers, arrays, controls, and the state in the address. */
/* The scripts share one global scope; index.html loads each script after those that it needs while loading. */

const { abs, ceil, floor, max, min, round } = Math;
/** `about` is set by start() in app.js. */
const mh = /** @type {{ strings: { [language: string]: { [key: string]: string } }, language: string, key: string, about: About }} */ ({ strings: {}, language: "en", key: "" });
/** @type {{ [name: string]: View }} */
const views = {};

/** Create an element. Strings are inserted as text, never as markup.
    @type {<K extends keyof HTMLElementTagNameMap>(tag: K, attributes?: Attributes, ...children: Child[]) => HTMLElementTagNameMap[K]} */
const h = (tag, attributes, ...children) => populate(document.createElement(tag), attributes, children);
/** @type {(tag: string, attributes?: Attributes, ...children: Child[]) => Element} */
const svg = (tag, attributes, ...children) => populate(document.createElementNS("http://www.w3.org/2000/svg", tag), { ...(tag === "svg" && { "aria-hidden": true }), ...attributes }, children);

/** @type {(style?: string | false | null, ...children: Child[]) => HTMLElement} */
const div = (style, ...children) => h("div", { class: style || false }, children);
/** @type {(style?: string | false | null, ...children: Child[]) => HTMLElement} */
const span = (style, ...children) => h("span", { class: style || false }, children);
/** @type {(style?: string | false | null, ...children: Child[]) => HTMLElement} */
const para = (style, ...children) => h("p", { class: style || false }, children);
/** @type {(node: Element, name: string, value: string | number | boolean) => void} */
const aria = (node, name, value) => node.setAttribute(`aria-${name}`, String(value));

/** @type {(id: string) => HTMLElement} */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** Set attributes and event listeners of a node, and append its children.
    @type {<T extends Element>(node: T, attributes: Attributes | undefined, children: Child[]) => T} */
function populate(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (name === "style") Object.assign(/** @type {HTMLElement} */ (/** @type {Element} */ (node)).style, value);
    else node.setAttribute(name, value === true && !name.startsWith("aria") ? "" : String(value));
  }
  node.append(.../** @type {(string | Node)[]} */ (children.flat(9).filter(Boolean)));
  return node;
}

/** Return the string of a key in the user's language; undefined if there is none.
    @type {(key: string) => string | undefined} */
const localized = (key) => mh.strings[mh.language]?.[key];
/** Return whether a text is written from right to left, by its first letter outside of special symbols.
    @type {(text: string) => boolean} */
const readsLeft = (text) => /^\P{L}*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u.test(text.replace(/<[^>]*>/g, ""));
/** Return a text for a place within another one, whose direction it does not change; special symbols are not mirrored.
    @type {(text: string) => string} */
const isolate = (text) => (readsLeft(text) ? `\u2067${text.replace(/<[^>]*>/g, "\u200e$&\u200e")}\u2069` : text);
/** Return the string of a key in the user's language, with values for its {names}.
    @type {(key: string, values?: { [name: string]: unknown }) => string} */
const t = (key, values = {}) => (localized(key) ?? key).replace(/\{(\w+)\}/g, (match, name) => isolate(String(values[name] ?? match)));
/** Return the name of a language in the user's language; its code if the browser does not know it.
    @type {(code: string) => string} */
function languageName(code) {
  try { return new Intl.DisplayNames(mh.language, { type: "language" }).of(code) ?? code; } catch { return code; }
}
/** Return the titles of table columns, given by keys separated by blanks.
    @type {(names: string) => string[]} */
const columnTitles = (names) => names.split(" ").map((name) => t(`column.${name}`));
/** @type {(count: number) => number[]} */
const range = (count) => [...Array(count).keys()];
/** @type {(value: number, high: number) => number} */
const clamp = (value, high) => min(high, max(0, value));

/** Format a number with `digits` decimals.
    @type {(value: number | null | undefined, digits?: number) => string} */
function n(value, digits = 3) {
  return value == null ? "–" : value.toLocaleString(mh.language, { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−");
}
/** Format an integer.
    @type {(value: number) => string} */
const integer = (value) => n(value, 0);
/** Format a number of any size in few characters.
    @type {(value: number) => string} */
function compact(value) {
  const size = abs(value);
  if (size >= 1e4) return size >= 1e6 ? `${n(value / 1e6, 1)}M` : `${integer(value / 1e3)}k`;
  if (size && size < 1e-3) return value.toExponential(1).replace(/-/g, "−");
  return n(value, size >= 100 || Number.isInteger(value) ? 0 : size >= 1 ? 2 : 4);
}
/** @type {{ [sign: string]: string }} */
const SIGNS = { "▁": "␣", "\n": "↵", "\t": "⇥" };
/** Return a piece for display, with visible white space.
    @type {(piece: string) => string} */
const pieceText = (piece) => (piece || "∅").replace(/[▁\n\t]/g, (sign) => SIGNS[sign]);

/** @type {WeakMap<PackedArray, { shape: number[], data: Float32Array }>} */
const unpacked = new WeakMap();
/** Decode a packed array (base64 of 16-bit numbers) to { shape, data }; results are cached.
    @type {(packed: PackedArray) => { shape: number[], data: Float32Array }} */
function unpack(packed) {
  const cached = unpacked.get(packed);
  if (cached) return cached;
  const { shape, low, high, uint16 } = packed;
  const view = new DataView(Uint8Array.from(atob(uint16), (letter) => letter.charCodeAt(0)).buffer);
  const data = Float32Array.from({ length: view.byteLength / 2 }, (_, i) => low + ((high - low) * view.getUint16(2 * i, true)) / 65535);
  unpacked.set(packed, { shape, data });
  return { shape, data };
}

/** The state of the page. It is in the address after "#", which browsers do not send to a server. */
/** q: text; prefix, target: forced output; more: tokens to generate; at: token; part: step of the whole model; kind, layer, head, other: attention, compared head; off: disabled heads.
    @type {PageState} */
const DEFAULT_STATE = {
  tab: "", model: "", q: "", beam: "", sentence: 0, prefix: "", target: "", padding: 0, more: 0, at: 0, kind: "", layer: -1, head: "mean",
  other: "", threshold: 0, step: 0, part: 0, checkpoint: -1, symbol: "", temperature: 1, topk: 0, topp: 1, query: 0, stage: 0, off: "", mask: 1, positions: 1,
};
const FRACTIONS = ["threshold", "temperature", "topp"];
/* Changes of the state: back to the model's own output. */
const OWN_OUTPUT = { prefix: "", target: "", more: 0, at: 0, step: 0, query: 0 };
/* Changes of the state: back to the model as it was trained. */
const AS_TRAINED = { off: "", mask: 1, positions: 1 };
/** @type {PageState} */
const state = { ...DEFAULT_STATE };

/** Set the state from the address. */
function readAddress() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const parameters = new URLSearchParams(query);
  for (const [name, initial] of Object.entries(DEFAULT_STATE)) {
    const value = name === "tab" ? path : parameters.get(name);
    const number = Number(value);
    const isValid = number >= min(initial, 0) && (Number.isInteger(number) || FRACTIONS.includes(name));
    Object.assign(state, { [name]: !value ? initial : typeof initial === "string" ? value : isValid && number < Infinity ? number : initial });
  }
}

/** Return the address of the state after changes, without parameters that have their default.
    @type {(changes?: Partial<PageState>) => string} */
function addressOf(changes) {
  const { tab, ...others } = { ...state, ...changes };
  const changed = Object.entries(others).filter(([name, value]) => value !== Object(DEFAULT_STATE)[name]);
  const query = new URLSearchParams(changed.map(([name, value]) => [name, String(value)]));
  return `#/${tab}${changed.length ? `?${query}` : ""}`;
}

/** Change the state and the address; a change of the tab adds an entry to the history of the browser.
    @type {(changes: Partial<PageState>) => void} */
function change(changes) {
  const newTab = changes.tab && changes.tab !== state.tab;
  Object.assign(state, changes);
  history[newTab ? "pushState" : "replaceState"](null, "", addressOf());
}

/** Save a setting in the storage of the browser, if there is one.
    @type {(name: string, value: string) => void} */
function saveSetting(name, value) {
  try { localStorage.setItem(`manyheads-${name}`, value); } catch { /* it lasts as long as the page */ }
}

/** Read a setting from the storage of the browser; null without storage.
    @type {(name: string) => string | null} */
function savedSetting(name) {
  try { return localStorage.getItem(`manyheads-${name}`); } catch { return null; }
}

/** Announce a text to screen readers.
    @type {(text: string) => void} */
const announce = (text) => { byId("live").textContent = text; };

/** Return a function that calls `call` after some milliseconds without a further call.
    @type {(milliseconds: number, call: () => void) => () => void} */
function debounce(milliseconds, call) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  return () => { clearTimeout(timer); timer = setTimeout(call, milliseconds); };
}

/** Make a group of elements one tab stop, in which the arrow keys move the focus (roving tabindex).
    @type {<T extends HTMLElement>(holder: T, elements: HTMLElement[], current?: number, onMove?: (to: number) => void) => T} */
function roving(holder, elements, current, onMove = () => {}) {
  /** @type {(to: number) => void} */
  const setTabStop = (to) => elements.forEach((element, i) => { element.tabIndex = i === to ? 0 : -1; });
  setTabStop(clamp(current || 0, elements.length - 1));
  holder.addEventListener("keydown", (e) => {
    /** @type {{ [key: string]: number }} */
    const steps = { [`Arrow${holder.dir === "rtl" ? "Left" : "Right"}`]: 1, ArrowDown: 1, [`Arrow${holder.dir === "rtl" ? "Right" : "Left"}`]: -1, ArrowUp: -1, Home: -elements.length, End: elements.length };
    const from = elements.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    if (from < 0 || !(e.key in steps) || e.altKey || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    const to = clamp(from + steps[e.key], elements.length - 1);
    setTabStop(to);
    elements[to].focus();
    onMove(to);
  });
  return holder;
}

/** Create a row of tokens as buttons, in the direction of their script.
    @type {(label: string, buttons: HTMLElement[], pieces: string[], current?: number) => HTMLElement} */
const tokenRow = (label, buttons, pieces, current) => roving(
  h("div", { class: "tokens", role: "group", dir: readsLeft(pieces.join("")) ? "rtl" : "ltr", "aria-label": label }, buttons), buttons, current);

/** Mark one of several buttons as pressed.
    @type {(buttons: Element[] | NodeListOf<Element>, index: number) => void} */
const setPressed = (buttons, index) => buttons.forEach((element, i) => aria(element, "pressed", i === index));

/** @type {(text: Child, onclick: () => void, attributes?: Attributes) => HTMLButtonElement} */
const button = (text, onclick, attributes) => h("button", { type: "button", onclick, ...attributes }, text);

/** Create a button that looks like a link; `label` is its accessible name.
    @type {(text: Child, onclick: () => void, label?: string) => HTMLButtonElement} */
const linkButton = (text, onclick, label) => button(text, onclick, { class: "quiet", "aria-label": label });
/** Create a button that copies the text that `text` returns.
    @type {(name: string, text: () => string, label?: string) => HTMLButtonElement} */
function copyButton(name, text, label) {
  const copy = linkButton(name, async () => {
    const done = await navigator.clipboard?.writeText(text()).then(() => true, () => false);
    copy.textContent = t(done ? "copied" : "copy_failed");
    announce(copy.textContent);
  }, label);
  return copy;
}
/** @type {(...text: Child[]) => HTMLElement} */
const note = (...text) => para("note", text);
/** @type {(...content: Child[]) => HTMLElement} */
const stack = (...content) => div("stack", content);

/** Create a drop-down list of options: values, or pairs [value, text].
    @type {(label: string, options: Choice[], value: string | number | undefined, onChoose: (value: string) => void) => HTMLElement} */
function choice(label, options, value, onChoose) {
  const list = h("select", { "data-focus": label, onchange: () => onChoose(list.value) }, options.map((option) => [option, option].flat().slice(-2)).map(([option, text]) => h("option", { value: option }, String(text))));
  list.value = String(value);
  return h("label", { class: "field" }, span("", label), list);
}

/** Select a value of a list that `choice` has created.
    @type {(field: HTMLElement, value: string) => void} */
const setChoice = (field, value) => { /** @type {HTMLSelectElement} */ (field.lastChild).value = value; };

/** Create a slider for a number, with its value beside the label.
    @type {(label: string, options: SliderOptions, onMove: (value: number) => void) => HTMLElement} */
function slider(label, { show = String, value, ...limits }, onMove) {
  const shown = h("b", {}, show(value));
  const bar = h("input", {
    type: "range", ...limits, "aria-valuetext": show(value), oninput: () => {
      shown.textContent = show(Number(bar.value));
      aria(bar, "valuetext", shown.textContent);
      onMove(Number(bar.value));
    },
  });
  bar.value = String(value);
  return h("label", { class: "field slider" }, span("", label, " ", shown), bar);
}

/** Create a slider over the steps from 0 to `last`, with a button that plays them (not for users who want no motion) and one for the next step;
    `onEnd` returns the step after the last one. `set` goes to a step.
    @type {(options: { label: string, last: number, value: number, time: number, onEnd?: () => number }, show: (step: number) => void) => { field: HTMLElement, set: (step: number) => void }} */
function stepper({ label, last, value, time, onEnd }, show) {
  const field = slider(label, { min: 0, max: last, value, show: (step) => `${step + 1} / ${last + 1}` }, show);
  const bar = /** @type {HTMLInputElement} */ (field.querySelector("input"));
  let timer = 0;
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    play.textContent = t("step.play");
  };
  /** @type {(step: number) => void} */
  const go = (step) => {
    bar.value = String(step);
    bar.dispatchEvent(new Event("input"));
  };
  const advance = () => {
    const step = Number(bar.value) < last ? Number(bar.value) + 1 : onEnd?.() ?? 0;
    go(step);
    if (timer && (!step || !bar.isConnected || (step === last && !onEnd))) stop();
  };
  const start = () => {
    advance();
    timer = window.setInterval(advance, time);
    play.textContent = t("step.pause");
  };
  const play = button(t("step.play"), () => (timer ? stop : start)(), { class: "primary" });
  const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
  return { field: div("controls stepper", field, !isStill && play, button(t("step.next"), () => { stop(); advance(); })), set: (step) => { stop(); go(step); } };
}

/** Create a checkbox.
    @type {(label: string, checked: boolean, onChange: (checked: boolean) => void) => HTMLElement} */
const checkbox = (label, checked, onChange) => h("label", { class: "field check" }, h("input", { type: "checkbox", "data-focus": label, checked, onchange: (/** @type {{ target: HTMLInputElement }} */ e) => onChange(e.target.checked) }), span("", label));
/** Create a list of names and values.
    @type {(pairs: [Child, Child][], style?: string) => HTMLElement} */
const facts = (pairs, style = "facts") => h("dl", { class: style }, pairs.map(([name, value]) => div("", h("dt", {}, name), h("dd", { dir: "auto" }, value))));
