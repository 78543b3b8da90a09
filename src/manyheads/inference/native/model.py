"""Models in C (`decoder.c`): encoding of sentences, and decoding steps. They need no torch.

Shapes: G sentences, L decoder layers, H heads, E head dimension, S longest source, T tokens of all sources,
D width, V vocabulary.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from manyheads.config.schema import ModelConfig
from manyheads.errors import OverflowedError
from manyheads.inference.native.positions import Positions, PositionTable
from manyheads.inference.native.structs import (
    POINTER,
    BeamOptions,
    BestTokens,
    EncoderInput,
    Failure,
    Linear,
    Model,
    Step,
)
from manyheads.inference.native.weights import PackedWeights, Precision
from manyheads.inference.threads import native_threads
from manyheads.text.interface import EOS

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


class NativePart:
    """The weights of a model packed for the C code, and the calls that encoders and decoders have in common.

    The results of a sentence are bit-identical whatever other sentences are computed with it. Safe to call from
    several threads.
    """

    source_positions: Positions
    target_positions: Positions
    encoder: Model
    decoder: Model
    memory_kv: ctypes.Array[Linear] | None = None

    def __init__(self, weights: PackedWeights, library: ctypes.CDLL) -> None:
        """Take the memory of packed weights, and the library of `decoder.c`."""
        self.library = library
        self.workspace = _Workspace()
        self.config = weights.config
        self.precision = weights.precision
        self.arrays = weights.arrays  # a reference to the memory to which the structs point

    def encode_batch(
        self,
        tokens: NDArray[np.int64],
        lengths: NDArray[np.int64],
        memory: Sequence[FloatArray],
        position_ids: NDArray[np.int64],
        positions: PositionTable,
        output: FloatArray | None = None,
    ) -> None:
        """Encode concatenated sentences.

        Args:
            tokens: (T,) tokens of all sentences.
            lengths: (G,) lengths of the sentences.
            memory: as `NativeModel.encode` returns it, for the results; empty without a decoder.
            position_ids: (T,) row of each token in the table of positions.
            positions: the positions.
            output: (T, D) for the output of the encoder, or None.

        Raises:
            ValueError: a token id is outside of the vocabulary.
        """
        starts = np.concatenate([[0], lengths.cumsum()])
        sentence_ids = np.repeat(np.arange(len(lengths)), lengths)
        longest = int(memory[0].shape[2]) if memory else int(position_ids.max()) + 1
        source = EncoderInput(
            tokens=tokens.ctypes.data,
            sentence_ids=sentence_ids.ctypes.data,
            positions=position_ids.ctypes.data,
            starts=starts.ctypes.data,
            position_signals=address(positions.signals),
            rotary=address(positions.rotary_cos_sin),
            sentences=len(lengths),
            max_length=longest,
            output=address(output),
        )
        threads = native_threads()
        failure = Failure()
        done = self.library.encode(
            self.encoder,
            self.memory_kv,
            len(memory) // 2,
            source,
            pointers([array.ctypes.data for array in memory]),
            self.reserve_workspace(self.encoder, len(tokens), longest, threads).ctypes.data,
            threads,
            failure,
        )
        if done < 0:
            raise _refused_error(failure)

    def decoder_steps(self, steps: Sequence[Step], max_keys: int, logits: FloatArray | None) -> None:
        """Append a token to each of R rows of some steps (decoder.c), which attend to at most `max_keys` keys.

        The logits of the next tokens are written to `logits` (R, V), unless it is None.
        """
        failure = Failure()
        threads = native_threads()
        array = (Step * len(steps))(*steps)
        first, size = ctypes.addressof(array), ctypes.sizeof(Step)
        done = self.library.decoder_steps(
            self.decoder,
            pointers([first + size * number for number in range(len(steps))]),
            len(steps),
            max_keys,
            self.reserve_workspace(self.decoder, len(steps), max_keys, threads).ctypes.data,
            address(logits),
            threads,
            failure,
        )
        if done < 0:
            raise _refused_error(failure)

    def reserve_workspace(self, model: Model, rows: int, max_keys: int, threads: int) -> NDArray[np.float32]:
        """Return the workspace of a call with `rows` rows, each of which attends to at most `max_keys` keys."""
        return self.workspace.reserve(self.library.workspace_size(model, rows, max_keys, threads))


class NativeModel(NativePart):
    """An encoder-decoder in C."""

    def __init__(
        self,
        tensors: Mapping[str, FloatArray],
        config: ModelConfig,
        sizes: tuple[int, int],
        precision: Precision,
        library: ctypes.CDLL,
    ) -> None:
        """Pack the weights of an `EncoderDecoder`, each of which is read when it is packed.

        `sizes` are the numbers of tokens of the source and of the target vocabulary.
        """
        weights = PackedWeights(tensors, config, precision, library.panel_width(), library.panel_depth())
        super().__init__(weights, library)
        self.logits = _Workspace()
        self.vocabulary = sizes[1]
        self.decoder = weights.decoder(sizes[1])
        tied = config.tied_embeddings == "all"
        self.encoder = weights.encoder(sizes[0], output=self.decoder.output if tied else None)
        self.memory_kv = weights.memory_keys_values()
        self.source_positions = weights.positions("source_embedding", library)
        self.target_positions = weights.positions("target_embedding", library)

    def sources(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """Add the end mark to sources if the model reads it; an empty source always has it."""
        return [[*row, EOS] if self.config.source_end_mark or not row else [*row] for row in rows]

    def read(self, rows: Sequence[Sequence[int]]) -> list[FloatArray]:
        """Encode sentences, given as ids as `sources` returns them; return what `encode` returns."""
        lengths = np.array([*map(len, rows)])
        return self.encode(np.fromiter(chain(*rows), dtype=np.int64, count=lengths.sum()), lengths)

    def encode(self, tokens: NDArray[np.int64], lengths: NDArray[np.int64]) -> list[FloatArray]:
        """Encode concatenated sentences: tokens of all (T,), and their lengths (G,).

        Returns:
            The keys and values of the source for each decoder layer in turn, 2 L arrays (G, H, S, E). The values
            after the last token of a sentence are undefined.
        """
        count, longest, heads = len(lengths), int(lengths.max()), self.config.num_heads
        shape = (self.config.num_decoder_layers, 2, count, heads, longest, self.config.d_model // heads)
        memory = [*np.empty(shape, dtype=np.float32).reshape(-1, *shape[2:])]
        starts = np.concatenate([[0], lengths.cumsum()])
        positions = self.source_positions.first(longest)
        first = 0
        while first < count:
            last = int(np.searchsorted(starts, starts[first] + _ENCODER_BATCH_TOKENS, side="right")) - 1
            last = max(first + 1, last)
            batch = tokens[starts[first] : starts[last]]
            counts = lengths[first:last]
            position_ids = np.arange(len(batch)) - np.repeat(starts[first:last] - starts[first], counts)
            self.encode_batch(batch, counts, [array[first:last] for array in memory], position_ids, positions)
            first = last
        return memory

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
