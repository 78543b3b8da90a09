/* Elements of the document. */

import { floor } from "./numbers.js";

/** Create an element. Strings are inserted as text, never as markup.
    @type {<K extends keyof HTMLElementTagNameMap>(tag: K, attributes?: Attributes,
      ...children: Child[]) => HTMLElementTagNameMap[K]} */
export const h = (tag, attributes, ...children) =>
  populate(document.createElement(tag), attributes, children);

/** @type {(tag: string, attributes?: Attributes, ...children: Child[]) => Element} */
export const svg = (tag, attributes, ...children) =>
  populate(
    document.createElementNS("http://www.w3.org/2000/svg", tag),
    { ...(tag === "svg" && { "aria-hidden": true }), ...attributes },
    children,
  );

/** @type {(style?: string | false | null, ...children: Child[]) => HTMLElement} */
export const div = (style, ...children) => h("div", { class: style || false }, children);

/** @type {(style?: string | false | null, ...children: Child[]) => HTMLElement} */
export const span = (style, ...children) => h("span", { class: style || false }, children);

/** @type {(style?: string | false | null, ...children: Child[]) => HTMLElement} */
export const para = (style, ...children) => h("p", { class: style || false }, children);

/** @type {(...text: Child[]) => HTMLElement} */
export const note = (...text) => para("note", text);

/** @type {(...content: Child[]) => HTMLElement} */
export const stack = (...content) => div("stack", content);

/** Create a list of names and values.
    @type {(pairs: [Child, Child][], style?: string) => HTMLElement} */
export const facts = (pairs, style = "facts") =>
  h(
    "dl",
    { class: style },
    pairs.map(([name, value]) => div("", h("dt", {}, name), h("dd", { dir: "auto" }, value))),
  );

/** @type {(node: Element, name: string, value: string | number | boolean) => void} */
export const aria = (node, name, value) => node.setAttribute(`aria-${name}`, String(value));

/** @type {(id: string) => HTMLElement} */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** Set attributes and event listeners of a node, and append its children.
    @type {<T extends Element>(node: T, attributes: Attributes | undefined, children: Child[]) =>
      T} */
export function populate(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") {
      node.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (name === "style") {
      Object.assign(/** @type {HTMLElement} */ (/** @type {Element} */ (node)).style, value);
    } else node.setAttribute(name, value === true && !name.startsWith("aria") ? "" : String(value));
  }
  node.append(.../** @type {(string | Node)[]} */ (children.flat(9).filter(Boolean)));
  return node;
}

/** Announce a text to screen readers.
    @type {(text: string) => void} */
export const announce = (text) => {
  byId("live").textContent = text;
};

/** @type {(name: string, type: string, ...parts: BlobPart[]) => void} */
export function download(name, type, ...parts) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Call `draw` with the width of an element, now and after each change.
    @type {<T extends Element>(holder: T, draw: (width: number) => void) => T} */
export function onResize(holder, draw) {
  let width = 0;
  new ResizeObserver(() => {
    const newWidth = floor(holder.clientWidth);
    if (newWidth && newWidth !== width) draw((width = newWidth));
  }).observe(holder);
  return holder;
}
