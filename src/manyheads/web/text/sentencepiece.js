/* SentencePiece models, byte-pair encoding and unigram, with the same pieces as the sentencepiece library. */

import { Charsmap } from "./charsmap.js";
import { mergeSymbols } from "./merges.js";
import { bytePiece, decodeUtf8, fromBase64, utf8Bytes } from "./utf8.js";

export const SPACE_SIGN = "▁";
const UNKNOWN_PENALTY = 10; // nats below the lowest score of a piece
const SYMBOL_BONUS = 0.1; // score of a byte of a user-defined symbol after the first

/**
 * A SentencePiece model. The description has its algorithm ("bpe" or "unigram"), `pieces`, `scores` (float32 in base64), the ids of
 * `control`, `bytes` (none, or 256) and `user` symbols, the `unknown` id, and the settings of its normaliser.
 */
export class SentencePieceModel {
  constructor({ algorithm, pieces, scores, unknown, unknownText, control, bytes, user, dummyPrefix, removeExtraBlanks, charsmap }) {
    Object.assign(this, { algorithm, pieces, unknown, unknownText, dummyPrefix, removeExtraBlanks });
    this.scores = new Float32Array(fromBase64(scores).buffer);
    this.control = new Set(control);
    this.byteIds = bytes;
    this.byteOf = new Map(bytes.map((id, byte) => [id, byte]));
    this.user = new Set(user);
    this.userSymbols = user.map((id) => pieces[id]).sort((a, b) => b.length - a.length);
    this.charsmap = charsmap && new Charsmap(charsmap);
    this.ids = new Map(); // piece -> id, without control, byte and unknown symbols
    pieces.forEach((piece, id) => {
      if (id !== unknown && !this.control.has(id) && !this.byteOf.has(id)) this.ids.set(piece, id);
    });
    this.longest = 0;
    let lowest = Infinity;
    for (const [piece, id] of this.ids) {
      this.longest = Math.max(this.longest, piece.length);
      if (!this.user.has(id)) lowest = Math.min(lowest, this.scores[id]);
    }
    this.unknownScore = Math.fround(lowest - UNKNOWN_PENALTY);
  }

  /**
   * Encode a text as pieces [text, id]. A run of characters without a piece becomes its bytes, or one unknown piece if the model has
   * no bytes. `substitute` is a character that replaces "▁" in the text.
   */
  encode(text, substitute = "") {
    const normal = this.normalizeText(text), result = [];
    for (const pair of this.algorithm === "bpe" ? this.mergePieces(normal) : this.likeliestPieces(normal)) {
      const [piece, id] = pair;
      if (id !== this.unknown) result.push(pair);
      else if (this.byteIds.length) {
        for (const byte of utf8Bytes(piece === substitute ? SPACE_SIGN : piece)) result.push([bytePiece(byte), this.byteIds[byte]]);
      } else if (result.at(-1)?.[1] === this.unknown) result.at(-1)[0] += piece;
      else result.push(pair);
    }
    return result;
  }

  /** Return the user-defined symbol at an offset of a text; undefined if there is none. */
  userSymbolAt(text, index) {
    return this.userSymbols.find((symbol) => text.startsWith(symbol, index));
  }

  /** Normalise a text as the library does, with "▁" for blanks. */
  normalizeText(text) {
    let result = "", afterBlank = this.removeExtraBlanks;
    for (let index = 0; index < text.length;) {
      let [part, length] = this.normalizePrefix(text, index);
      index += length;
      if (afterBlank) part = part.replace(/^ +/, "");
      if (part) afterBlank = this.removeExtraBlanks && part.endsWith(" ");
      result += part.replaceAll(" ", SPACE_SIGN);
    }
    if (this.removeExtraBlanks) {
      while (result.endsWith(SPACE_SIGN)) result = result.slice(0, -1);
    }
    const isEmpty = this.removeExtraBlanks ? !result : !text;
    return isEmpty ? "" : (this.dummyPrefix ? SPACE_SIGN : "") + result;
  }

