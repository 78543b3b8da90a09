"""An encoder by itself: raw text in, a vector out.

Shapes: N texts, B batch, S length, D model width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.examples import cut_text
from manyheads.errors import UsageError
from manyheads.interop.huggingface import assemble_for, is_pretrained
from manyheads.interop.sources import folder_of
from manyheads.model.encoder_only import EncoderOnly, MaskedLanguageModel, mean_of_real
from manyheads.tasks.classification import computed, encode_texts, longest_text
from manyheads.text.tokenizer import EOS, PAD, Tokenizer
from manyheads.training.precision import pick_device

__all__ = ["Encoder", "Encoding"]


@dataclass(frozen=True)
class Encoding:
    """What an encoder makes of a text.

    Attributes:
        text: as it was given.
        vector: the mean of its last hidden states, marks counted (D,).
        truncated: the text is longer than the model takes, and only its beginning was read.
    """

    text: str
    vector: NDArray[np.float64]
    truncated: bool

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {"text": self.text, "vector": self.vector.tolist(), "truncated": self.truncated}


class Encoder:
    """An encoder and its tokenizer.

    What comes out for a text does not depend on the texts beside it, their number or their order.
    """

    def __init__(self, config: Config, tokenizer: Tokenizer, model: EncoderOnly) -> None:
        """From parts in memory; `load` opens a run."""
        self.config = config
        self.tokenizer = tokenizer
        self.model = model

    @classmethod
    def load(cls, run: str | Path, *, device: str = "auto") -> Self:
        """Open a run directory of task = "masked-lm".

        Args:
            run: the directory.
            device: "cpu", "cuda", "cuda:1"; "auto" takes a GPU when there is one.

        Raises:
            RunError: the directory is missing, none of ours, of another task, or damaged.
        """
        directory = RunDirectory.existing(Path(run))
        config = directory.config_of("masked-lm")
        tokenizer = directory.tokenizers(config).source
        model = directory.fill(MaskedLanguageModel(config.model, tokenizer.size, pad=PAD))
        return cls(config, tokenizer, model.to(pick_device(device)))

    @classmethod
    def from_pretrained(cls, name: str, *, device: str = "auto") -> Self:
        """Open an encoder: a name on the Hugging Face hub (extra hf), or a folder (a run, or one of transformers).

        Of transformers, with a head or without: BERT, DistilBERT, RoBERTa, and what is one of these.

        Args:
            name: user/name, or the folder.
            device: as `load`.

        Raises:
            RunError: there is no such encoder, or it cannot be read.
            MissingExtraError: a name on the hub without huggingface_hub.
        """
        folder = folder_of(name)
        if not is_pretrained(folder):
            return cls.load(folder, device=device)
        made = assemble_for("masked-lm", folder)
        assert isinstance(made.model, MaskedLanguageModel)
        return cls(made.config, made.tokenizer, made.model.to(pick_device(device)))

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """A vector for each text, in the same order; a text without anything in it has that of its marks.

        Raises:
            UsageError: one string was given in the place of a list of them.
        """
        if isinstance(texts, str):
            raise UsageError("the encoder takes a list of texts, not one text. Use encode([text])[0].")
        rows = encode_texts(self.tokenizer.encode, texts, self.tokenizer.marks_between)
        cut = [cut_text(row, self.longest, eos=EOS) for row in rows]
        found = computed(self.model, cut, self.config.model.d_model, self.vectors)
        return [
            Encoding(text, vector, len(row) > self.longest)
            for text, vector, row in zip(texts, found, rows, strict=True)
        ]

    def vectors(self, ids: Tensor, types: Tensor | None) -> Tensor:
        """The mean of the hidden states of real tokens: (B, S) -> (B, D)."""
        return mean_of_real(*self.model.encode(ids, types))

    @property
    def longest(self) -> int:
        """Most tokens of a text; longer ones are cut."""
        return longest_text(self.config)
