"""The engine that searches with torch operators, on any torch device.

Shapes: B sentences, S source length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import torch

from manyheads.checkpoint import RunDirectory
from manyheads.decoding.beam import beam_search
from manyheads.decoding.cancellation import CancellableStepper
from manyheads.decoding.constrained import grid_beam_search
from manyheads.decoding.ensemble import EnsembleStepper
from manyheads.decoding.greedy import decode_steps, greedy_choice, greedy_search
from manyheads.decoding.model import InferenceModel
from manyheads.decoding.prepare import pack, pack_native
from manyheads.decoding.rescoring import review
from manyheads.decoding.rules import ForbiddenSequences, MinLength, NoRepeat, Rule, RuledStepper
from manyheads.decoding.sampling import sample
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.errors import UsageError
from manyheads.inference.batching import (
    MAX_WORKERS,
    SPECIAL_IDS,
    check_options,
    greedy_options,
    search_in_batches,
)
from manyheads.inference.native.model import NativeModel
from manyheads.inference.native.weights import Precision, TorchPrecision
from manyheads.inference.threads import num_threads
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.arrays import DecodingSteps
from manyheads.search.beam_state import BeamObserver
from manyheads.search.interface import Cancelled, Hypothesis, Stepper, never_cancelled
from manyheads.search.options import UNCONSTRAINED, Constraints, SearchOptions
from manyheads.tensors.devices import pick_device
from manyheads.tensors.models import load_model
from manyheads.tensors.pairs import pad_rows
from manyheads.text.tokenizer import EOS, PAD, TokenizerPair


class TorchEngine:
    """The engine of one model or of an ensemble; see `Engine`.

    The mode of the models (training or evaluation) is restored after a search.
    """

    def __init__(self, models: Sequence[EncoderDecoder], precision: TorchPrecision = "fp32") -> None:
        """Make an engine of models with the same tokenizers, all on one device; for the precision see `pack`."""
        self.models = models
        self.precision = precision
        self.packed: list[InferenceModel] = []

    @classmethod
    def of_runs(cls, runs: Sequence[RunDirectory], device: str, precision: TorchPrecision = "fp32") -> Self:
        """Open the models of runs of one task; for the device see `Translator.load`."""
        chosen, models = pick_device(device), []
        first = runs[0].config()
        own = runs[0].tokenizers(first)
        for run in runs:
            config = run.config_of(first.task)
            tokenizers = run.tokenizers(config)
            _check_same_tokenizers(runs[0].path, own, run.path, tokenizers)
            models.append(load_model(run, config, tokenizers).to(chosen))
        return cls(models, precision)

    @property
    def device(self) -> torch.device:
        """Device of the models."""
        return next(self.models[0].parameters()).device

    @property
    def longest(self) -> int:
        """Maximum length of a source or an output that all models support, in tokens without the end mark."""
        return min(model.config.max_positions for model in self.models) - 1

    def search(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        constraints: Sequence[Constraints] = (),
        cancelled: Cancelled = never_cancelled,
    ) -> list[list[Hypothesis]]:
        """Search all rows with torch, in batches."""
        self.check(options, constraints)
        with self.evaluating(), torch.inference_mode():
            outputs = search_in_batches(
                rows, options, constraints, cancelled, workers=self.workers, search=self.search_batch
            )
            return review(self.models, rows, outputs, options)

    @property
    def workers(self) -> int:
        """Number of batches searched at the same time: at most MAX_WORKERS on a CPU, else 1."""
        return min(num_threads(), MAX_WORKERS) if self.device.type == "cpu" else 1

    def check(self, options: SearchOptions, constraints: Sequence[Constraints] = ()) -> None:
        """Raise `UsageError` for options and constraints that these models do not support."""
        num_layers = min(len(model.decoder_layers) for model in self.models)
        check_options(options, constraints, num_layers, self.longest)

    @torch.inference_mode()
    def search_batch(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        constraints: Sequence[Constraints],
        cancelled: Cancelled,
        observer: BeamObserver | None = None,
    ) -> list[list[Hypothesis]]:
        """Search one batch; an observer receives every step of a beam search.

        For the arguments see `Engine.search`; there is one constraint for each row.
        """
        stepper = self.stepper(rows, options, constraints)
        if cancelled is not never_cancelled:
            stepper = CancellableStepper(stepper, len(rows), cancelled, EOS)
        max_lengths = torch.tensor(options.longest(rows, self.longest, constraints), device=self.device)
        if options.sampling:
            return sample(stepper, rows, options, max_lengths, SPECIAL_IDS)
        if any(constraint.required for constraint in constraints):
            return grid_beam_search(stepper, constraints, options, max_lengths, SPECIAL_IDS)
        if options.beam_size == 1 and observer is None:
            outputs = greedy_search(stepper, options, max_lengths, SPECIAL_IDS)
            return [[hypothesis] for hypothesis in outputs]
        return beam_search(stepper, options, max_lengths, SPECIAL_IDS, observer)

    def steppers(self, source: torch.Tensor) -> list[Stepper]:
        """Return a stepper of a source (B, S) for each model."""
        return [EncoderDecoderStepper(model, source) for model in self.packed]

    def stepper(
        self, rows: Sequence[Sequence[int]], options: SearchOptions, constraints: Sequence[Constraints]
    ) -> Stepper:
        """Return the stepper of some rows: the models, the rules of the options and the constraints."""
        steppers = self.steppers(pad_rows(rows, PAD, last=EOS).to(self.device))
        stepper = steppers[0] if len(steppers) == 1 else EnsembleStepper(steppers)
        rules: list[Rule] = []
        if options.min_length_ratio:
            limits = options.longest(rows, self.longest, constraints)
            rules.append(MinLength([*map(min, options.shortest(rows), limits)], EOS))
        if options.no_repeat_ngram:
            rules.append(NoRepeat(options.no_repeat_ngram))
        if any(constraint.forbidden for constraint in constraints):
            rules.append(ForbiddenSequences([constraint.forbidden for constraint in constraints]))
        prefixes = [constraint.prefix for constraint in constraints]
        if not rules and not any(prefixes):
            return stepper
        return RuledStepper(stepper, len(rows), rules=rules, prefixes=prefixes)

    def stream(
        self, row: Sequence[int], options: SearchOptions, constraints: Constraints = UNCONSTRAINED
    ) -> Iterator[int]:
        """Yield the tokens of a greedy output, as they are found."""
        options = greedy_options(options, constraints)
        self.check(options, [constraints])
        with self.evaluating():
            steps = self.greedy_steps(row, options, constraints)
            while True:
                try:
                    _, tokens = next(steps)
                except StopIteration as end:
                    if end.value[0].ended:
                        yield EOS
                    return
                yield from tokens

    @torch.inference_mode()
    def greedy_steps(self, row: Sequence[int], options: SearchOptions, constraints: Constraints) -> DecodingSteps:
        """Decode one row greedily, one step at a time."""
        max_lengths = torch.tensor(options.longest([row], self.longest, [constraints]), device=self.device)
        stepper = self.stepper([row], options, [constraints])
        choose = greedy_choice(SPECIAL_IDS.suppressed)
        return (yield from decode_steps(stepper, choose, options, max_lengths, SPECIAL_IDS))

    def pack_weights(self) -> list[InferenceModel]:
        """Return the models packed for decoding: the same list as long as their weights stay as they are.

        Models in training mode are packed anew each time: not every optimiser updates torch's version counters.
        """
        training = any(model.training for model in self.models)
        if training or not self.packed or not all(model.weights_unchanged() for model in self.packed):
            self.packed = [pack(model, self.precision) for model in self.models]
        return self.packed

    def pack_native(self, precision: Precision = "fp32") -> NativeModel | None:
        """Pack the weights of the first model for the C code; see `decoding.prepare.pack_native`."""
        return pack_native(self.models[0], precision)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Put all models in evaluation mode and pack their weights for decoding; restore the mode at the end."""
        self.pack_weights()
        training = [model for model in self.models if model.training]
        for model in training:
            model.eval()
        try:
            yield
        finally:
            for model in training:
                model.train()


def _check_same_tokenizers(run: Path, own: TokenizerPair, other: Path, its: TokenizerPair) -> None:
    """Raise `UsageError` if the tokenizers of two runs differ."""
    for side, first, second in (("source", own.source, its.source), ("target", own.target, its.target)):
        if first.sha256 != second.sha256:
            raise UsageError(
                f"{run} and {other} cannot translate together: their {side} tokenizers differ "
                f"(SHA-256 {first.sha256[:12]}, {second.sha256[:12]}). Train both on the same data and tokenizer "
                "settings."
            )
