"""Searches of many sentences in C (`beam_search.h`): a step of all sentences is one call.

Sentences may join at any time, and leave as soon as their search has ended. The interpreter only adds and removes
sentences, allocates their memory and reads their outputs; the search itself is done in C.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from manyheads.inference.batching import SPECIAL_IDS
from manyheads.inference.native.model import NativeModel, address, pointers
from manyheads.inference.native.structs import INT64, Beam, BeamOptions, BeamStatus, BestTokens, Model, Step
from manyheads.search.beam_state import divisors
from manyheads.search.interface import (
    Cancelled,
    Hypothesis,
    OnFinished,
    never_cancelled,
)
from manyheads.search.options import UNCONSTRAINED, Constraints, SearchOptions
from manyheads.text.tokenizer import BOS, EOS


def can_search(model: NativeModel, options: SearchOptions, constraints: Sequence[Constraints] = ()) -> bool:
    """Return whether the C code can search with these options: without required words.

    The vocabulary must have more tokens than a row has candidates.
    """
    candidates = 2 if options.sampling else options.beam_size + 1
    required = any(constraint.required for constraint in constraints)
    return not required and candidates + len(SPECIAL_IDS.suppressed) < model.vocabulary


def _beam_options(options: SearchOptions, model: NativeModel, norms: NDArray[np.float64]) -> BeamOptions:
    """Return the options for C. Each sample is a beam of 1; norms (max_length + 2,): divisors of the score."""
    sampling, width = options.sampling, model.config.d_model
    return BeamOptions(
        beam_size=1 if sampling else options.beam_size,
        n_best=1 if sampling else options.n_best,
        eos=EOS,
        signal_stride=width,
        rotary_stride=width // model.config.num_heads,
        divisors=norms.ctypes.data,
        no_repeat_ngram=options.no_repeat_ngram or 0,
        top_k=sampling.top_k if sampling else 0,
        temperature=sampling.temperature if sampling else 1.0,
        top_p=sampling.top_p if sampling else 1.0,
    )


class NativeBeam:
    """The search of one sentence, in memory of Python that the C code divides and uses (`beam_memory.h`).

    Attributes:
        ended: whether the search has ended.
        max_keys: maximum number of keys that a row attends to.
    """

    def __init__(self, struct: Beam, kept: object = None) -> None:
        """Take a beam with its source, first position and longest output; `kept`: arrays that it points to."""
        self.struct, self.kept = struct, kept
        self.ended = False
        self.max_keys = max(struct.max_length + 1, struct.step.source_length)

    def constrain(self, constraints: Constraints) -> None:
        """Apply constraints."""
        forbidden = constraints.forbidden
        self.prefix = np.array(constraints.prefix, dtype=np.int32)
        self.forbidden = np.array([*chain(*forbidden)], dtype=np.int32)
        self.forbidden_ends = np.cumsum([0, *map(len, forbidden)])[1:]
        self.struct.prefix_length, self.struct.prefix = len(self.prefix), self.prefix.ctypes.data
        self.struct.num_forbidden, self.struct.forbidden = len(forbidden), self.forbidden.ctypes.data
        self.struct.forbidden_ends = self.forbidden_ends.ctypes.data

    def draw(self, rng: np.random.Generator) -> None:
        """Sample with random numbers of a generator."""
        self.uniform = rng.random(self.struct.max_length + 1)
        self.struct.uniform = self.uniform.ctypes.data

    def begin(self, library: ctypes.CDLL, decoder: Model, options: BeamOptions) -> None:
        """Begin the search with one empty prefix."""
        begin = partial(library.begin_beam, decoder, options, BOS, self.struct)
        self.block = np.empty(begin(None), dtype=np.uint8)
        begin(self.block.ctypes.data)
        self.move_cache = partial(library.enlarge_cache, decoder, options, self.struct)
        self.enlarge_cache()

    def enlarge_cache(self) -> None:
        """Allocate the KV cache, or move it to an array of twice the length."""
        cache = np.empty(self.move_cache(None), dtype=np.float32)
        self.move_cache(cache.ctypes.data)
        self.cache = cache

    def cancel(self) -> None:
        """End the search at the next step, with meaningless outputs."""
        self.struct.cancelled = 1

    @property
    def latest(self) -> int:
        """The last token of the best prefix."""
        return INT64.from_address(self.struct.latest).value

    def outputs(self) -> list[Hypothesis]:
        """Return the outputs of a search that has ended, best first, of equal scores the earlier first."""
        beam, found = self.struct, list[Hypothesis]()
        for rank in range(beam.num_outputs):
            output, start = beam.outputs[rank], 4 * rank * (beam.max_length + 1)
            tokens = (ctypes.c_int32 * output.length).from_address(beam.tokens + start)
            scores = (ctypes.c_float * (output.length + output.ended)).from_address(beam.token_scores + start)
            found.append(
                Hypothesis(tuple(tokens[:]), output.total, output.score, tuple(scores[:]), bool(output.ended))
            )
        return found


@dataclass(eq=False)
class _NativeBatch:
    """Sentences that were added together, and the running searches of each by its index: one, or one a sample."""

    cancelled: Cancelled
    on_finished: OnFinished
    running: dict[int, list[NativeBeam]]


class NativeBeams:
    """Running searches in C, see `ContinuousBatching`; for one thread. The outputs equal those with torch.

    Attributes:
        running: the searches that have not ended.
        batches: the sentences that were added together, while any of their searches runs.
    """

    full = False  # a batch costs next to nothing

    def __init__(self, model: NativeModel, options: SearchOptions) -> None:
        """Start without a search, with options for which `can_search` is true."""
        self.model, self.options = model, options
        self.max_length = model.config.max_positions - 1
        self.norms = divisors(self.max_length + 1, options.length_penalty)
        self.struct = _beam_options(options, model, self.norms)
        self.suppressed = np.array(SPECIAL_IDS.suppressed, dtype=np.int64)
        self.running: list[NativeBeam] = []
        self.batches: list[_NativeBatch] = []
        self.prepared = False

    def add(
        self,
        rows: Sequence[Sequence[int]],
        cancelled: Cancelled,
        on_finished: OnFinished,
        constraints: Sequence[Constraints] = (),
    ) -> None:
        """Encode sentences, and add their beams."""
        constraints = constraints or [UNCONSTRAINED] * len(rows)
        limits = self.options.longest(rows, self.max_length, constraints)
        marked = self.model.sources(rows)
        memory = self.model.read(marked)
        positions = self.model.target_positions.first(max(limits) + 1)
        batch = _NativeBatch(cancelled, on_finished, {})
        for number, (row, limit, shortest, constraint) in enumerate(
            zip(rows, limits, self.options.shortest(rows), constraints, strict=True)
        ):
            sources = pointers([array.ctypes.data + number * array.strides[0] for array in memory])
            batch.running[number] = beams = []
            for sample in range(self.options.n_best if self.options.sampling else 1):
                step = Step(
                    position_signal=address(positions.signals),
                    rotary=address(positions.rotary_cos_sin),
                    memory=sources,
                    source_length=len(marked[number]),
                    source_capacity=memory[0].shape[2],
                )
                struct = Beam(step=step, max_length=limit, min_length=min(shortest, limit))
                beam = NativeBeam(struct, (positions, memory, sources))
                if constraint is not UNCONSTRAINED:
                    beam.constrain(constraint)
                if sampling := self.options.sampling:
                    beam.draw(sampling.make_rng(sample, row))
                beam.begin(self.model.library, self.model.decoder, self.struct)
                beams.append(beam)
            self.running += beams
        self.batches.append(batch)
        self.prepared = False

    def prepare(self) -> None:
        """Prepare the arguments of the C calls; they are valid until a sentence joins or leaves."""
        per_row = self.struct.beam_size + 1
        self.rows = len(self.running) * self.struct.beam_size
        self.max_keys = max((beam.max_keys for beam in self.running), default=0)
        self.structs = pointers([ctypes.addressof(beam.struct) for beam in self.running])
        self.values = np.empty((self.rows, per_row), dtype=np.float32)
        self.tokens = np.empty((self.rows, per_row), dtype=np.int64)
        self.best = BestTokens(
            count=per_row,
            num_suppressed=len(self.suppressed),
            suppressed=self.suppressed.ctypes.data,
            values=self.values.ctypes.data,
            tokens=self.tokens.ctypes.data,
        )
        self.prepared = True

    def step(self) -> None:
        """Append a token to all open hypotheses, in C."""
        for batch in self.batches:
            if batch.cancelled is not never_cancelled:
                for beam in chain(*(batch.running.get(index, ()) for index in batch.cancelled())):
                    beam.cancel()
        if not self.prepared:
            self.prepare()
        if not self.model.beam_steps(self.struct, self.structs, self.rows, self.max_keys, self.best):
            return
        for beam in self.running:
            beam.ended = beam.struct.status == BeamStatus.BEAM_ENDED
            if beam.struct.status == BeamStatus.BEAM_CACHE_FULL:
                beam.enlarge_cache()
        num_before = len(self.running)
        self.running = [beam for beam in self.running if not beam.ended]
        self.prepared = len(self.running) == num_before
        if not self.prepared:
            self.report_finished()

    def report_finished(self) -> None:
        """Report the outputs of the sentences whose searches have all ended, and remove them."""
        for batch in self.batches:
            ended = [index for index, beams in batch.running.items() if all(beam.ended for beam in beams)]
            for index in ended:
                ended_beams = batch.running.pop(index)
                batch.on_finished(index, [output for beam in ended_beams for output in beam.outputs()])
        self.batches = [batch for batch in self.batches if batch.running]

    def stream(self, row: Sequence[int], constraints: Constraints) -> Iterator[int]:
        """Search greedily for the output of one row; yield its tokens as they are found, the end symbol last."""
        outputs: list[Hypothesis] = []
        self.add([row], never_cancelled, lambda _, hypotheses: outputs.extend(hypotheses), [constraints])
        (beam,) = self.running
        while self.batches:
            self.step()
            if not outputs:
                yield beam.latest
        if outputs[0].ended:
            yield EOS
