/* Word alignment of a translation, and warnings about the output, as in
   assembly.py and output_checks.py of manyheads/inference/translation. */

import { outputOf } from "./kepttexts.js";
import { isBlank, splitBlanks } from "./unicode.js";

const MAX_PERIOD = 16; // tokens of a repeated passage
const MIN_REPETITIONS = 4;
const MIN_LOOP_LENGTH = 8; // tokens of all repetitions together
const TOLERANCE = 1e-6; // attention weights that differ by less are equal

/** Return for each token the index of its word in the decoded text; `source` as in wholeCharacters.
    The symbol of a literal of the sentence `kept` belongs to the last word of the literal.
    @type {(tokenizer: Tokenizer, ids: number[], source?: string, kept?: Sentence) => number[]} */
export function wordIndices(tokenizer, ids, source = "", kept = undefined) {
  const texts = ids.map((_, end) => outputOf(tokenizer, ids.slice(0, end + 1), source, kept));
  const counts = texts.map((text) => splitBlanks(text).length);
  for (let end = ids.length - 2; end >= 0; end -= 1) {
    // a byte belongs to the word of its character
    if (tokenizer.byteValues.has(ids[end]) && texts[end] === (texts[end - 1] ?? "")) {
      counts[end] = counts[end + 1];
    }
  }
  return counts.map((count) => Math.max(0, Math.min(count, counts[counts.length - 1]) - 1));
}

/** Return links [source word, target word]: each target word with the source word that its tokens
    attend to most. `attention` holds the weights of each target token on each source token; the end
    symbols are left out. Among source words with equal weights the first is taken.
    @type {(attention: ArrayLike<number>[], sourceWords: number[], targetWords: number[]) =>
      Link[]} */
export function wordAlignment(attention, sourceWords, targetWords) {
  if (!sourceWords.length || !targetWords.length) return [];
  const merged = Array.from(
    { length: targetWords[targetWords.length - 1] + 1 },
    () => new Float64Array(sourceWords[sourceWords.length - 1] + 1),
  );
  targetWords.forEach((target, t) =>
    sourceWords.forEach((source, s) => {
      merged[target][source] += attention[t][s];
    }),
  );
  return [...new Set(targetWords)]
    .sort((a, b) => a - b)
    .map((target) => {
      const highest = merged[target].reduce((a, b) => Math.max(a, b));
      return [merged[target].findIndex((weight) => weight >= highest - TOLERANCE), target];
    });
}

/** Return links in the Pharaoh format: "source-target", separated by blanks.
    @type {(links: Link[]) => string} */
export const pharaoh = (links) => links.map(([source, target]) => `${source}-${target}`).join(" ");

/** Return the index in a line of the first word of a text; `before` is the line up to the text.
    @type {(before: string, text: string) => number} */
function nextWord(before, text) {
  const continued = before && text && !isBlank(before.slice(-1)) && !isBlank(text[0]);
  return splitBlanks(before).length - (continued ? 1 : 0);
}

/** Return the links of the words of a copied text; `source` and `target` are the lines up to it.
    @type {(source: string, target: string, copied: string) => Link[]} */
export function copiedLinks(source, target, copied) {
  const sourceStart = nextWord(source, copied);
  const targetStart = nextWord(target, copied);
  return splitBlanks(copied).map((_, word) => [sourceStart + word, targetStart + word]);
}

/** Return the links between the words of a line and those of its translation. `outputs` holds the
    tokens and the attention of each part; `tokenizers` has the tokenizers of source and target;
    `longest` is the limit of a source in tokens.
    @type {(line: Line, outputs: { tokens: number[], attention: ArrayLike<number>[] }[], tokenizers:
      Tokenizers, longest: number) => Link[]} */
export function lineAlignment(line, outputs, tokenizers, longest) {
  /** @type {Link[]} */
  const links = [];
  let end = 0; // of the previous part in the line
  let before = ""; // translation of all previous parts
  line.parts.forEach((ids, index) => {
    const output = outputs[index];
    const [start, stop] = line.spans[index];
    const part = line.partText(index);
    const kept = line.kept[index];
    const text = outputOf(tokenizers.target, output.tokens, part, kept);
    const gap = line.between(index, [...before].at(-1) ?? "", [...text][0] ?? "");
    links.push(...copiedLinks(line.text.slice(0, end), before, gap));
    before += gap;
    const source = nextWord(line.text.slice(0, start), part);
    const target = nextWord(before, text);
    const sourceWords = wordIndices(tokenizers.source, ids.slice(0, longest), "", kept);
    const targetWords = wordIndices(tokenizers.target, output.tokens, part, kept);
    const numbers = splitBlanks(part).flatMap((word, number) =>
      tokenizers.source.prepare(word) ? [number] : [],
    ); // of words with a token
    links.push(
      ...wordAlignment(output.attention, sourceWords, targetWords).map(
        ([from, to]) =>
          /** @type {Link} */ ([
            source + (numbers[Math.min(from, numbers.length - 1)] ?? 0),
            target + to,
          ]),
      ),
    );
    end = stop;
    before += text;
  });
  return [...links, ...copiedLinks(line.text.slice(0, end), before, line.text.slice(end))];
}

/** Return the names of the warnings about the translation of a line by a tokenizer; `outputs` as in
    `lineAlignment`.
    @type {(line: Line, outputs: { tokens: number[] }[], tokenizer: Tokenizer, sources?:
      SourceModel) => string[]} */
export function translationWarnings(line, outputs, tokenizer, sources) {
  const pairs = line.parts.map((ids, index) => /** @type {const} */ ([ids, outputs[index].tokens]));
  /** @type {{ [name: string]: boolean }} */
  const detected = {
    "unlike-training": sources !== undefined && sources.isUnlike(line.parts),
    "sentence-cut": line.cutSentences > 0,
    repetition: pairs.some(([source, output]) => repeatsItself(source, output)),
    "length-ratio": pairs.some(([source, output]) => unusualLength(source.length, output.length)),
    "broken-character": outputs.some(
      (output) => tokenizer.wholeCharacters(output.tokens).broken > 0,
    ),
  };
  return Object.keys(detected).filter((name) => detected[name]);
}

/** Return the largest number of times that a passage of at most 16 tokens occurs in a row;
    repetitions with fewer than 8 tokens in all do not count.
    @type {(tokens: number[]) => number} */
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

/** Return whether an output repeats itself, and more often than its source does.
    @type {(source: number[], output: number[]) => boolean} */
function repeatsItself(source, output) {
  const repetitions = maxRepetitions(output);
  return repetitions >= MIN_REPETITIONS && repetitions > maxRepetitions(source) + 1;
}

/** Return whether the longer of two lengths exceeds 3 times the shorter by more than 10 tokens.
    @type {(source: number, output: number) => boolean} */
const unusualLength = (source, output) =>
  Math.max(source, output) > 3 * Math.min(source, output) + 10;
