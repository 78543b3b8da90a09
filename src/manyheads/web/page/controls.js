/* Controls: buttons, lists, sliders, rows of tokens. */

import { announce, aria, div, h, span } from "./elements.js";
import { clamp } from "./numbers.js";
import { readsLeft, t } from "./strings.js";

/** Return a function that calls `call` after some milliseconds without a further call.
    @type {(milliseconds: number, call: () => void) => () => void} */
export function debounce(milliseconds, call) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(call, milliseconds);
  };
}

/** Make a group of elements one tab stop, in which the arrow keys move the focus (roving tabindex).
    @type {<T extends HTMLElement>(holder: T, elements: HTMLElement[], current?: number,
      onMove?: (to: number) => void) => T} */
export function roving(holder, elements, current, onMove = () => {}) {
  /** @type {(to: number) => void} */
  const setTabStop = (to) =>
    elements.forEach((element, i) => {
      element.tabIndex = i === to ? 0 : -1;
    });
  setTabStop(clamp(current || 0, elements.length - 1));
  holder.addEventListener("keydown", (e) => {
    /** @type {{ [key: string]: number }} */
    const steps = {
      [`Arrow${holder.dir === "rtl" ? "Left" : "Right"}`]: 1,
      ArrowDown: 1,
      [`Arrow${holder.dir === "rtl" ? "Right" : "Left"}`]: -1,
      ArrowUp: -1,
      Home: -elements.length,
      End: elements.length,
    };
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
    @type {(label: string, buttons: HTMLElement[], pieces: string[], current?: number) =>
      HTMLElement} */
export const tokenRow = (label, buttons, pieces, current) =>
  roving(
    h(
      "div",
      {
        class: "tokens",
        role: "group",
        dir: readsLeft(pieces.join("")) ? "rtl" : "ltr",
        "aria-label": label,
      },
      buttons,
    ),
    buttons,
    current,
  );

/** Mark one of several buttons as pressed.
    @type {(buttons: Element[] | NodeListOf<Element>, index: number) => void} */
export const setPressed = (buttons, index) =>
  buttons.forEach((element, i) => aria(element, "pressed", i === index));

/** @type {(text: Child, onclick: () => void, attributes?: Attributes) => HTMLButtonElement} */
export const button = (text, onclick, attributes) =>
  h("button", { type: "button", onclick, ...attributes }, text);

/** Create a button that looks like a link; `label` is its accessible name.
    @type {(text: Child, onclick: () => void, label?: string) => HTMLButtonElement} */
export const linkButton = (text, onclick, label) =>
  button(text, onclick, { class: "quiet", "aria-label": label });

/** Create a button that copies the text that `text` returns.
    @type {(name: string, text: () => string, label?: string) => HTMLButtonElement} */
export function copyButton(name, text, label) {
  const copy = linkButton(
    name,
    async () => {
      const done = await navigator.clipboard?.writeText(text()).then(
        () => true,
        () => false,
      );
      copy.textContent = t(done ? "copied" : "copy_failed");
      announce(copy.textContent);
    },
    label,
  );
  return copy;
}

/** Create a drop-down list of options: values, or pairs [value, text].
    @type {(label: string, options: Choice[], value: string | number | undefined,
      onChoose: (value: string) => void) => HTMLElement} */
export function choice(label, options, value, onChoose) {
  const list = h(
    "select",
    { "data-focus": label, onchange: () => onChoose(list.value) },
    options
      .map((option) => [option, option].flat().slice(-2))
      .map(([option, text]) => h("option", { value: option }, String(text))),
  );
  list.value = String(value);
  return h("label", { class: "field" }, span("", label), list);
}

/** Select a value of a list that `choice` has created.
    @type {(field: HTMLElement, value: string) => void} */
export const setChoice = (field, value) => {
  /** @type {HTMLSelectElement} */ (field.lastChild).value = value;
};

/** Create a slider for a number, with its value beside the label.
    @type {(label: string, options: SliderOptions, onMove: (value: number) => void) =>
      HTMLElement} */
export function slider(label, { show = String, value, ...limits }, onMove) {
  const shown = h("b", {}, show(value));
  const bar = h("input", {
    type: "range",
    ...limits,
    "aria-valuetext": show(value),
    oninput: () => {
      shown.textContent = show(Number(bar.value));
      aria(bar, "valuetext", shown.textContent);
      onMove(Number(bar.value));
    },
  });
  bar.value = String(value);
  return h("label", { class: "field slider" }, span("", label, " ", shown), bar);
}

/** Create a slider over the steps from 0 to `last`, with a button that plays them (not for users
    who want no motion) and one for the next step; `onEnd` returns the step after the last one.
    `set` goes to a step.
    @type {(options: StepperOptions, show: (step: number) => void) =>
      { field: HTMLElement, set: (step: number) => void }} */
export function stepper({ label, last, value, time, onEnd }, show) {
  const field = slider(
    label,
    { min: 0, max: last, value, show: (step) => `${step + 1} / ${last + 1}` },
    show,
  );
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
    const step = Number(bar.value) < last ? Number(bar.value) + 1 : (onEnd?.() ?? 0);
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
  return {
    field: div(
      "controls stepper",
      field,
      !isStill && play,
      button(t("step.next"), () => {
        stop();
        advance();
      }),
    ),
    set: (step) => {
      stop();
      go(step);
    },
  };
}

/** Create a checkbox.
    @type {(label: string, checked: boolean, onChange: (checked: boolean) => void) =>
      HTMLElement} */
export const checkbox = (label, checked, onChange) =>
  h(
    "label",
    { class: "field check" },
    h("input", {
      type: "checkbox",
      "data-focus": label,
      checked,
      onchange: (/** @type {{ target: HTMLInputElement }} */ e) => onChange(e.target.checked),
    }),
    span("", label),
  );
