"""Searches of many sentences in C (`beam_search.h`): a step of all sentences is one call.

Sentences may join at any time, and leave as soon as their search has ended. The interpreter only adds and removes
sentences and enlarges KV caches; the bookkeeping between two steps is done in C.

Shapes: K beam size, C = K + 1 candidates of a row, L layers, H heads, E head dimension, N tokens in the KV cache of
all rows of a sentence, V vocabulary.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from manyheads.inference.batching import SPECIAL_IDS
from manyheads.inference.native.model import NativeModel, address, pointers
from manyheads.inference.native.structs import (
    Beam,
    BeamOptions,
    BeamStatus,
    BestTokens,
    Candidate,
    Node,
    Output,
    Step,
)
from manyheads.search.beam_state import divisors
from manyheads.search.interface import (
    Cancelled,
    Hypothesis,
    OnFinished,
    best_outputs,
    make_hypothesis,
    never_cancelled,
)
from manyheads.search.options import UNCONSTRAINED, Constraints, SearchOptions
from manyheads.text.tokenizer import BOS, EOS

_NODE, _OUTPUT, _CANDIDATE = np.dtype(Node), np.dtype(Output), np.dtype(Candidate)
_CACHE_MARGIN = 8  # tokens by which an output may be longer than its source before the KV cache is enlarged


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
    """The search of one sentence, in arrays that the C code reads and writes.

    Attributes:
        ended: whether the search has ended.
        max_keys: maximum number of keys that a row attends to.
    """

    def __init__(
        self, beam_size: int, max_length: int, shape: tuple[int, int, int], step: Step, kept: object
    ) -> None:
        """Start with one empty prefix, for an output of at most `max_length` tokens.

        The shape is L, H, E. The first step has the source and the encoding of the first target position; `kept`
        are the arrays that it points to.
        """
        self.kept = kept
        self.ended = False
        self.max_keys = max(max_length + 1, step.source_length)
        self.latest = np.full(beam_size, BOS, dtype=np.int64)
        self.log_probs = np.zeros(beam_size)
        self.best_scores = np.full(beam_size, -np.inf)
        self.visible = np.zeros((2, beam_size * (max_length + 1)), dtype=np.int32)
        self.nodes = np.empty((max_length + 1, beam_size), dtype=_NODE)
        self.outputs = np.empty((max_length + 1) * beam_size, dtype=_OUTPUT)
        self.candidates = np.empty(2 * beam_size, dtype=_CANDIDATE)
        self.used = np.empty(beam_size, dtype=np.int64)
        layers, heads, head_dim = shape
        capacity = 1 + beam_size * min(max_length, step.source_length + _CACHE_MARGIN)
        self.cache = np.empty((layers, 2, heads, capacity, head_dim), dtype=np.float32)
        step.sentences = step.rows = step.length = step.num_visible = 1
        step.capacity, step.cache = capacity, self.cache.ctypes.data
        step.tokens, step.visible = self.latest.ctypes.data, self.visible[0].ctypes.data
        self.struct = Beam(
            step=step,
            max_length=max_length,
            latest=self.latest.ctypes.data,
            log_probs=self.log_probs.ctypes.data,
            best_scores=self.best_scores.ctypes.data,
            visible=self.visible[0].ctypes.data,
            next_visible=self.visible[1].ctypes.data,
            nodes=self.nodes.ctypes.data,
            outputs=self.outputs.ctypes.data,
            candidates=self.candidates.ctypes.data,
            used=self.used.ctypes.data,
        )

    def constrain(self, constraints: Constraints, min_length: int, *, no_repeats: bool) -> None:
        """Apply constraints, a minimum length, and workspace for the rule of repeated n-grams."""
        forbidden = constraints.forbidden
        self.prefix = np.array(constraints.prefix, dtype=np.int32)
        self.forbidden = np.array([*chain(*forbidden)], dtype=np.int32)
        self.forbidden_ends = np.cumsum([0, *map(len, forbidden)])[1:]
        self.struct.min_length, self.struct.prefix_length = min_length, len(self.prefix)
        self.struct.prefix, self.struct.forbidden = self.prefix.ctypes.data, self.forbidden.ctypes.data
        self.struct.num_forbidden, self.struct.forbidden_ends = len(forbidden), self.forbidden_ends.ctypes.data
        if forbidden or no_repeats:
            self.history = np.empty((len(self.latest), max(1, self.struct.max_length)), dtype=np.int32)
            self.struct.history = self.history.ctypes.data

    def draw(self, rng: np.random.Generator, vocabulary: int, *, ranked: bool) -> None:
        """Sample with these random numbers; `ranked`: with workspace for top_k and top_p."""
        self.uniform = rng.random(self.struct.max_length + 1)
        self.struct.uniform = self.uniform.ctypes.data
        if ranked:
            self.heap = np.empty(vocabulary, dtype=np.int32)
            self.struct.heap = self.heap.ctypes.data

    def cancel(self) -> None:
        """End the search at the next step, with meaningless outputs."""
        self.struct.cancelled = 1

    def enlarge_cache(self) -> None:
        """Copy the KV cache to an array of twice the length."""
        step = self.struct.step
        filled, capacity = step.length - step.rows, 2 * step.length
        cache = np.empty((*self.cache.shape[:3], capacity, self.cache.shape[4]), dtype=np.float32)
        cache[:, :, :, :filled] = self.cache[:, :, :, :filled]
        self.cache, step.cache, step.capacity = cache, cache.ctypes.data, capacity

    def collect_outputs(self, length_penalty: float) -> list[Hypothesis]:
        """Return all outputs that may be among the K best, in the order in which the search found them."""
        nodes = self.nodes[: self.struct.length].tolist()
        found = []
        for length, row, ended, end_log_prob in self.outputs[: self.struct.num_outputs].tolist():
            tokens, log_probs = ([EOS], [end_log_prob]) if ended else ([], [])
            for position in range(length - 1, -1, -1):
                row, token, log_prob = nodes[position][row]
                tokens.append(token)
                log_probs.append(log_prob)
            found.append(
                make_hypothesis(tokens[::-1], log_probs[::-1], ended=bool(ended), length_penalty=length_penalty)
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
        heads = model.config.num_heads
        self.shape = (model.config.num_decoder_layers, heads, model.config.d_model // heads)
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
        """See `ContinuousBatching.add`."""
        constraints = constraints or [UNCONSTRAINED] * len(rows)
        limits = self.options.longest(rows, self.max_length, constraints)
        marked = self.model.sources(rows)
        memory = self.model.read(marked)
        positions = self.model.target_positions.first(max(limits) + 1)
        batch = _NativeBatch(cancelled, on_finished, {})
        ruled = self.options.min_length_ratio > 0 or self.struct.no_repeat_ngram > 0
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
                kept = (positions, memory, sources)
                beam = NativeBeam(self.struct.beam_size, limit, self.shape, step, kept)
                if ruled or constraint is not UNCONSTRAINED:
                    beam.constrain(constraint, min(shortest, limit), no_repeats=self.struct.no_repeat_ngram > 0)
                if sampling := self.options.sampling:
                    ranked = sampling.top_k > 0 or sampling.top_p < 1
                    beam.draw(sampling.make_rng(sample, row), self.model.vocabulary, ranked=ranked)
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
        """See `ContinuousBatching.step`."""
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
                batch.on_finished(index, self.outputs_of(batch.running.pop(index)))
        self.batches = [batch for batch in self.batches if batch.running]

    def outputs_of(self, beams: Sequence[NativeBeam]) -> list[Hypothesis]:
        """Return the outputs of a sentence, best first, of equal scores the earlier first; or its samples."""
        found = (beam.collect_outputs(self.options.length_penalty) for beam in beams)
        return [output for outputs in found for output in best_outputs(outputs, self.struct.n_best)]

    def stream(self, row: Sequence[int], constraints: Constraints) -> Iterator[int]:
        """Search greedily for the output of one row; yield its tokens as they are found, the end symbol last."""
        outputs: list[Hypothesis] = []
        self.add([row], never_cancelled, lambda _, hypotheses: outputs.extend(hypotheses), [constraints])
        (beam,) = self.running
        while self.batches:
            self.step()
            if not outputs:
                yield int(beam.latest[0])
        if outputs[0].ended:
            yield EOS
