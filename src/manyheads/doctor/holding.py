"""The modules that somebody's function works with, so that they can be put into eval() and train()."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import nn

__all__ = ["device_of", "module_in"]


def module_in(model: Any) -> nn.Module | None:
    """What holds the weights of a model: itself; of a function or an object, the modules it works with.

    A function's are those it names: of the scopes around it, of its own module, the owner of a method, what a
    partial binds. Several become one ModuleList. None where none is found.
    """
    if isinstance(model, nn.Module):
        return model
    held: dict[int, nn.Module] = {id(module): module for module in held_by(model, set())}
    inner = {id(part) for module in held.values() for part in module.modules() if part is not module}
    outermost = [module for name, module in held.items() if name not in inner]
    return outermost[0] if len(outermost) == 1 else nn.ModuleList(outermost) if outermost else None


def held_by(thing: Any, seen: set[int]) -> Iterator[nn.Module]:
    """The modules a thing names, those of functions it names included."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, nn.Module):
        yield thing
    elif isinstance(thing, functools.partial):
        for part in (thing.func, *thing.args, *thing.keywords.values()):
            yield from held_by(part, seen)
    elif isinstance(thing, MethodType):
        yield from held_by(thing.__self__, seen)
    elif isinstance(thing, FunctionType):
        names = inspect.getclosurevars(thing)
        for part in (*names.nonlocals.values(), *names.globals.values()):
            yield from held_by(part, seen)
    elif hasattr(thing, "__dict__") and not isinstance(thing, (type, ModuleType)):
        yield from (part for part in vars(thing).values() if isinstance(part, nn.Module))


def device_of(module: nn.Module | None) -> torch.device:
    """Where its weights are."""
    weights = None if module is None else next(module.parameters(), None)
    return torch.device("cpu") if weights is None else weights.device
