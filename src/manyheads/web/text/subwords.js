/* Tokenizers with a SentencePiece model, as in manyheads/text/subwords.py and marian.py. */

import { SPECIALS, Tokenizer, UNK } from "./base.js";
import { SentencePieceModel, SPACE_SIGN } from "./sentencepiece.js";
import { strip } from "./unicode.js";

/** A SentencePiece model whose ids 0 to 3 are the special symbols. */
export class SubwordTokenizer extends Tokenizer {
  /** @param {TokenizerDescription} description */
  constructor(description) {
    super(description);
    this.model = new SentencePieceModel(description.model);
    this.size = this.model.pieces.length;
    this.byteValues = this.model.byteOf;
    this.placeholderIds = this.model.placeholderIds;
  }

  /** @type {(text: string) => number[]} */
  encode(text) {
    const prepared = this.prepare(text);
    const substitute = prepared.includes(SPACE_SIGN) ? this.unusedCharacter(prepared) : "";
    return this.model
      .encode(substitute ? prepared.replaceAll(SPACE_SIGN, substitute) : prepared, substitute)
      .map(([, id]) => id);
  }

  /** @type {(ids: number[]) => string} */
  decode(ids) {
    return this.model.decode(this.check(ids));
  }

  /** @type {(ids: number[]) => string[]} */
  pieces(ids) {
    return this.check(ids).map((id) => this.model.pieces[id]);
  }

  /** Return a private-use character that neither the text nor the vocabulary has; it replaces "▁",
      which the model would read as a blank.
      @type {(text: string) => string} */
  unusedCharacter(text) {
    for (let code = 0xf0000; ; code += 1) {
      const character = String.fromCodePoint(code);
      if (!text.includes(character) && !this.model.ids.has(character)) return character;
    }
  }
}

/** A SentencePiece model with ids from a list of `symbols`, starting at id 4; pieces outside the
    list are unknown. */
export class MarianTokenizer extends Tokenizer {
  /** @param {TokenizerDescription} description */
  constructor(description) {
    super(description);
    this.model = new SentencePieceModel(description.model);
    this.symbols = [...SPECIALS, ...description.symbols];
    this.ids = new Map(
      description.symbols.map((symbol, index) => [symbol, index + SPECIALS.length]),
    );
    this.size = this.symbols.length;
    this.model.byteIds.forEach((id, byte) => {
      const own = this.ids.get(this.model.pieces[id]);
      if (own !== undefined) this.byteValues.set(own, byte);
    });
  }

  /** @type {(text: string) => number[]} */
  encode(text) {
    const prepared = this.prepare(text);
    // end of a language code such as >>fra<<
    const end = prepared.startsWith(">>") ? prepared.indexOf("<<") : -1;
    const [code, rest] =
      end < 0 ? [[], prepared] : [[prepared.slice(0, end + 2)], prepared.slice(end + 2)];
    const pieces = [...code, ...this.model.encode(rest).map(([piece]) => piece)];
    return pieces.map((piece) => this.ids.get(piece) ?? UNK);
  }

  /** @type {(ids: number[]) => string} */
  decode(ids) {
    const text = this.decodeRuns(ids, (run) =>
      this.model.decode(run.map((id) => this.symbols[id])),
    );
    return strip(text.replaceAll(SPACE_SIGN, " ")); // pieces of the other language keep the sign
  }

  /** @type {(ids: number[]) => string[]} */
  pieces(ids) {
    return this.check(ids).map((id) => this.symbols[id]);
  }
}
