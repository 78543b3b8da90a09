"""Uniform wrapper around a user's model (token ids in, scores out), and the token ids it is examined with.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType, MethodType, ModuleType
from typing import Any, Literal

import torch
from torch import Tensor, nn

from transformer_doctor.errors import UsageError
from transformer_doctor.module_state import ModuleState, WholeState, held_tensors, restored_settings
from transformer_doctor.tolerances import Tolerances

# Axis sizes of the samples: distinct primes, so that no axis is mistaken for another.
_BATCH, SOURCE, TARGET = 3, 7, 5
Kind = Literal["encoder-decoder", "encoder", "decoder"]
SIDES: Mapping[Kind, Sequence[str]] = {
    "encoder-decoder": ("source", "target"),
    "encoder": ("source",),
    "decoder": ("target",),
}


@dataclass(frozen=True)
class ModelAdapter:
    """Uniform interface of a user's model.

    Attributes:
        kind: determines the sides of the model.
        call: function of the ids of its sides, each (B, length), that returns (B, length, V).
        module: holds the weights and is put into train() and eval(); None where a function names none.
        sizes: V of the source and of the target.
        pad: id of padding, or None.
        bos, eos: ids of the marks, or None.
        stated_limit: longest text in tokens that the model states, or None.
        device: device of the weights.
        state: attributes and buffers of the model, restored before each call; None: they are not restored.
        tolerances: differences between two calls that rounding alone may cause.
        remarks: guesses about the model, a sentence each.
        cached: function of this adapter and of samples that returns the calls of the model with a cache and without
            (`caching.CachedCall`), None where it takes no cache; None of a model that decodes nothing.
    """

    kind: Kind
    call: Callable[..., Tensor]
    module: nn.Module | None
    sizes: tuple[int, int]
    pad: int | None = None
    bos: int | None = None
    eos: int | None = None
    stated_limit: int | None = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    state: ModuleState | None = None
    tolerances: Tolerances = field(default_factory=Tolerances)
    remarks: tuple[str, ...] = ()
    cached: Callable[[ModelAdapter, Samples], Any] | None = None

    @property
    def sides(self) -> Sequence[str]:
        """Return the sides of the input, in order."""
        return SIDES[self.kind]

    @property
    def marks(self) -> list[int]:
        """Return the ids of padding, begin and end that are known."""
        return [mark for mark in (self.pad, self.bos, self.eos) if mark is not None]

    def __call__(self, ids: Mapping[str, Tensor], seed: int = 0) -> Tensor:
        """Return scores in float32 or float64: (B, T, V), of an encoder (B, S, V or D), of a classifier (B, 1, C).

        Raises:
            UsageError: the scores have another shape.
        """
        self.restore()
        seed_generators(seed)
        scores = self.call(*(ids[side].to(self.device) for side in self.sides))
        last = ids[self.sides[-1]]
        if scores.dim() == 2 and len(scores) == last.numel():  # (B * T, V)
            scores = scores.unflatten(0, last.shape)
        elif scores.dim() == 2 and self.kind == "encoder" and len(scores) == len(last):
            scores = scores[:, None]
        elif scores.dim() != 3 or scores.shape[:2] != last.shape:
            raise UsageError(
                f"the model gave scores of shape {tuple(scores.shape)} for ids {tuple(last.shape)}; "
                f"({last.size(0)}, {last.size(1)}, vocabulary) is expected.{_advice(scores, last, self.sides)}"
            )
        return scores if scores.dtype == torch.float64 else scores.float()

    def restore(self) -> None:
        """Make the next call a first one, where the state of the model is known."""
        if self.state is not None:
            self.state.restore()

    def size(self, side: str) -> int:
        """Return V of a side."""
        return self.sizes[0] if side == "source" else self.sizes[1]

    def content(self, side: str) -> list[int]:
        """Return the ids of a side that are no marks."""
        marks = self.marks
        return [token for token in range(self.size(side)) if token not in marks]


@torch.no_grad()
def error_of(adapter: ModelAdapter, ids: Mapping[str, Tensor]) -> Exception | None:
    """Return the exception that a call raises, None where there is none."""
    try:
        adapter(ids)
    except Exception as error:  # any exception of the user's model
        return error
    return None


def _advice(scores: Tensor, ids: Tensor, sides: Sequence[str]) -> str:
    """Return advice on scores whose shape does not fit ids (B, T), empty if there is none."""
    if scores.dim() != 3:
        return ""
    if scores.shape[:2] == ids.t().shape:
        return " If it wants the time first, say time_first=True."
    if scores.shape[:2] == (len(ids), 1):
        return (
            " Only the last position is scored. Where the model scores all in training, examine a function that "
            "calls it so: lambda target: model(target, targets=target)[0]."
        )
    if scores.shape[:2] == (len(ids), ids.size(1) - 1):
        names = ", ".join(sides)
        return (
            " One position is not scored, as in a model that cuts off the last token of its target itself. Examine "
            f"a function that gives one token more: lambda {names}: model({names.removesuffix(sides[-1])}"
            f"torch.cat([{sides[-1]}, {sides[-1]}[:, -1:]], 1))."
        )
    if scores.shape[::2] == ids.shape:
        return " If the vocabulary is the second axis, examine lambda *ids: model(*ids).transpose(1, 2)."
    return ""


def seed_generators(seed: int) -> None:
    """Seed torch's random generators; without an accelerator only the CPU's, as the others are slow."""
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


@contextmanager
def restore_modes(module: nn.Module | None) -> Iterator[None]:
    """Restore a module with all that belongs to it, random generators, and settings of torch afterwards."""
    state = WholeState(module)
    with restored_settings():
        try:
            yield
        finally:
            state.restore()


@contextmanager
def restore_weights(module: nn.Module | None) -> Iterator[None]:
    """Restore weights, buffers and gradients afterwards; the copy takes as much memory as the weights."""
    with held_tensors(module, lambda tensor: tensor.data.clone()):
        yield


def find_modules(model: Any) -> nn.Module | None:
    """Return the module that holds the weights of a model: the model itself, or the modules that a function uses.

    These are variables of enclosing scopes and of its Python module that it names, the owner of a method, and
    arguments that a partial binds. Several modules become one ModuleList; None if there is none.
    """
    if isinstance(model, nn.Module):
        return model
    modules = {id(module): module for module in _referenced_modules(model, set())}
    inner = {id(part) for module in modules.values() for part in module.modules() if part is not module}
    outermost = [module for identity, module in modules.items() if identity not in inner]
    return outermost[0] if len(outermost) == 1 else nn.ModuleList(outermost) if outermost else None


def _referenced_modules(value: Any, seen: set[int]) -> Iterator[nn.Module]:
    """Yield the modules that an object refers to, directly or through functions."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, nn.Module):
        yield value
    elif isinstance(value, functools.partial):
        for part in (value.func, *value.args, *value.keywords.values()):
            yield from _referenced_modules(part, seen)
    elif isinstance(value, MethodType):
        yield from _referenced_modules(value.__self__, seen)
    elif isinstance(value, FunctionType):
        names = inspect.getclosurevars(value)
        for part in (*names.nonlocals.values(), *names.globals.values()):
            yield from _referenced_modules(part, seen)
    elif hasattr(value, "__dict__") and not isinstance(value, (type, ModuleType)):
        yield from (part for part in vars(value).values() if isinstance(part, nn.Module))


