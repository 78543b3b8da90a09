"""Sentences read, and steps of a decoder, by compiled code (`native/decoder.c`): the sums of `packed.py`.

Shapes: G sentences, W rows each, R = G x W, D model width, H heads, E head width, S longest source, T tokens of all
sources, V vocabulary.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.model.descriptions import (
    POINTER,
    WHOLE,
    Best,
    Linear,
    Model,
    Part,
    Place,
    Search,
    addresses,
    pointer,
    step_of,
)
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.layers import KeysValues
from manyheads.model.panels import Panels
from manyheads.model.products import Precision

__all__ = ["LONGEST", "CompiledModel", "threads_for_code", "threads_of_code"]

LONGEST = 256  # tokens of a sentence: in longer ones torch's attention is the faster one
READ_TOGETHER = 256  # tokens: as many as make good use of the weights, in working memory that stays near
MOST_THREADS = 8  # more would wait for each other longer than they read


of_torch = threading.local()  # count: the threads that torch had, while code has them


@contextmanager
def threads_for_code() -> Iterator[None]:
    """While open, this thread's calls of compiled code have all threads that torch had, and torch has one.

    What torch computes between two steps is small, and its threads would then stay awake for milliseconds in the
    place of the others.
    """
    of_torch.count = count = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(count)
        del of_torch.count


def threads_of_code() -> int:
    """How many threads a call has."""
    return min(getattr(of_torch, "count", torch.get_num_threads()), MOST_THREADS)


class Room(threading.local):
    """Memory that a thread's calls work in; kept for the next one, as the system clears what it gives anew."""

    def __init__(self) -> None:
        self.floats: NDArray[np.float32] = np.empty(0, dtype=np.float32)

    def of(self, size: int) -> NDArray[np.float32]:
        """So many floats at least."""
        if len(self.floats) < size:
            self.floats = np.empty(size, dtype=np.float32)
        return self.floats


