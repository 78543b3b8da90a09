"use strict";
/* What all parts of the page share: elements, words, numbers, arrays, and the state that stands in the address. */
const mh = { views: {}, strings: {}, language: "en" };

(() => {
  const SVG = "http://www.w3.org/2000/svg";

  /** An element. Text goes in as text, never as markup. */
  mh.h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  mh.s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "function") node.addEventListener(name.slice(2), value);
      else if (name === "style") Object.assign(node.style, value);
      else if (name === "value") node.value = value;
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
    return node;
  }

  /** The text of a key in the reader's language, with {names} filled in. */
  mh.t = (key, values = {}) =>
    (mh.strings[mh.language]?.[key] ?? key).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
  mh.has = (key) => key in (mh.strings[mh.language] || {});

  const formats = new Map();
  /** A number with so many decimals. */
  mh.n = (value, digits = 3) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    const key = `${mh.language} ${digits}`;
    const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    if (!formats.has(key)) formats.set(key, new Intl.NumberFormat(mh.language, options));
    return formats.get(key).format(value).replace(/^-/, "−");
  };
  mh.whole = (value) => mh.n(value, 0);
  /** A number of any size, short. */
  mh.short = (value) => {
    const size = Math.abs(value);
    if (size >= 1e6) return `${mh.n(value / 1e6, size >= 1e7 ? 0 : 1)}M`;
    if (size >= 1e4) return `${mh.n(value / 1e3, 0)}k`;
    if (size && size < 1e-3) return value.toExponential(1).replace(/-/g, "−");
    return mh.n(value, size >= 100 || Number.isInteger(value) ? 0 : size >= 1 ? 2 : 4);
  };

  /** An array of the JSON: base64 of 16-bit numbers, or nested lists, as numbers with their shape. */
  const unpacked = new WeakMap();
  mh.array = (packed) => {
    if (!unpacked.has(packed)) unpacked.set(packed, packed.uint16 === undefined ? listed(packed) : decoded(packed));
    return unpacked.get(packed);
  };

  function decoded({ shape, low, high, uint16 }) {
    const bytes = Uint8Array.from(atob(uint16), (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    const data = new Float32Array(bytes.length / 2);
    for (let i = 0; i < data.length; i += 1) data[i] = low + ((high - low) * view.getUint16(2 * i, true)) / 65535;
    return { shape, data };
  }

  function listed(lists) {
    const shape = [];
    for (let level = lists; Array.isArray(level); level = level[0]) shape.push(level.length);
    return { shape, data: Float32Array.from(lists.flat(Infinity)) };
  }

  /** What the reader looks at. All of it stands in the address after "#", which no server ever sees. */
  const START = {
    tab: "", model: "", q: "", beam: "", sentence: 0, prefix: "", target: "", padding: 0, more: 0, at: 0, kind: "",
    layer: -1, head: "mean", other: "", threshold: 0, step: -1, node: -1, checkpoint: -1, symbol: "",
    temperature: 1, topk: 0, topp: 1,
  };
  mh.state = { ...START };

  mh.read = () => {
    const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
    const given = new URLSearchParams(query || "");
    for (const [name, start] of Object.entries(START)) {
      const value = name === "tab" ? path : given.get(name);
      const number = Number(value);
      mh.state[name] = !value ? start : typeof start !== "number" ? value : Number.isFinite(number) ? number : start;
    }
  };

  mh.address = () => {
    const query = new URLSearchParams();
    for (const [name, start] of Object.entries(START)) {
      if (name !== "tab" && String(mh.state[name]) !== String(start)) query.set(name, mh.state[name]);
    }
    return `#/${mh.state.tab}${query.size ? `?${query}` : ""}`;
  };

  /** Change the state, and the address with it; a change of the tab can be gone back from. */
  mh.set = (changes) => {
    const other = changes.tab !== undefined && changes.tab !== mh.state.tab;
    Object.assign(mh.state, changes);
    history[other ? "pushState" : "replaceState"](null, "", mh.address());
  };

  /** What is remembered between visits, where the browser lets us. */
  mh.remembered = (name) => {
    try { return localStorage.getItem(`manyheads-${name}`); } catch { return null; }
  };
  mh.remember = (name, value) => {
    try { localStorage.setItem(`manyheads-${name}`, value); } catch { /* of no matter */ }
  };

  /** Tell who cannot see. */
  mh.say = (text) => {
    const live = document.getElementById("live");
    live.textContent = "";
    setTimeout(() => { live.textContent = text; }, 50);
  };

  /** Call once things have been quiet for a while. */
  mh.quiet = (milliseconds, call) => {
    let timer = 0;
    return (...values) => {
      clearTimeout(timer);
      timer = setTimeout(() => call(...values), milliseconds);
    };
  };

  /** One focus for a group of elements, moved by the arrow keys. */
  mh.roving = (holder, elements, { current = 0, onmove = () => {} } = {}) => {
    elements.forEach((element, place) => { element.tabIndex = place === current ? 0 : -1; });
    holder.addEventListener("keydown", (event) => {
      const from = elements.indexOf(document.activeElement);
      const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -elements.length, End: elements.length };
      if (from < 0 || !(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      const to = Math.min(elements.length - 1, Math.max(0, from + steps[event.key]));
      elements.forEach((element, place) => { element.tabIndex = place === to ? 0 : -1; });
      elements[to].focus();
      onmove(to);
    });
  };

  /** A choice from a list: [value, text] pairs. */
  mh.select = (label, options, value, onchange) => {
    const chosen = (event) => onchange(event.target.value);
    const list = mh.h("select", { onchange: chosen }, options.map(([one, text]) => mh.h("option", { value: one }, text)));
    list.value = String(value);
    return mh.h("label", { class: "field" }, mh.h("span", {}, label), list);
  };

  /** A number by a slider, with its value beside it. */
  mh.slider = (label, { min, max, step = 1, value, show = String }, onchange) => {
    const said = mh.h("output", {}, show(value));
    const changed = (event) => {
      said.textContent = show(Number(event.target.value));
      event.target.setAttribute("aria-valuetext", said.textContent);
      onchange(Number(event.target.value));
    };
    const bar = mh.h("input", { type: "range", min, max, step, "aria-valuetext": show(value), oninput: changed });
    bar.value = value;
    return mh.h("label", { class: "field slider" }, mh.h("span", {}, label, " ", said), bar);
  };

  mh.button = (text, onclick, attributes = {}) => mh.h("button", { type: "button", onclick, ...attributes }, text);

  /** A piece of a word as it is shown; a blank is ▁. */
  mh.piece = (piece) => (piece === "" ? "∅" : piece.replace(/[\n\t]/g, (mark) => (mark === "\n" ? "⏎" : "⇥")));
})();
