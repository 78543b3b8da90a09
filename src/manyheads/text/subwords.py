"""Subword tokenizers of the SentencePiece library: byte-pair encoding (BPE) and unigram."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cached_property

import sentencepiece

from manyheads.config.schema import TokenizerConfig
from manyheads.former_names import former_names
from manyheads.processors import available_processors
from manyheads.text.interface import BOS, EOS, PAD, SPECIALS, UNK, Tokenizer
from manyheads.text.sampling import BpeSampler, UnigramSampler, WordSampler
from manyheads.text.vocabulary import damaged_error

__getattr__ = former_names(__name__, {"possible_size": "text.training"})

_WORTH_THREADS = 1_000  # texts from which several threads are faster; the result is the same

BLANK = "▁"  # the library's sign for a blank
_STAND_INS = range(0xF0000, 0x10FFFE)  # code points for private use


class SubwordTokenizer(Tokenizer):
    """A SentencePiece model whose ids 0 to 3 are the special symbols.

    Args:
        config: its ``kind``, ``sampling`` and ``lowercase`` are used.
        model: serialised model, as the library's own programs read and write it.

    Raises:
        RunError: the model is damaged, or its special symbols have other ids.
    """

    suffix = ".model"

    def __init__(self, config: TokenizerConfig, model: bytes, *, keep_space: bool = False) -> None:
        super().__init__(lowercase=config.lowercase, keep_space=keep_space)
        self.kind = config.kind
        self.sampling = config.sampling
        self.model = model
        self.processor = processor = sentencepiece.SentencePieceProcessor()
        try:
            processor.load_from_serialized_proto(model)
            self.texts: list[str] = processor.id_to_piece([*range(len(processor))])
        except (RuntimeError, ValueError) as error:
            raise damaged_error(self.kind, "it is no SentencePiece model") from error
        specials = (processor.unk_id(), processor.pad_id(), processor.bos_id(), processor.eos_id())
        if specials != (UNK, PAD, BOS, EOS):
            raise damaged_error(self.kind, f"its ids of {', '.join(SPECIALS)} are {specials}, not (0, 1, 2, 3)")
        self.symbols = frozenset(config.symbols)
        self.reserved = {self.texts[i]: i for i in range(len(SPECIALS), self.size) if processor.is_control(i)}

    @cached_property
    def scores(self) -> Mapping[str, float]:
        """Score of each piece, without those of special symbols and bytes."""
        processor = self.processor
        return {
            piece: processor.get_score(i)
            for i, piece in enumerate(self.texts)
            if not (processor.is_control(i) or processor.is_unknown(i) or processor.is_byte(i))
        }

    @cached_property
    def sampler(self) -> WordSampler:
        """Sampler of the segmentations of a word."""
        kind = BpeSampler if self.kind == "bpe" else UnigramSampler
        return kind(self.scores, self.sampling)

    def with_reserved(self, config: TokenizerConfig, symbols: Sequence[str]) -> SubwordTokenizer:
        """Return a tokenizer with further reserved symbols after its pieces; `config` is that of this tokenizer."""
        added = b"".join(map(_control_piece, symbols))
        return SubwordTokenizer(config, self.model + added, keep_space=self.keep_space)

    @property
    def size(self) -> int:
        """Vocabulary size, special symbols and byte pieces included."""
        return len(self.texts)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each text: the most likely segmentation (unigram), or the learned merges (bpe)."""
        prepared, stand_in = self.shield(self.prepare(texts))
        ids: list[list[int]]
        if len(texts) < _WORTH_THREADS:  # one by one: for a list the library starts a thread, which takes longer
            ids = [self.processor.encode(text, out_type=int) for text in prepared]
        else:
            ids = self.processor.encode(prepared, out_type=int, num_threads=available_processors())
        return self.unshield(ids, stand_in)

    def sample(self, texts: Sequence[str], seed: int) -> list[list[int]]:
        """Sample a segmentation of each text.

        ``tokenizer.sampling`` is the BPE dropout or the unigram alpha; 0 turns sampling off. The same texts and
        seed give the same pieces in every process and on every machine.
        """
        if self.sampling == 0:
            return self.encode(texts)
        prepared, stand_in = self.shield(self.prepare(texts))
        rng = random.Random(str(int(seed)))  # a number would lose its sign
        return self.unshield([self.draw(text, rng) for text in prepared], stand_in)

    def draw(self, text: str, rng: random.Random) -> list[int]:
        """Sample the pieces of one text, word by word: only the first character of a piece can be a blank."""
        ids: list[int] = []
        for word in text.split(" ") if text else ():
            for piece in [BLANK + word] if word in self.symbols else self.sampler.draw(BLANK + word, rng):
                spelled = self.spell(piece)
                if spelled != [UNK] or ids[-1:] != [UNK]:  # a run of unknown pieces is one unknown id
                    ids += spelled
        return ids

    def spellings(self, text: str, most: int) -> list[list[int]]:
        """Return the sequences of `Tokenizer.spellings`, without sequences that spell known characters as bytes."""
        (usual,) = self.encode([text])
        (prepared,) = self.prepare([text])
        whole = BLANK + prepared.replace(" ", BLANK)
        longest = max(map(len, self.scores), default=0)
        ways: list[list[list[str]]] = [[[]]]  # of the last 0, 1, 2, ... characters
        for start in range(len(whole) - 1, -1, -1):
            rests = zip(range(start + 1, start + 1 + longest), reversed(ways), strict=False)
            candidates = [
                [piece, *rest]
                for end, after in rests
                if (piece := whole[start:end]) in self.scores
                for rest in after
            ]
            ways.append(sorted(candidates, key=len)[:most])
        sequences = [[self.processor.piece_to_id(piece) for piece in way] for way in ways[-1]]
        return [usual, *(ids for ids in sequences if ids != usual)][:most]

    def spell(self, piece: str) -> list[int]:
        """Return the id of a piece; for an unknown character the ids of its bytes, or the unknown symbol."""
        if piece in self.scores:
            return [self.processor.piece_to_id(piece)]
        byte_ids = [self.processor.piece_to_id(f"<0x{byte:02X}>") for byte in piece.encode()]
        return [UNK] if UNK in byte_ids else byte_ids

    def decode(self, ids: Sequence[int]) -> str:
        """Decode the pieces; bytes that form no character, begin, end and padding have no text."""
        text: str = self.processor.decode(self.whole_characters(self.check(ids))[0])
        return text

    @cached_property
    def byte_values(self) -> Mapping[int, int]:
        """Return the byte of each byte piece."""
        return {i: int(text[1:-1], 16) for i, text in enumerate(self.texts) if self.processor.is_byte(i)}

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the pieces as the library writes them: ``▁Hund``, ``<0xEA>``."""
        return [self.texts[i] for i in self.check(ids)]

    def to_bytes(self) -> bytes:
        """Return the serialised SentencePiece model."""
        return self.model

    def shield(self, texts: list[str]) -> tuple[list[str], str]:
        """Replace ``▁``, which the library reads as a blank, by a character that the texts do not contain."""
        used = set().union(*(text for text in texts if BLANK in text))
        if not used:
            return texts, ""
        unused = (chr(code) for code in _STAND_INS)
        stand_in = next((c for c in unused if c not in used and c not in self.texts), "_")
        return [text.replace(BLANK, stand_in) for text in texts], stand_in

    def unshield(self, ids: list[list[int]], stand_in: str) -> list[list[int]]:
        """Replace the bytes of the stand-in by the bytes of ``▁``; without byte fallback it remains unknown."""
        if not stand_in:
            return ids
        old, new = (
            [self.processor.piece_to_id(f"<0x{byte:02X}>") for byte in character.encode()]
            for character in (stand_in, BLANK)
        )
        if UNK in new:
            return ids
        return [_replace_run(row, old, new) for row in ids]


def _control_piece(symbol: str) -> bytes:
    """Return a control symbol in the form of a serialised model, which repeats its field 1 for each piece.

    The field is a message of length below 128: the text (1), the score (2) and the type 3 (3).
    """
    text = symbol.encode()
    message = bytes((0x0A, len(text))) + text + b"\x15" + bytes(4) + b"\x18\x03"
    assert len(message) < 0x80
    return bytes((0x0A, len(message))) + message


def _replace_run(ids: list[int], old: list[int], new: list[int]) -> list[int]:
    result: list[int] = []
    start = 0
    while start < len(ids):
        if ids[start : start + len(old)] == old:
            result += new
            start += len(old)
        else:
            result.append(ids[start])
            start += 1
    return result
