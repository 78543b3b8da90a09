"""Continuous batching: beam searches that begin at different times and take their steps together (Yu et al. 2022).

Sentences that come while others are decoded need not wait for these: they join between two steps. A step reads all
weights once, for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from manyheads.data.batch import pad_rows
from manyheads.model.decoding import EncoderDecoderStepper
from manyheads.model.packed import PackedModel
from manyheads.search.abandoning import AbandoningStepper
from manyheads.search.beam import BeamSteps, beam_steps
from manyheads.search.candidates import best_tokens
from manyheads.search.interface import Abandoned, Hypothesis
from manyheads.search.options import SearchOptions
from manyheads.search.watching import BeamObserver
from manyheads.text.tokenizer import BOS, EOS, PAD

__all__ = ["SILENT", "JoinedSearch", "Joining", "Tell"]

SILENT = (PAD, BOS)  # ids that never come out
MOST_PARTS = 6  # that take their steps together: each costs its own bookkeeping in every step
Tell = Callable[[int, list[Hypothesis]], None]


class Joining(Protocol):
    """Searches of one model with the same options; for one thread."""

    @property
    def parts(self) -> Sequence[object]:
        """Those that began together, as long as any of their sentences goes on."""
        ...

    @property
    def full(self) -> bool:
        """Whether no more should join for now."""
        ...

    def add(self, rows: Sequence[Sequence[int]], abandoned: Abandoned, tell: Tell) -> None:
        """Let sentences join, from the next step on.

        Args:
            rows: as `Engine.search`; they are read at once.
            abandoned: likewise.
            tell: gets the number of each row, and its outputs as soon as they are known.
        """
        ...

    def step(self) -> None:
        """Append a token to all that have not ended.

        Raises:
            FloatingPointError: the model gave log-probabilities that are not numbers.
        """
        ...


@dataclass(eq=False)
class Joined:
    """Sentences that began together."""

    stepper: EncoderDecoderStepper
    leaving: AbandoningStepper
    steps: BeamSteps
    tokens: torch.Tensor  # (R,) that it appends next


class JoinedSearch:
    """See `Joining`; by the generators of `beam_steps`, one a part."""

    def __init__(self, model: PackedModel, options: SearchOptions) -> None:
        """Nothing yet; of the options, those of a plain beam are used."""
        self.model = model
        self.options = options
        self.parts: list[Joined] = []

    @property
    def full(self) -> bool:
        """See `Joining`."""
        return len(self.parts) >= MOST_PARTS

    @torch.inference_mode()
    def add(
        self,
        rows: Sequence[Sequence[int]],
        abandoned: Abandoned,
        tell: Tell,
        observer: BeamObserver | None = None,
    ) -> None:
        """See `Joining.add`; an observer is told of every step of these rows."""
        device, most = self.model.like.device, self.model.model.config.max_positions - 1
        stepper = EncoderDecoderStepper(self.model, pad_rows(rows, PAD, last=EOS).to(device))
        leaving = AbandoningStepper(stepper, len(rows), abandoned, EOS)
        steps = beam_steps(
            leaving.select,
            tell,
            beam_size=self.options.beam_size,
            n_best=self.options.n_best,
            length_penalty=self.options.length_penalty,
            max_lengths=torch.tensor(self.options.longest(rows, most), device=device),
            bos=BOS,
            eos=EOS,
            observer=observer,
        )
        self.parts.append(Joined(stepper, leaving, steps, next(steps)))

    @torch.inference_mode()
    def step(self) -> None:
        """See `Joining.step`."""
        values, ids = self.best()
        going, first = [], 0
        for part in self.parts:
            rows = slice(first, first + len(part.tokens))
            first = rows.stop
            if gone := part.leaving.gone():
                values[rows][gone] = -np.inf
                values[rows][gone, 0], ids[rows][gone, 0] = 0.0, EOS
            with suppress(StopIteration):
                part.tokens = part.steps.send((values[rows], ids[rows]))
                going.append(part)
        self.parts = going

    def best(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Append the tokens of all parts; log-probabilities and ids of the best next ones (sum of R, C)."""
        model, count = self.model, self.options.beam_size + 1
        steps = [part.stepper.part(part.tokens) for part in self.parts]
        found = model.best(steps, count, SILENT)
        if found is None:
            log_probs = functional.log_softmax(torch.cat(model.steps(steps)), -1)
            values, ids = best_tokens(log_probs, count, SILENT)
            return values.numpy(), ids.numpy()
        if np.isnan(found[0]).any():
            raise FloatingPointError("the model gave log-probabilities that are not numbers (NaN)")
        return found[0].astype(np.float64), found[1]
