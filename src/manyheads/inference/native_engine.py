"""The engine in C, and the weights of a run packed for it.

A plain translation on a CPU needs no torch, which alone takes over 200 MiB.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.arrays import TensorFile
from manyheads.config.schema import Config
from manyheads.errors import ManyheadsError, MissingExtraError, RunError, UsageError, refuse_pickling, require
from manyheads.inference.batching import (
    MAX_WORKERS,
    ContinuousBatching,
    check_options,
    finish,
    greedy_options,
    search_in_batches,
)
from manyheads.inference.native.beams import NativeBeams, can_search
from manyheads.inference.native.build import library, why_none
from manyheads.inference.native.model import NativeModel, NativePart
from manyheads.inference.native.rescoring import review
from manyheads.inference.native.weights import WeightsError
from manyheads.inference.threads import num_threads, threads_for_native
from manyheads.search.interface import Cancelled, Hypothesis, never_cancelled
from manyheads.search.options import UNCONSTRAINED, Constraints, SearchOptions

_Packed = TypeVar("_Packed", bound=NativePart)
Pack = Callable[[TensorFile, ctypes.CDLL], _Packed]  # packs the tensors of a run for the C code

_GPU_DEVICES = ("nvidia*", "nvhost*", "nvgpu*", "kfd", "dxg")  # files in /dev of drivers that torch computes with


class NativeEngine:
    """The engine of one model in C, without torch; see `Engine`."""

    __reduce__ = refuse_pickling

    def __init__(self, model: NativeModel) -> None:
        self.model = model

    @property
    def longest(self) -> int:
        """Maximum length of a source or an output in tokens, without the end mark."""
        return self.model.config.max_positions - 1

    def search(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        constraints: Sequence[Constraints] = (),
        cancelled: Cancelled = never_cancelled,
    ) -> list[list[Hypothesis]]:
        """Search all rows in C, in batches."""
        self.check(options, constraints)
        workers = min(num_threads(), MAX_WORKERS)
        outputs = search_in_batches(
            rows, options, constraints, cancelled, workers=workers, search=self.search_batch
        )
        return review(self.model, rows, outputs, options, workers)

    def check(self, options: SearchOptions, constraints: Sequence[Constraints] = ()) -> None:
        """Raise `UsageError` for options and constraints that the model or the C code does not support."""
        check_options(options, constraints, self.model.config.num_decoder_layers, self.longest)
        if not can_search(self.model, options, constraints):
            raise UsageError(
                "the engine native has no required words, and no beam of nearly all tokens. Use the engine auto."
            )

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
        """Yield the tokens of a greedy output."""
        options = greedy_options(options, constraints)
        self.check(options, [constraints])
        yield from NativeBeams(self.model, options).stream(row, constraints)

    def can_batch_continuously(self, options: SearchOptions, constraints: Sequence[Constraints] = ()) -> bool:
        """Return whether continuous batching supports a search: greedy or plain beam search."""
        plain = options.plain and not any(constraint != UNCONSTRAINED for constraint in constraints)
        return plain and can_search(self.model, options)

    def begin(self, options: SearchOptions) -> ContinuousBatching:
        """Start a continuous batch, with options for which `can_batch_continuously` is true."""
        self.check(options)
        return NativeBeams(self.model, options)


class NotNativeError(Exception):
    """The C code does not compute this model on this device; the message says why."""

    def check_torch(self) -> None:
        """Raise the error for the user unless torch is installed, which computes or reports the error itself.

        Raises:
            MissingExtraError: torch is missing.
            RunError: torch is missing, and the weights are damaged.
        """
        try:
            require("torch", purpose=str(self))
        except MissingExtraError:
            if isinstance(self.__cause__, RunError | WeightsError):
                raise RunError(str(self.__cause__)) from self
            raise

    def refusal(self) -> ManyheadsError:
        """Return the error for a user who wants the C code alone."""
        if isinstance(self.__cause__, RunError | WeightsError):
            return RunError(str(self.__cause__))
        return UsageError(f"{self} needs the engine auto or torch, not native.")


def open_native(run: RunDirectory, config: Config, device: str, pack: Pack[_Packed]) -> _Packed:
    """Pack the weights of a run for the C code with `pack`.

    Raises:
        NotNativeError: torch must compute, or must report an error in the weights.
    """
    if not is_cpu(device):
        raise NotNativeError(f"Computing on the device {device}")
    if (code := library()) is None:
        raise NotNativeError(f"Computing without the C decoder ({why_none()})")
    try:
        tensors = TensorFile(run.weights_path, tied_matrices(config))
        if sum(config.layers) > len(tensors):
            raise WeightsError(f"{run.weights_path} has {len(tensors)} tensors, too few for the layers")
        packed = pack(tensors, code)
        if unknown := set(tensors) - tensors.read:
            raise WeightsError(f"{run.weights_path} has unknown tensors: {min(unknown)}")
    except (RunError, WeightsError) as error:
        raise NotNativeError("Reading the weights") from error
    return packed


def is_cpu(device: str) -> bool:
    """Return whether a device is the CPU; "auto" is the CPU where no GPU driver is loaded, except on Windows."""
    if device != "auto":
        return device == "cpu"
    return os.name == "posix" and not any(any(Path("/dev").glob(name)) for name in _GPU_DEVICES)


def tied_matrices(config: Config) -> dict[str, str]:
    """Return name of a tied matrix -> its name in a weights file, as the models tie them."""
    source, target = "source_embedding.tokens.weight", "target_embedding.tokens.weight"
    tied = config.model.tied_embeddings
    if config.spec.architecture == "decoder":
        return {} if tied == "none" else {"output.weight": "embedding.tokens.weight"}
    if not config.spec.decodes:
        return {}
    if tied == "all":
        return {target: source, "output.weight": source}
    return {"output.weight": target} if tied == "decoder" else {}
