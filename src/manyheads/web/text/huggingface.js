/* Tokenizers of pre-trained models, WordPiece and byte-level BPE, as in
   manyheads/text/huggingface.py and its library. */

import { SPECIALS, Tokenizer } from "./base.js";
import { mergeSymbols } from "./merges.js";
import { wellFormed } from "./unicode.js";
import { bytePiece, decodeStrictUtf8, decodeUtf8, utf8Bytes } from "./utf8.js";

/* White space of Unicode: without U+001C to U+001F, which Python adds, and U+FEFF, which JavaScript
   adds. */
const UNICODE_WHITE =
  "\\t-\\r\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const UNICODE_BLANKS = new RegExp(`[${UNICODE_WHITE}]`, "gu");

/** The base class of both kinds. The description has the `symbols` by id, the ids of `rows` of the
    embedding without a token, and the ids of `added` tokens, which are never made from text.
    @abstract */
class PretrainedTokenizer extends Tokenizer {
  /** @param {TokenizerDescription} description */
  constructor(description) {
    super(description);
    this.symbols = [...SPECIALS, ...description.symbols];
    this.size = this.symbols.length;
    this.unusedRows = new Set(description.rows); // ids of rows of the embedding without a token
    const added = new Set(description.added);
    this.ids = new Map();
    this.symbols.forEach((symbol, id) => {
      if (id >= SPECIALS.length && !this.unusedRows.has(id) && !added.has(id)) {
        this.ids.set(symbol, id);
      }
    });
  }

  /** @type {(ids: number[]) => string} */
  decode(ids) {
    return this.decodeRuns(ids, (run) => {
      const used = run.filter((id) => !this.unusedRows.has(id));
      return this.decodeTokens(used.map((id) => this.symbols[id]));
    });
  }

  /** @type {(ids: number[]) => string[]} */
  pieces(ids) {
    return this.check(ids).map((id) =>
      id < SPECIALS.length || this.unusedRows.has(id)
        ? this.symbols[id]
        : this.displayText(this.symbols[id]),
    );
  }

  /** Join tokens to a text.
      @type {(tokens: string[]) => string} */
  decodeTokens() {
    throw new Error("a subclass joins tokens");
  }

  /** Return the text of a token for display.
      @type {(symbol: string) => string} */
  displayText(symbol) {
    return symbol;
  }
}

/* --- WordPiece --- */

const CHINESE = new RegExp(
  "[\\u4e00-\\u9fff\\u3400-\\u4dbf\\u{20000}-\\u{2a6df}\\u{2a700}-\\u{2b81f}\\u{2b920}-\\u{2ceaf}" +
    "\\uf900-\\ufaff\\u{2f800}-\\u{2fa1f}]",
  "gu",
);
const BERT_WORDS = new RegExp(`[\\p{P}$+<=>^\`|~]|[^\\p{P}$+<=>^\`|~${UNICODE_WHITE}]+`, "gu");
/** @type {[string, string][]} */
const CLEAN_UPS = [
  [" .", "."],
  [" ?", "?"],
  [" !", "!"],
  [" ,", ","],
  [" ' ", "'"],
  [" n't", "n't"],
  [" 'm", "'m"],
  [" do not", " don't"],
  [" 's", "'s"],
  [" 've", "'ve"],
  [" 're", "'re"],
];

/** WordPiece (Devlin et al. 2019): greedy, the longest piece first, from the left. */
export class WordPieceTokenizer extends PretrainedTokenizer {
  /** @param {TokenizerDescription} description */
  constructor(description) {
    super(description);
    this.settings = /** @type {WordPieceSettings} */ (description.wordpiece);
  }

  /** @type {(text: string) => number[]} */
  encode(text) {
    return this.words(text).flatMap((word) => this.wordPieces(word));
  }

  /** Return the words and punctuation marks of a text.
      @type {(text: string) => string[]} */
  words(text) {
    return this.normalizeText(wellFormed(text)).match(BERT_WORDS) ?? [];
  }