def device_of(module: nn.Module | None) -> torch.device:
    """Return the device of the weights, the CPU where there are none."""
    weights = None if module is None else next(module.parameters(), None)
    return torch.device("cpu") if weights is None else weights.device


class Samples:
    """Random ids of the sides of a model; neighbouring tokens differ, and targets begin with their mark.

    Attributes:
        batch, source, target: default sizes of the ids.
        smallest_batch: rows of the smallest batch that the model takes.
        fixed_length: whether the model takes texts of these lengths only.
        longer: whether the model takes texts that are some tokens longer.

    Raises:
        UsageError: a mark is no valid id, or fewer than three ids are no marks.
    """

    def __init__(self, adapter: ModelAdapter, seed: int = 0) -> None:
        self.adapter = adapter
        self.generator = torch.Generator().manual_seed(seed)
        self.batch, self.source, self.target = _BATCH, SOURCE, TARGET
        self.smallest_batch, self.fixed_length, self.longer = 1, False, True
        self._known = {side: torch.tensor(adapter.content(side)) for side in adapter.sides}
        for side in adapter.sides:
            size = adapter.size(side)
            marks = {"pad": adapter.pad} | ({"bos": adapter.bos} if side == "target" else {})
            for name, mark in marks.items():
                if mark is not None and not 0 <= mark < size:
                    raise UsageError(f"{name} = {mark} is no id of the {side} side: vocab_size there is {size}.")
            if len(self._known[side]) < 3:
                raise UsageError(
                    f"of the {side} side's ids too few are left that are no marks: vocab_size is the number of all "
                    "ids, or a pair (source, target)."
                )

    def content(self, side: str, batch: int, length: int) -> Tensor:
        """Return ids that are no marks: (batch, length)."""
        ids = self._known[side]
        steps = torch.randint(1, len(ids), (batch, length), generator=self.generator)
        return ids[steps.cumsum(1) % len(ids)]

    def ids(
        self, *, batch: int | None = None, source: int | None = None, target: int | None = None
    ) -> dict[str, Tensor]:
        """Return ids of each side: (batch, source) and (batch, target)."""
        lengths = {"source": source or self.source, "target": target or self.target}
        ids = {side: self.content(side, batch or self.batch, lengths[side]) for side in self.adapter.sides}
        if "target" in ids and self.adapter.bos is not None:
            ids["target"][:, 0] = self.adapter.bos
        return ids

    def with_the_highest(self) -> dict[str, Tensor]:
        """Return ids of each side with the highest id at the end of each row."""
        ids = self.ids()
        for side, rows in ids.items():
            rows[:, -1] = self._known[side][-1]
        return ids

    def others(self, side: str, ids: Tensor) -> Tensor:
        """Return ids without marks that differ from ids (B, length) at every position."""
        known, fresh = self._known[side], self.content(side, *ids.shape)
        return torch.where(fresh == ids, known[(torch.searchsorted(known, fresh) + 1) % len(known)], fresh)

    def padded(self, ids: Mapping[str, Tensor], side: str, amount: int) -> tuple[dict[str, Tensor], int]:
        """Return ids with padding at the end of one side, and the number of its real positions.

        Padding is appended, or replaces the end where the model takes no longer texts.
        """
        rows, pad = ids[side], self.adapter.pad or 0
        real = rows.size(1) - (0 if self.longer else amount)
        return {**ids, side: with_padding(rows[:, :real], pad, amount)}, real


def with_padding(ids: Tensor, pad: int, amount: int) -> Tensor:
    """Append padding to ids: (B, length) -> (B, length + amount)."""
    return torch.nn.functional.pad(ids, (0, amount), value=pad)
