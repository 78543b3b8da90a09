"""Compare a training that is saved and resumed with one that is not interrupted."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.seen_loss import hash_of_ids
from transformer_doctor.report import Report, make_report

_CHECK = "a resumed training goes on as one that was not interrupted"
_SAME_LOSS = 1e-5  # relative difference
_OTHER_SEED = 2_971  # random state of the process that resumes
_KINDS = {LRScheduler: "schedule-without-state", Optimizer: "optimizer-not-resumed", nn.Module: "resume-differs"}


def compare_resume(make: Callable[[], Any], step: Callable[[Any], float], updates: int = 8) -> Report:
    """Compare a training with one that is interrupted, saved and resumed after half of its updates.

    Models, optimizers and schedulers are found in the attributes of a training, and their states compared.

    Args:
        make: function without arguments that returns a new training, with state_dict() and load_state_dict(state).
        step: function of a training that makes one update and returns the loss.
        updates: even number of updates.
    """
    training, half = make(), updates // 2
    _, first = _train(training, step, half)
    saved, random = copy.deepcopy(training.state_dict()), torch.get_rng_state()
    states = {name: copy.deepcopy(part.state_dict()) for name, _, part in _parts(training)}
    losses, read = _train(training, step, half)
    resumed = make()
    torch.manual_seed(_OTHER_SEED)
    resumed.load_state_dict(saved)
    same_random = torch.equal(random, torch.get_rng_state())
    findings = [
        model_finding(kind, f"the state of {name} is another one after loading")
        for name, kind, part in _parts(resumed)
        if name in states and not _equal(states[name], part.state_dict())
    ]
    again, read_again = _train(resumed, step, half)
    index = next((index for index, pair in enumerate(zip(losses, again, strict=True))
                  if not math.isclose(*pair, rel_tol=_SAME_LOSS)), None)  # fmt: skip
    evidence = "the batches after loading are other ones" + (", those of the start" if read_again == first else "")
    if index is not None:
        two = f"{again[index]:.6g}, and {losses[index]:.6g} without interruption"
        evidence = f"the loss of update {index + 1} after loading is {two}"
    if read != read_again and (same_random or read_again == first):
        findings.append(model_finding("data-not-resumed", evidence))
    elif read != read_again or (index == 0 and not same_random and not findings):
        findings.append(model_finding("random-state-not-resumed", evidence))
    elif index is not None and not findings:
        findings.append(model_finding("resume-differs", evidence))
    return make_report(findings, [_CHECK])


def _train(training: Any, step: Callable[[Any], float], updates: int) -> tuple[list[float], list[int]]:
    read: list[int] = []

    def note(module: nn.Module, args: Any, named: Any) -> None:
        read.extend(hash_of_ids(value) for value in (*args, *named.values())
                    if isinstance(value, Tensor) and not value.is_floating_point())  # fmt: skip

    with ExitStack() as hooks:
        for _, _, part in _parts(training):
            if isinstance(part, nn.Module):
                hooks.callback(part.register_forward_pre_hook(note, with_kwargs=True).remove)
        return [float(step(training)) for _ in range(updates)], read


def _parts(training: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield name, finding and object of the models, optimizers and schedulers in the attributes of a training."""
    for name, value in vars(training).items() if hasattr(training, "__dict__") else ():
        several = [*value.values()] if isinstance(value, dict) else value
        several = several if isinstance(several, (list, tuple)) else [several]
        for index, part in enumerate(several):
            kind = next((kind for known, kind in _KINDS.items() if isinstance(part, known)), None)
            if kind is not None:
                yield name if len(several) == 1 else f"{name}[{index}]", kind, part


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return torch.equal(left.cpu(), right.cpu())
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(_equal, left, right))
    return callable(left) or bool(left == right)
