"""How text becomes tokens."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from manyheads.config.schema.section import Positive, Probability, Section

__all__ = ["TokenizerConfig"]


class TokenizerConfig(Section):
    """Tokenizer of source and target (section 5.1: byte-pair encoding)."""

    kind: Literal["bpe", "unigram", "words", "characters", "bytes", "marian", "huggingface"] = Field(
        "bpe",
        description="pieces by SentencePiece, whole words by spaCy (extra words), characters, or UTF-8 bytes; "
        "marian and huggingface come with a pre-trained model",
    )
    vocab_size: Annotated[int, Field(ge=8)] = Field(
        8_000, description="pieces, special symbols included (bpe, unigram)"
    )
    joint: bool = Field(True, description="one vocabulary for both languages (section 5.1)")
    sampling: Probability = Field(
        0.0,
        description="training only, 0 is off. bpe: probability that a merge is passed over in a step (Provilkov et "
        "al. 2020). unigram: the exponent alpha of Kudo (2018); the smaller, the further from the best split",
    )
    byte_fallback: bool = Field(True, description="spell unknown characters as UTF-8 bytes (bpe, unigram)")
    character_coverage: Annotated[float, Field(gt=0.5, le=1.0)] = Field(
        1.0, description="share of characters that get a piece of their own (bpe, unigram)"
    )
    min_count: Positive = Field(1, description="rarer symbols become <unk> (words, characters)")
    lowercase: bool = Field(False, description="lower-case the text; cannot be undone when decoding")
    keep_space: bool = Field(
        False,
        description="blanks, tabs and line ends are tokens as they stand, not each run of them one blank; unless "
        "given, true for language-modeling, which must write them, and for nothing else",
    )
