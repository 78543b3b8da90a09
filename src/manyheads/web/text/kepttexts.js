/* Reserved symbols in the place of literals inside of a sentence, as in
   manyheads/inference/translation/literals.py. */

import { textsBeside } from "./literals.js";
import { characterAt, characterBefore, isAlphanumeric, isBlank, isWide } from "./unicode.js";

// tags, links, emphasis and codes, which must stay in their order
const ORDERED = /^(?:[<[\]*_~}\\]|\{(?:[/\\]|\d{1,4}[>\]]))/u;
const NO_BLANK_AFTER = "([{«„“‚‘¿¡";
const NO_BLANK_BEFORE = ".,;:!?…)]}»”’。、，！？";

/** Return the token ids of a sentence with symbols in the place of its literals; null if there are
    not as many symbols.
    @type {(sentence: Sentence, tokenizer: Tokenizer) => number[] | null} */
export function markedIds(sentence, tokenizer) {
  if (sentence.literals.length > tokenizer.keepIds.length) return null;
  return textsBeside(sentence).flatMap((text, index) => [
    ...(index ? [tokenizer.keepIds[index - 1]] : []),
    ...tokenizer.encode(text),
  ]);
}

/** Return whether an output holds the symbol of each literal once; `tokenizer` is that of the
    target.
    @type {(sentence: Sentence, tokenizer: Tokenizer, tokens: number[]) => boolean} */
export function isComplete({ text, literals }, tokenizer, tokens) {
  const { numbers } = splitAtSymbols(tokenizer, tokens);
  const found = literals.some(([start]) => ORDERED.test(text.slice(start)))
    ? numbers
    : [...numbers].sort((a, b) => a - b);
  return found.length === literals.length && found.every((number, index) => number === index);
}

/** Return the text of an output for a source; with a sentence, its literals stand in the place of
    their symbols.
    @type {(tokenizer: Tokenizer, tokens: number[], source: string, sentence?: Sentence) =>
      string} */
export function outputOf(tokenizer, tokens, source, sentence) {
  if (!sentence) return tokenizer.outputText(tokens, source);
  const { runs, numbers } = splitAtSymbols(
    tokenizer,
    tokenizer.wholeCharacters(tokens, source).whole,
  );
  const [first, ...others] = runs.map((run) => tokenizer.decode(run));
  let text = first;
  numbers.forEach((number, index) => {
    const [start, end] = sentence.literals[number];
    const after = others[index];
    const tag = sentence.text[end - 1] === ">";
    if (text) {
      text += blankBeside(
        characterBefore(sentence.text, start),
        characterBefore(text, text.length),
        NO_BLANK_AFTER,
        tag,
      );
    }
    text += sentence.text.slice(start, end);
    if (after) {
      text +=
        blankBeside(characterAt(sentence.text, end), characterAt(after, 0), NO_BLANK_BEFORE, tag) +
        after;
    }
  });
  return text;
}

/** Return the runs of tokens around the symbols of kept texts, and the numbers of these symbols
    from 0.
    @type {(tokenizer: Tokenizer, tokens: number[]) => { runs: number[][], numbers: number[] }} */
function splitAtSymbols({ keepIds }, tokens) {
  /** @type {number[][]} */
  const runs = [[]];
  const numbers = [];
  for (const token of tokens) {
    if (keepIds.includes(token)) {
      numbers.push(keepIds.indexOf(token));
      runs.push([]);
    } else runs[runs.length - 1].push(token);
  }
  return { runs, numbers };
}

/** Return what separates a kept text from the output beside it: a blank, or nothing. `source` and
    `output` are the characters beside it.
    @type {(source: string, output: string, noBlank: string, tag: boolean) => string} */
function blankBeside(source, output, noBlank, tag) {
  const wide = isWide(source) || (source >= "\uac00" && source <= "\ud7a3");
  const joined = source && !isBlank(source) && (tag || !wide);
  return (joined && (isAlphanumeric(source) || !isAlphanumeric(output))) || noBlank.includes(output)
    ? ""
    : " ";
}
