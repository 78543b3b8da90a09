/* SentencePiece models, byte-pair encoding and unigram, with the same pieces as the sentencepiece
   library. */

import { Charsmap } from "./charsmap.js";
import { mergeSymbols } from "./merges.js";
import { characterAt } from "./unicode.js";
import { bytePiece, decodeUtf8, fromBase64, utf8Bytes } from "./utf8.js";

export const SPACE_SIGN = "▁";
const UNKNOWN_PENALTY = 10; // nats below the lowest score of a piece
const SYMBOL_BONUS = 0.1; // score of a byte of a user-defined symbol after the first

/** A SentencePiece model. The description has its algorithm ("bpe" or "unigram"), `pieces`,
    `scores` (float32 in base64), the ids of `control`, `bytes` (none, or 256) and `user` symbols,
    the `unknown` id, and the settings of its normaliser. */
export class SentencePieceModel {
  /** @param {SentencePieceDescription} description */
  constructor({
    algorithm,
    pieces,
    scores,
    unknown,
    unknownText,
    control,
    bytes,
    user,
    dummyPrefix,
    removeExtraBlanks,
    charsmap,
  }) {
    this.algorithm = algorithm;
    this.pieces = pieces;
    this.unknown = unknown;
    this.unknownText = unknownText;
    this.dummyPrefix = dummyPrefix;
    this.removeExtraBlanks = removeExtraBlanks;
    this.scores = new Float32Array(fromBase64(scores).buffer);
    this.control = new Set(control);
    this.placeholderIds = control
      .filter((id) => /^<keep-\d>$/.test(pieces[id]))
      .sort((a, b) => pieces[a].localeCompare(pieces[b]));
    this.byteIds = bytes;
    this.byteOf = new Map(bytes.map((id, byte) => [id, byte]));
    this.user = new Set(user);
    this.userSymbols = user.map((id) => pieces[id]).sort((a, b) => b.length - a.length);
    this.charsmap = charsmap ? new Charsmap(charsmap) : null;
    /** @type {Map<string, number>} */
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

  /** Encode a text as pieces [text, id]. A run of characters without a piece becomes its bytes, or
      one unknown piece if the model has no bytes. `substitute` is a character that replaces "▁" in
      the text.
      @type {(text: string, substitute?: string) => [string, number][]} */
  encode(text, substitute = "") {
    const normal = this.normalizeText(text);
    /** @type {[string, number][]} */
    const result = [];
    for (const pair of this.algorithm === "bpe"
      ? this.mergePieces(normal)
      : this.likeliestPieces(normal)) {
      const [piece, id] = pair;
      const last = result.at(-1);
      if (id !== this.unknown) result.push(pair);
      else if (this.byteIds.length) {
        for (const byte of utf8Bytes(piece === substitute ? SPACE_SIGN : piece)) {
          result.push([bytePiece(byte), this.byteIds[byte]]);
        }
      } else if (last?.[1] === this.unknown) last[0] += piece;
      else result.push(pair);
    }
    return result;
  }

  /** Return the user-defined symbol at an offset of a text; undefined if there is none.
      @type {(text: string, index: number) => string | undefined} */
  userSymbolAt(text, index) {
    return this.userSymbols.find((symbol) => text.startsWith(symbol, index));
  }

  /** Normalise a text as the library does, with "▁" for blanks.
      @type {(text: string) => string} */
  normalizeText(text) {
    let result = "";
    let afterBlank = this.removeExtraBlanks;
    for (let index = 0; index < text.length;) {
      const [normal, length] = this.normalizePrefix(text, index);
      const part = afterBlank ? normal.replace(/^ +/, "") : normal;
      index += length;
      if (part) afterBlank = this.removeExtraBlanks && part.endsWith(" ");
      result += part.replaceAll(" ", SPACE_SIGN);
    }
    if (this.removeExtraBlanks) {
      while (result.endsWith(SPACE_SIGN)) result = result.slice(0, -1);
    }
    const isEmpty = this.removeExtraBlanks ? !result : !text;
    return isEmpty ? "" : (this.dummyPrefix ? SPACE_SIGN : "") + result;
  }

  /** Return the normalised text of the first characters at an offset, and their number of UTF-16
      units.
      @type {(text: string, index: number) => [string, number]} */
  normalizePrefix(text, index) {
    const symbol = this.userSymbolAt(text, index);
    if (symbol) return [symbol, symbol.length];
    const replacement = this.charsmap?.longestRule(text, index);
    if (replacement) return replacement;
    const character = characterAt(text, index);
    return [character, character.length];
  }

  /** Return the pieces [text, id] after all merges, the pair with the highest score first
      (byte-pair encoding).
      @type {(text: string) => [string, number][]} */
  mergePieces(text) {
    const symbols = [];
    const frozen = this.user;
    for (let index = 0, symbol; index < text.length; index += symbol.length) {
      symbol = this.userSymbolAt(text, index) ?? characterAt(text, index);
      symbols.push(symbol);
    }
    /** @type {(left: string, right: string) => number | undefined} */
    const pairRank = (left, right) => {
      const id = this.ids.get(left + right);
      const isFrozen =
        frozen.size && [left, right].some((symbol) => frozen.has(this.ids.get(symbol) ?? -1));
      return id === undefined || isFrozen ? undefined : -this.scores[id];
    };
    return mergeSymbols(symbols, pairRank).map((piece) => [
      piece,
      this.ids.get(piece) ?? this.unknown,
    ]);
  }

  /** Return the likeliest pieces [text, id] (Viterbi). Sums are float32 as in the library, so that
      ties are resolved alike.
      @type {(text: string) => [string, number][]} */
  likeliestPieces(text) {
    const best = new Float32Array(text.length + 1);
    const starts = new Int32Array(text.length + 1).fill(-1);
    const ids = new Int32Array(text.length + 1);
    /** @type {(start: number, end: number, id: number, score: number) => void} */
    const update = (start, end, id, score) => {
      const total = Math.fround(best[start] + score);
      if (starts[end] < 0 || total > best[end]) {
        [best[end], starts[end], ids[end]] = [total, start, id];
      }
    };
    for (let start = 0, step; start < text.length; start += step) {
      step = characterAt(text, start).length;
      let hasSingle = false; // whether the first character alone is a piece
      for (let end = start + step; end <= Math.min(text.length, start + this.longest); end += 1) {
        const piece = text.slice(start, end);
        const id = this.ids.get(piece);
        if (id === undefined) continue;
        update(start, end, id, this.scoreOf(id, piece));
        hasSingle ||= end === start + step;
      }
      if (!hasSingle) update(start, start + step, this.unknown, this.unknownScore);
    }
    /** @type {[string, number][]} */
    const pieces = [];
    for (let end = text.length; end > 0; end = starts[end]) {
      pieces.push([text.slice(starts[end], end), ids[end]]);
    }
    return pieces.reverse();
  }

  /** Return the score of a piece: a log-probability, or a positive number for a user-defined
      symbol.
      @type {(id: number, piece: string) => number} */
  scoreOf(id, piece) {
    return this.user.has(id) ? SYMBOL_BONUS * (utf8Bytes(piece).length - 1) : this.scores[id];
  }

  /** Decode pieces, given as ids, or as texts that need not be pieces of this model.
      @type {(pieces: (number | string)[]) => string} */
  decode(pieces) {
    let text = "";
    let atStart = true;
    let blankRemoved = false;
    /** @type {number[]} */
    let bytes = [];
    const flush = () => {
      text += decodeUtf8(bytes);
      bytes = [];
    };
    for (const piece of pieces) {
      const id =
        typeof piece === "number" ? piece : (this.ids.get(piece) ?? this.reservedId(piece));
      const byte = this.byteOf.get(id);
      if (byte !== undefined) {
        bytes.push(byte);
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
      const removeBlank =
        atStart && (this.dummyPrefix || this.removeExtraBlanks) && symbol.startsWith(SPACE_SIGN);
      blankRemoved = removeBlank && !this.removeExtraBlanks;
      text += (removeBlank ? symbol.slice(1) : symbol).replaceAll(SPACE_SIGN, " ");
    }
    flush();
    return text;
  }

  /** Return the id of a control symbol or a byte by its text; the unknown id for any other text.
      @type {(piece: string) => number} */
  reservedId(piece) {
    const byte = this.byteIds.find((id) => this.pieces[id] === piece);
    return byte ?? [...this.control].find((id) => this.pieces[id] === piece) ?? this.unknown;
  }
}
