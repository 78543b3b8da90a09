"""A trained encoder: raw text in, a vector out.

Shapes: N texts, B batch, S length, D model width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.decoding.text_batches import compute_batches
from manyheads.errors import OverflowedError, UsageError
from manyheads.inference.loading import LoadableModel
from manyheads.inference.texts import encode_texts, longest_text
from manyheads.model.encoder_only import mean_of_real
from manyheads.tensors.devices import pick_device
from manyheads.tensors.models import load_model
from manyheads.text.joined_texts import cut_text
from manyheads.text.tokenizer import EOS


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


class Encoder(LoadableModel):
    """An encoder and its tokenizer.

    The vector of a text does not depend on the other texts of a call, their number or their order.
    """

    task = "masked-lm"

    @classmethod
    def of_run(cls, run: RunDirectory, config: Config, device: str) -> Self:
        """Open a masked language model of a run; `config` is its configuration, `device` as in `load`."""
        tokenizers = run.tokenizers(config)
        return cls(config, tokenizers.source, load_model(run, config, tokenizers).to(pick_device(device)))

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Encode each text to a vector, in the same order; an empty text has the vector of its begin and end marks.

        Raises:
            UsageError: `texts` is a string.
            OverflowedError: a vector is not finite.
        """
        if isinstance(texts, str):
            raise UsageError("the encoder takes a list of texts, not one text. Use encode([text])[0].")
        rows = encode_texts(self.tokenizer.encode, texts, self.tokenizer.marks_between)
        cut = [cut_text(row, self.longest, eos=EOS) for row in rows]
        vectors = compute_batches(self.model, cut, self.config.model.d_model, self.vectors)
        if not np.isfinite(vectors).all():
            raise OverflowedError
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
