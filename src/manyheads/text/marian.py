"""The tokenizers of MarianMT models (opus-mt): SentencePiece pieces under numbers of their own.

Such a model has one SentencePiece model a language and one list of pieces for both. They come with an imported
model, and give the ids that transformers' ``MarianTokenizer`` gives, but for the order of the special symbols.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from itertools import groupby
from typing import Literal, Self

import sentencepiece
from pydantic import BaseModel, ConfigDict, ValidationError

from manyheads.text.interface import SILENT, SPECIALS, UNK, Tokenizer
from manyheads.text.vocabulary import damaged

__all__ = ["MarianTokenizer"]

BLANK = "▁"


class StoredPieces(BaseModel):
    """The file of a `MarianTokenizer`: JSON.

    Attributes:
        lowercase: as configured.
        symbols: the pieces in the order of their ids, without the special symbols.
        model: the SentencePiece model of this language, in base64.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal["manyheads-tokenizer"] = "manyheads-tokenizer"
    version: Literal[1] = 1
    kind: Literal["marian"] = "marian"
    lowercase: bool
    symbols: tuple[str, ...]
    model: str


class MarianTokenizer(Tokenizer):
    """Pieces of a SentencePiece model, numbered by a list; what the list lacks is unknown.

    The library normalises the text as the model says. A text may begin with a language code such as ``>>fra<<``,
    which is one piece.

    Args:
        symbols: the pieces from id 4 on.
        model: the serialized SentencePiece model of the language.
        lowercase: as configured.

    Raises:
        RunError: it is no SentencePiece model.
    """

    kind = "marian"

    def __init__(self, symbols: Sequence[str], model: bytes, *, lowercase: bool = False) -> None:
        super().__init__(lowercase=lowercase)
        self.symbols = (*SPECIALS, *symbols)
        self.ids = {symbol: i for i, symbol in enumerate(self.symbols) if i >= len(SPECIALS)}
        self.model = model
        self.processor = sentencepiece.SentencePieceProcessor()
        try:
            self.processor.load_from_serialized_proto(model)
        except (RuntimeError, ValueError) as error:
            raise damaged(self.kind, "it holds no SentencePiece model") from error

    @classmethod
    def load(cls, data: bytes) -> Self:
        """Read what `to_bytes` wrote; raises `RunError`."""
        try:
            stored = StoredPieces.model_validate_json(data)
            model = base64.b64decode(stored.model, validate=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise damaged(cls.kind, f"{'.'.join(map(str, first['loc'])) or 'content'}: {first['msg']}") from error
        except binascii.Error as error:
            raise damaged(cls.kind, f"model: {error}") from error
        return cls(stored.symbols, model, lowercase=stored.lowercase)

    @property
    def size(self) -> int:
        """Number of pieces, the special symbols included."""
        return len(self.symbols)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The id of each piece of each text, after that of its language code where it begins with one."""
        parts = [split_code(text) for text in self.prepare(texts)]
        pieces: list[list[str]] = [self.processor.encode(text, out_type=str) for _, text in parts]
        return [
            [self.ids.get(piece, UNK) for piece in (*code, *row)]
            for (code, _), row in zip(parts, pieces, strict=True)
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of the pieces. Begin, end and padding spell nothing."""
        kept = (i for i in self.check(ids) if i not in SILENT)
        runs = [
            SPECIALS[UNK] if unknown else self.processor.decode_pieces([self.symbols[i] for i in run])
            for unknown, run in groupby(kept, lambda i: i == UNK)
        ]
        return " ".join(runs).replace(BLANK, " ").strip()  # a piece of the other language keeps its sign

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces as the library writes them."""
        return [self.symbols[i] for i in self.check(ids)]

    def to_bytes(self) -> bytes:
        """The content of its JSON file."""
        stored = StoredPieces(
            lowercase=self.lowercase,
            symbols=self.symbols[len(SPECIALS) :],
            model=base64.b64encode(self.model).decode(),
        )
        return (json.dumps(stored.model_dump(), ensure_ascii=False, indent=0) + "\n").encode()


def split_code(text: str) -> tuple[list[str], str]:
    """The language code at the beginning of a text, where there is one, and the rest."""
    end = text.find("<<") if text.startswith(">>") else -1
    return ([], text) if end < 0 else ([text[: end + 2]], text[end + 2 :])
