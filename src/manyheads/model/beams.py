"""Beam searches of many sentences by compiled code (`native/beam.h`): a step of all of them is one call.

Sentences may begin at any time, and leave as soon as their search has stopped. The interpreter is needed for these
two alone, and to enlarge a past; not for the bookkeeping between two steps.

Shapes: K beam size, C = K + 1 candidates of a row, H heads, E head width, N tokens held of all rows of a sentence.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from manyheads.model.compiled import CompiledModel
from manyheads.model.descriptions import POINTER, Beam, Best, Search, Step, pointer
from manyheads.model.packed import PackedModel

__all__ = ["CompiledBeams", "OpenBeam", "Output", "can_search"]

Output = tuple[list[int], list[float], bool]  # tokens, their log-probabilities, whether the last is the end symbol
NODE = np.dtype([("parent", np.int32), ("token", np.int32), ("value", np.float32)])
OUTPUT = np.dtype([("length", np.int32), ("row", np.int32), ("ended", np.int32), ("value", np.float32)])
GOING, ENDED, FULL, NOT_A_NUMBER = range(4)  # states
MARGIN = 8  # tokens: by how much an output may be longer than its source before its past is enlarged


def can_search(model: PackedModel, beam_size: int, never: Sequence[int]) -> bool:
    """Whether there is compiled code, and a vocabulary of which it can rank the best beam_size + 1."""
    return model.code is not None and beam_size + 1 + len(never) < model.model.output.out_features


class OpenBeam:
    """The search of one sentence, in arrays that compiled code reads and writes.

    Attributes:
        ended: whether it has stopped.
        most_keys: that a row may ever look at.
    """

    def __init__(
        self, size: int, begin: int, limit: int, shape: tuple[int, int, int], step: Step, kept: object
    ) -> None:
        """One empty prefix.

        Args:
            size: K.
            begin: what the first step is given.
            limit: the longest output.
            shape: L, H, E.
            step: what is known of the first one: where the source is, and the first place of the target.
            kept: what that lies in.
        """
        self.kept = kept
        self.ended = False
        self.most_keys = max(limit + 1, step.source)
        self.latest = np.full(size, begin, dtype=np.int64)
        self.totals = np.zeros(size)
        self.scores = np.full(size, -np.inf)
        self.seen = np.zeros((2, size * (limit + 1)), dtype=np.int32)
        self.nodes = np.empty((limit + 1, size), dtype=NODE)
        self.outputs = np.empty((limit + 1) * size, dtype=OUTPUT)
        layers, heads, width = shape
        room = 1 + size * min(limit, step.source + MARGIN)
        self.past = np.empty((layers, 2, heads, room, width), dtype=np.float32)
        step.sentences = step.rows = step.held = step.visible = 1
        step.room, step.past = room, self.past.ctypes.data
        step.tokens, step.seen = self.latest.ctypes.data, self.seen[0].ctypes.data
        self.state = Beam(
            step=step,
            limit=limit,
            latest=self.latest.ctypes.data,
            totals=self.totals.ctypes.data,
            scores=self.scores.ctypes.data,
            seen=self.seen[0].ctypes.data,
            spare=self.seen[1].ctypes.data,
            nodes=self.nodes.ctypes.data,
            outputs=self.outputs.ctypes.data,
        )

    def give_up(self) -> None:
        """Nobody waits for it any more: it stops at the next step, with outputs that mean nothing."""
        self.state.abandoned = 1

    def enlarge(self) -> None:
        """Move the past to where it has twice the room."""
        step = self.state.step
        held, room = step.held - step.rows, 2 * step.held
        past = np.empty((*self.past.shape[:3], room, self.past.shape[4]), dtype=np.float32)
        past[:, :, :, :held] = self.past[:, :, :, :held]
        self.past, step.past, step.room = past, past.ctypes.data, room

    def found(self, end: int) -> list[Output]:
        """All outputs that may be among the K best, in the order in which they were found."""
        nodes = self.nodes[: self.state.length].tolist()
        outputs = []
        for length, row, ended, value in self.outputs[: self.state.found].tolist():
            tokens, values = ([end], [value]) if ended else ([], [])
            for place in range(length - 1, -1, -1):
                row, token, score = nodes[place][row]
                tokens.append(token)
                values.append(score)
            outputs.append((tokens[::-1], values[::-1], bool(ended)))
        return outputs


class CompiledBeams:
    """The searches of a model that are under way; for one thread.

    Attributes:
        open: each of them.
    """

    def __init__(
        self,
        model: PackedModel,
        divisors: NDArray[np.float64],
        *,
        beam_size: int,
        n_best: int,
        bos: int,
        eos: int,
        never: Sequence[int],
    ) -> None:
        """Nothing yet.

        Args:
            model: one for which `can_search` says so.
            divisors: for each length, what the log-probability of an output is divided by for its score.
            beam_size: K.
            n_best: outputs that are wanted of each sentence.
            bos: what the first step is given.
            eos: the end symbol.
            never: tokens that never come out.
        """
        assert model.code is not None
        self.model = model
        self.code: CompiledModel = model.code
        self.beam_size, self.bos, self.eos = beam_size, bos, eos
        self.divisors, self.never = divisors, np.array(never, dtype=np.int64)
        width, heads = model.model.config.d_model, model.model.config.num_heads
        self.shape = (len(model.decoder), heads, width // heads)
        self.search = Search(beam_size, n_best, eos, width, width // heads, divisors.ctypes.data)
        self.open: list[OpenBeam] = []
        self.arranged = False

    def begin(self, rows: Sequence[Sequence[int]], limits: Sequence[int]) -> list[OpenBeam]:
        """Let sentences take part from the next step on.

        Args:
            rows: sources as ids, each with its end mark.
            limits: the longest output of each.
        """
        memory, places = [*chain(*self.model.read(rows))], self.model.first_places(max(limits) + 1)
        lies = [(pointer(one) or 0, one.stride(0) * one.itemsize) for one in memory]
        for number, (row, limit) in enumerate(zip(rows, limits, strict=True)):
            where = (POINTER * len(lies))(*[first + number * size for first, size in lies])
            step = Step(
                signal=pointer(places.signals),
                turns=pointer(places.turns),
                memory=where,
                source=len(row),
                source_room=memory[0].size(2),
            )
            self.open.append(
                OpenBeam(self.beam_size, self.bos, limit, self.shape, step, kept=(places, memory, where))
            )
        self.arranged = False
        return self.open[-len(rows) :]

    def arrange(self) -> None:
        """Write down where everything is, for calls until a sentence begins or leaves."""
        rows, each = len(self.open) * self.beam_size, self.beam_size + 1
        self.rows = rows
        self.most_keys = max((beam.most_keys for beam in self.open), default=0)
        self.where = (POINTER * len(self.open))(*[ctypes.addressof(beam.state) for beam in self.open])
        self.values, self.tokens = np.empty((rows, each), dtype=np.float32), np.empty((rows, each), dtype=np.int64)
        self.best = Best(
            each, len(self.never), self.never.ctypes.data, self.values.ctypes.data, self.tokens.ctypes.data
        )
        self.arranged = True

    def step(self) -> bool:
        """Append a token to all prefixes; whether a sentence has stopped, which has left then.

        Raises:
            FloatingPointError: the model gave log-probabilities that are not numbers.
        """
        if not self.arranged:
            self.arrange()
        if not self.code.beam_steps(self.search, self.where, self.rows, self.most_keys, self.best):
            return False
        for beam in self.open:
            beam.ended = beam.state.state == ENDED
            if beam.state.state == FULL:
                beam.enlarge()
        before = len(self.open)
        self.open = [beam for beam in self.open if not beam.ended]
        self.arranged = len(self.open) == before
        return not self.arranged
