"""The encoder-decoder in C (`decoder.c`): sentences are encoded, and decoding steps are taken.

Shapes: G sentences, W rows each, R = G x W, D model width, H heads, E head dimension, S longest source, T tokens of
all sources, V vocabulary.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from manyheads.decoding.linear import Precision
from manyheads.decoding.native.structs import (
    POINTER,
    BeamOptions,
    BestTokens,
    EncoderInput,
    Failure,
    Linear,
    Model,
    PositionEncoding,
    StepInput,
    address,
    addresses,
    make_step,
)
from manyheads.decoding.native.weights import PackedWeights
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.layers import KeysValues

__all__ = ["MAX_SOURCE_LENGTH", "NativeModel", "native_threads", "threads_for_native"]

MAX_SOURCE_LENGTH = 256  # tokens: longer sentences are encoded by torch, whose attention is faster there
ENCODER_BATCH_TOKENS = 256  # enough to make good use of the weights; the workspace stays in the processor's cache
MAX_THREADS = 8  # more threads would wait for each other longer than they compute

torch_threads = threading.local()  # count: the threads of torch while `threads_for_native` is open


@contextmanager
def threads_for_native() -> Iterator[None]:
    """Give the C code all threads of torch, and torch one thread, for calls from this thread.

    The operations of torch between two steps are small, and its threads would then spin for milliseconds on the
    cores that the threads of the C code need.
    """
    torch_threads.count = count = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(count)
        del torch_threads.count


def native_threads() -> int:
    """Return the number of threads of a call of the C code."""
    return min(getattr(torch_threads, "count", torch.get_num_threads()), MAX_THREADS)


class Workspace(threading.local):
    """A buffer of floats for each thread, kept between calls: the system clears memory that is newly allocated."""

    def __init__(self) -> None:
        self.floats: NDArray[np.float32] = np.empty(0, dtype=np.float32)

    def reserve(self, size: int) -> NDArray[np.float32]:
        """Return the buffer, of at least `size` floats."""
        if len(self.floats) < size:
            self.floats = np.empty(size, dtype=np.float32)
        return self.floats


class NativeModel:
    """A model with its weights packed for the C code.

    The results of a sentence are the same bits whatever sentences are computed beside it. Safe to call from several
    threads.
    """

    def __init__(self, model: EncoderDecoder, precision: Precision, library: ctypes.CDLL) -> None:
        """Pack the weights of a model, in float32 on the CPU."""
        self.library = library
        self.workspace, self.logits = Workspace(), Workspace()
        self.config = model.config
        self.weights = weights = PackedWeights(model.config, precision, library.panel_width())
        encoder_norms, decoder_norms = list[nn.Module](), list[nn.Module]()
        for encoder_layer in model.encoder_layers:
            encoder_norms += [encoder_layer.around_attention.norm, encoder_layer.around_feed_forward.norm]
        for layer in model.decoder_layers:
            decoder_norms += [layer.around_self_attention.norm, layer.around_cross_attention.norm,
                              layer.around_feed_forward.norm]  # fmt: skip
        self.encoder = weights.model(model.source_embedding, [*map(weights.layer, model.encoder_layers)],
                                     encoder_norms, model.encoder_norm, Linear())  # fmt: skip
        self.decoder = weights.model(model.target_embedding, [*map(weights.layer, model.decoder_layers)],
                                     decoder_norms, model.decoder_norm, weights.linear(model.output))  # fmt: skip
        d_model = model.config.d_model
        memory_kv = [weights.linear(layer.cross_attention.project_in, d_model) for layer in model.decoder_layers]
        self.memory_kv = (Linear * len(memory_kv))(*memory_kv)

    def encode(
        self, source: Tensor, mask: Tensor, signals: Tensor | None, rotary_cos_sin: Tensor | None
    ) -> tuple[list[KeysValues], Tensor | None]:
        """Encode sentences without their padding.

        Args:
            source: (G, S).
            mask: (G, S) True at tokens, False at padding.
            signals: (S, D) added to the embeddings, or None.
            rotary_cos_sin: (S, E / 2, 2) cosines and sines of the positions, or None.

        Returns:
            Keys and values of each decoder layer, (G, H, S, E) each, the tokens of a sentence first; and the bias
            of attention that hides the positions behind them, (G, 1, 1, S), None where there are none.
        """
        lengths = mask.sum(1).numpy()
        memory = self.encode_unpadded(source[mask].numpy(), lengths, signals, rotary_cos_sin)
        if bool(mask.all()):
            return memory, None
        hidden = torch.from_numpy(np.arange(lengths.max()) >= lengths[:, None])
        return memory, torch.zeros(hidden.shape).masked_fill_(hidden, -torch.inf)[:, None, None]

    def encode_unpadded(
        self,
        tokens: NDArray[np.int64],
        lengths: NDArray[np.int64],
        signals: Tensor | None,
        rotary_cos_sin: Tensor | None,
    ) -> list[KeysValues]:
        """Encode sentences that stand one after the other; returns what `encode` returns.

        Args:
            tokens: (T,) of all sentences.
            lengths: (G,) of the sentences.
            signals: as in `encode`, S being the longest sentence.
            rotary_cos_sin: likewise.
        """
        count, longest, layers, heads = len(lengths), int(lengths.max()), len(self.memory_kv), self.config.num_heads
        store = torch.empty(layers, 2, count, heads, longest, self.config.d_model // heads)
        starts = np.concatenate([[0], lengths.cumsum()])
        first = 0
        while first < count:
            last = int(np.searchsorted(starts, starts[first] + ENCODER_BATCH_TOKENS, side="right")) - 1
            last = max(first + 1, last)
            memory = [pair[first:last] for layer in store.unbind(0) for pair in layer.unbind(0)]
            batch = tokens[starts[first] : starts[last]]
            self.encode_batch(batch, lengths[first:last], longest, signals, rotary_cos_sin, memory)
            first = last
        return [(keys, values) for keys, values in store.unbind(0)]

    def encode_batch(
        self,
        tokens: NDArray[np.int64],
        lengths: NDArray[np.int64],
        longest: int,
        signals: Tensor | None,
        rotary_cos_sin: Tensor | None,
        memory: list[Tensor],
    ) -> None:
        """Encode sentences side by side into `memory`, 2 tensors (G, H, longest, E) of each decoder layer."""
        starts = np.concatenate([[0], lengths.cumsum()])
        sentence_ids = np.repeat(np.arange(len(lengths)), lengths)
        positions = np.arange(len(tokens)) - starts[sentence_ids]
        source = EncoderInput(
            tokens=tokens.ctypes.data,
            sentence_ids=sentence_ids.ctypes.data,
            positions=positions.ctypes.data,
            starts=starts.ctypes.data,
            position_signals=address(signals),
            rotary=address(rotary_cos_sin),
            sentences=len(lengths),
            max_length=longest,
        )
        threads = native_threads()
        failure = Failure()
        done = self.library.encode(
            self.encoder,
            self.memory_kv,
            len(self.memory_kv),
            source,
            addresses(memory),
            self.reserve_workspace(self.encoder, len(tokens), longest, threads).ctypes.data,
            threads,
            failure,
        )
        if done < 0:
            raise refused(failure)

    def reserve_workspace(self, model: Model, rows: int, max_keys: int, threads: int) -> NDArray[np.float32]:
        """Return the workspace of a call with so many rows, each of which attends to at most `max_keys` keys."""
        return self.workspace.reserve(self.library.workspace_size(model, rows, max_keys, threads))

    def steps(self, steps: Sequence[StepInput], encodings: Sequence[PositionEncoding]) -> list[Tensor]:
        """Append a token to each row of some steps, whose linear layers are computed together.

        Args:
            steps: with room made in their caches.
            encodings: the encoding of each step's position.

        Returns:
            The logits of the next tokens of each step, (R, V).

        Raises:
            ValueError: a token id or a length is outside of its range.
        """
        return list(self.run_steps(steps, encodings, None).split([len(step.tokens) for step in steps]))

    def best_tokens(
        self,
        steps: Sequence[StepInput],
        encodings: Sequence[PositionEncoding],
        count: int,
        suppressed: Sequence[int],
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Append a token to each row of some steps; return the best next tokens, the lower id first among equals.

        Args:
            steps: as in `steps`.
            encodings: likewise.
            count: how many tokens of each row; fewer than the vocabulary has.
            suppressed: ids that never come out.

        Returns:
            Log-probabilities and ids of the rows of all steps, (R, count) each, best first.
        """
        rows = sum(len(step.tokens) for step in steps)
        values, tokens = np.empty((rows, count), dtype=np.float32), np.empty((rows, count), dtype=np.int64)
        hidden = np.array(suppressed, dtype=np.int64)
        best = BestTokens(count, len(hidden), hidden.ctypes.data, values.ctypes.data, tokens.ctypes.data)
        self.run_steps(steps, encodings, best)
        return values, tokens

    def run_steps(
        self, steps: Sequence[StepInput], encodings: Sequence[PositionEncoding], best: BestTokens | None
    ) -> Tensor:
        """Take the steps; return the logits of all rows, (R, V), which are undefined if `best` is given."""
        tokens = [step.tokens.contiguous() for step in steps]
        structs = [*map(make_step, steps, tokens, encodings)]
        rows, max_keys = sum(map(len, tokens)), max(max(step.length, step.source_length) for step in structs)
        size, threads = rows * self.decoder.output.outputs, native_threads()
        logits = np.empty(size, dtype=np.float32) if best is None else self.logits.reserve(size)
        failure = Failure()
        done = self.library.decoder_steps(
            self.decoder,
            (POINTER * len(structs))(*map(ctypes.addressof, structs)),
            len(structs),
            max_keys,
            self.reserve_workspace(self.decoder, rows, max_keys, threads).ctypes.data,
            logits.ctypes.data,
            best,
            threads,
            failure,
        )
        if done < 0:
            raise refused(failure)
        return torch.from_numpy(logits[:size].reshape(rows, -1))

    def beam_steps(
        self,
        options: BeamOptions,
        beams: ctypes.Array[ctypes.c_void_p],
        rows: int,
        max_keys: int,
        best: BestTokens,
    ) -> int:
        """Take a step of some beams.

        Args:
            options: of the search.
            beams: their addresses.
            rows: at most so many in all.
            max_keys: keys that a row attends to at most.
            best: arrays for the best next tokens of all rows.

        Returns:
            How many of the beams have stopped, or need a larger KV cache.

        Raises:
            FloatingPointError: the model gave log-probabilities that are not numbers.
            ValueError: an argument is outside of its range.
        """
        failure = Failure()
        threads = native_threads()
        stopped: int = self.library.beam_steps(
            self.decoder,
            options,
            beams,
            len(beams),
            max_keys,
            self.reserve_workspace(self.decoder, rows, max_keys, threads).ctypes.data,
            self.logits.reserve(rows * self.decoder.output.outputs).ctypes.data,
            best,
            threads,
            failure,
        )
        if stopped == -1:
            raise refused(failure)
        if stopped < 0:
            raise FloatingPointError("the model gave log-probabilities that are not numbers (NaN)")
        return stopped


def refused(failure: Failure) -> ValueError:
    """Return the error of a call that the C code refused."""
    value, low, high = failure.value, failure.low, failure.high
    return ValueError(f"the C decoder was given {failure.quantity.decode()} {value}; the range is {low}..{high}")
