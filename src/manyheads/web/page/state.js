/* The state of the page, and what all modules share. */

import { min } from "./numbers.js";

export const mh = /** @type {Shared} */ ({ strings: {}, language: "en", key: "" });

/** The state of the page is in its address after "#", which browsers do not send to a server.
    @type {PageState} */
const DEFAULT_STATE = {
  tab: "",
  model: "",
  q: "",
  beam: "",
  sentence: 0,
  prefix: "",
  target: "",
  padding: 0,
  more: 0,
  at: 0,
  kind: "",
  layer: -1,
  head: "mean",
  other: "",
  threshold: 0,
  step: 0,
  part: 0,
  checkpoint: -1,
  symbol: "",
  temperature: 1,
  topk: 0,
  topp: 1,
  query: 0,
  stage: 0,
  off: "",
  mask: 1,
  positions: 1,
};

const FRACTIONS = ["threshold", "temperature", "topp"];

/* The changes of the state that go back to the model's own output. */
export const OWN_OUTPUT = { prefix: "", target: "", more: 0, at: 0, step: 0, query: 0 };

/* The changes of the state that go back to the model as it was trained. */
export const AS_TRAINED = { off: "", mask: 1, positions: 1 };

/** @type {PageState} */
export const state = { ...DEFAULT_STATE };

/** Set the state from the address. */
export function readAddress() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const parameters = new URLSearchParams(query);
  for (const [name, initial] of Object.entries(DEFAULT_STATE)) {
    const value = name === "tab" ? path : parameters.get(name);
    const number = Number(value);
    const isValid =
      number >= min(initial, 0) && (Number.isInteger(number) || FRACTIONS.includes(name));
    Object.assign(state, {
      [name]: !value
        ? initial
        : typeof initial === "string"
          ? value
          : isValid && number < Infinity
            ? number
            : initial,
    });
  }
}

/** Return the address of the state after changes, without parameters that have their default.
    @type {(changes?: Partial<PageState>) => string} */
export function addressOf(changes) {
  const { tab, ...others } = { ...state, ...changes };
  const changed = Object.entries(others).filter(
    ([name, value]) => value !== Object(DEFAULT_STATE)[name],
  );
  const query = new URLSearchParams(changed.map(([name, value]) => [name, String(value)]));
  return `#/${tab}${changed.length ? `?${query}` : ""}`;
}

/** Change the state and the address; a change of the tab adds an entry to the history of the
    browser.
    @type {(changes: Partial<PageState>) => void} */
export function change(changes) {
  const newTab = changes.tab && changes.tab !== state.tab;
  Object.assign(state, changes);
  history[newTab ? "pushState" : "replaceState"](null, "", addressOf());
}

/** Change the state, and show the top of the page.
    @type {(changes: Partial<PageState>) => void} */
export function goTo(changes) {
  change(changes);
  mh.render();
}

/** Change the state, and draw the page again where it is.
    @type {(changes: Partial<PageState>) => void} */
export function update(changes) {
  change(changes);
  mh.render(true);
}

/** Save a setting in the storage of the browser, if there is one.
    @type {(name: string, value: string) => void} */
export function saveSetting(name, value) {
  try {
    localStorage.setItem(`manyheads-${name}`, value);
  } catch {
    /* it lasts as long as the page */
  }
}

/** Read a setting from the storage of the browser; null without storage.
    @type {(name: string) => string | null} */
export function savedSetting(name) {
  try {
    return localStorage.getItem(`manyheads-${name}`);
  } catch {
    return null;
  }
}
