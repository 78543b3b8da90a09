"""Prepare a model for an examination: find sizes of ids that it takes, its precision, and the effect of rounding.

Everything that is done to the model is undone afterwards, and stated as a remark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode

from transformer_doctor.errors import UsageError, headline
from transformer_doctor.model_adapter import (
    SOURCE,
    TARGET,
    ModelAdapter,
    Samples,
    error_of,
    find_modules,
    restore_modes,
    restore_weights,
)
from transformer_doctor.module_state import (
    ModuleState,
    filled_zero_weights,
    held_tensors,
    in_precision,
    is_usual,
    weight_count,
)
from transformer_doctor.tolerances import SAME_SHAPE, Tolerances, relative_change
from transformer_doctor.wrapping import check_call

_BATCHES = (1, 2, 4, 8, 16, 32)  # rows that are tried where the usual number is refused
_LENGTHS, _LONGEST = 32, 1024  # how many lengths are tried where the usual ones are refused, the longest in tokens
_MORE = 6  # tokens of the texts that are longer
_HALF_BYTES = 2  # bytes of the numbers that are examined as float32
_COPIED = 1e9  # weights up to which a copy of them is made
_SMALL = 1e6  # weights up to which outputs are compared in float64
_NAMED = 3  # weights that a remark names
# rounding that is assumed of scores in half precision where there are no weights to measure it with
_BY_DTYPE = 0.01


@dataclass(frozen=True)
class Preparation:
    """Model and ids as they are examined.

    Attributes:
        adapter: the model, whose state is put back before each call.
        samples: ids of sizes that the model takes.
        remarks: what was done or assumed, a sentence each.
        not_finite: evidence of NaN scores in the model's own precision, empty if there are none.
        error: why the model cannot be called, None if it can.
    """

    adapter: ModelAdapter
    samples: Samples
    remarks: tuple[str, ...] = ()
    not_finite: str = ""
    error: UsageError | None = None


def in_any_precision(wrap: Callable[[], ModelAdapter], model: Any) -> ModelAdapter:
    """Return the adapter of a model, wrapped in its own precision or, if it fails there, in float32.

    Raises:
        UsageError: it is not clear how to call the model in its own precision.
    """
    module = find_modules(model)
    error: UsageError | None = None
    adapter: ModelAdapter | None = None
    with restore_modes(module), filled_zero_weights(module):
        try:
            adapter = wrap()
            failed = error_of(adapter, Samples(adapter).ids()) is not None
        except UsageError as raised:
            error, failed = raised, True
        if failed and half_precision(module) is not None:
            with in_precision(module, torch.float32), suppress(UsageError):
                return wrap()
    if error is not None:
        raise error
    assert adapter is not None
    return adapter


@contextmanager
def prepare(adapter: ModelAdapter, seed: int) -> Iterator[Preparation]:
    """Prepare a model in eval(); weights in half precision become float32, if the model runs in it.

    Raises:
        UsageError: the model cannot be called with ids of any size that was tried.
    """
    state = adapter.state or ModuleState(adapter.module)
    adapter = replace(adapter, state=state)
    if adapter.module is not None:
        adapter.module.eval()
    with ExitStack() as stack:
        stack.callback(state.restore)
        trial, not_finite = _try_sizes(adapter, seed), ""
        half = half_precision(adapter.module)
        name = str(half).removeprefix("torch.")
        if half is not None and trial.error is None:
            with torch.no_grad():
                scores = adapter(trial.samples.ids())
            bad = int(scores.isnan().sum())
            if bad:
                not_finite = f"in {name}, the precision of the weights, {bad} of {scores.numel()} scores are NaN"
        if half is not None and weight_count(adapter.module) > _COPIED:
            remark = f"the weights are {name}, and too many for a copy in float32"
            trial = replace(trial, remarks=(*trial.remarks, remark))
        elif half is not None:
            trial = stack.enter_context(_as_float32(adapter, seed, name, trial))
        if trial.error is not None:
            raise trial.error
        samples = trial.samples
        samples.adapter = adapter = replace(adapter, tolerances=measured_tolerances(adapter, samples))
        remarks = (*trial.remarks, *_state_remarks(adapter, samples))
        yield Preparation(adapter, samples, remarks, not_finite)


@contextmanager
def without_zero_weights(module: nn.Module | None) -> Iterator[list[str]]:
    """Fill weights that are all zero with small random numbers inside the context; yield a remark on them."""
    with filled_zero_weights(module) as names:
        listed = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
        remark = f"weights that are all zero were given small random numbers meanwhile, and put back: {listed}"
        yield [remark] if names else []


@contextmanager
def prepare_training(adapter: ModelAdapter, step: Callable[[], Any]) -> Iterator[None]:
    """Restore weights, buffers and attributes afterwards; use float32 for half precision if a step runs in it."""
    with ExitStack() as stack:
        if adapter.state is not None:
            stack.callback(adapter.state.restore)
        stack.enter_context(restore_weights(adapter.module))
        if half_precision(adapter.module) is not None:
            with ExitStack() as conversion:
                conversion.enter_context(in_precision(adapter.module, torch.float32))
                if _succeeds(adapter.module, step):
                    stack.push(conversion.pop_all())
        yield


def _succeeds(module: nn.Module | None, step: Callable[[], Any]) -> bool:
    with restore_weights(module), without_moments(), torch.enable_grad():
        try:
            step()
        except Exception:  # any exception of the user's code; the step is repeated, and raises it then
            return False
    return True


@contextmanager
def without_moments() -> Iterator[None]:
    """Clear the moments of optimizers that make their first step inside the context: those of another precision."""
    fresh: list[Optimizer] = []
    hook = register_optimizer_step_pre_hook(
        lambda optimizer, *_: fresh.extend([] if optimizer.state else [optimizer])
    )
    try:
        yield
    finally:
        hook.remove()
        for optimizer in fresh:
            optimizer.state.clear()


def _try_sizes(adapter: ModelAdapter, seed: int) -> Preparation:
    samples = Samples(adapter, seed)
    remarks = []
    try:
        check_call(adapter, samples.with_the_highest())
    except UsageError as error:
        cause = error.__cause__
        if cause is None or isinstance(cause, torch.AcceleratorError) or not _find_sizes(adapter, samples):
            return Preparation(adapter, samples, error=error)
        sizes = " and ".join(f"{side} ids {tuple(rows.shape)}" for side, rows in samples.ids().items())
        remarks.append(f"ids of the usual shapes raise {headline(cause)}; the model was examined with {sizes}")
    refused = error_of(adapter, samples.ids(batch=1))
    if refused is not None:
        samples.smallest_batch = 2
        remarks.append(f"a batch of one row raises {headline(refused)}; pairs of rows were compared instead")
    if samples.longer:
        longer = samples.ids(source=SOURCE + _MORE, target=TARGET + _MORE)
        samples.longer = error_of(adapter, longer) is None
    return Preparation(adapter, samples, tuple(remarks))


def _find_sizes(adapter: ModelAdapter, samples: Samples) -> bool:
    """Set the sizes of samples to some that the model takes; return whether there are any.

    Lengths that are tried are integer attributes of the modules, and axis sizes of weights and buffers.
    """
    usual = samples.batch
    for batch in _BATCHES:
        samples.batch = batch
        if error_of(adapter, samples.ids()) is None:
            return True
    samples.batch, samples.fixed_length, samples.longer = usual, True, False
    parts = list(adapter.module.modules()) if adapter.module is not None else []
    numbers = {value for part in parts for value in vars(part).values() if type(value) is int}
    tensors = chain.from_iterable((*part._parameters.values(), *part._buffers.values()) for part in parts)
    numbers |= {size for tensor in tensors if tensor is not None for size in tensor.shape}
    for length in sorted(number for number in numbers if 4 <= number <= _LONGEST)[:_LENGTHS]:
        samples.source = samples.target = length
        if error_of(adapter, samples.ids()) is None:
            return True
    return False


def half_precision(module: nn.Module | None) -> torch.dtype | None:
    """Return the dtype of the first weight in half precision, None if there is none."""
    weights = module.parameters() if module is not None else ()
    return next(
        (weight.dtype for weight in weights if weight.is_floating_point() and weight.itemsize <= _HALF_BYTES), None
    )


@contextmanager
def _as_float32(adapter: ModelAdapter, seed: int, name: str, own: Preparation) -> Iterator[Preparation]:
    """Convert the weights to float32 inside the context if the model runs in it; yield the first calls to use."""
    with ExitStack() as stack:
        stack.enter_context(in_precision(adapter.module, torch.float32))
        trial = _try_sizes(adapter, seed)
        if trial.error is None:
            failed = f"; in {name} it raises {headline(own.error.__cause__ or own.error)}" if own.error else ""
            remark = f"the weights are {name}; the model was examined in float32{failed}"
            yield replace(trial, remarks=(*trial.remarks, remark))
            return
    reason = headline(trial.error.__cause__ or trial.error)
    remark = f"the weights are {name}; the model does not run in float32 ({reason}) and was examined in {name}"
    yield replace(own, remarks=(*own.remarks, remark))


class _LowestPrecision(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.dtype = torch.float64

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call the function and record the dtype of its result."""
        result = func(*args, **(kwargs or {}))
        known = isinstance(result, Tensor) and result.is_floating_point() and result.dim() > 1
        if known and torch.finfo(result.dtype).eps > torch.finfo(self.dtype).eps:
            self.dtype = result.dtype
        return result


