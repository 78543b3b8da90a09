"""Call a decoder with a cache: one whose arguments and outputs hold it, or that keeps it inside.

Shapes: B batch, T target tokens so far, n new ones among them, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from transformer_doctor.calling import Callee, CallForm, call_form
from transformer_doctor.errors import UsageError
from transformer_doctor.model_adapter import ModelAdapter, Samples
from transformer_doctor.model_output import tensor_of
from transformer_doctor.signatures import UNKNOWN, parameters_of, words_of
from transformer_doctor.tolerances import relative_change

# Words in the names of a cache, of its length, and of functions that make one.
_CACHE = {
    "cache", "caches", "past", "kv", "state", "states", "present", "presents", "incremental", "mems",
    "intermediates",
}  # fmt: skip
_STEPS = {"step", "idx", "index", "cur", "curr", "current", "timestep"}
_LENGTHS = {"len", "length", "size", "n", "num"}
_MAKERS = {"init", "new", "make", "empty", "create", "allocate", "initial", "build", "prepare", "setup"}
NO_CACHE = "the model takes no cache"
_RESETTERS = {"reset", "clear", "flush"}
_CAPACITY = 16  # tokens that such a function is asked to make room for


@dataclass(frozen=True)
class Continuation:
    """Target tokens that follow those in a cache.

    Attributes:
        ids: all ids so far by side, (B, S) and (B, T).
        first: number of target tokens before the new ones, T - n.
        cache: result of the step before; None at the beginning.
        real: target tokens that are no padding, bool (B, T); None if all are real.
        positions: positions of the target tokens (B, T); None to leave them to the model.
    """

    ids: Mapping[str, Tensor]
    first: int = 0
    cache: Any = None
    real: Tensor | None = None
    positions: Tensor | None = None

    def up_to(self, end: int, first: int = 0, cache: Any = None) -> Continuation:
        """Return the target tokens from `first` to `end`, which follow those in a cache."""
        real, positions = (None if rows is None else rows[:, :end] for rows in (self.real, self.positions))
        return Continuation({**self.ids, "target": self.ids["target"][:, :end]}, first, cache, real, positions)


@dataclass(frozen=True)
class CachedCall:
    """Two ways to call a decoder: with a cache, and without.

    Attributes:
        step: function of a continuation that returns the scores of its new tokens (B, n, V), of the last ones alone
            if the model scores no others, and the cache.
        plain: function of all tokens, a continuation of none, that returns their scores (B, T, V).
        owner: the model, which may have a method that reorders its cache.
        single: whether a step takes one token alone.
        takes_positions: whether positions may be given.
        no_padding: why padded texts are not decoded, empty where they may be.
        static: function of a number of tokens that returns a cache of fixed size for them; None if there is none.
        cut: function of a cache and a number of tokens that cuts these off; None if there is none.
    """

    step: Callable[[Continuation], tuple[Tensor, Any]]
    plain: Callable[[Continuation], Tensor]
    owner: Any
    single: bool = False
    takes_positions: bool = False
    no_padding: str = ""
    static: Callable[[int], Any] | None = None
    cut: Callable[[Any, int], Any] | None = None


def reorder_rows(owner: Any, cache: Any, order: Tensor) -> Any:
    """Return a cache whose row i is the row order[i] of a cache, by the model's own method where there is one.

    Raises:
        UsageError: there is no such method, and the rows of the cache are not known.
    """
    for subject, values in ((cache, (order,)), (owner, (cache, order))):
        for name in [name for name in dir(subject) if "reorder" in name]:
            result = getattr(subject, name)(*values)
            return cache if result is None else result

    def select(part: Any) -> Any:
        if isinstance(part, (int, float, str)):
            return part
        axes = [axis for axis, size in enumerate(getattr(part, "shape", ())) if size == len(order)]
        if not isinstance(part, Tensor) or len(axes) > 1:
            raise UsageError("the rows of the cache are not known: it has no method with reorder in its name")
        return part.index_select(axes[0], order.to(part.device)) if axes else part

    return tree_map(select, cache)


def find_cached_call(
    model: Any, callee: Callee, form: CallForm, adapter: ModelAdapter, samples: Samples
) -> CachedCall | None:
    """Return how to call a model with a cache, None if it takes none, or none that is understood.

    Arguments are recognised by their names, the cache by what is returned. Of all ways in which earlier tokens
    change later scores, the first one is taken that gives the scores of a call without cache, else the first one.
    A model that keeps its cache inside may know by positions alone that tokens follow others.

    Raises:
        UsageError: no argument is a cache.
    """
    roles = {parameter.name: _role_with_cache(parameter.name, role) for parameter, role in callee.arguments or ()}
    known = [*roles.values()]
    stated = bool({"cache", "first", "on"} & {*known})
    if known and not (stated or "positions" in known):
        raise UsageError(NO_CACHE)
    if not known or form.container != "arguments" or form.time_first:
        return None
    if known.count("cache") > 1:  # such as memories of earlier texts beside a cache
        return None
    masked = form.style is None and any(role.endswith("mask") for role in roles.values())
    reason = "the model is called without masks" if masked else ""
    fallback = None
    # begin: makes the first cache; whole: all tokens so far are fed, and the model takes the new ones; axes: 2
    # for positions (B, T), 1 for positions (T,), 0 to leave positions to their default.
    begins: list[Callable[[], Any]] = [lambda: None, *_makers(model), dict, list]
    placed = [2, 1] if "positions" in known else []
    ways = product(begins, [False, True], [0, *placed]) if stated else product(begins[:1], [False], placed)
    for begin, whole, axes in ways:
        step = partial(_step, callee, roles, form, adapter, partial(_begin, model, begin), whole=whole, axes=axes)
        call = CachedCall(step, lambda item: adapter(item.ids), model, no_padding=reason)
        try:
            differs, depends = differs_and_depends(call, adapter, samples)
        except Exception:  # any exception of the user's model: it is called otherwise
            continue
        if depends and not differs:
            return call
        if depends and (fallback is None or (whole and _reads_new_alone(call, adapter, samples))):
            fallback = call
    if fallback is None and not stated:
        raise UsageError(NO_CACHE)
    return fallback


@torch.no_grad()
def _reads_new_alone(call: CachedCall, adapter: ModelAdapter, samples: Samples) -> bool:
    """Return whether a model that is given all tokens beside its cache takes the new one from them."""
    ids, last = samples.ids(), samples.target - 1
    others = samples.others("target", ids["target"])
    others[:, last:] = ids["target"][:, last:]

    def scores(target: Tensor) -> Tensor:
        adapter.restore()
        _, cache = call.step(Continuation(ids).up_to(last))
        return call.step(Continuation({**ids, "target": target}, last, cache))[0]

    return relative_change(scores(ids["target"]), scores(others)) <= adapter.tolerances.same_shape


def _role_with_cache(name: str, role: str) -> str:
    """Return the role of an argument, "cache", "first" of the number of tokens in it, or "on" of a flag for it."""
    words = {*words_of(name)}
    if role == "flag" and words & _CACHE:
        return "on"
    if role == "start" or (words & _STEPS and role == UNKNOWN):
        return "first"
    if words & _LENGTHS and words & _CACHE and not role.endswith("mask"):
        return "first"
    return "cache" if role == "state" or (role == UNKNOWN and words & _CACHE) else role


def _makers(model: Any) -> Iterator[Callable[[], Any]]:
    """Yield the methods of a model that are named as if they made a cache, of a number of rows and tokens."""
    for method in _methods(model, _MAKERS):
        required = [parameter for parameter in parameters_of(method) or () if parameter.required]
        yield partial(method, *(_CAPACITY, _CAPACITY)[: len(required)])


def _methods(model: Any, verbs: Set[str]) -> list[Callable[..., Any]]:
    """Return the methods of a model whose names hold one of some verbs and a word for a cache."""
    names = [name for name in dir(type(model)) if not name.startswith("__")]
    return [getattr(model, name) for name in names if verbs & {*words_of(name)} and _CACHE & {*words_of(name)}]


def _begin(model: Any, make: Callable[[], Any]) -> Any:
    """Begin a text: clear the cache that a model keeps inside, by its own method, and return a new one."""
    for method in _methods(model, _RESETTERS):
        parameters = parameters_of(method)
        if parameters is not None and not any(parameter.required for parameter in parameters):
            method()
    return make()


def _step(
    callee: Callee,
    roles: Mapping[str, str],
    form: CallForm,
    adapter: ModelAdapter,
    begin: Callable[[], Any],
    item: Continuation,
    *,
    whole: bool,
    axes: int,
) -> tuple[Tensor, Any]:
    cache = begin() if item.first == 0 and item.cache is None else item.cache
    ids = {side: rows.to(adapter.device) for side, rows in item.ids.items()}
    real = {side: rows != (-1 if adapter.pad is None else adapter.pad) for side, rows in ids.items()}
    real["target"][:, 0] |= len(ids) == 2  # the begin mark may have the id of padding
    values = call_form(replace(callee, call=dict), adapter.sides, form, ids, real)
    length, new = ids["target"].size(1), slice(0 if whole else item.first, None)
    for name, role in roles.items():
        if role == "positions" and axes:
            values[name] = torch.arange(length, device=adapter.device).expand(real["target"].shape[-axes:])
        if role in ("target", "positions") and name in values:
            values[name] = values[name][..., new]
        elif role.endswith("mask") and name in values and values[name].shape[-2:] == (length, length):
            values[name] = values[name][..., new, :]
        elif role in ("first", "on"):
            values[name] = item.first if role == "first" else True
        elif role == "cache" and (cache is not None or name in values):
            values[name] = cache
    output = callee.call(values)
    scores = tensor_of(output, adapter.sizes[1])
    scores = scores.unflatten(0, (len(real["target"]), -1)) if scores.dim() == 2 else scores
    if whole and item.first and scores.size(1) == length:
        raise UsageError("the model reads all tokens again: it is not meant to be fed those in the cache")
    return scores, _returned_cache(output, cache)


def _returned_cache(output: Any, given: Any) -> Any:
    """Return the cache in an output: a field of its name, or the last value that is neither scores nor a loss."""
    if isinstance(output, (tuple, list)) and not hasattr(output, "_fields"):
        values = [part for part in output if part is not None and getattr(part, "ndim", 1) > 0]
        scores = next((part for part in values if isinstance(part, Tensor) and part.dim() > 1), None)
        found = [part for part in values if part is not scores][-1:]
    else:
        named = output._asdict() if hasattr(output, "_asdict") else getattr(output, "__dict__", {})
        named = output if isinstance(output, Mapping) else named
        found = [value for name, value in named.items() if _CACHE & {*words_of(name)} and value is not None]
    return found[0] if found else given


@torch.no_grad()
def differs_and_depends(call: CachedCall, adapter: ModelAdapter, samples: Samples) -> tuple[bool, bool]:
    """Return whether the last scores of a text differ with a cache, and whether earlier tokens change them."""
    ids = samples.ids()

    def last_scores(target: Tensor) -> Tensor:
        adapter.restore()
        first, cache = 0, None
        for end in range(1 if adapter.kind == "encoder-decoder" else samples.target - 2, samples.target + 1):
            scores, cache = call.step(Continuation({**ids, "target": target}).up_to(end, first, cache))
            first = end
        return scores[:, -1].float()

    scores, others = last_scores(ids["target"]), samples.others("target", ids["target"])
    others[:, -1] = ids["target"][:, -1]
    differs = relative_change(adapter(ids)[:, -1], scores) > adapter.tolerances.other_shape
    return differs, relative_change(scores, last_scores(others)) > 0
