"""Call a decoder with a cache: one whose arguments and outputs hold it, or that keeps it inside.

Shapes: B batch, S source length, T target tokens so far, n new ones among them, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from transformer_doctor.calling import Callee, CallForm, argument_values, real_tokens
from transformer_doctor.errors import UsageError
from transformer_doctor.model_adapter import ModelAdapter, Samples
from transformer_doctor.model_output import tensor_of
from transformer_doctor.signatures import UNKNOWN, parameters_of, words_of
from transformer_doctor.tolerances import relative_change

CAPACITY = 16  # tokens that a cache of fixed size must hold
# Words of names: a cache, its length, functions that make one.
_CACHE = {*"cache caches past kv state states present presents incremental intermediates mems".split()}
_COUNTS = {*"len length size n num step idx index cur curr current t timestep".split()}
_MAKERS = {*"init new make empty create allocate initial build prepare setup".split()}


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


@dataclass(frozen=True)
class CachedCall:
    """Two ways to call a decoder: with a cache, and without.

    Attributes:
        step: function of a continuation that returns the scores of its new tokens (B, n, V), of the last ones alone
            if the model scores no others, and the cache.
        plain: function of all tokens, a continuation of none, that returns their scores (B, T, V).
        owner: the model, which may have a method that reorders its cache.
        takes_positions: whether positions may be given.
        without_masks: whether the model takes masks, and is called without.
        static: function of S and a number of tokens that returns a cache of fixed size; None if there is none.
        cut: function of a cache and a number of tokens that cuts these off; None if there is none.
    """

    step: Callable[[Continuation], tuple[Tensor, Any]]
    plain: Callable[[Continuation], Tensor]
    owner: Any
    takes_positions: bool = False
    without_masks: bool = False
    static: Callable[[int, int], Any] | None = None
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
        axes = [axis for axis, size in enumerate(getattr(part, "shape", ())) if size == len(order)]
        if len(axes) > 1 or not isinstance(part, (Tensor, int, float, str, type(None))):
            raise UsageError(f"the rows of a {type(part).__name__} in the cache are not known: it has no reorder method")
        return part.index_select(axes[0], order.to(part.device)) if axes else part

    if cache is None:
        raise UsageError("the model keeps its cache inside, and has no reorder method")
    return tree_map(select, cache)


def find_cached_call(
    model: Any, callee: Callee, form: CallForm, adapter: ModelAdapter, samples: Samples
) -> CachedCall | None:
    """Return how to call a model with a cache, None if it takes none, or none that is understood.

    Arguments are recognised by their names, the cache by what is returned. Of all ways, the first one is taken that
    gives the scores of a call without cache, else the first one in which earlier tokens change later scores.
    """
    roles = {parameter.name: _role_with_cache(parameter.name, role) for parameter, role in callee.arguments or ()}
    known = {*roles.values()}
    if form.container != "arguments" or form.time_first or not known & {"cache", "first", "on"}:
        return None
    begins = [lambda: None, *_makers(model, samples.batch), dict, list] if "cache" in known else [lambda: None]
    masks = [name for name, role in roles.items() if role.endswith("mask")]
    choices = (False, True)
    fallback = None
    for way in product(begins, choices, choices if masks else (False,), choices if "positions" in known else (False,)):
        step = partial(_step, callee, roles, form, adapter, *way)
        call = CachedCall(step, lambda item: adapter(item.ids), model, without_masks=bool(masks) and form.style is None)
        try:
            differs, depends = differs_and_depends(call, adapter, samples)
        except Exception:  # any exception of the user's model: it is called otherwise
            continue
        if not differs:
            return call
        fallback = fallback or (call if depends else None)
    return fallback


def _role_with_cache(name: str, role: str) -> str:
    """Return the role of an argument, "cache", "first" of the number of tokens in it, or "on" of a flag for it."""
    words = {*words_of(name)}
    if role == "flag" and words & _CACHE:
        return "on"
    if role == "start" or (words & _COUNTS and (role == UNKNOWN or words & _CACHE) and not role.endswith("mask")):
        return "first"
    return "cache" if role == "state" or (role == UNKNOWN and words & _CACHE) else role


def _makers(model: Any, batch: int) -> Iterator[Callable[[], Any]]:
    """Yield the methods of a model that are named as if they made a cache, of a number of rows and tokens."""
    for name in dir(type(model)):
        words = {*words_of(name)}
        if words & _MAKERS and words & _CACHE and not name.startswith("__"):
            required = [parameter for parameter in parameters_of(getattr(model, name)) or () if parameter.required]
            yield partial(getattr(model, name), *(batch, CAPACITY)[: len(required)])


def _step(
    callee: Callee,
    roles: Mapping[str, str],
    form: CallForm,
    adapter: ModelAdapter,
    begin: Callable[[], Any],
    whole: bool,  # noqa: FBT001
    new_masks: bool,  # noqa: FBT001
    positions: bool,  # noqa: FBT001
    item: Continuation,
) -> tuple[Tensor, Any]:
    """Call a model with a continuation.

    Args:
        callee: function of the model.
        roles: what each argument holds.
        form: how the model is called without cache.
        adapter: the model.
        begin: function that returns the cache of a new text.
        whole: feed all tokens so far instead of the new ones.
        new_masks: make masks of the new tokens alone.
        positions: give positions that have a default.
        item: the tokens.
    """
    cache = begin() if item.first == 0 and item.cache is None else item.cache
    ids = {side: rows.to(adapter.device) for side, rows in item.ids.items()}
    new = slice(0 if whole else item.first, None)
    seen = {**ids, "target": ids["target"][:, new]} if new_masks else ids
    values = argument_values(callee, adapter.sides, form, seen, real_tokens(seen, adapter.pad))
    length = seen["target"].size(1)
    for name, role in roles.items():
        if role == "target":
            values[name] = ids["target"][:, new]
        elif role == "positions" and (positions or name in values):
            values[name] = torch.arange(ids["target"].size(1), device=adapter.device).expand(ids["target"].shape)[:, new]
        elif role.endswith("mask") and name in values and values[name].shape[-2:] == (length, length):
            values[name] = values[name][..., length - ids["target"][:, new].size(1) :, :]
        elif role in ("first", "on"):
            values[name] = item.first if role == "first" else True
        elif role == "cache" and (cache is not None or name in values):
            values[name] = cache
    output = callee.call(values)
    scores = tensor_of(output, adapter.sizes[1])
    if scores.dim() == 2:
        scores = scores.unflatten(0, (len(ids["target"]), -1))
    if whole and item.first and scores.size(1) == ids["target"].size(1):
        raise UsageError("the model reads all tokens again: it is not meant to be fed those in the cache")
    return scores, _returned_cache(output, cache)


def _returned_cache(output: Any, given: Any) -> Any:
    """Return the cache in an output: a field of its name, or the last value that is neither scores nor a loss."""
    if is_dataclass(output):
        output = {field.name: getattr(output, field.name) for field in fields(output)}
    elif hasattr(output, "_asdict"):
        output = output._asdict()
    elif hasattr(output, "__dict__") and not isinstance(output, (Tensor, Mapping)):
        output = vars(output)
    if isinstance(output, Mapping):
        found = [value for name, value in output.items() if {*words_of(name)} & _CACHE and value is not None]
        return found[0] if found else given
    parts = output if isinstance(output, (tuple, list)) else ()
    scores = next((index for index, part in enumerate(parts) if isinstance(part, Tensor) and part.dim() > 1), None)
    others = [
        part for index, part in enumerate(parts)
        if part is not None and index != scores and not (isinstance(part, Tensor) and part.dim() == 0)
    ]  # fmt: skip
    return others[-1] if others else given


@torch.no_grad()
def differs_and_depends(call: CachedCall, adapter: ModelAdapter, samples: Samples) -> tuple[bool, bool]:
    """Return whether the last scores of a text differ with a cache, and whether earlier tokens change them."""
    ids = samples.ids()
    pieces = range(1 if adapter.kind == "encoder-decoder" else samples.target - 2, samples.target + 1)

    def last_scores(target: Tensor) -> Tensor:
        if adapter.state is not None:
            adapter.state.restore()
        first, cache = 0, None
        for end in pieces:
            scores, cache = call.step(Continuation({**ids, "target": target[:, :end]}, first, cache))
            first = end
        return scores[:, -1].float()

    scores, others = last_scores(ids["target"]), ids["target"].clone()
    others[:, 1] = samples.others("target", others)[:, 1]
    differs = relative_change(adapter(ids)[:, -1], scores) > adapter.tolerances.other_shape
    return differs, relative_change(scores, last_scores(others)) > 0
