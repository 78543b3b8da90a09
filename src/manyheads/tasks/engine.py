"""The engine that searches with our own models, in PyTorch.

Shapes: B sentences, S source length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
import torch

from manyheads.data.batch import pad_rows
from manyheads.data.sampler import fixed_batches
from manyheads.errors import UsageError
from manyheads.model.beams import can_search
from manyheads.model.compiled import threads_for_code
from manyheads.model.decoding import EncoderDecoderStepper
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.packed import PackedModel
from manyheads.model.packing import pack
from manyheads.model.products import Precision
from manyheads.model.static import StaticModel, StaticStepper
from manyheads.search.abandoning import AbandoningStepper, among
from manyheads.search.beam import beam_search
from manyheads.search.diverse import diverse_beam_search
from manyheads.search.ensemble import Combine, EnsembleStepper, mean_probability
from manyheads.search.greedy import Steps, follow, greedy_choice, greedy_search
from manyheads.search.interface import Abandoned, Hypothesis, Stepper, nobody
from manyheads.search.options import SearchOptions
from manyheads.search.required import grid_beam_search
from manyheads.search.rules import MinLength, NoRepeat, Rule, RuledStepper, Without
from manyheads.search.sampling import sample
from manyheads.search.watching import BeamObserver
from manyheads.tasks.compiled_search import joined_search
from manyheads.tasks.joining import SILENT, JoinedSearch, Joining
from manyheads.tasks.review import review
from manyheads.tasks.small import SmallSearches, check_small, width_of
from manyheads.tasks.workers import side_by_side
from manyheads.text.tokenizer import BOS, EOS, PAD

__all__ = ["TorchEngine"]

MOST_WORKERS = 8  # more would wait for each other's turn at the interpreter


@dataclass(frozen=True)
class Job:
    """Rows that are searched for together."""

    rows: Sequence[Sequence[int]]
    options: SearchOptions
    abandoned: Abandoned = nobody
    observer: BeamObserver | None = None  # of a plain beam
    static: Sequence[StaticModel] = ()  # the models whose steps are compiled, if they are


class TorchEngine:
    """One model, or several that decide together; see `Engine`.

    Models are left in the mode (training or evaluation) in which they were.
    """

    def __init__(
        self,
        models: Sequence[EncoderDecoder],
        combine: Combine = mean_probability,
        precision: Precision = "fp32",
        *,
        compile: bool = False,
    ) -> None:
        """Models of the same tokenizers.

        Args:
            models: on one device.
            combine: makes one distribution of theirs.
            precision: of the computation.
            compile: whether torch compiles the steps of small searches (`SmallSearches`).

        Raises:
            UsageError: nothing can be compiled, or not for this.
        """
        self.models = models
        self.combine = combine
        self.precision = precision
        self.packed: list[PackedModel] = []
        self.small: SmallSearches | None = None
        if compile:
            check_small(self.device, precision)
            self.small = SmallSearches()

    @property
    def device(self) -> torch.device:
        """Where the first model is; the others must be there too."""
        return next(self.models[0].parameters()).device

    @property
    def longest(self) -> int:
        """The longest source and output that all models can take, in tokens without the end mark."""
        return min(model.config.max_positions for model in self.models) - 1

    def search(
        self, rows: Sequence[Sequence[int]], options: SearchOptions, abandoned: Abandoned = nobody
    ) -> list[list[Hypothesis]]:
        """See `Engine.search`."""
        self.check(options)
        batches = list(self.batches(rows, options))
        found: list[list[Hypothesis]] = [[] for _ in rows]
        with self.evaluating(), self.static(rows, options) as static, torch.inference_mode():
            jobs = [
                Job([rows[at] for at in places], options.part(places), among(abandoned, places), static=static)
                for places in batches
            ]
            outputs = side_by_side(self.candidates, jobs, 1 if static else self.workers)
            for places, job, candidates in zip(batches, jobs, outputs, strict=True):
                reviewed = review(self.models, self.combine, job.rows, candidates, job.options)
                for place, hypotheses in zip(places, reviewed, strict=True):
                    found[place] = hypotheses[: options.n_best]
        return found

    def static(
        self, rows: Sequence[Sequence[int]], options: SearchOptions
    ) -> AbstractContextManager[Sequence[StaticModel]]:
        """The models whose steps are compiled, for a search that suits them; else none."""
        if self.small is None:
            return nullcontext(())
        return self.small.lent(rows, options, options.longest(rows, self.longest))

    @property
    def workers(self) -> int:
        """How many batches are searched at the same time: on a CPU as many as torch has threads, up to a limit."""
        return min(torch.get_num_threads(), MOST_WORKERS) if self.device.type == "cpu" else 1

    def check(self, options: SearchOptions) -> None:
        """Refuse what these models cannot do."""
        layer, layers = options.attention_layer, min(len(model.decoder_layers) for model in self.models)
        if not -layers <= layer < layers:
            raise UsageError(
                f"attention layer {layer} does not exist: the decoder has {layers}, numbered 0 to {layers - 1} "
                f"from below or -1 to -{layers} from above."
            )
        for name, sequences in (("prefix", options.prefixes), *(("required", row) for row in options.required)):
            if too_long := next((one for one in sequences if len(one) > self.longest), None):
                raise UsageError(
                    f"a {name} sequence has {len(too_long)} tokens, but the longest output of this model is "
                    f"{self.longest}."
                )

    def batches(self, rows: Sequence[Sequence[int]], options: SearchOptions) -> Iterator[list[int]]:
        """The places of rows of like length, searched together; rows with required words apart from the others.

        What is searched side by side shares out `batch_tokens`.
        """
        together = options.batch_tokens // self.workers
        width = options.n_best if options.sampling else options.beam_size
        lengths = np.array([len(row) + 1 for row in rows], dtype=np.int64)
        needs = np.array([sum(map(len, one)) for one in options.required or [()] * len(rows)], dtype=np.int64)
        for kind in (needs == 0, needs > 0):
            places = kind.nonzero()[0]
            beams = int(needs[places].max(initial=0)) + 1
            for batch in fixed_batches(lengths[places], max(1, together // (width * beams))):
                yield places[batch].tolist()

    @torch.inference_mode()
    def candidates(self, job: Job) -> list[list[Hypothesis]]:
        """Search for some rows together, in the way that their options ask for."""
        compiled = any(model.code is not None for model in self.packed)
        with threads_for_code() if compiled else nullcontext():
            if job.options.sampling:
                return self.sampled(job)
            # What the second pass may rank otherwise must all be found first.
            every = job.options.beam_size if job.options.coverage_penalty else job.options.n_best
            return self.searched(replace(job, options=replace(job.options, n_best=every)))

    def searched(self, job: Job) -> list[list[Hypothesis]]:
        """Search greedily, with a beam, with a beam for required words, or with several beams."""
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
                forbidden=SILENT,
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
                forbidden=SILENT,
            )
        greedily = options.beam_size == 1 and job.observer is None
        compiled = can_search(self.packed[0], options.beam_size, SILENT)
        if self.can_join(options) and not job.static and (compiled or not greedily):
            return self.joined(job)
        if greedily:
            greedy = greedy_search(
                start(),
                max_lengths=limits,
                bos=BOS,
                eos=EOS,
                forbidden=SILENT,
                length_penalty=options.length_penalty,
            )
            return [[one] for one in greedy]
        return beam_search(
            start(),
            beam_size=options.beam_size,
            n_best=options.n_best,
            length_penalty=options.length_penalty,
            max_lengths=limits,
            bos=BOS,
            eos=EOS,
            forbidden=SILENT,
            observer=job.observer,
        )

    def joined(self, job: Job) -> list[list[Hypothesis]]:
        """Search with a plain beam."""
        found: dict[int, list[Hypothesis]] = {}
        search: Joining
        if job.observer is None:
            search = joined_search(self.packed[0], job.options)
            search.add(job.rows, job.abandoned, found.__setitem__)
        else:
            search = observed = JoinedSearch(self.packed[0], job.options)
            observed.add(job.rows, job.abandoned, found.__setitem__, job.observer)
        while search.parts:
            search.step()
        return [found[number] for number in range(len(job.rows))]

    def can_join(self, options: SearchOptions) -> bool:
        """Whether searches with these options can be joined: plain ones, greedy or with a beam, by one model."""
        return len(self.models) == 1 and not options.in_use()

    def begin(self, options: SearchOptions) -> Joining:
        """A search that sentences can join, as `can_join` says; it has the model's weights as they are now."""
        self.check(options)
        with self.evaluating():
            return joined_search(self.packed[0], options)

    def sampled(self, job: Job) -> list[list[Hypothesis]]:
        """Draw outputs by chance."""
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
            forbidden=SILENT,
            length_penalty=options.length_penalty,
        )

    def limits(self, job: Job) -> torch.Tensor:
        """The longest output of each row (B,), where a search is to hand over its tokens.

        What is told to a compiled step goes to the device together.
        """
        longest = job.options.longest(job.rows, self.longest)
        return torch.tensor(longest, device="cpu" if job.static else self.device)

    def stepper(self, source: torch.Tensor, job: Job) -> Stepper:
        """The models at the beginning of the source (B, S), with the rules that are asked for around them."""
        ruled = self.ruled(source, job)
        if job.abandoned is nobody:
            return ruled
        return AbandoningStepper(ruled, len(job.rows), job.abandoned, EOS)

    def ruled(self, source: torch.Tensor, job: Job) -> Stepper:
        """The models at the beginning of the source (B, S), with the rules that the options ask for around them."""
        rows, options = job.rows, job.options
        steppers: list[Stepper] = [StaticStepper(model, source, width_of(options)) for model in job.static]
        steppers = steppers or [EncoderDecoderStepper(model, source) for model in self.packed]
        stepper = steppers[0] if len(steppers) == 1 else EnsembleStepper(steppers, self.combine)
        rules: list[Rule] = []
        if options.min_length_ratio:
            limits = options.longest(rows, self.longest)
            rules.append(MinLength([*map(min, options.shortest(rows), limits)], EOS))
        if options.no_repeat_ngram:
            rules.append(NoRepeat(options.no_repeat_ngram))
        if any(options.forbidden):
            rules.append(Without(options.forbidden))
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
    def greedy_steps(self, row: Sequence[int], options: SearchOptions) -> Steps:
        """Greedy search of one row, a step at a time."""
        source = pad_rows([row], PAD, last=EOS).to(self.device)
        with self.static([row], options) as static:
            job = Job([row], options, static=static)
            return (
                yield from follow(
                    self.stepper(source, job),
                    greedy_choice(SILENT),
                    max_lengths=self.limits(job),
                    bos=BOS,
                    eos=EOS,
                    length_penalty=options.length_penalty,
                )
            )

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """While open, all models are in evaluation mode, and arranged for decoding as they are now.

        Those in training are arranged anew each time: not every optimiser tells torch that it has written.
        """
        training = [model for model in self.models if model.training]
        if training or not self.packed or not all(model.is_current() for model in self.packed):
            self.packed = [pack(model, self.precision) for model in self.models]
            if self.small is not None:
                self.small.renew(self.packed)
        for model in training:
            model.eval()
        try:
            yield
        finally:
            for model in training:
                model.train()
