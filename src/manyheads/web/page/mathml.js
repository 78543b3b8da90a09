/* Formulas. */

import { h, populate } from "./elements.js";
import { n, t } from "./strings.js";

/** Create a MathML element; in `mrow`, strings become identifiers, numbers or operators.
    @type {(tag: string, ...children: Child[]) => Element} */
const m = (tag, ...children) =>
  populate(document.createElementNS("http://www.w3.org/1998/Math/MathML", tag), {}, children);

/** Return the name of the MathML element of a string.
    @type {(text: string) => string} */
const elementFor = (text) =>
  /^−?[\d.,]+$/.test(text) ? "mn" : /^[a-z]+$/i.test(text) ? "mi" : "mo";

/** @type {(...terms: Term[]) => Element} */
const mrow = (...terms) =>
  m(
    "mrow",
    terms.flat(9).map((term) => (typeof term === "string" ? m(elementFor(term), term) : term)),
  );

/** @type {(name: Term, index: Term) => Element} */
export const msub = (name, index) => m("msub", mrow(name), mrow(index));

/** @type {(upper: Term, lower: Term) => Element} */
export const mfrac = (upper, lower) => m("mfrac", mrow(upper), mrow(lower));

/** @type {(content: Term) => Element} */
export const mroot = (content) => m("msqrt", mrow(content));

/** @type {(power: Term) => Element} */
export const mexp = (power) => m("msup", mrow("e"), mrow(power));

/** @type {(index: Term) => Element} */
export const msum = (index) => m("munder", mrow("∑"), mrow(index));

/** Return a number after an operator, in brackets if it is negative.
    @type {(value: number) => Term} */
export const mnumber = (value) => (value < 0 ? ["(", n(value, 2), ")"] : n(value, 2));

/** Return the first products of a sum, as many as fit, and dots for the others.
    @type {(pairs: [number, number][]) => Term} */
export function mproducts(pairs) {
  const count = innerWidth < 700 ? 1 : 3;
  return [
    pairs.slice(0, count).map(([a, b], i) => [i ? "+" : [], mnumber(a), "·", mnumber(b)]),
    pairs.length > count ? ["+", "…"] : [],
  ];
}

/** Create a formula, in a box that scrolls if the formula is too wide.
    @type {(...terms: Term[]) => HTMLElement} */
export const formulaBox = (...terms) =>
  h(
    "div",
    { class: "formula", tabindex: 0, role: "group", "aria-label": t("steps.formula") },
    populate(m("math", mrow(terms)), { display: "block" }, []),
  );
