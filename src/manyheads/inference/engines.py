"""The engines by name, and the engine that chooses between C and torch operators."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.errors import UsageError, refuse_pickling
from manyheads.inference.batching import ContinuousBatching, greedy_options
from manyheads.inference.native.beams import can_search
from manyheads.inference.native.build import why_none
from manyheads.inference.native.model import FloatArray, NativeModel
from manyheads.inference.native.weights import Precision, torch_precision
from manyheads.inference.native_engine import NativeEngine, NotNativeError, open_native
from manyheads.inference.torch_parts import torch_module
from manyheads.search.interface import Cancelled, Engine, Hypothesis, cancelled_among, never_cancelled
from manyheads.search.options import UNCONSTRAINED, Constraints, SearchOptions
from manyheads.text.tokenizer import TokenizerPair

if TYPE_CHECKING:
    from manyheads.decoding.engine import TorchEngine
    from manyheads.model.encoder_decoder import EncoderDecoder

ENGINES = ("auto", "native", "torch")


class AutoEngine:
    """An engine that searches in C where it can, and else with torch operators; see `Engine`.

    A model of a run is loaded with torch at the first search with required words, or the first access to the model
    itself. From then on its weights are packed for C again whenever they have changed.
    """

    __reduce__ = refuse_pickling

    def __init__(
        self, load: Callable[[], TorchEngine], native: NativeEngine | None = None, precision: Precision = "fp32"
    ) -> None:
        """Take the function that makes the engine with torch, and the same model in C if it is packed already.

        Args:
            load: called once: at the first use, or immediately without `native`.
            native: the model in C.
            precision: number format of the weights that are packed for C; for "int8", torch computes in "fp32".
        """
        self.load = load
        self.native = native
        self.precision = precision
        self.lock = threading.Lock()
        self.loaded: TorchEngine | None = None
        self.packed: object = None  # the weights of the engine with torch that `native` has too
        if native is None:
            self.loaded = load()

    @property
    def torch_engine(self) -> TorchEngine:
        """The engine with torch operators, loaded at the first use."""
        with self.lock:
            if self.loaded is None:
                loaded = self.load()
                self.packed = loaded.pack_weights()
                self.loaded = loaded
        return self.loaded

    @property
    def native_engine(self) -> NativeEngine | None:
        """The engine in C with the present weights; None if there is none for this model and device."""
        if self.loaded is not None and self.loaded.pack_weights() is not self.packed:
            self.packed = self.loaded.packed
            native = self.loaded.pack_native(self.precision)
            self.native = None if native is None else NativeEngine(native)
        return self.native

    @property
    def longest(self) -> int:
        """Maximum length of a source or an output in tokens, without the end mark."""
        return (self.native or self.torch_engine).longest

    def search(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        constraints: Sequence[Constraints] = (),
        cancelled: Cancelled = never_cancelled,
    ) -> list[list[Hypothesis]]:
        """Search each row in C, or with torch if it has required words."""
        constraints = constraints or [UNCONSTRAINED] * len(rows)
        native = self.native_for(options)
        engines = [
            self.torch_engine if native is None or constraint.required else native for constraint in constraints
        ]
        outputs: list[list[Hypothesis]] = [[] for _ in rows]
        for engine in dict.fromkeys(engines):
            chosen = [row for row, chosen_engine in enumerate(engines) if chosen_engine is engine]
            found = engine.search(
                [rows[row] for row in chosen],
                options,
                [constraints[row] for row in chosen],
                cancelled_among(cancelled, chosen),
            )
            for row, hypotheses in zip(chosen, found, strict=True):
                outputs[row] = hypotheses
        return outputs

    def native_for(self, options: SearchOptions, constraints: Sequence[Constraints] = ()) -> NativeEngine | None:
        """Return the engine in C if it does this search."""
        native = self.native_engine
        return native if native is not None and can_search(native.model, options, constraints) else None

    def stream(
        self, row: Sequence[int], options: SearchOptions, constraints: Constraints = UNCONSTRAINED
    ) -> Iterator[int]:
        """Yield the tokens of a greedy output, from C where it can."""
        options = greedy_options(options, constraints)
        engine = self.native_for(options, [constraints]) or self.torch_engine
        yield from engine.stream(row, options, constraints)

    def can_batch_continuously(self, options: SearchOptions, constraints: Sequence[Constraints] = ()) -> bool:
        """Return whether continuous batching supports a search: greedy or plain beam search in C."""
        native = self.native_engine
        return native is not None and native.can_batch_continuously(options, constraints)

    def begin(self, options: SearchOptions) -> ContinuousBatching:
        """Start a continuous batch, with options for which `can_batch_continuously` is true."""
        native = self.native_engine
        assert native is not None
        return native.begin(options)


def check_engine(name: str) -> None:
    """Raise `UsageError` unless there is an engine of this name."""
    if name == "ctranslate2":
        raise UsageError(
            "the engine ctranslate2 is gone: manyheads decodes runs faster itself. Leave --engine out; of a folder "
            "of CTranslate2 make a run: manyheads import FOLDER -o RUN."
        )
    if name not in ENGINES:
        raise UsageError(f'there is no engine "{name}". Use one of {", ".join(ENGINES)}.')


def engine_of(model: EncoderDecoder, name: str = "auto") -> Engine:
    """Return an engine of a model in memory.

    Raises:
        UsageError: there is no such engine, or it cannot compute the model where it is.
    """
    check_engine(name)
    with_torch: TorchEngine = torch_module("engine", "A model in memory").TorchEngine([model])
    if name == "torch":
        return with_torch
    engine = AutoEngine(lambda: with_torch)
    if name == "auto":
        return engine
    if (native := engine.native_engine) is None:
        raise UsageError(f"the engine native cannot compute this model: {_why_torch(with_torch)}. Use auto.")
    return native


def _why_torch(engine: TorchEngine) -> str:
    """Return the reason why C does not compute the model of an engine."""
    return f"the device is {engine.device}" if engine.device.type != "cpu" else f"there is no C code ({why_none()})"


def open_engine(
    name: str, run: RunDirectory, config: Config, tokenizers: TokenizerPair, *, device: str, precision: Precision
) -> Engine:
    """Return the engine of a run; for the arguments see `Translator.load`.

    Raises:
        RunError: the weights are missing or damaged.
        UsageError: the engine cannot compute this model on this device.
        MissingExtraError: torch must compute, and is missing.
    """
    sizes = tokenizers.source.size, tokenizers.target.size

    def pack(tensors: Mapping[str, FloatArray], code: ctypes.CDLL) -> NativeModel:
        return NativeModel(tensors, config.model, sizes, precision, code)

    def load() -> TorchEngine:
        opened = torch_module("engine", "This search, or the model itself,").TorchEngine
        engine: TorchEngine = opened.of_runs([run], device, "fp32" if precision == "int8" else precision)
        return engine

    if name == "torch":
        torch_precision(precision, "the engine is torch")
        return load()
    try:
        on_cpu = name == "native" and device == "auto"
        native = NativeEngine(open_native(run, config, "cpu" if on_cpu else device, pack))
    except NotNativeError as reason:
        if name == "native":
            raise reason.refusal() from reason
        reason.check_torch()
        engine = AutoEngine(load, precision=precision)
        if engine.native_engine is None:
            torch_precision(precision, _why_torch(engine.torch_engine))
        return engine
    return native if name == "native" else AutoEngine(load, native, precision)


def open_ensemble(name: str, runs: Sequence[RunDirectory], *, device: str, precision: Precision) -> Engine:
    """Return the engine of several runs, whose probabilities are averaged; for the arguments see `Translator.load`.

    Raises:
        RunError: weights are missing or damaged.
        UsageError: the tokenizers of two runs differ, or the engine or the number format is not that of torch.
        MissingExtraError: torch is missing.
    """
    if name == "native":
        raise UsageError("an ensemble is searched with torch operators. Use the engine auto or torch.")
    opened = torch_module("engine", "An ensemble").TorchEngine
    engine: TorchEngine = opened.of_runs(
        runs, device, torch_precision(precision, "an ensemble is searched by torch operators")
    )
    return engine
