"""The engine of one run in C. A plain translation on a CPU needs no torch, which alone takes over 200 MiB."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.arrays import TensorFile
from manyheads.config.schema import Config, ModelConfig
from manyheads.decoding.batching import (
    MAX_WORKERS,
    ContinuousBatching,
    check_options,
    finish,
    search_in_batches,
)
from manyheads.decoding.native.beams import NativeBeams, can_search
from manyheads.decoding.native.build import library
from manyheads.decoding.native.model import NativeModel
from manyheads.decoding.native.weights import Precision, WeightsError
from manyheads.decoding.threads import num_threads, threads_for_native
from manyheads.errors import RunError
from manyheads.search.interface import Cancelled, Hypothesis, never_cancelled
from manyheads.search.options import UNCONSTRAINED, Constraints, SearchOptions
from manyheads.text.tokenizer import TokenizerPair

if TYPE_CHECKING:
    from manyheads.decoding.engine import TorchEngine

_GPU_DEVICES = ("nvidia*", "nvhost*", "nvgpu*", "kfd", "dxg")  # files in /dev of drivers that torch computes with


class NativeEngine:
    """The engine of one model in C; see `Engine`.

    Searches need no torch, except those with required words, attention or alternatives. For these, and for access
    to the model, a `TorchEngine` with the same weights is loaded when it is first needed. From then on that engine
    does all searches, because its model may be changed.
    """

    def __init__(self, model: NativeModel, load_torch_engine: Callable[[], TorchEngine]) -> None:
        """Make an engine of packed weights; `load_torch_engine` loads the model with torch."""
        self.model = model
        self.load_torch_engine = load_torch_engine
        self.loaded: TorchEngine | None = None
        self.lock = threading.Lock()

    @property
    def torch_engine(self) -> TorchEngine:
        """The engine with torch, loaded at the first use."""
        with self.lock:
            if self.loaded is None:
                self.loaded = self.load_torch_engine()
        return self.loaded

    @property
    def longest(self) -> int:
        """Maximum length of a source or an output in tokens, without the end mark."""
        return self.model.config.max_positions - 1

    def needs_torch(self, options: SearchOptions, constraints: Sequence[Constraints] = ()) -> bool:
        """Return whether a search is left to the engine with torch."""
        second_pass = options.alternatives > 0 or options.alignment
        return self.loaded is not None or second_pass or not can_search(self.model, options, constraints)

    def search(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        constraints: Sequence[Constraints] = (),
        cancelled: Cancelled = never_cancelled,
    ) -> list[list[Hypothesis]]:
        """See `Engine.search`."""
        if self.needs_torch(options, constraints):
            return self.torch_engine.search(rows, options, constraints, cancelled)
        self.check(options, constraints)
        workers = min(num_threads(), MAX_WORKERS)
        return search_in_batches(rows, options, constraints, cancelled, workers=workers, search=self.search_batch)

    def check(self, options: SearchOptions, constraints: Sequence[Constraints] = ()) -> None:
        """Raise `UsageError` for options and constraints that the model does not support."""
        check_options(options, constraints, self.model.config.num_decoder_layers, self.longest)

    def search_batch(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        constraints: Sequence[Constraints],
        cancelled: Cancelled,
    ) -> list[list[Hypothesis]]:
        """Search one batch; there is one constraint for each row."""
        with threads_for_native():
            return finish(NativeBeams(self.model, options), rows, cancelled, constraints)

    def stream(
        self, row: Sequence[int], options: SearchOptions, constraints: Constraints = UNCONSTRAINED
    ) -> Iterator[int]:
        """See `Engine.stream`."""
        options = replace(options, beam_size=1, n_best=1)
        if options.sampling or self.needs_torch(options, [constraints]):
            yield from self.torch_engine.stream(row, options, constraints)
            return
        self.check(options, [constraints])
        yield from NativeBeams(self.model, options).stream(row, constraints)

    def can_batch_continuously(self, options: SearchOptions, constraints: Sequence[Constraints] = ()) -> bool:
        """Return whether continuous batching supports a search: greedy or plain beam search."""
        return options.plain and not any(constraint != UNCONSTRAINED for constraint in constraints)

    def begin(self, options: SearchOptions) -> ContinuousBatching:
        """Start a continuous batch, with options for which `can_batch_continuously` is true."""
        if self.needs_torch(options):
            return self.torch_engine.begin(options)
        self.check(options)
        return NativeBeams(self.model, options)


def open_native_engine(
    run: RunDirectory, config: Config, tokenizers: TokenizerPair, *, device: str, precision: Precision
) -> NativeEngine | None:
    """Return the engine of a run; None where torch must compute, or must report an error in the weights.

    Args:
        run: the run directory.
        config: configuration of the run.
        tokenizers: tokenizers of the run.
        device: see `Translator.load`.
        precision: number format of the matrices.
    """
    model, sizes = config.model, (tokenizers.source.size, tokenizers.target.size)
    if not _is_cpu(device) or (code := library()) is None:
        return None
    try:
        tensors = TensorFile(run.weights_path, _tied_matrices(model))
        if model.num_encoder_layers + model.num_decoder_layers > len(tensors):
            return None
        native = NativeModel(tensors, model, sizes, precision, code)
    except (RunError, WeightsError):
        return None
    if tensors.read != set(tensors):
        return None

    def load_torch_engine() -> TorchEngine:
        from manyheads.decoding.engine import TorchEngine  # imports torch
        from manyheads.decoding.model import InferenceModel

        torch_model = run.model(config, tokenizers)
        engine = TorchEngine([torch_model], precision=precision)
        engine.packed, engine.native = [InferenceModel(torch_model, rounding=precision)], native
        return engine

    return NativeEngine(native, load_torch_engine)


def _is_cpu(device: str) -> bool:
    """Return whether a device is the CPU; "auto" is the CPU where no GPU driver is loaded, except on Windows."""
    if device != "auto":
        return device == "cpu"
    return os.name == "posix" and not any(any(Path("/dev").glob(name)) for name in _GPU_DEVICES)


def _tied_matrices(config: ModelConfig) -> dict[str, str]:
    """Return name of a tied matrix -> its name in a weights file, as in `EncoderDecoder.tie`."""
    source, target = "source_embedding.tokens.weight", "target_embedding.tokens.weight"
    if config.tied_embeddings == "all":
        return {target: source, "output.weight": source}
    return {"output.weight": target} if config.tied_embeddings == "decoder" else {}