@torch.no_grad()
def measured_tolerances(adapter: ModelAdapter, samples: Samples) -> Tolerances:
    """Measure how far rounding moves the scores: every weight is changed by a unit in the last place.

    The unit is that of the least precise dtype in the computation, under torch.autocast not that of the weights.
    """
    ids = samples.ids()
    with without_zero_weights(adapter.module):
        if adapter.state is not None:
            adapter.state.restore()  # here, as a buffer in half precision that is restored computes nothing
        with _LowestPrecision() as mode:
            scores = replace(adapter, state=None)(ids)
        unit = torch.finfo(mode.dtype).eps
        generator = torch.Generator().manual_seed(1)

        def round_otherwise(tensor: Tensor) -> Tensor | None:
            if not isinstance(tensor, nn.Parameter) or not is_usual(tensor):
                return None
            signs = torch.randint(0, 2, tensor.shape, generator=generator).mul_(2).sub_(1)
            return (tensor.data.cpu().double() * (1 + unit * signs)).to(tensor.data)

        exact = unit <= torch.finfo(torch.float32).eps
        rounding = 0.0 if exact else _BY_DTYPE
        if 0 < weight_count(adapter.module) <= _COPIED:
            with held_tensors(adapter.module, round_otherwise):
                rounding = relative_change(scores, adapter(ids))
    return Tolerances(rounding if rounding < float("inf") else 0.0, exact)


