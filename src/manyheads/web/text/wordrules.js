/* Words and punctuation by the rules of spaCy's tokenizer, as in manyheads/text/words.py. */

import { UNK } from "./base.js";
import { clean, lower } from "./normalize.js";
import { SymbolTokenizer } from "./symbols.js";
import { isBlank, splitBlanks, WHITE } from "./unicode.js";

const LONG_WORD = new RegExp(`([^${WHITE}]{200})(?=[^${WHITE}])`, "gu");
const SEPARATOR = "\0"; // between the words of a sequence; it never occurs in a text

/** A tokenizer with one id per word. The description has the patterns of `rules`, and their
    `special` words with the tokens of each. */
export class WordTokenizer extends SymbolTokenizer {
  /** @param {TokenizerDescription} description */
  constructor(description) {
    super(description, " ");
    const { prefix, suffix, infix, url, special } = description.rules;
    this.prefix = new RegExp(prefix, "u");
    this.suffix = new RegExp(suffix, "u");
    this.url = new RegExp(url, "u");
    this.infix = new RegExp(infix, "gu");
    this.special = new Map(Object.entries(special));
    /** @type {Set<string>} */
    // tokens that the rules split special words into, joined by SEPARATOR
    this.sequences = new Set();
    this.maxSequence = 0; // length of the longest sequence
    for (const word of this.special.keys()) {
      if (
        ![this.prefix, this.suffix].some((pattern) => pattern.test(word)) &&
        word.search(this.infix) < 0 &&
        !word.includes(" ")
      ) {
        continue;
      }
      const words = this.splitText(word, new Map()).map((token) => token.text);
      this.sequences.add(words.join(SEPARATOR));
      this.maxSequence = Math.max(this.maxSequence, words.length);
    }
  }

  /** @type {(text: string) => number[]} */
  encode(text) {
    const words = this.words(text).filter((word) => this.ids.has(word) || splitBlanks(word).length);
    return words.map((word) => this.ids.get(word) ?? UNK);
  }

  /** Return the words of a text, in lower case if the tokenizer was trained so.
      @type {(text: string) => string[]} */
  words(text) {
    const tokens = this.splitText(clean(this.formed(text)).replace(LONG_WORD, "$1 "), this.special);
    const words = this.joinSpecial(tokens);
    return this.lowercase ? words.map(lower) : words;
  }

  /** Return the tokens of a text as { text, blank }, where `blank` says whether a blank follows.
      Further white space is a token.
      @type {(text: string, special: Map<string, string[]>) => WordToken[]} */
  splitText(text, special) {
    /** @type {WordToken[]} */
    const tokens = [];
    let start = 0;
    let inBlank = text !== "" && isBlank(text[0]);
    /** @type {(end: number) => void} */
    const add = (end) => {
      if (start < end) {
        tokens.push(
          ...this.splitWord(text.slice(start, end), special).map((word) => ({
            text: word,
            blank: false,
          })),
        );
      }
    };
    for (let index = 0; index < text.length; index += 1) {
      if (isBlank(text[index]) === inBlank) continue;
      add(index);
      if (text[index] === " ") tokens[tokens.length - 1].blank = true;
      start = text[index] === " " ? index + 1 : index;
      inBlank = !inBlank;
    }
    add(text.length);
    return tokens;
  }

  /** Split a text without white space into tokens: first at prefixes and suffixes, then at infixes.
      @type {(word: string, special: Map<string, string[]>) => string[]} */
  splitWord(word, special) {
    const prefixes = [];
    const suffixes = [];
    let rest = word;
    for (let length = 0; rest && rest.length !== length && !special.has(rest);) {
      length = rest.length;
      const before = this.prefix.exec(rest)?.[0].length ?? 0;
      if (before && special.has(rest.slice(before))) {
        prefixes.push(rest.slice(0, before));
        rest = rest.slice(before);
        break;
      }
      const after = this.suffix.exec(rest.slice(before))?.[0].length ?? 0;
      if (after && special.has(rest.slice(0, -after))) {
        suffixes.push(rest.slice(-after));
        rest = rest.slice(0, -after);
        break;
      }
      if (before) prefixes.push(rest.slice(0, before));
      if (after) suffixes.push(rest.slice(-after));
      rest = rest.slice(before, after ? -after : undefined);
    }
    return [...prefixes, ...this.splitInfixes(rest, special), ...suffixes.reverse()];
  }

  /** Split a word without prefixes and suffixes into tokens at its infixes.
      @type {(word: string, special: Map<string, string[]>) => string[]} */
  splitInfixes(word, special) {
    if (!word) return [];
    const whole = special.get(word);
    if (whole) return whole;
    const tokens = [];
    let start = 0;
    for (const match of this.url.test(word) ? [] : word.matchAll(this.infix)) {
      if (!match.index) continue;
      tokens.push(word.slice(start, match.index), match[0]);
      start = match.index + match[0].length;
    }
    return [...tokens, word.slice(start)].filter(Boolean);
  }

  /** Return the words of tokens; tokens that form a special word are replaced by the tokens of that
      word, the longest first, then the leftmost.
      @type {(tokens: WordToken[]) => string[]} */
  joinSpecial(tokens) {
    const spans = [];
    for (let start = 0; start < tokens.length; start += 1) {
      let sequence = "";
      for (
        let end = start + 1;
        end <= Math.min(tokens.length, start + this.maxSequence);
        end += 1
      ) {
        sequence += (sequence && SEPARATOR) + tokens[end - 1].text;
        if (this.sequences.has(sequence)) spans.push([start, end]);
      }
    }
    spans.sort((a, b) => b[1] - b[0] - (a[1] - a[0]) || a[0] - b[0]);
    const seen = new Set();
    const ends = new Map();
    for (const [start, end] of spans) {
      if (!seen.has(start) && !seen.has(end - 1)) ends.set(start, end);
      for (let index = start; index < end; index += 1) seen.add(index);
    }
    const words = [];
    for (let index = 0; index < tokens.length;) {
      const end = ends.get(index) ?? index + 1;
      const span = tokens.slice(index, end);
      const text = span
        .map((token, i) => token.text + (token.blank && i < span.length - 1 ? " " : ""))
        .join("");
      words.push(
        ...((ends.has(index) && this.special.get(text)) || span.map((token) => token.text)),
      );
      index = end;
    }
    return words;
  }
}
