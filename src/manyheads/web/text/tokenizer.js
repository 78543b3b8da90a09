/* Loading of a tokenizer from its description, which describe_tokenizer in
   manyheads/web/tokenizer.py writes. */

import { ByteLevelTokenizer, WordPieceTokenizer } from "./huggingface.js";
import { MarianTokenizer, SubwordTokenizer } from "./subwords.js";
import { ByteTokenizer, CharacterTokenizer } from "./symbols.js";
import { WordTokenizer } from "./wordrules.js";

/** Make the tokenizer of a description, with encode(text), decode(ids), pieces(ids), size, kind,
    and the ids unk, pad, bos, eos and mask.
    @type {(description: TokenizerDescription) => Tokenizer} */
export function loadTokenizer(description) {
  switch (description.kind) {
    case "bpe":
    case "unigram":
      return new SubwordTokenizer(description);
    case "words":
      return new WordTokenizer(description);
    case "characters":
      return new CharacterTokenizer(description);
    case "bytes":
      return new ByteTokenizer(description);
    case "marian":
      return new MarianTokenizer(description);
    case "huggingface":
      return description.wordpiece
        ? new WordPieceTokenizer(description)
        : new ByteLevelTokenizer(description);
    default:
      throw new RangeError(`there is no tokenizer of the kind "${description.kind}"`);
  }
}
