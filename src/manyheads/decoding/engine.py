"""The engine that searches with models of this package, on any torch device.

Shapes: B sentences, S source length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
import torch

from manyheads.data.batch import pad_rows
from manyheads.data.sampler import fixed_batches
from manyheads.decoding.continuous import SUPPRESSED_IDS, ContinuousBatching, TorchContinuousBatching
from manyheads.decoding.linear import Precision
from manyheads.decoding.model import InferenceModel
from manyheads.decoding.native.beams import can_search
from manyheads.decoding.native.continuous import start_continuous_batching
from manyheads.decoding.native.model import threads_for_native
from manyheads.decoding.parallel import map_in_threads
from manyheads.decoding.prepare import pack
from manyheads.decoding.rescoring import review
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.errors import UsageError
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.beam import beam_search
from manyheads.search.cancellation import CancellableStepper, cancelled_among
from manyheads.search.constrained import grid_beam_search
from manyheads.search.diverse import diverse_beam_search
from manyheads.search.ensemble import Combine, EnsembleStepper, mean_probability
from manyheads.search.greedy import DecodingSteps, decode_steps, greedy_choice, greedy_search
from manyheads.search.interface import Cancelled, Hypothesis, Stepper, never_cancelled
from manyheads.search.observer import BeamObserver
from manyheads.search.options import SearchOptions
from manyheads.search.rules import ForbiddenSequences, MinLength, NoRepeat, Rule, RuledStepper
from manyheads.search.sampling import sample
from manyheads.text.tokenizer import BOS, EOS, PAD

__all__ = ["TorchEngine"]

MAX_WORKERS = 8  # threads; more would wait for the interpreter lock


@dataclass(frozen=True)
class Job:
    """One batch of rows to search.

    Attributes:
        rows: sources as ids without begin and end marks.
        options: of the search.
        cancelled: returns the indices of the cancelled rows.
        observer: receives every step of a plain beam search.
    """

    rows: Sequence[Sequence[int]]
    options: SearchOptions
    cancelled: Cancelled = never_cancelled
    observer: BeamObserver | None = None


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
            models: all on one device.
            combine: averages the distributions of the models.
            precision: of the computation (`pack`).
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
        batches = list(self.batches(rows, options))
        outputs: list[list[Hypothesis]] = [[] for _ in rows]
        with self.evaluating(), torch.inference_mode():
            jobs = [
                Job(
                    [rows[index] for index in indices],
                    options.select_rows(indices),
                    cancelled_among(cancelled, indices),
                )
                for indices in batches
            ]
            results = map_in_threads(self.candidates, jobs, self.workers)
            for indices, job, candidates in zip(batches, jobs, results, strict=True):
                reviewed = review(self.models, self.combine, job.rows, candidates, job.options)
                for index, hypotheses in zip(indices, reviewed, strict=True):
                    outputs[index] = hypotheses[: options.n_best]
        return outputs

    @property
    def workers(self) -> int:
        """Number of batches searched at the same time: at most MAX_WORKERS on a CPU, else 1."""
        return min(torch.get_num_threads(), MAX_WORKERS) if self.device.type == "cpu" else 1

    def check(self, options: SearchOptions) -> None:
        """Raise `UsageError` for options that these models do not support."""
        layer, layers = options.attention_layer, min(len(model.decoder_layers) for model in self.models)
        if not -layers <= layer < layers:
            raise UsageError(
                f"attention layer {layer} does not exist: the decoder has {layers}, numbered 0 to {layers - 1} "
                f"from below or -1 to -{layers} from above."
            )
        for name, sequences in (("prefix", options.prefixes), *(("required", row) for row in options.required)):
            if too_long := next((tokens for tokens in sequences if len(tokens) > self.longest), None):
                raise UsageError(
                    f"a {name} sequence has {len(too_long)} tokens, but the longest output of this model is "
                    f"{self.longest}."
                )

    def batches(self, rows: Sequence[Sequence[int]], options: SearchOptions) -> Iterator[list[int]]:
        """Yield the row indices of each batch: rows of similar length, those with required words apart.

        The batches that are searched at the same time share `batch_tokens`.
        """
        batch_tokens = options.batch_tokens // self.workers
        width = options.n_best if options.sampling else options.beam_size
        lengths = np.array([len(row) + 1 for row in rows], dtype=np.int64)
        required = options.required or [()] * len(rows)
        num_required = np.array([sum(map(len, sequences)) for sequences in required], dtype=np.int64)
        for group in (num_required == 0, num_required > 0):
            indices = group.nonzero()[0]
            beams = int(num_required[indices].max(initial=0)) + 1
            for batch in fixed_batches(lengths[indices], max(1, batch_tokens // (width * beams))):
                yield indices[batch].tolist()

    @torch.inference_mode()
    def candidates(self, job: Job) -> list[list[Hypothesis]]:
        """Search one batch: by sampling, or by the search that its options select."""
        native = any(model.native is not None for model in self.packed)
        with threads_for_native() if native else nullcontext():
            if job.options.sampling:
                return self.sampled(job)
            # The coverage penalty may rank the outputs anew, so the search returns the whole beam for it.
            n_best = job.options.beam_size if job.options.coverage_penalty else job.options.n_best
            return self.searched(replace(job, options=replace(job.options, n_best=n_best)))

    def searched(self, job: Job) -> list[list[Hypothesis]]:
        """Search one batch: greedy, beam, constrained or diverse beam search, as the options select."""
        rows, options = job.rows, job.options
        limits = self.limits(job)
        source = pad_rows(rows, PAD, last=EOS).to(self.device)

        def start() -> Stepper:
            return self.stepper(source, job)

        if any(options.required):
            return grid_beam_search(
                start(),
                options.required,
                beam_size=options.beam_size,
                n_best=options.n_best,
                length_penalty=options.length_penalty,
                max_lengths=limits,
                bos=BOS,
                eos=EOS,
                forbidden=SUPPRESSED_IDS,
            )
        if options.diverse_groups > 1:
            return diverse_beam_search(
                start,
                groups=options.diverse_groups,
                strength=options.diverse_strength,
                beam_size=options.beam_size,
                n_best=options.n_best,
                length_penalty=options.length_penalty,
                max_lengths=limits,
                bos=BOS,
                eos=EOS,
                forbidden=SUPPRESSED_IDS,
            )
        greedy = options.beam_size == 1 and job.observer is None
        native = can_search(self.packed[0], options.beam_size, SUPPRESSED_IDS)
        if self.can_batch_continuously(options) and (native or not greedy):
            return self.plain_beam_search(job)
        if greedy:
            hypotheses = greedy_search(
                start(),
                max_lengths=limits,
                bos=BOS,
                eos=EOS,
                forbidden=SUPPRESSED_IDS,
                length_penalty=options.length_penalty,
            )
            return [[hypothesis] for hypothesis in hypotheses]
        return beam_search(
            start(),
            beam_size=options.beam_size,
            n_best=options.n_best,
            length_penalty=options.length_penalty,
            max_lengths=limits,
            bos=BOS,
            eos=EOS,
            forbidden=SUPPRESSED_IDS,
            observer=job.observer,
        )

    def plain_beam_search(self, job: Job) -> list[list[Hypothesis]]:
        """Search one batch with a plain beam, in C where it is available; with an observer, in Python."""
        outputs: dict[int, list[Hypothesis]] = {}
        search: ContinuousBatching
        if job.observer is None:
            search = start_continuous_batching(self.packed[0], job.options)
            search.add(job.rows, job.cancelled, outputs.__setitem__)
        else:
            search = observed = TorchContinuousBatching(self.packed[0], job.options)
            observed.add(job.rows, job.cancelled, outputs.__setitem__, job.observer)
        while search.parts:
            search.step()
        return [outputs[index] for index in range(len(job.rows))]

    def can_batch_continuously(self, options: SearchOptions) -> bool:
        """Return whether continuous batching supports the options: greedy or plain beam search with one model."""
        return len(self.models) == 1 and not options.in_use()

    def begin(self, options: SearchOptions) -> ContinuousBatching:
        """Start a continuous batch, with the model's weights as they are now.

        Args:
            options: options for which `can_batch_continuously` is true.
        """
        self.check(options)
        with self.evaluating():
            return start_continuous_batching(self.packed[0], options)

    def sampled(self, job: Job) -> list[list[Hypothesis]]:
        """Draw n_best samples for each row of a batch."""
        rows, options = job.rows, job.options
        assert options.sampling is not None
        source = pad_rows(rows, PAD, last=EOS).to(self.device)
        return sample(
            self.stepper(source, job),
            rows,
            options.sampling,
            draws=options.n_best,
            max_lengths=self.limits(job),
            bos=BOS,
            eos=EOS,
            forbidden=SUPPRESSED_IDS,
            length_penalty=options.length_penalty,
        )

    def limits(self, job: Job) -> torch.Tensor:
        """Return the maximum output length of each row in tokens (B,)."""
        return torch.tensor(job.options.longest(job.rows, self.longest), device=self.device)

    def stepper(self, source: torch.Tensor, job: Job) -> Stepper:
        """Return the stepper of a source (B, S): the models, the rules of the options, and cancellation."""
        stepper = self.stepper_with_rules(source, job)
        if job.cancelled is never_cancelled:
            return stepper
        return CancellableStepper(stepper, len(job.rows), job.cancelled, EOS)

    def stepper_with_rules(self, source: torch.Tensor, job: Job) -> Stepper:
        """Return the stepper of a source (B, S): the models and the rules of the options."""
        rows, options = job.rows, job.options
        steppers: list[Stepper] = [EncoderDecoderStepper(model, source) for model in self.packed]
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
        if options.sampling or options.diverse_groups > 1 or any(options.required):
            raise UsageError("a stream is a greedy output: no sampling, diverse groups or required words.")
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
        return (
            yield from decode_steps(
                self.stepper(source, job),
                greedy_choice(SUPPRESSED_IDS),
                max_lengths=self.limits(job),
                bos=BOS,
                eos=EOS,
                length_penalty=options.length_penalty,
            )
        )

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
