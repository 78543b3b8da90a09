/* Tokenizers with one id per character or per UTF-8 byte, as in manyheads/text/characters.py. */

import { SPECIALS, Tokenizer, UNK } from "./base.js";
import { bytePiece, decodeUtf8, utf8Bytes } from "./utf8.js";

/** A tokenizer with a list of `symbols`, starting at id 4; decoding joins them with a separator. */
export class SymbolTokenizer extends Tokenizer {
  /** @param {TokenizerDescription} description @param {string} separator */
  constructor(description, separator) {
    super(description);
    this.separator = separator;
    this.symbols = [...SPECIALS, ...description.symbols];
    this.ids = new Map(
      description.symbols.map((symbol, index) => [symbol, index + SPECIALS.length]),
    );
    this.size = this.symbols.length;
  }

  /** @type {(ids: number[]) => string} */
  decode(ids) {
    return this.textIds(ids)
      .map((id) => this.symbols[id])
      .join(this.separator);
  }

  /** @type {(ids: number[]) => string[]} */
  pieces(ids) {
    return this.check(ids).map((id) => this.symbols[id].replaceAll(" ", "▁"));
  }
}

/** A tokenizer with one id per character. */
export class CharacterTokenizer extends SymbolTokenizer {
  /** @param {TokenizerDescription} description */
  constructor(description) {
    super(description, "");
  }

  /** @type {(text: string) => number[]} */
  encode(text) {
    return Array.from(this.prepare(text), (character) => this.ids.get(character) ?? UNK);
  }
}

/** A tokenizer with one id per UTF-8 byte, after the special symbols. */
export class ByteTokenizer extends Tokenizer {
  size = SPECIALS.length + 256;
  byteValues = new Map(Array.from({ length: 256 }, (_, byte) => [byte + SPECIALS.length, byte]));

  /** @type {(text: string) => number[]} */
  encode(text) {
    return Array.from(utf8Bytes(this.prepare(text)), (byte) => byte + SPECIALS.length);
  }

  /** @type {(ids: number[]) => string} */
  decode(ids) {
    return decodeUtf8(
      this.textIds(ids).flatMap((id) =>
        id === UNK ? [...utf8Bytes(SPECIALS[UNK])] : [id - SPECIALS.length],
      ),
    );
  }

  /** @type {(ids: number[]) => string[]} */
  pieces(ids) {
    return this.check(ids).map((id) => SPECIALS[id] ?? bytePiece(id - SPECIALS.length));
  }
}
