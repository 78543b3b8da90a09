"""Continuous batching with torch operators, where the C code is not available."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from manyheads.data.batch import pad_rows
from manyheads.decoding.batching import SUPPRESSED_IDS
from manyheads.decoding.model import InferenceModel
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.errors import OverflowedError
from manyheads.search.beam import BeamSteps, beam_steps
from manyheads.search.beam_state import BeamObserver
from manyheads.search.cancellation import CancellableStepper
from manyheads.search.candidates import best_tokens
from manyheads.search.interface import Cancelled, OnFinished
from manyheads.search.options import SearchOptions
from manyheads.search.parameters import SearchParameters
from manyheads.text.tokenizer import BOS, EOS, PAD

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

    def __init__(self, model: InferenceModel, options: SearchOptions, observer: BeamObserver | None = None) -> None:
        """Start without sentences.

        Args:
            model: computes the steps.
            options: the options of the search; only those of a plain beam search are used.
            observer: receives every step.
        """
        self.model = model
        self.options = options
        self.observer = observer
        self.batches: list[_RunningBatch] = []

    @property
    def full(self) -> bool:
        """See `ContinuousBatching`."""
        return len(self.batches) >= _MAX_BATCHES

    @torch.inference_mode()
    def add(self, rows: Sequence[Sequence[int]], cancelled: Cancelled, on_finished: OnFinished) -> None:
        """See `ContinuousBatching.add`."""
        device, max_length = self.model.template.device, self.model.model.config.max_positions - 1
        stepper = EncoderDecoderStepper(self.model, pad_rows(rows, PAD, last=EOS).to(device))
        cancellable = CancellableStepper(stepper, len(rows), cancelled, EOS)
        parameters = SearchParameters(
            max_lengths=torch.tensor(self.options.longest(rows, max_length), device=device),
            bos=BOS,
            eos=EOS,
            length_penalty=self.options.length_penalty,
            beam_size=self.options.beam_size,
            n_best=self.options.n_best,
        )
        steps = beam_steps(cancellable.select, on_finished, parameters, self.observer)
        self.batches.append(_RunningBatch(stepper, cancellable, steps, next(steps)))

    @torch.inference_mode()
    def step(self) -> None:
        """See `ContinuousBatching.step`."""
        values, ids = self.best()
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

    def best(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Append the tokens of all batches; return values and ids of the best next tokens, twice (sum of R, C)."""
        model, count = self.model, self.options.beam_size + 1
        steps = [batch.stepper.step_input(batch.tokens) for batch in self.batches]
        best = model.best(steps, count, SUPPRESSED_IDS)
        if best is None:
            log_probs = functional.log_softmax(torch.cat(model.steps(steps)), -1)
            values, ids = best_tokens(log_probs, count, SUPPRESSED_IDS)
            return values.numpy(), ids.numpy()
        if np.isnan(best[0]).any():
            raise OverflowedError
        return best[0].astype(np.float64), best[1]
