"""The parameters that every kind of search has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchParameters:
    """The parameters of the search of one batch of B sentences.

    Attributes:
        max_lengths: (B,) maximum output length in tokens, the end symbol not counted. An output that reaches it
            without the end symbol is returned cut, with ended = False. Tokens are passed to the stepper on the
            device of this tensor.
        bos: id of the begin symbol, the input of the first step.
        eos: id of the end symbol.
        suppressed: ids that are never generated, such as padding and bos.
        length_penalty: score = log_probability / length ** length_penalty; 0 ranks by probability alone.
        beam_size: K, number of open prefixes a sentence; for beam searches.
        n_best: number of outputs to return for each sentence, at most beam_size; for beam searches.

    Raises:
        ValueError: n_best, length_penalty or a maximum length is out of its range.
    """

    max_lengths: Tensor
    bos: int
    eos: int
    suppressed: Sequence[int] = ()
    length_penalty: float = 1.0
    beam_size: int = 1
    n_best: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.n_best <= self.beam_size:
            raise ValueError(f"n_best = {self.n_best} must be between 1 and beam_size = {self.beam_size}")
        if self.length_penalty < 0:
            raise ValueError(f"length_penalty = {self.length_penalty} must not be negative")
        limits = self.limits()
        if (limits < 0).any():
            raise ValueError(f"max_lengths must not be negative, but one is {limits.min()}")

    @property
    def device(self) -> Any:
        """The device of the tokens that are passed to the stepper."""
        return self.max_lengths.device

    def limits(self) -> NDArray[np.int64]:
        """Return the maximum output lengths (B,) on the CPU."""
        return self.max_lengths.cpu().numpy()
