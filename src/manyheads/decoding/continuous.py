"""Continuous batching: beam searches that start at different times share their decoding steps (Yu et al. 2022).

A new sentence joins the running batch between two steps, without waiting for the other sentences to finish. A step
reads all weights once, for all sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from manyheads.data.batch import pad_rows
from manyheads.decoding.model import InferenceModel
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.search.beam import BeamSteps, OnFinished, beam_steps
from manyheads.search.cancellation import CancellableStepper
from manyheads.search.candidates import best_tokens
from manyheads.search.interface import Cancelled
from manyheads.search.observer import BeamObserver
from manyheads.search.options import SearchOptions
from manyheads.text.tokenizer import BOS, EOS, PAD

__all__ = ["SUPPRESSED_IDS", "ContinuousBatching", "TorchContinuousBatching"]

SUPPRESSED_IDS = (PAD, BOS)  # ids that are never generated
MAX_BATCHES = 6  # that share their steps: each adds Python bookkeeping to every step


class ContinuousBatching(Protocol):
    """Running searches of one model with the same options; not thread-safe."""

    @property
    def parts(self) -> Sequence[object]:
        """The batches of sentences that were added together, while any of their sentences is still open."""
        ...

    @property
    def full(self) -> bool:
        """Whether no more sentences should be added for now."""
        ...

    def add(self, rows: Sequence[Sequence[int]], cancelled: Cancelled, on_finished: OnFinished) -> None:
        """Add sentences; their search begins at the next step.

        Args:
            rows: see `Engine.search`; all rows are encoded immediately.
            cancelled: see `Engine.search`.
            on_finished: called with the index of each row and its outputs as soon as its search has stopped.
        """
        ...

    def step(self) -> None:
        """Append a token to all open hypotheses.

        Raises:
            FloatingPointError: the model gave log-probabilities that are not numbers.
        """
        ...


@dataclass(eq=False)
class RunningBatch:
    """The search of sentences that were added together.

    Attributes:
        stepper: the model's state for these sentences.
        cancellable: the wrapper around the stepper that knows which rows are cancelled.
        steps: the beam search as a generator.
        tokens: (R,) tokens that the next step appends.
    """

    stepper: EncoderDecoderStepper
    cancellable: CancellableStepper
    steps: BeamSteps
    tokens: torch.Tensor


class TorchContinuousBatching:
    """`ContinuousBatching` with torch operators: one generator of `beam_steps` for each batch of sentences."""

    def __init__(self, model: InferenceModel, options: SearchOptions) -> None:
        """Start without sentences; only the options of a plain beam search are used."""
        self.model = model
        self.options = options
        self.parts: list[RunningBatch] = []

    @property
    def full(self) -> bool:
        """See `ContinuousBatching`."""
        return len(self.parts) >= MAX_BATCHES

    @torch.inference_mode()
    def add(
        self,
        rows: Sequence[Sequence[int]],
        cancelled: Cancelled,
        on_finished: OnFinished,
        observer: BeamObserver | None = None,
    ) -> None:
        """See `ContinuousBatching.add`; the observer receives every step of these rows."""
        device, max_length = self.model.template.device, self.model.model.config.max_positions - 1
        stepper = EncoderDecoderStepper(self.model, pad_rows(rows, PAD, last=EOS).to(device))
        cancellable = CancellableStepper(stepper, len(rows), cancelled, EOS)
        steps = beam_steps(
            cancellable.select,
            on_finished,
            beam_size=self.options.beam_size,
            n_best=self.options.n_best,
            length_penalty=self.options.length_penalty,
            max_lengths=torch.tensor(self.options.longest(rows, max_length), device=device),
            bos=BOS,
            eos=EOS,
            observer=observer,
        )
        self.parts.append(RunningBatch(stepper, cancellable, steps, next(steps)))

    @torch.inference_mode()
    def step(self) -> None:
        """See `ContinuousBatching.step`."""
        values, ids = self.best()
        still_open, first = [], 0
        for batch in self.parts:
            rows = slice(first, first + len(batch.tokens))
            first = rows.stop
            if cancelled := batch.cancellable.cancelled_rows():
                values[rows][cancelled] = -np.inf
                values[rows][cancelled, 0], ids[rows][cancelled, 0] = 0.0, EOS
            with suppress(StopIteration):
                batch.tokens = batch.steps.send((values[rows], ids[rows]))
                still_open.append(batch)
        self.parts = still_open

    def best(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Append the tokens of all batches; return values and ids of the best next tokens, twice (sum of R, C)."""
        model, count = self.model, self.options.beam_size + 1
        steps = [batch.stepper.part(batch.tokens) for batch in self.parts]
        best = model.best(steps, count, SUPPRESSED_IDS)
        if best is None:
            log_probs = functional.log_softmax(torch.cat(model.steps(steps)), -1)
            values, ids = best_tokens(log_probs, count, SUPPRESSED_IDS)
            return values.numpy(), ids.numpy()
        if np.isnan(best[0]).any():
            raise FloatingPointError("the model gave log-probabilities that are not numbers (NaN)")
        return best[0].astype(np.float64), best[1]
