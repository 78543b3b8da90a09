"""Continuous batching with torch operators, where the C code is not available."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from manyheads.data.batch import pad_rows
from manyheads.decoding.batching import SPECIAL_IDS
from manyheads.decoding.model import InferenceModel
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.search.beam import BeamSteps, beam_steps
from manyheads.search.cancellation import CancellableStepper
from manyheads.search.candidates import best_tokens
from manyheads.search.interface import Cancelled, OnFinished
from manyheads.search.options import UNCONSTRAINED, Constraints, SearchOptions
from manyheads.text.tokenizer import EOS, PAD

_MAX_BATCHES = 6  # running batches; each adds Python bookkeeping to every step


@dataclass(eq=False)
class _RunningBatch:
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
        self.batches: list[_RunningBatch] = []

    @property
    def full(self) -> bool:
        """See `ContinuousBatching`."""
        return len(self.batches) >= _MAX_BATCHES

    @torch.inference_mode()
    def add(
        self,
        rows: Sequence[Sequence[int]],
        cancelled: Cancelled,
        on_finished: OnFinished,
        constraints: Sequence[Constraints] = (),
    ) -> None:
        """See `ContinuousBatching.add`."""
        assert all(constraint == UNCONSTRAINED for constraint in constraints)
        device, max_length = self.model.template.device, self.model.model.config.max_positions - 1
        stepper = EncoderDecoderStepper(self.model, pad_rows(rows, PAD, last=EOS).to(device))
        cancellable = CancellableStepper(stepper, len(rows), cancelled, EOS)
        max_lengths = torch.tensor(self.options.longest(rows, max_length), device=device)
        steps = beam_steps(cancellable.select, on_finished, self.options, max_lengths, SPECIAL_IDS)
        self.batches.append(_RunningBatch(stepper, cancellable, steps, next(steps)))

    @torch.inference_mode()
    def step(self) -> None:
        """See `ContinuousBatching.step`."""
        values, ids = self.best_tokens()
        still_open, first = [], 0
        for batch in self.batches:
            rows = slice(first, first + len(batch.tokens))
            first = rows.stop
            if cancelled := batch.cancellable.cancelled_rows():
                values[rows][cancelled] = -np.inf
                values[rows][cancelled, 0], ids[rows][cancelled, 0] = 0.0, EOS
            with suppress(StopIteration):
                batch.tokens = batch.steps.send((values[rows], ids[rows]))
                still_open.append(batch)
        self.batches = still_open

    def best_tokens(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Append the tokens of all batches; return values and ids of the best next tokens, twice (sum of R, C)."""
        log_probs = torch.cat([batch.stepper.step(batch.tokens) for batch in self.batches])
        values, ids = best_tokens(log_probs, self.options.beam_size + 1, SPECIAL_IDS.suppressed)
        return values.numpy(), ids.numpy()
