"""Guess the vocabulary sizes and the marks of a model from its code; each guess is reported.

Sizes are the numbers of rows of the embeddings that are looked up with the ids. Marks are integers with usual
names: attributes of the modules and of their configurations, and constants of the file that defines the model. A
constant is the padding of a model only where the code of the model names it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import nn

from transformer_doctor.attention_tracer import AttentionTracer
from transformer_doctor.model_adapter import ModelAdapter, Samples
from transformer_doctor.signatures import words_of
from transformer_doctor.trace import same_ids

_MIN_IDS = 5  # an embedding of fewer rows holds segment types
_USUAL_IDS = 8  # ids that are tried if no embedding is known
_MARKS: Mapping[str, set[str]] = {
    "pad": {"pad", "padding"},
    "bos": {"bos", "sos", "start", "begin"},
    "eos": {"eos", "end"},
}
_OF_IDS = {"id", "ids", "idx", "index", "ix", "token", "symbol"}
_OF_SIDES = {"source", "src", "enc", "encoder", "target", "tgt", "trg", "dec", "decoder"}


def safe_size(module: nn.Module | None) -> int:
    """Return a number of ids below which every embedding of a model can be looked up."""
    tables = [part.num_embeddings for part in _modules_of(module) if isinstance(part, nn.Embedding)]
    return min((size for size in tables if size >= _MIN_IDS), default=_USUAL_IDS)


@torch.no_grad()
def guess_sizes(adapter: ModelAdapter) -> tuple[int, int] | None:
    """Return V of source and target, read from a call with few ids; None if it cannot be read."""
    ids = Samples(adapter).ids()
    with AttentionTracer() as tracer:
        scores = adapter(ids)
    weights = {
        id(weight): weight for part in _modules_of(adapter.module) for weight in part.parameters(recurse=False)
    }
    rows = {
        side: weights[lookup.table].size(0)
        for side, known in ids.items()
        for lookup in reversed(tracer.lookups)
        if lookup.table in weights and same_ids(lookup.ids, known.to(lookup.ids))
    }
    last = adapter.sides[-1]
    if last not in rows and adapter.kind != "encoder":
        rows[last] = scores.size(-1)
    if not rows:
        return None
    return rows.get("source", rows[last]), rows.get("target", rows[next(iter(rows))])


def _guess_marks(model: Any, module: nn.Module | None, size: int) -> dict[str, tuple[int, str]]:
    """Return the ids of padding and of the marks that the code states, each with the name that states it.

    A mark is left out where two names state two ids for it. Ids are below `size`.
    """
    stated = _stated_marks(_constants(model, module), size) | _stated_marks(attributes(module), size)
    unused = {"pad"} if _unused_padding(model, module, size) else set()
    return {
        mark: next(iter(values.items()))
        for mark, values in stated.items()
        if len(values) == 1 and mark not in unused
    }


def _stated_marks(stated: Iterable[tuple[str, object]], size: int) -> dict[str, dict[int, str]]:
    """Return, by mark, the ids below `size` that names state, each with the first name that does."""
    marks: dict[str, dict[int, str]] = {}
    for name, value in stated:
        mark = _mark_of(name)
        if mark is not None and type(value) is int and 0 <= value < size:
            marks.setdefault(mark, {}).setdefault(value, name)
    return marks


def _unused_padding(model: Any, module: nn.Module | None, size: int) -> dict[int, str]:
    """Return the padding ids that constants state, with the constants' names, if the model uses none of them."""
    if "pad" in _stated_marks(attributes(module), size):
        return {}
    named = _stated_marks(_constants(model, module), size).get("pad", {})
    return named if _names_in_code(model, module).isdisjoint(named.values()) else {}


def _names_in_code(model: Any, module: nn.Module | None) -> set[str]:
    classes = {kind for part in _modules_of(module) for kind in type(part).__mro__}
    waiting = [model, *(value for kind in classes for value in vars(kind).values())]
    names: set[str] = set()
    while waiting:
        function = waiting.pop()
        function = getattr(function, "fget", None) or getattr(function, "__func__", function)
        if isinstance(function, FunctionType) and not function.__module__.startswith("torch"):
            fresh = _names_of(function.__code__) - names
            names |= fresh
            waiting += [function.__globals__.get(name) for name in fresh]
    return names


def _names_of(code: CodeType) -> set[str]:
    inner = (_names_of(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)


def guess_missing_marks(
    model: Any, module: nn.Module | None, marks: Mapping[str, int | None], size: int
) -> tuple[dict[str, int | None], list[str]]:
    """Return pad, bos and eos, those that are None guessed if the code states them, and remarks on the guesses."""
    complete, remarks = dict(marks), []
    for name, (mark, origin) in _guess_marks(model, module, size).items():
        if complete[name] is None and mark not in complete.values():
            complete[name] = mark
            remarks.append(f"{name} = {mark}, guessed from {origin}")
    if complete["pad"] is None:
        remarks += [
            f"pad was not guessed from {origin}, which the model does not use: if texts are padded, give pad={mark}"
            for mark, origin in _unused_padding(model, module, size).items()
        ]
    return complete, remarks


def _mark_of(name: str) -> str | None:
    """Return the mark that a name states: src_pad_idx, PAD, decoder_start_token_id; None for other names."""
    words = set(words_of(name))
    rest = words - _OF_IDS - _OF_SIDES
    for mark, usual in _MARKS.items():
        if rest and rest <= usual and (words & _OF_IDS or name.isupper()):
            return mark
    return None


def attributes(module: nn.Module | None) -> Iterator[tuple[str, object]]:
    """Yield names and values of the attributes of modules and of the configurations they hold, outer ones first."""
    for part in _modules_of(module):
        for name, value in vars(part).items():
            yield name, value
            if hasattr(value, "__dict__") and not isinstance(value, (nn.Module, type)) and not callable(value):
                yield from vars(value).items()
            elif isinstance(value, Mapping) and not name.startswith("_"):
                yield from ((str(key), entry) for key, entry in value.items())


def _constants(model: Any, module: nn.Module | None) -> Iterator[tuple[str, object]]:
    files = [vars(sys.modules.get(type(part).__module__, object)) for part in (model, module)]
    for names in (getattr(model, "__globals__", {}), *files):
        yield from ((name, value) for name, value in list(names.items()) if name.isupper())


def _modules_of(module: nn.Module | None) -> Iterable[nn.Module]:
    return () if module is None else module.modules()