class CompiledModel:
    """Weights in the panels that compiled code reads.

    A sentence's results are the same bits whatever is computed beside it. Safe to call from several threads.
    """

    def __init__(self, model: EncoderDecoder, held: Precision, code: ctypes.CDLL) -> None:
        self.code = code
        code.working_room.restype = code.beam_steps.restype = code.panel_width.restype = WHOLE
        self.room, self.logits = Room(), Room()
        self.config = model.config
        self.panels = panels = Panels(model.config, held, code.panel_width())
        encoder, decoder = model.encoder_layers, model.decoder_layers
        norms = [(one.around_attention.norm, one.around_feed_forward.norm) for one in encoder]
        self.encoder = panels.described(model.source_embedding, list(map(panels.layer, encoder)),
                                      [*chain(*norms)], model.encoder_norm, Linear())  # fmt: skip
        more = [
            (one.around_self_attention.norm, one.around_cross_attention.norm, one.around_feed_forward.norm)
            for one in decoder
        ]
        self.decoder = panels.described(model.target_embedding, list(map(panels.layer, decoder)),
                                      [*chain(*more)], model.decoder_norm, panels.linear(model.output))  # fmt: skip
        width = model.config.d_model
        memory_in = [panels.linear(one.cross_attention.project_in, width) for one in decoder]
        self.memory_in = (Linear * len(decoder))(*memory_in)

    def encode(
        self, source: Tensor, mask: Tensor, signals: Tensor | None, turns: Tensor | None
    ) -> tuple[list[KeysValues], Tensor | None]:
        """Read sentences; their padding is left out.

        Args:
            source: (G, S).
            mask: (G, S) True where a token stands.
            signals: what is added to the embeddings of places (S, D), if anything.
            turns: how queries and keys turn there (S, E / 2, 2), if they do.

        Returns:
            Of each decoder layer, what its tokens look at and what they take from it, twice (G, H, S, E), a
            sentence's tokens first; and what is added to the scores of attention to hide the places behind them
            (G, 1, 1, S), None where there are none.
        """
        lengths = mask.sum(1).numpy()
        memory = self.read(source[mask].numpy(), lengths, signals, turns)
        if bool(mask.all()):
            return memory, None
        hidden = torch.from_numpy(np.arange(lengths.max()) >= lengths[:, None])
        return memory, torch.zeros(hidden.shape).masked_fill_(hidden, -torch.inf)[:, None, None]

    def read(
        self, tokens: NDArray[np.int64], lengths: NDArray[np.int64], signals: Tensor | None, turns: Tensor | None
    ) -> list[KeysValues]:
        """Read sentences that stand one after the other; as `encode`.

        Args:
            tokens: of all sentences.
            lengths: (G,) how many of them are each one's.
            signals: as `encode`, for the places of the longest one.
            turns: likewise.
        """
        count, longest, layers, heads = len(lengths), int(lengths.max()), len(self.memory_in), self.config.num_heads
        store = torch.empty(layers, 2, count, heads, longest, self.config.d_model // heads)
        starts = np.concatenate([[0], lengths.cumsum()])
        first = 0
        while first < count:
            last = max(first + 1, int(np.searchsorted(starts, starts[first] + READ_TOGETHER, side="right")) - 1)
            where = [pair[first:last] for layer in store.unbind(0) for pair in layer.unbind(0)]
            here, each = tokens[starts[first] : starts[last]], lengths[first:last]
            self.read_together(here, each, longest, signals, turns, addresses(where))
            first = last
        return [(keys, values) for keys, values in store.unbind(0)]

    def read_together(
        self,
        tokens: NDArray[np.int64],
        lengths: NDArray[np.int64],
        longest: int,
        signals: Tensor | None,
        turns: Tensor | None,
        memory: ctypes.Array[ctypes.c_void_p],
    ) -> None:
        """Read some sentences into memory (G, H, S, E) that is there, with S = `longest`."""
        starts = np.concatenate([[0], lengths.cumsum()])
        owners = np.repeat(np.arange(len(lengths)), lengths)
        places = np.arange(len(tokens)) - starts[owners]
        threads = threads_of_code()
        room = self.working_room(self.encoder, len(tokens), longest, threads)
        self.code.encode(
            ctypes.byref(self.encoder),
            self.memory_in,
            WHOLE(len(self.memory_in)),
            POINTER(tokens.ctypes.data),
            POINTER(owners.ctypes.data),
            POINTER(places.ctypes.data),
            POINTER(starts.ctypes.data),
            WHOLE(len(lengths)),
            WHOLE(longest),
            POINTER(pointer(signals)),
            POINTER(pointer(turns)),
            memory,
            POINTER(room.ctypes.data),
            threads,
        )

    def working_room(self, model: Model, rows: int, keys: int, threads: int) -> NDArray[np.float32]:
        """What a call with so many rows, of which each looks at up to so many keys, works in."""
        return self.room.of(self.code.working_room(ctypes.byref(model), WHOLE(rows), WHOLE(keys), WHOLE(threads)))

    def steps(self, parts: Sequence[Part], places: Sequence[Place]) -> list[Tensor]:
        """Append a token to each row of some parts, whose products are computed together.

        Args:
            parts: their pasts with room made for this step.
            places: of each, what stands at its place of the target.

        Returns:
            Of each part, logits of the next tokens (R, V).
        """
        return list(self.take(parts, places, None).split([len(part.tokens) for part in parts]))

    def best(
        self, parts: Sequence[Part], places: Sequence[Place], count: int, never: Sequence[int]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """As `steps`, but the best next tokens of each row, best first, the lower id first among equals.

        Args:
            parts: as `steps`.
            places: likewise.
            count: how many of each row; the vocabulary has more.
            never: tokens that never come out.

        Returns:
            Log-probabilities and ids of all rows, those of one part after those of another, twice (R, count).
        """
        rows = sum(len(part.tokens) for part in parts)
        values, tokens = np.empty((rows, count), dtype=np.float32), np.empty((rows, count), dtype=np.int64)
        banned = np.array(never, dtype=np.int64)
        self.take(
            parts, places, Best(count, len(banned), banned.ctypes.data, values.ctypes.data, tokens.ctypes.data)
        )
        return values, tokens

    def take(self, parts: Sequence[Part], places: Sequence[Place], best: Best | None) -> Tensor:
        """Take a step: the logits of all rows (R, V), which mean nothing where the best ones are asked for."""
        kept = [part.tokens.contiguous() for part in parts]
        found = [*map(step_of, parts, kept, places)]
        rows, most_keys = sum(map(len, kept)), max(max(one.held, one.source) for one in found)
        threads = threads_of_code()
        room = self.working_room(self.decoder, rows, most_keys, threads)
        size = rows * self.decoder.output.outputs
        logits = np.empty(size, dtype=np.float32) if best is None else self.logits.of(size)
        self.code.decoder_steps(
            ctypes.byref(self.decoder),
            (POINTER * len(found))(*map(ctypes.addressof, found)),
            WHOLE(len(found)),
            WHOLE(most_keys),
            POINTER(room.ctypes.data),
            POINTER(logits.ctypes.data),
            None if best is None else ctypes.byref(best),
            threads,
        )
        return torch.from_numpy(logits[:size].reshape(rows, -1))

    def beam_steps(
        self, search: Search, beams: ctypes.Array[ctypes.c_void_p], rows: int, most_keys: int, best: Best
    ) -> int:
        """Have beams take a step.

        Args:
            search: what they have in common.
            beams: where they are.
            rows: at most so many in all.
            most_keys: that one of them looks at.
            best: room for the best next tokens of all rows.

        Returns:
            How many of them have stopped, or must have more room.

        Raises:
            FloatingPointError: the model gave log-probabilities that are not numbers.
        """
        threads = threads_of_code()
        room = self.working_room(self.decoder, rows, most_keys, threads)
        logits = self.logits.of(rows * self.decoder.output.outputs)
        asking: int = self.code.beam_steps(
            ctypes.byref(self.decoder),
            ctypes.byref(search),
            beams,
            WHOLE(len(beams)),
            WHOLE(most_keys),
            POINTER(room.ctypes.data),
            POINTER(logits.ctypes.data),
            ctypes.byref(best),
            threads,
        )
        if asking < 0:
            raise FloatingPointError("the model gave log-probabilities that are not numbers (NaN)")
        return asking
