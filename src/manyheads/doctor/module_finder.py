"""Find the modules that a user's function works with, to put them into eval() and train()."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import nn

__all__ = ["device_of", "find_modules"]


def find_modules(model: Any) -> nn.Module | None:
    """Return the module that holds the weights of a model: the model itself, or the modules a function works with.

    A function works with the modules that it names: variables of enclosing scopes and of its Python module, the
    owner of a method, arguments that a partial binds. Several become one ModuleList; None where there is none.
    """
    if isinstance(model, nn.Module):
        return model
    held: dict[int, nn.Module] = {id(module): module for module in referenced_modules(model, set())}
    inner = {id(part) for module in held.values() for part in module.modules() if part is not module}
    outermost = [module for name, module in held.items() if name not in inner]
    return outermost[0] if len(outermost) == 1 else nn.ModuleList(outermost) if outermost else None


def referenced_modules(thing: Any, seen: set[int]) -> Iterator[nn.Module]:
    """Yield the modules that an object refers to, directly or through functions."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, nn.Module):
        yield thing
    elif isinstance(thing, functools.partial):
        for part in (thing.func, *thing.args, *thing.keywords.values()):
            yield from referenced_modules(part, seen)
    elif isinstance(thing, MethodType):
        yield from referenced_modules(thing.__self__, seen)
    elif isinstance(thing, FunctionType):
        names = inspect.getclosurevars(thing)
        for part in (*names.nonlocals.values(), *names.globals.values()):
            yield from referenced_modules(part, seen)
    elif hasattr(thing, "__dict__") and not isinstance(thing, (type, ModuleType)):
        yield from (part for part in vars(thing).values() if isinstance(part, nn.Module))


def device_of(module: nn.Module | None) -> torch.device:
    """Return the device of the weights, the CPU where there are none."""
    weights = None if module is None else next(module.parameters(), None)
    return torch.device("cpu") if weights is None else weights.device
