/* Tokenizers made of a SentencePiece model: as manyheads/text/subwords.py and marian.py. */

import { SPECIALS, Tokenizer, UNK } from "./base.js";
import { SentencePieceModel, SPACE_SIGN } from "./sentencepiece.js";
import { strip } from "./unicode.js";

/** A SentencePiece model whose ids 0 to 3 are the special symbols. */
export class SubwordTokenizer extends Tokenizer {
  constructor(description) {
    super(description);
    this.model = new SentencePieceModel(description.model);
    this.size = this.model.pieces.length;
  }

  encode(text) {
    const prepared = this.prepare(text);
    const standIn = prepared.includes(SPACE_SIGN) ? this.unusedCharacter(prepared) : "";
    return this.model.encode(standIn ? prepared.replaceAll(SPACE_SIGN, standIn) : prepared, standIn).map(([, id]) => id);
  }

  decode(ids) {
    return this.model.decode(this.check(ids));
  }

  pieces(ids) {
    return this.check(ids).map((id) => this.model.pieces[id]);
  }

  /** A character of private use that neither the text nor the vocabulary has: it stands for "▁", which the model takes for a blank. */
  unusedCharacter(text) {
    for (let code = 0xf0000; ; code += 1) {
      const character = String.fromCodePoint(code);
      if (!text.includes(character) && !this.model.ids.has(character)) return character;
    }
  }
}

/** A SentencePiece model with ids from a list of `symbols`, from id 4 on; pieces that the list does not have are unknown. */
export class MarianTokenizer extends Tokenizer {
  constructor(description) {
    super(description);
    this.model = new SentencePieceModel(description.model);
    this.symbols = [...SPECIALS, ...description.symbols];
    this.ids = new Map(description.symbols.map((symbol, index) => [symbol, index + SPECIALS.length]));
    this.size = this.symbols.length;
  }

  encode(text) {
    const prepared = this.prepare(text);
    const end = prepared.startsWith(">>") ? prepared.indexOf("<<") : -1; // of a language code
    const [code, rest] = end < 0 ? [[], prepared] : [[prepared.slice(0, end + 2)], prepared.slice(end + 2)];
    return [...code, ...this.model.encode(rest).map(([piece]) => piece)].map((piece) => this.ids.get(piece) ?? UNK);
  }

  decode(ids) {
    const text = this.decodeRuns(ids, (run) => this.model.decode(run.map((id) => this.symbols[id])));
    return strip(text.replaceAll(SPACE_SIGN, " ")); // a piece of the other language keeps its sign
  }

  pieces(ids) {
    return this.check(ids).map((id) => this.symbols[id]);
  }
}