  /** Return the normalised text of the first characters at an offset, and their number of UTF-16 units. */
  normalizePrefix(text, index) {
    const symbol = this.userSymbolAt(text, index);
    if (symbol) return [symbol, symbol.length];
    const replacement = this.charsmap?.longestRule(text, index);
    if (replacement) return replacement;
    const character = String.fromCodePoint(text.codePointAt(index));
    return [character, character.length];
  }

  /** Return the pieces [text, id] after all merges, the pair with the highest score first (byte-pair encoding). */
  mergePieces(text) {
    const symbols = [], frozen = this.user;
    for (let index = 0; index < text.length; index += symbols.at(-1).length) {
      symbols.push(this.userSymbolAt(text, index) ?? String.fromCodePoint(text.codePointAt(index)));
    }
    const pairRank = (left, right) => {
      const id = this.ids.get(left + right);
      const isFrozen = frozen.size && (frozen.has(this.ids.get(left)) || frozen.has(this.ids.get(right)));
      return id === undefined || isFrozen ? undefined : -this.scores[id];
    };
    return mergeSymbols(symbols, pairRank).map((piece) => [piece, this.ids.get(piece) ?? this.unknown]);
  }

  /** Return the likeliest pieces [text, id] (Viterbi). Sums are float32 as in the library, so that ties are resolved alike. */
  likeliestPieces(text) {
    const best = new Float32Array(text.length + 1), starts = new Int32Array(text.length + 1).fill(-1), ids = new Int32Array(text.length + 1);
    const update = (start, end, id, score) => {
      const total = Math.fround(best[start] + score);
      if (starts[end] < 0 || total > best[end]) [best[end], starts[end], ids[end]] = [total, start, id];
    };
    for (let start = 0, step; start < text.length; start += step) {
      step = text.codePointAt(start) > 0xffff ? 2 : 1;
      let hasSingle = false; // whether the first character alone is a piece
      for (let end = start + step; end <= Math.min(text.length, start + this.longest); end += 1) {
        const piece = text.slice(start, end), id = this.ids.get(piece);
        if (id === undefined) continue;
        update(start, end, id, this.scoreOf(id, piece));
        hasSingle ||= end === start + step;
      }
      if (!hasSingle) update(start, start + step, this.unknown, this.unknownScore);
    }
    const pieces = [];
    for (let end = text.length; end > 0; end = starts[end]) pieces.push([text.slice(starts[end], end), ids[end]]);
    return pieces.reverse();
  }

  /** Return the score of a piece: a log-probability, or a positive number for a user-defined symbol. */
  scoreOf(id, piece) {
    return this.user.has(id) ? SYMBOL_BONUS * (utf8Bytes(piece).length - 1) : this.scores[id];
  }

  /** Decode pieces, given as ids, or as texts that need not be pieces of this model. */
  decode(pieces) {
    let text = "", bytes = [], atStart = true, blankRemoved = false;
    const flush = () => {
      text += decodeUtf8(bytes);
      bytes = [];
    };
    for (const piece of pieces) {
      const id = typeof piece === "number" ? piece : this.ids.get(piece) ?? this.reservedId(piece);
      if (this.byteOf.has(id)) {
        bytes.push(this.byteOf.get(id));
        continue;
      }
      flush();
      if (blankRemoved || text) atStart = false;
      blankRemoved = false;
      const symbol = typeof piece === "number" ? this.pieces[id] : piece;
      if (this.control.has(id)) continue;
      if (id === this.unknown) {
        text += symbol === this.pieces[id] ? this.unknownText : symbol;
        continue;
      }
      const removeBlank = atStart && (this.dummyPrefix || this.removeExtraBlanks) && symbol.startsWith(SPACE_SIGN);
      blankRemoved = removeBlank && !this.removeExtraBlanks;
      text += (removeBlank ? symbol.slice(1) : symbol).replaceAll(SPACE_SIGN, " ");
    }
    flush();
    return text;
  }

  /** Return the id of a control symbol or a byte by its text; the unknown id for any other text. */
  reservedId(piece) {
    const byte = this.byteIds.find((id) => this.pieces[id] === piece);
    return byte ?? [...this.control].find((id) => this.pieces[id] === piece) ?? this.unknown;
  }
}
