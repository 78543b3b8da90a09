"""Use the tokenizers of older Argos packages and of fairseq: words of Moses, cut by the merges of subword-nmt.

A piece that does not end its word ends in ``@@``. Words are cut and joined by the calls of Argos Translate.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, Self

from manyheads.errors import require
from manyheads.text.interface import SPECIALS, UNK
from manyheads.text.vocabulary import ListedTokenizer, StoredJson, damaged_error

_JOINER = "@@"
_END = "</w>"  # of a word, in a file of merges
_DASH = "@-@"  # symbol of a vocabulary whose words were cut at dashes
_CACHED_WORDS = 2**16


class _StoredMerges(StoredJson):
    """The JSON file of a `MosesBpeTokenizer`.

    Attributes:
        language: language of the side, whose rules of Moses are used.
        symbols: pieces in the order of their ids, without the special symbols.
        merges: content of the file of merges.
    """

    kind: Literal["moses-bpe"] = "moses-bpe"
    language: str
    symbols: tuple[str, ...]
    merges: str


class MosesBpeTokenizer(ListedTokenizer):
    """Words of Moses in pieces of BPE, with ids from a list; pieces that the list does not have are unknown.

    Args:
        symbols: pieces with ids from 4 on.
        merges: content of a file of merges of subword-nmt or fastBPE.
        language: language of the texts.

    Raises:
        RunError: a line of the merges is no pair of pieces.
    """

    kind = "moses-bpe"

    def __init__(self, symbols: Sequence[str], merges: str, language: str) -> None:
        super().__init__(symbols, lowercase=False)
        self.merges, self.language = merges, language
        lines = [line.strip("\r ") for line in merges.removesuffix("\n").split("\n")]
        version = lines.pop(0) if lines[0].startswith("#version:") else ""
        rows = [line.split(" ") for line in lines]
        counted = not version and all(len(row) == 3 and row[2].isdecimal() for row in rows)  # of fastBPE
        self._end_apart = not version.endswith("0.2") and not counted
        self._ranks: dict[tuple[str, str], int] = {}
        for number, row in enumerate(rows):
            if len(row) != 2 + counted:
                raise damaged_error(self.kind, f"{lines[number]!r} is no merge of two pieces")
            self._ranks.setdefault((row[0], row[1]), number)
        self.cut = lru_cache(_CACHED_WORDS)(self._merge)

    @classmethod
    def load(cls, data: bytes) -> Self:
        """Load a tokenizer from the bytes of `to_bytes`; raises `RunError`."""
        stored = _StoredMerges.parse(data, cls.kind)
        return cls(stored.symbols, stored.merges, stored.language)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each text."""
        prepared = self.prepare(texts)
        if not any(prepared):
            return [[] for _ in prepared]
        moses = self._moses()
        normalizer, tokenizer = moses.MosesPunctNormalizer(self.language), moses.MosesTokenizer(self.language)
        rows = [
            tokenizer.tokenize(normalizer.normalize(text), aggressive_dash_splits=_DASH in self.ids)
            for text in prepared
        ]
        return [[self.ids.get(piece, UNK) for word in row for piece in self.cut(word)] for row in rows]

    def _moses(self) -> Any:
        return require("sacremoses", extra="words", purpose=f'tokenizer.kind = "{self.kind}"')

    def _merge(self, word: str) -> tuple[str, ...]:
        """Return the pieces of a word; the merge that stands first in the file is made first, in all places."""
        parts = [*word, _END] if self._end_apart else [*word[:-1], word[-1] + _END]
        while ranks := [self._ranks[pair] for pair in pairwise(parts) if pair in self._ranks]:
            best, index = min(ranks), 0
            while index < len(parts) - 1:
                if self._ranks.get((parts[index], parts[index + 1])) == best:
                    parts[index : index + 2] = [parts[index] + parts[index + 1]]
                index += 1
        *first, last = parts if parts[-1] != _END else parts[:-1]
        return (*(part + _JOINER for part in first), last.removesuffix(_END))

    def output_text(self, ids: Sequence[int], source: str = "", *, unfinished: bool = False) -> str:
        """Return the text of the output of a model; without its end if a further word may change that."""
        text = self.decode(ids)
        if not unfinished:
            return text
        last = next((i for i in range(len(ids) - 1, 0, -1) if not self.symbols[ids[i - 1]].endswith(_JOINER)), 0)
        before = self.decode(ids[:last])
        return text[: next((i for i, letter in enumerate(before) if letter != text[i : i + 1]), len(before))]

    def decode(self, ids: Sequence[int]) -> str:
        """Join the pieces to words, and these to text as Moses does."""
        detokenizer = self._moses().MosesDetokenizer(self.language)

        def join(run: Any) -> str:
            words = " ".join(self.symbols[i] for i in run).replace(_JOINER + " ", "").removesuffix(_JOINER)
            return str(detokenizer.detokenize(words.split(" ")))

        return self.decode_runs(ids, join)

    def to_bytes(self) -> bytes:
        """Return the content of the JSON file."""
        return _StoredMerges(
            language=self.language, symbols=self.symbols[len(SPECIALS) :], merges=self.merges
        ).to_bytes()