  /** Normalise a text as BERT's normaliser does.
      @type {(text: string) => string} */
  normalizeText(text) {
    const { cleanText, splitChinese, stripAccents, lowerText } = this.settings;
    let normal = text;
    if (cleanText) {
      normal = normal
        .replace(/[\0\ufffd]|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}]/gu, "")
        .replace(UNICODE_BLANKS, " ");
    }
    if (splitChinese) normal = normal.replace(CHINESE, " $& ");
    if (stripAccents) normal = normal.normalize("NFD").replace(/\p{Mn}/gu, "");
    return lowerText ? Array.from(normal, (character) => character.toLowerCase()).join("") : normal;
  }

  /** Return the ids of a word; the unknown id if it cannot be divided into pieces.
      @type {(word: string) => number[]} */
  wordPieces(word) {
    const { longestWord, unknown, prefix } = this.settings;
    const characters = [...word];
    if (characters.length > longestWord) return [unknown];
    const ids = [];
    for (let start = 0; start < characters.length;) {
      let end = characters.length;
      let id;
      for (; end > start; end -= 1) {
        id = this.ids.get((start ? prefix : "") + characters.slice(start, end).join(""));
        if (id !== undefined) break;
      }
      if (id === undefined) return [unknown];
      ids.push(id);
      start = end;
    }
    return ids;
  }

  /** Join tokens to a text; remove the blanks before punctuation marks if `cleanUp` is set.
      @type {(tokens: string[]) => string} */
  decodeTokens(tokens) {
    const { prefix, cleanUp } = this.settings;
    return tokens
      .map((token, index) => {
        const text = !index
          ? token
          : token.startsWith(prefix)
            ? token.slice(prefix.length)
            : ` ${token}`;
        return cleanUp
          ? CLEAN_UPS.reduce((clean, [old, shorter]) => clean.replaceAll(old, shorter), text)
          : text;
      })
      .join("");
  }
}

/* --- byte-level BPE --- */

/* Words and numbers with the blank before them, punctuation marks, and runs of white space without
   their last blank. */
const BYTE_LEVEL_WORDS = new RegExp(
  `'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^${UNICODE_WHITE}\\p{L}\\p{N}]+|` +
    `[${UNICODE_WHITE}]+(?![^${UNICODE_WHITE}])|[${UNICODE_WHITE}]+`,
  "gu",
);

/** The character of each byte: itself if it is printable in Latin-1, the others in order from
    U+0100.
    @type {string[]} */
const BYTE_CHARACTERS = [];
for (let byte = 0, others = 0; byte < 256; byte += 1) {
  const printable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
  BYTE_CHARACTERS.push(String.fromCharCode(printable ? byte : 0x100 + others++));
}
const BYTE_OF_CHARACTER = new Map(BYTE_CHARACTERS.map((character, byte) => [character, byte]));

/** Return the bytes of a byte-level symbol; null for an added token, which is plain text.
    @type {(symbol: string) => number[] | null} */
function bytesOf(symbol) {
  const bytes = [...symbol].flatMap((character) => BYTE_OF_CHARACTER.get(character) ?? []);
  return bytes.length === [...symbol].length ? bytes : null;
}

/** Byte-level BPE (Radford et al. 2019, section 2.2). */
export class ByteLevelTokenizer extends PretrainedTokenizer {
  /** @param {TokenizerDescription} description */
  constructor(description) {
    super(description);
    this.addBlank = description.bytelevel.addBlank;
    this.ranks = new Map(description.bytelevel.merges.map((pair, rank) => [pair, rank]));
  }

  /** @type {(text: string) => number[]} */
  encode(text) {
    const valid = wellFormed(text);
    const prepared = this.addBlank && valid && !valid.startsWith(" ") ? ` ${valid}` : valid;
    /** @type {(left: string, right: string) => number | undefined} */
    const rank = (left, right) => this.ranks.get(`${left} ${right}`);
    return (prepared.match(BYTE_LEVEL_WORDS) ?? []).flatMap((word) => {
      const symbols = Array.from(utf8Bytes(word), (byte) => BYTE_CHARACTERS[byte]);
      const known = symbols.filter((symbol) => this.ids.has(symbol));
      return mergeSymbols(known, rank).flatMap((symbol) => this.ids.get(symbol) ?? []);
    });
  }

  /** @type {(tokens: string[]) => string} */
  decodeTokens(tokens) {
    return decodeUtf8(tokens.flatMap((token) => bytesOf(token) ?? [...utf8Bytes(token)]));
  }

  /** Return the text of a token for display: a blank as "▁", a byte of incomplete UTF-8 as <0xEA>.
      @type {(symbol: string) => string} */
  displayText(symbol) {
    const bytes = bytesOf(symbol);
    return bytes
      ? (decodeStrictUtf8(bytes)?.replaceAll(" ", "▁") ?? bytes.map(bytePiece).join(""))
      : symbol;
  }
}
