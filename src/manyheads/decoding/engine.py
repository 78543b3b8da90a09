"""The engine that searches with models of this package, on any torch device.

Shapes: B sentences, S source length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import torch

from manyheads.data.batch import pad_rows
from manyheads.decoding.batching import (
    MAX_WORKERS,
    SUPPRESSED_IDS,
    ContinuousBatching,
    Job,
    check_options,
    finish,
    search_in_batches,
)
from manyheads.decoding.continuous import TorchContinuousBatching
from manyheads.decoding.model import InferenceModel
from manyheads.decoding.native.continuous import NativeContinuousBatching, can_search
from manyheads.decoding.native.threads import num_threads, threads_for_native
from manyheads.decoding.native.weights import Precision
from manyheads.decoding.prepare import pack
from manyheads.decoding.rescoring import review
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.errors import UsageError
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.beam import beam_search
from manyheads.search.cancellation import CancellableStepper
from manyheads.search.constrained import grid_beam_search
from manyheads.search.ensemble import Combine, EnsembleStepper, mean_probability
from manyheads.search.greedy import DecodingSteps, decode_steps, greedy_choice, greedy_search
from manyheads.search.interface import Cancelled, Hypothesis, Stepper, never_cancelled
from manyheads.search.options import SearchOptions
from manyheads.search.parameters import SearchParameters
from manyheads.search.rules import ForbiddenSequences, MinLength, NoRepeat, Rule, RuledStepper
from manyheads.search.sampling import sample
from manyheads.text.tokenizer import BOS, EOS, PAD


class TorchEngine:
    """The engine of one model or of an ensemble; see `Engine`.

    The mode of the models (training or evaluation) is restored after a search.
    """

    def __init__(
        self,
        models: Sequence[EncoderDecoder],
        combine: Combine = mean_probability,
        precision: Precision = "fp32",
    ) -> None:
        """Make an engine of models with the same tokenizers.

        Args:
            models: the models, all on one device.
            combine: averages the distributions of the models.
            precision: the precision of the computation (`pack`).
        """
        self.models = models
        self.combine = combine
        self.precision = precision
        self.packed: list[InferenceModel] = []

    @property
    def device(self) -> torch.device:
        """Device of the models."""
        return next(self.models[0].parameters()).device

    @property
    def longest(self) -> int:
        """Maximum length of a source or an output that all models support, in tokens without the end mark."""
        return min(model.config.max_positions for model in self.models) - 1

    def search(
        self, rows: Sequence[Sequence[int]], options: SearchOptions, cancelled: Cancelled = never_cancelled
    ) -> list[list[Hypothesis]]:
        """See `Engine.search`."""
        self.check(options)

        def reviewed(job: Job, outputs: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
            return review(self.models, self.combine, job.rows, outputs, job.options)

        with self.evaluating(), torch.inference_mode():
            return search_in_batches(
                rows, options, cancelled, workers=self.workers, search=self.candidates, review=reviewed
            )

    @property
    def workers(self) -> int:
        """Number of batches searched at the same time: at most MAX_WORKERS on a CPU, else 1."""
        return min(num_threads(), MAX_WORKERS) if self.device.type == "cpu" else 1

    def check(self, options: SearchOptions) -> None:
        """Raise `UsageError` for options that these models do not support."""
        check_options(options, min(len(model.decoder_layers) for model in self.models), self.longest)

    @torch.inference_mode()
    def candidates(self, job: Job) -> list[list[Hypothesis]]:
        """Search one batch: by sampling, or by the search that its options select."""
        native = any(model.native is not None for model in self.packed)
        with threads_for_native() if native else nullcontext():
            if job.options.sampling:
                return self.sampled(job)
            return self.searched(job)

    def searched(self, job: Job) -> list[list[Hypothesis]]:
        """Search one batch: greedy, beam or constrained search, as the options select."""
        rows, options = job.rows, job.options
        if self.can_batch_continuously(options) and (options.beam_size > 1 or job.observer or self.in_c(options)):
            observed = TorchContinuousBatching(self.packed[0], options, job.observer) if job.observer else None
            return finish(observed or self.start(options), job)
        source = pad_rows(rows, PAD, last=EOS).to(self.device)
        parameters = self.parameters(job)
        if any(options.required):
            return grid_beam_search(self.stepper(source, job), options.required, parameters)
        if options.beam_size == 1 and job.observer is None:
            return [[hypothesis] for hypothesis in greedy_search(self.stepper(source, job), parameters)]
        return beam_search(self.stepper(source, job), parameters, job.observer)

    def can_batch_continuously(self, options: SearchOptions) -> bool:
        """Return whether continuous batching supports the options: greedy or plain beam search with one model."""
        return len(self.models) == 1 and not options.in_use()

    def begin(self, options: SearchOptions) -> ContinuousBatching:
        """Start a continuous batch, with the present weights of the model.

        Args:
            options: options for which `can_batch_continuously` is true.
        """
        self.check(options)
        with self.evaluating():
            return self.start(options)

    def start(self, options: SearchOptions) -> ContinuousBatching:
        """Return an empty continuous batch, in C if possible; it uses only the options of a plain beam search."""
        model = self.packed[0]
        if model.native is not None and self.in_c(options):
            return NativeContinuousBatching(model.native, options, model.read)
        return TorchContinuousBatching(model, options)

    def in_c(self, options: SearchOptions) -> bool:
        """Return whether the C code can search with these options."""
        return self.packed[0].native is not None and can_search(self.packed[0].native, options)

    def sampled(self, job: Job) -> list[list[Hypothesis]]:
        """Draw n_best samples for each row of a batch."""
        rows, options = job.rows, job.options
        assert options.sampling is not None
        source = pad_rows(rows, PAD, last=EOS).to(self.device)
        stepper, parameters = self.stepper(source, job), self.parameters(job)
        return sample(stepper, rows, options.sampling, parameters, draws=options.n_best)

    def parameters(self, job: Job) -> SearchParameters:
        """Return the parameters of the search of a batch."""
        options = job.options
        return SearchParameters(
            max_lengths=torch.tensor(options.longest(job.rows, self.longest), device=self.device),
            bos=BOS,
            eos=EOS,
            suppressed=SUPPRESSED_IDS,
            length_penalty=options.length_penalty,
            beam_size=options.beam_size,
            n_best=min(options.n_best, options.beam_size),
        )

    def stepper(self, source: torch.Tensor, job: Job) -> Stepper:
        """Return the stepper of a source (B, S): the models, the rules of the options, and cancellation."""
        stepper = self.stepper_with_rules(source, job)
        if job.cancelled is never_cancelled:
            return stepper
        return CancellableStepper(stepper, len(job.rows), job.cancelled, EOS)

    def steppers(self, source: torch.Tensor) -> list[Stepper]:
        """Return a stepper of a source (B, S) for each model."""
        return [EncoderDecoderStepper(model, source) for model in self.packed]

    def stepper_with_rules(self, source: torch.Tensor, job: Job) -> Stepper:
        """Return the stepper of a source (B, S): the models and the rules of the options."""
        rows, options = job.rows, job.options
        steppers = self.steppers(source)
        stepper = steppers[0] if len(steppers) == 1 else EnsembleStepper(steppers, self.combine)
        rules: list[Rule] = []
        if options.min_length_ratio:
            limits = options.longest(rows, self.longest)
            rules.append(MinLength([*map(min, options.shortest(rows), limits)], EOS))
        if options.no_repeat_ngram:
            rules.append(NoRepeat(options.no_repeat_ngram))
        if any(options.forbidden):
            rules.append(ForbiddenSequences(options.forbidden))
        if not rules and not any(options.prefixes):
            return stepper
        return RuledStepper(stepper, len(rows), rules=rules, prefixes=options.prefixes)

    def stream(self, row: Sequence[int], options: SearchOptions) -> Iterator[int]:
        """See `Engine.stream`."""
        if options.sampling or any(options.required):
            raise UsageError("a stream is a greedy output: no sampling or required words.")
        self.check(options)
        with self.evaluating():
            steps = self.greedy_steps(row, options)
            while True:
                try:
                    _, tokens = next(steps)
                except StopIteration as end:
                    if end.value[0].ended:
                        yield EOS
                    return
                yield from tokens

    @torch.inference_mode()
    def greedy_steps(self, row: Sequence[int], options: SearchOptions) -> DecodingSteps:
        """Decode one row greedily, one step at a time."""
        source = pad_rows([row], PAD, last=EOS).to(self.device)
        job = Job([row], options)
        steps = decode_steps(self.stepper(source, job), greedy_choice(SUPPRESSED_IDS), self.parameters(job))
        return (yield from steps)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Put all models in evaluation mode and pack their weights for decoding; restore the mode at the end.

        Models in training mode are packed anew each time: not every optimiser updates torch's version counters.
        """
        training = [model for model in self.models if model.training]
        if training or not self.packed or not all(model.weights_unchanged() for model in self.packed):
            self.packed = [pack(model, self.precision) for model in self.models]
        for model in training:
            model.eval()
        try:
            yield
        finally:
            for model in training:
                model.train()
