/* Word alignment of a translation, as in manyheads/inference/translation/assembly.py. */

import { isBlank, splitBlanks } from "../text/unicode.js";

const TOLERANCE = 1e-6; // attention weights that differ by less are equal

/** Return for each token the index of its word in the decoded text; `source` as in wholeCharacters.
    A symbol for which `decode` writes a text belongs to the last word of the text.
    @type {(tokenizer: Tokenizer, ids: number[], source?: string, decode?: (tokens: number[]) =>
      string) => number[]} */
export function wordIndices(
  tokenizer,
  ids,
  source = "",
  decode = tokenizer.decode.bind(tokenizer),
) {
  const texts = ids.map((_, end) =>
    decode(tokenizer.wholeCharacters(ids.slice(0, end + 1), source).whole),
  );
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
export function lineAlignment(line, outputs, { source, target }, longest) {
  /** @type {Link[]} */
  const links = [];
  let end = 0; // of the previous part in the line
  let before = ""; // translation of all previous parts
  line.parts.forEach((part, index) => {
    const { tokens, attention } = outputs[index];
    const text = part.outputText(target, tokens);
    const gap = line.between(index, [...before].at(-1) ?? "", [...text][0] ?? "");
    links.push(...copiedLinks(line.text.slice(0, end), before, gap));
    before += gap;
    const firstSource = nextWord(line.text.slice(0, part.start), part.text);
    const firstTarget = nextWord(before, text);
    const sourceWords = wordIndices(source, part.ids.slice(0, longest), "", (ids) =>
      part.decode(source, ids),
    );
    const targetWords = wordIndices(target, tokens, part.text, (ids) => part.decode(target, ids));
    const numbers = splitBlanks(part.text).flatMap((word, number) =>
      source.prepare(word) ? [number] : [],
    ); // of words with a token
    for (const [from, to] of wordAlignment(attention, sourceWords, targetWords)) {
      const number = numbers[Math.min(from, numbers.length - 1)] ?? 0;
      links.push([firstSource + number, firstTarget + to]);
    }
    end = part.end;
    before += text;
  });
  return [...links, ...copiedLinks(line.text.slice(0, end), before, line.text.slice(end))];
}
