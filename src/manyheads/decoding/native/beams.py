"""Beam searches of many sentences in C (`beam_search.h`): a step of all sentences is one call.

Sentences may join at any time, and leave as soon as their search has ended. The interpreter only adds and removes
sentences and enlarges KV caches; the bookkeeping between two steps is done in C.

Shapes: K beam size, C = K + 1 candidates of a row, L layers, H heads, E head dimension, N tokens in the KV cache of
all rows of a sentence.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from manyheads.decoding.native.model import NativeModel, address, pointers
from manyheads.decoding.native.structs import (
    Beam,
    BeamOptions,
    BeamStatus,
    BestTokens,
    Candidate,
    Node,
    Output,
    Step,
)

# Tokens, their log-probabilities, whether the last token is the end symbol.
BeamOutput = tuple[list[int], list[float], bool]
# Encodes sources, given as ids with end marks; returns what `NativeModel.encode` returns.
ReadSources = Callable[[Sequence[Sequence[int]]], list[NDArray[np.float32]]]

_NODE, _OUTPUT, _CANDIDATE = np.dtype(Node), np.dtype(Output), np.dtype(Candidate)
_CACHE_MARGIN = 8  # tokens by which an output may be longer than its source before the KV cache is enlarged


class NativeBeam:
    """The beam search of one sentence, in arrays that the C code reads and writes.

    Attributes:
        ended: whether the search has ended.
        max_keys: maximum number of keys that a row attends to.
    """

    def __init__(
        self, beam_size: int, bos: int, max_length: int, shape: tuple[int, int, int], step: Step, kept: object
    ) -> None:
        """Start with one empty prefix.

        Args:
            beam_size: K.
            bos: the token that the first step appends.
            max_length: maximum number of tokens of the output.
            shape: L, H, E.
            step: the first step, with the source and the encoding of the first target position.
            kept: the arrays that `step` points to.
        """
        self.kept = kept
        self.ended = False
        self.max_keys = max(max_length + 1, step.source_length)
        self.latest = np.full(beam_size, bos, dtype=np.int64)
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

    def collect_outputs(self, eos: int) -> list[BeamOutput]:
        """Return all outputs that may be among the K best, in the order in which the search found them."""
        nodes = self.nodes[: self.struct.length].tolist()
        outputs = []
        for length, row, ended, end_log_prob in self.outputs[: self.struct.num_outputs].tolist():
            tokens, log_probs = ([eos], [end_log_prob]) if ended else ([], [])
            for position in range(length - 1, -1, -1):
                row, token, log_prob = nodes[position][row]
                tokens.append(token)
                log_probs.append(log_prob)
            outputs.append((tokens[::-1], log_probs[::-1], bool(ended)))
        return outputs


class NativeBeams:
    """The running beam searches of a model; for one thread.

    Attributes:
        running: the searches that have not ended.
    """

    def __init__(
        self,
        model: NativeModel,
        read: ReadSources,
        divisors: NDArray[np.float64],
        *,
        beam_size: int,
        n_best: int,
        bos: int,
        eos: int,
        suppressed: Sequence[int],
    ) -> None:
        """Start without a search.

        Args:
            model: computes the steps; its vocabulary has more than K + 1 tokens besides the suppressed ids.
            read: encodes the sources.
            divisors: (max_length + 2,) for each length: the score of an output is its log-probability divided by
                this value.
            beam_size: K.
            n_best: number of outputs of each sentence.
            bos: the token that the first step appends.
            eos: the end symbol.
            suppressed: ids that are never generated.
        """
        self.model, self.read = model, read
        self.beam_size, self.bos, self.eos = beam_size, bos, eos
        self.divisors, self.suppressed = divisors, np.array(suppressed, dtype=np.int64)
        d_model, heads = model.config.d_model, model.config.num_heads
        self.shape = (model.config.num_decoder_layers, heads, d_model // heads)
        self.options = BeamOptions(
            beam_size=beam_size,
            n_best=n_best,
            eos=eos,
            signal_stride=d_model,
            rotary_stride=d_model // heads,
            divisors=divisors.ctypes.data,
        )
        self.running: list[NativeBeam] = []
        self.prepared = False

    def add(self, rows: Sequence[Sequence[int]], max_lengths: Sequence[int]) -> list[NativeBeam]:
        """Encode sentences; their search begins at the next step.

        Args:
            rows: sources as ids, each with its end symbol.
            max_lengths: maximum number of tokens of each output.
        """
        memory, positions = self.read(rows), self.model.target_positions.first(max(max_lengths) + 1)
        for number, (row, max_length) in enumerate(zip(rows, max_lengths, strict=True)):
            sources = pointers([array.ctypes.data + number * array.strides[0] for array in memory])
            step = Step(
                position_signal=address(positions.signals),
                rotary=address(positions.rotary_cos_sin),
                memory=sources,
                source_length=len(row),
                source_capacity=memory[0].shape[2],
            )
            buffers = (positions, memory, sources)
            self.running.append(NativeBeam(self.beam_size, self.bos, max_length, self.shape, step, buffers))
        self.prepared = False
        return self.running[-len(rows) :]

    def prepare(self) -> None:
        """Prepare the arguments of the C calls; they are valid until a sentence joins or leaves."""
        self.rows, per_row = len(self.running) * self.beam_size, self.beam_size + 1
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

    def step(self) -> bool:
        """Append a token to all prefixes, and remove the searches that have ended; return whether any has ended.

        Raises:
            OverflowedError: the model gave log-probabilities that are not numbers.
        """
        if not self.prepared:
            self.prepare()
        if not self.model.beam_steps(self.options, self.structs, self.rows, self.max_keys, self.best):
            return False
        for beam in self.running:
            beam.ended = beam.struct.status == BeamStatus.BEAM_ENDED
            if beam.struct.status == BeamStatus.BEAM_CACHE_FULL:
                beam.enlarge_cache()
        num_before = len(self.running)
        self.running = [beam for beam in self.running if not beam.ended]
        self.prepared = len(self.running) == num_before
        return not self.prepared
