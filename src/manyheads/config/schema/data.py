"""Where the text comes from."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from manyheads.config.schema.section import FilePair, Language, Positive, Section, Share

__all__ = ["DataConfig"]


class DataConfig(Section):
    """Text files, and which of their lines are used."""

    root: str = Field(".", description="folder that relative paths start from")
    dataset: str | None = Field(
        None,
        description='a corpus by name instead of files: "builtin:de-en", "builtin:ko-en", '
        'or "hf:NAME/CONFIG" (extra hf)',
    )
    source: Language = Field("", description="language translated from, such as de")
    target: Language = Field("", description="language translated into, such as en")
    language: Language = Field("", description="language of the text, such as en, where nothing is translated")
    documents: Literal["file", "line"] = Field(
        "file",
        description="language-modeling: what a text is: a whole file, line ends and all, or each line of it",
    )
    train: str | FilePair = Field(
        "train",
        description="a split name (files {split}.{language}[.gz|.xz|.zst]), one .tsv or .jsonl file, "
        "or [source file, target file]; of other tasks one file, also by its name without .tsv, .jsonl or .txt",
    )
    valid: str | FilePair | Share = Field(
        "valid",
        description="as train; scored while training. Where nothing is translated also a share such as 0.1: that "
        "much of the end of train, which is not trained on then",
    )
    test: str | FilePair | None = Field(None, description="as train; what `evaluate` scores")
    more: tuple[str | FilePair, ...] = Field(
        (), description="further training text mixed in, each like train: other domains, back-translations"
    )
    weights: tuple[Annotated[float, Field(ge=0)], ...] | None = Field(
        None,
        description="how often the pairs of train and of each of more come in an epoch, once unless given; of 0.5, "
        "every other pair comes, in each epoch others",
    )
    temperature: float = Field(
        1.0, ge=1, description="above 1, smaller corpora come more often: a share of size ** (1 / temperature)"
    )
    limit: float | None = Field(
        None, gt=0, description="use only the first pairs of train: a count, or below 1 a share"
    )
    max_length: Positive = Field(
        128,
        description="tokens a side; longer training pairs are dropped, counted, and texts to classify cut; of a "
        "language model a block, which is all that it looks at",
    )
    max_ratio: float = Field(
        9.0, ge=1, description="longer side over shorter side in characters; pairs beyond are dropped, counted"
    )
    drop_duplicates: bool = Field(True, description="drop training pairs that occurred before")
    drop_overlap: bool = Field(True, description="drop training pairs that also stand in valid or test")
    invalid_utf8: Literal["error", "replace"] = Field(
        "error", description="what to do with bytes that are no UTF-8"
    )

    @model_validator(mode="after")
    def check_weights(self) -> Self:
        """Refuse weights that do not fit the corpora."""
        if self.weights is None:
            return self
        corpora = 1 + len(self.more)
        if len(self.weights) != corpora:
            raise ValueError(
                f"data.weights holds {len(self.weights)} numbers, but there are {corpora} corpora: train and "
                f"{len(self.more)} in data.more. Give one number for each."
            )
        if not any(self.weights) or self.temperature != 1:
            raise ValueError("data.weights must not all be 0, and cannot be given together with data.temperature.")
        return self
