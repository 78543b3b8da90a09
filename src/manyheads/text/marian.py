"""Use the tokenizers of MarianMT models (opus-mt): SentencePiece models with a separate list of ids.

A MarianMT model has one SentencePiece model for each language and one list of pieces for both. The ids equal the
ids of transformers' ``MarianTokenizer``, except for the order of the special symbols.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal, Self

import sentencepiece

from manyheads.text.interface import SPECIALS, UNK
from manyheads.text.vocabulary import ListedTokenizer, StoredJson, damaged_error

_BLANK = "▁"


class _StoredPieces(StoredJson):
    """The JSON file of a `MarianTokenizer`.

    Attributes:
        lowercase: whether text is lower-cased.
        symbols: pieces in the order of their ids, without the special symbols.
        model: SentencePiece model of this language, in base64.
    """

    kind: Literal["marian"] = "marian"
    lowercase: bool
    symbols: tuple[str, ...]
    model: str


class MarianTokenizer(ListedTokenizer):
    """A SentencePiece model with ids from a list; pieces that the list does not have are unknown.

    The library normalises the text as the model says. A text may begin with a language code such as ``>>fra<<``,
    which is one piece.

    Args:
        symbols: pieces with ids from 4 on.
        model: serialised SentencePiece model of the language.
        lowercase: whether text is lower-cased.

    Raises:
        RunError: the bytes are not a SentencePiece model.
    """

    kind = "marian"

    def __init__(self, symbols: Sequence[str], model: bytes, *, lowercase: bool = False) -> None:
        super().__init__(symbols, lowercase=lowercase)
        self.model = model
        self.processor = sentencepiece.SentencePieceProcessor()
        try:
            self.processor.load_from_serialized_proto(model)
        except (RuntimeError, ValueError) as error:
            raise damaged_error(self.kind, "it holds no SentencePiece model") from error

    @classmethod
    def load(cls, data: bytes) -> Self:
        """Load a tokenizer from the bytes of `to_bytes`; raises `RunError`."""
        stored = _StoredPieces.parse(data, cls.kind)
        try:
            model = base64.b64decode(stored.model, validate=True)
        except binascii.Error as error:
            raise damaged_error(cls.kind, f"model: {error}") from error
        return cls(stored.symbols, model, lowercase=stored.lowercase)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each text; the id of a leading language code comes first."""
        parts = [_split_code(text) for text in self.prepare(texts)]
        pieces: list[list[str]] = [self.processor.encode(text, out_type=str) for _, text in parts]
        return [
            [self.ids.get(piece, UNK) for piece in (*code, *row)]
            for (code, _), row in zip(parts, pieces, strict=True)
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """Decode the pieces; begin, end and padding symbols have no text."""
        whole, _ = self.whole_characters(self.check(ids))
        text = self.decode_runs(whole, lambda run: self.processor.decode_pieces([self.symbols[i] for i in run]))
        return text.replace(_BLANK, " ").strip()  # pieces of the other language still have their sign for a blank

    @cached_property
    def byte_values(self) -> Mapping[int, int]:
        """Return the byte of each byte piece."""
        known = {symbol: self.processor.piece_to_id(symbol) for symbol in self.ids}
        return {i: int(symbol[1:-1], 16) for symbol, i in self.ids.items() if self.processor.is_byte(known[symbol])}

    def to_bytes(self) -> bytes:
        """Return the content of the JSON file."""
        symbols, model = self.symbols[len(SPECIALS) :], base64.b64encode(self.model).decode()
        return _StoredPieces(lowercase=self.lowercase, symbols=symbols, model=model).to_bytes()


def _split_code(text: str) -> tuple[list[str], str]:
    """Split a text into its leading language code, if any, and the rest."""
    end = text.find("<<") if text.startswith(">>") else -1
    return ([], text) if end < 0 else ([text[: end + 2]], text[end + 2 :])
