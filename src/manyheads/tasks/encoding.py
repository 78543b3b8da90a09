"""A trained encoder: raw text in, a vector out.

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
from manyheads.interop.huggingface import is_pretrained, load_task_model
from manyheads.interop.sources import folder_of
from manyheads.model.encoder_only import EncoderOnly, MaskedLanguageModel, mean_of_real
from manyheads.tasks.classification import compute_batches, encode_texts, longest_text
from manyheads.text.tokenizer import EOS, PAD, Tokenizer
from manyheads.training.precision import pick_device

__all__ = ["Encoder", "Encoding"]


@dataclass(frozen=True)
class Encoding:
    """The vector of a text.

    Attributes:
        text: the input text.
        vector: mean of the last hidden states, begin and end marks included (D,).
        truncated: whether the text is longer than the model's limit, so that only its beginning was encoded.
    """

    text: str
    vector: NDArray[np.float64]
    truncated: bool

    def to_json(self) -> dict[str, Any]:
        """Return the encoding as plain values."""
        return {"text": self.text, "vector": self.vector.tolist(), "truncated": self.truncated}


class Encoder:
    """An encoder and its tokenizer.

    The vector of a text does not depend on the other texts of a call, their number or their order.
    """

    def __init__(self, config: Config, tokenizer: Tokenizer, model: EncoderOnly) -> None:
        """Make an encoder from objects in memory; `load` opens a run."""
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
            RunError: the directory is missing, damaged, not a run, or the run of another task.
        """
        directory = RunDirectory.existing(Path(run))
        config = directory.config_of("masked-lm")
        tokenizer = directory.tokenizers(config).source
        model = directory.fill(MaskedLanguageModel(config.model, tokenizer.size, pad=PAD))
        return cls(config, tokenizer, model.to(pick_device(device)))

    @classmethod
    def from_pretrained(cls, name: str, *, device: str = "auto") -> Self:
        """Open an encoder from the Hugging Face hub (extra hf) or from a folder.

        Models of transformers: BERT, DistilBERT, RoBERTa and others of the same architecture, with or without a
        head.

        Args:
            name: user/name on the hub, or a folder: a run, or a model of transformers.
            device: see `load`.

        Raises:
            RunError: there is no such encoder, or it cannot be read.
            MissingExtraError: the name is on the hub and huggingface_hub is not installed.
        """
        folder = folder_of(name)
        if not is_pretrained(folder):
            return cls.load(folder, device=device)
        pretrained = load_task_model("masked-lm", folder)
        assert isinstance(pretrained.model, MaskedLanguageModel)
        return cls(pretrained.config, pretrained.tokenizer, pretrained.model.to(pick_device(device)))

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Encode each text to a vector, in the same order; an empty text has the vector of its begin and end marks.

        Raises:
            UsageError: `texts` is a string.
        """
        if isinstance(texts, str):
            raise UsageError("the encoder takes a list of texts, not one text. Use encode([text])[0].")
        rows = encode_texts(self.tokenizer.encode, texts, self.tokenizer.marks_between)
        cut = [cut_text(row, self.longest, eos=EOS) for row in rows]
        vectors = compute_batches(self.model, cut, self.config.model.d_model, self.vectors)
        return [
            Encoding(text, vector, len(row) > self.longest)
            for text, vector, row in zip(texts, vectors, rows, strict=True)
        ]

    def vectors(self, ids: Tensor, types: Tensor | None) -> Tensor:
        """Return the mean of the hidden states without padding: (B, S) -> (B, D)."""
        return mean_of_real(*self.model.encode(ids, types))

    @property
    def longest(self) -> int:
        """Maximum number of tokens of a text; longer texts are cut."""
        return longest_text(self.config)