def double_tolerances(adapter: ModelAdapter, samples: Samples) -> Tolerances | None:
    """Return the tolerances of a small model in float64; None where it does not run there, or rounds as before."""
    if adapter.device.type == "cpu" and adapter.tolerances.exact and 0 < weight_count(adapter.module) <= _SMALL:
        with suppress(Exception), in_precision(adapter.module, torch.float64):  # a model may name float32 itself
            double = replace(measured_tolerances(adapter, samples), double=True)
            finer = double.other_shape < adapter.tolerances.other_shape
            return double if finer and not adapter(samples.ids()).isnan().any() else None
    return None


@torch.no_grad()
def _state_remarks(adapter: ModelAdapter, samples: Samples) -> Iterator[str]:
    assert adapter.state is not None
    ids, keeping = samples.ids(), replace(adapter, state=None)
    scores = adapter(ids)
    error = error_of(keeping, ids)
    adapter.state.restore()
    if error is None:
        again = adapter(ids)
        change = relative_change(scores, keeping(ids))
        if change <= SAME_SHAPE or relative_change(scores, again) > SAME_SHAPE:
            return
    seen = f"raise {headline(error)}" if error is not None else f"give scores that differ by {change:.1%}"
    yield f"the model keeps something between calls: the same ids again {seen}; every call was made as the first"
