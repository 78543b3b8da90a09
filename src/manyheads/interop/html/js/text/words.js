/* Words of a translation: their alignment, and warnings about the output: as manyheads/tasks/assembly.py. */

import { isBlank, splitBlanks } from "./unicode.js";

const MAX_PERIOD = 16; // tokens of a repeated passage
const MIN_REPETITIONS = 4;
const MIN_LOOP_LENGTH = 8; // tokens of all repetitions together
const NEAR = 1e-6; // attention weights within it are equal

/** The index of the word that each token belongs to, counted in the decoded text from 0. */
export function wordNumbers(tokenizer, ids) {
  const counts = ids.map((_, end) => splitBlanks(tokenizer.decode(ids.slice(0, end + 1))).length);
  return counts.map((count) => Math.max(0, Math.min(count, counts.at(-1)) - 1));
}

/**
 * Links [source word, target word]: each target word with the source word that its tokens attend to most. `attention` holds the
 * weights of each target token on each source token; the end marks are left out. The first of source words with equal weights wins.
 */
export function wordAlignment(attention, sourceWords, targetWords) {
  if (!sourceWords.length || !targetWords.length) return [];
  const merged = Array.from({ length: targetWords.at(-1) + 1 }, () => new Float64Array(sourceWords.at(-1) + 1));
  targetWords.forEach((target, t) => sourceWords.forEach((source, s) => { merged[target][source] += attention[t][s]; }));
  return merged.map((weights, target) => {
    const highest = weights.reduce((a, b) => Math.max(a, b));
    return [weights.findIndex((weight) => weight >= highest - NEAR), target];
  });
}

/** Links in the Pharaoh format: "source-target", separated by blanks. */
export const pharaoh = (links) => links.map(([source, target]) => `${source}-${target}`).join(" ");

/** The index of the first word of a text in the line that it continues; `before` is the line up to it. */
function nextWord(before, text) {
  const continued = before && text && !isBlank(before.at(-1)) && !isBlank(text[0]);
  return splitBlanks(before).length - (continued ? 1 : 0);
}

/** Links of the words of a text that is copied; `source` and `target` are the lines before it. */
export function copiedLinks(source, target, copied) {
  const ours = nextWord(source, copied), theirs = nextWord(target, copied);
  return splitBlanks(copied).map((_, word) => [ours + word, theirs + word]);
}

/**
 * Links between the words of a line and those of its translation. `outputs` holds the tokens and the attention of each part,
 * null for a part without tokens; `tokenizers` are those of source and target; `longest` is the limit of a source in tokens.
 */
export function lineAlignment(line, outputs, tokenizers, longest) {
  const links = [];
  let end = 0, before = ""; // of the parts before: end in the line, translation
  line.parts.forEach((ids, index) => {
    const output = outputs[index];
    if (!output) return;
    const [start, stop] = line.spans[index];
    const text = tokenizers.target.decode(output.tokens);
    const gap = index ? line.between(index, [...before].at(-1) ?? "", [...text][0] ?? "") : line.text.slice(0, start);
    links.push(...copiedLinks(line.text.slice(0, end), before, gap));
    before += gap;
    const source = nextWord(line.text.slice(0, start), line.text.slice(start, stop)), target = nextWord(before, text);
    const ofSource = wordNumbers(tokenizers.source, ids.slice(0, longest)), ofTarget = wordNumbers(tokenizers.target, output.tokens);
    links.push(...wordAlignment(output.attention, ofSource, ofTarget).map(([ours, theirs]) => [source + ours, target + theirs]));
    end = stop;
    before += text;
  });
  return [...links, ...copiedLinks(line.text.slice(0, end), before, line.text.slice(end))];
}

/** The names of the warnings about the translation `text` of a line; `outputs` as in `lineAlignment`. */
export function translationWarnings(line, outputs, text, { forbidden = [], required = [] } = {}) {
  const pairs = line.parts.map((ids, index) => [ids, outputs[index]?.tokens]).filter(([, tokens]) => tokens);
  const signs = {
    "sentence-cut": line.cutSentences > 0,
    "repetition": pairs.some(([source, output]) => repeatsItself(source, output)),
    "length-ratio": pairs.some(([source, output]) => unusualLength(source.length, output.length)),
    "forbidden-phrase": forbidden.some((phrase) => beginsWord(phrase, text)),
    "missing-phrase": !required.every((phrase) => text.includes(phrase)),
  };
  return Object.keys(signs).filter((name) => signs[name]);
}

/** Whether a phrase occurs in the text at the beginning of a word. */
function beginsWord(phrase, text) {
  for (let index = text.indexOf(phrase); index >= 0; index = text.indexOf(phrase, index + 1)) {
    if (!index || isBlank(text[index - 1])) return true;
    if (index === text.length) return false; // an empty phrase
  }
  return false;
}

/** The largest number of times that a passage of at most 16 tokens occurs in a row; "ha ha ha ha" is too short to count. */
function maxRepetitions(tokens) {
  let most = 1;
  for (let period = 1; period <= Math.min(MAX_PERIOD, Math.floor(tokens.length / 2)); period += 1) {
    let run = 0;
    for (let index = period; index < tokens.length; index += 1) {
      run = tokens[index] === tokens[index - period] ? run + 1 : 0;
      if (run + period >= MIN_LOOP_LENGTH) most = Math.max(most, Math.floor(run / period) + 1);
    }
  }
  return most;
}

/** Whether an output repeats itself more often than its source does. */
function repeatsItself(source, output) {
  const repetitions = maxRepetitions(output);
  return repetitions >= MIN_REPETITIONS && repetitions > maxRepetitions(source) + 1;
}

/** Whether the longer of two lengths exceeds 3 times the shorter by more than 10 tokens. */
const unusualLength = (source, output) => Math.max(source, output) > 3 * Math.min(source, output) + 10;
