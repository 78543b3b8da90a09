"""The encoder-decoder in C (`decoder.c`): encoding of sentences, and steps of searches. It needs no torch.

Shapes: G sentences, L decoder layers, H heads, E head dimension, S longest source, T tokens of all sources.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from manyheads.config.schema import ModelConfig
from manyheads.decoding.native.structs import POINTER, BeamOptions, BestTokens, EncoderInput, Failure, Model
from manyheads.decoding.native.weights import PackedWeights, Precision
from manyheads.decoding.threads import native_threads
from manyheads.errors import OverflowedError

FloatArray = NDArray[np.float32]
_ENCODER_BATCH_TOKENS = 256  # enough to make good use of the weights; the workspace stays in the processor's cache


class _Workspace(threading.local):
    """A buffer of floats for each thread, reused between calls, as the system clears newly allocated memory."""

    def __init__(self) -> None:
        self.floats: FloatArray = np.empty(0, dtype=np.float32)

    def reserve(self, size: int) -> FloatArray:
        """Return the buffer, of at least `size` floats."""
        if len(self.floats) < size:
            self.floats = np.empty(size, dtype=np.float32)
        return self.floats


class NativeModel:
    """A model with its weights packed for the C code.

    The results of a sentence are bit-identical whatever other sentences are computed with it. Safe to call from
    several threads.
    """

    def __init__(
        self,
        tensors: Mapping[str, FloatArray],
        config: ModelConfig,
        sizes: tuple[int, int],
        precision: Precision,
        library: ctypes.CDLL,
    ) -> None:
        """Pack the weights of a model.

        Args:
            tensors: the float32 weights of an `EncoderDecoder` by their names; each is read when it is packed.
            config: configuration of the model.
            sizes: number of tokens of the source and of the target vocabulary.
            precision: number format of the matrices.
            library: the library of `decoder.c`.

        Raises:
            WeightsError: a tensor is missing, or has another shape or type.
        """
        self.library = library
        self.workspace, self.logits = _Workspace(), _Workspace()
        self.config = config
        self.precision = precision
        self.vocabulary = sizes[1]
        weights = PackedWeights(tensors, config, precision, library.panel_width(), library.panel_depth())
        self.arrays = weights.arrays  # a reference to the memory to which the structs point
        self.encoder, self.decoder = weights.encoder(sizes[0]), weights.decoder(sizes[1])
        self.memory_kv = weights.memory_keys_values()
        self.source_positions = weights.positions("source_embedding", library)
        self.target_positions = weights.positions("target_embedding", library)

    def read(self, rows: Sequence[Sequence[int]]) -> list[FloatArray]:
        """Encode sentences, given as ids with end marks; return what `encode` returns."""
        lengths = np.array([*map(len, rows)])
        return self.encode(np.fromiter(chain(*rows), dtype=np.int64, count=lengths.sum()), lengths)

    def encode(self, tokens: NDArray[np.int64], lengths: NDArray[np.int64]) -> list[FloatArray]:
        """Encode concatenated sentences.

        Args:
            tokens: (T,) tokens of all sentences.
            lengths: (G,) lengths of the sentences.

        Returns:
            The keys and values of the source for each decoder layer in turn, 2 L arrays (G, H, S, E). The values
            after the last token of a sentence are undefined.

        Raises:
            ValueError: a token id is outside of the vocabulary.
        """
        count, longest, heads = len(lengths), int(lengths.max()), self.config.num_heads
        shape = (len(self.memory_kv), 2, count, heads, longest, self.config.d_model // heads)
        memory = [*np.empty(shape, dtype=np.float32).reshape(-1, *shape[2:])]
        starts = np.concatenate([[0], lengths.cumsum()])
        first = 0
        while first < count:
            last = int(np.searchsorted(starts, starts[first] + _ENCODER_BATCH_TOKENS, side="right")) - 1
            last = max(first + 1, last)
            batch = tokens[starts[first] : starts[last]]
            self.encode_batch(batch, lengths[first:last], longest, [array[first:last] for array in memory])
            first = last
        return memory

    def encode_batch(
        self, tokens: NDArray[np.int64], lengths: NDArray[np.int64], longest: int, memory: Sequence[FloatArray]
    ) -> None:
        """Encode one batch of concatenated sentences into `memory`; see `encode`."""
        positions = self.source_positions.first(longest)
        starts = np.concatenate([[0], lengths.cumsum()])
        sentence_ids = np.repeat(np.arange(len(lengths)), lengths)
        position_ids = np.arange(len(tokens)) - starts[sentence_ids]
        source = EncoderInput(
            tokens=tokens.ctypes.data,
            sentence_ids=sentence_ids.ctypes.data,
            positions=position_ids.ctypes.data,
            starts=starts.ctypes.data,
            position_signals=address(positions.signals),
            rotary=address(positions.rotary_cos_sin),
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
            pointers([array.ctypes.data for array in memory]),
            self.reserve_workspace(self.encoder, len(tokens), longest, threads).ctypes.data,
            threads,
            failure,
        )
        if done < 0:
            raise _refused_error(failure)

    def reserve_workspace(self, model: Model, rows: int, max_keys: int, threads: int) -> NDArray[np.float32]:
        """Return the workspace of a call with `rows` rows, each of which attends to at most `max_keys` keys."""
        return self.workspace.reserve(self.library.workspace_size(model, rows, max_keys, threads))

    def beam_steps(
        self,
        options: BeamOptions,
        beams: ctypes.Array[ctypes.c_void_p],
        rows: int,
        max_keys: int,
        best: BestTokens,
    ) -> int:
        """Advance some beams by one step.

        Args:
            options: the options of the search.
            beams: addresses of the beams.
            rows: maximum number of rows of all beams.
            max_keys: maximum number of keys that a row attends to.
            best: arrays for the best next tokens of all rows.

        Returns:
            Number of beams that have stopped or need a larger KV cache.

        Raises:
            OverflowedError: the model gave log-probabilities that are not numbers.
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
            self.logits.reserve(rows * self.vocabulary).ctypes.data,
            best,
            threads,
            failure,
        )
        if stopped == -1:
            raise _refused_error(failure)
        if stopped < 0:
            raise OverflowedError
        return stopped


def _refused_error(failure: Failure) -> ValueError:
    value, low, high = failure.value, failure.low, failure.high
    return ValueError(f"the C decoder was given {failure.quantity.decode()} {value}; the range is {low}..{high}")


def address(array: NDArray[np.float32] | None) -> int | None:
    """Return the address of a contiguous array, null for None; the caller must hold a reference to the array."""
    assert array is None or array.flags.c_contiguous
    return None if array is None else array.ctypes.data


def pointers(addresses: Sequence[int]) -> ctypes.Array[ctypes.c_void_p]:
    """Return a C array of addresses."""
    return (POINTER * len(addresses))(*addresses)
