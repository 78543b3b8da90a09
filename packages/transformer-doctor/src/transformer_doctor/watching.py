"""Watch a real training while it runs: what it trains on, and whether its updates do what they should.

Updates 1 to 4, 8, 16 and every 64th are examined: the gradient of the scores tells what the loss is computed from,
and some numbers of each weight whether it moves. At other updates these numbers are compared on the CPU alone.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial, wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from transformer_doctor.checks.seen_loss import RIGHT_POSITIONS, SeenLoss, hash_of_ids
from transformer_doctor.checks.step_tracer import watch_losses
from transformer_doctor.checks.updates import scores_depend_on
from transformer_doctor.checks.watched_optimizer import (
    GRADIENTS,
    TIMES,
    UPDATES,
    TrainingFindings,
    WatchedOptimizer,
    is_examined,
    listed,
    watch_clipping,
)
from transformer_doctor.errors import UsageError, require
from transformer_doctor.model_adapter import restore_modes
from transformer_doctor.model_output import tensor_of
from transformer_doctor.module_state import ModuleState
from transformer_doctor.places import running_place
from transformer_doctor.report import Finding, Report, make_report

_DEPENDENCE = 8  # update at which weights without a gradient are tried
_MOST_UPDATES = 16  # steps of another optimizer without a step
_EARLY = 64  # updates in which the loss of new batches is not near 0
_PERIOD, _ORDERED = 4, 10  # batches of an epoch, and batches in the same order, by which an order is recognised
_KNOWN = 1_000_000  # batches that are remembered

_MODE = "the model is trained in train()"
_BATCHES = "batches and their order differ"
_REASONS = {
    UPDATES: "weights are compared at updates 4, 16 and every 64th: there were fewer, or the learning rate grows",
    GRADIENTS: "no backward pass was seen",
    RIGHT_POSITIONS: "no scores of tokens with a gradient were seen",
    _MODE: "no part with dropout was seen in a backward pass",
    _BATCHES: "no token ids were seen, or repeats was given",
}


def watch(
    model: nn.Module,
    optimizer: Any,
    *,
    pad: int | None = None,
    plan: Callable[[int], float] | None = None,
    repeats: bool = False,
    on_finding: Callable[[Finding], object] | None = None,
) -> Watch:
    """Watch a training: use the result as a context, or call its start() and stop(); `report` has the findings.

    Args:
        model: the module that is trained, with or without wrappers.
        optimizer: one optimizer of torch or a sequence of them, or wrappers that hold one as `optimizer`.
        pad: id of padding; by default that of the model's configuration or of an embedding.
        plan: function of the number of an update, from 1, that returns the planned rate of the first optimizer.
        repeats: batches are repeated on purpose, as when a single batch is memorised.
        on_finding: receives each finding when it is made; by default it becomes a warning.

    Raises:
        UsageError: an optimizer is none of torch.
    """
    several = optimizer if isinstance(optimizer, (list, tuple)) else [optimizer]
    plain = [vars(given).get("optimizer", given) for given in several]
    for inner in plain:
        if not isinstance(inner, Optimizer):
            raise UsageError(f"{type(inner).__name__} is no optimizer of torch; give the one inside of it.")
    return Watch(model, plain, pad, plan, repeats, on_finding or _warn)


def _warn(finding: Finding) -> None:
    warnings.warn("\n".join(finding.lines()), stacklevel=2)


def _safely(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return a hook whose errors end the watch, not the training; those of `on_finding` pass."""

    @wraps(hook)
    def guarded(self: Watch, *args: Any) -> None:
        if torch.compiler.is_compiling():
            return
        try:
            hook(self, *args)
        except Exception as error:
            if error is self.told.raised:
                raise
            self.failure = f"the watch ended with {type(error).__name__}: {error}"
            self.stop()

    return guarded


class Watch:
    """A training that is watched; see `watch`.

    Attributes:
        told: the findings, and the number of the update.
        failure: why the watch ended before the training, or "".
    """

    def __init__(
        self, model: nn.Module, optimizers: Sequence[Optimizer], pad: int | None,
        plan: Callable[[int], float] | None, repeats: bool, on_finding: Callable[[Finding], object],
    ) -> None:  # fmt: skip
        self.model, self.told, self.failure = model, TrainingFindings(on_finding), ""
        self._plan, self._repeats, self._optimizers = plan, repeats, optimizers
        self._loss = SeenLoss(self.told.find, model, pad)
        self._held: list[WatchedOptimizer] = []
        self._hooks, self._hooks_of_parts = ExitStack(), ExitStack()
        self._last_part: tuple[nn.Module, Tensor] | None = None  # that returned more than one number, and what
        self._dropping = {id(part) for part in model.modules() if _drops(part)}
        self._on_cpu = all(weight.device.type == "cpu" for weight in model.parameters())
        self._depth = self._all_steps = 0
        self._modes: list[bool] = []  # whether parts with dropout were in train(), since the last backward pass
        self._calls: dict[nn.Module, tuple[Any, Any]] = {}  # arguments of the outermost parts, since the last step
        self._recent: deque[tuple[int, int]] = deque(maxlen=_EARLY)  # update and hash of each batch
        self._known: dict[int, int] = {}  # number of the batch by its hash
        self._count = self._period = self._in_order = 0  # of batches; since how many batches the order is the same

    @property
    def findings(self) -> Mapping[str, Finding]:
        """Return the findings by name, each of them once."""
        return self.told.findings

    @property
    def report(self) -> Report:
        """Return the findings so far, and what was looked at."""
        asked = self.told.asked
        skipped = [(check, self.failure or reason) for check, reason in _REASONS.items() if check not in asked]
        return make_report(self.findings.values(), sorted(asked), skipped)

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Put the hooks in place."""
        add, named = self._hooks.callback, dict(self.model.named_parameters())
        for part in dict.fromkeys(_called_parts(self.model)):
            with suppress(RuntimeError, AttributeError):  # a scripted module takes no hooks
                self._watch_calls(part, self._hooks if part is self.model else self._hooks_of_parts)
        add(self._hooks_of_parts.close)
        groups = [
            {id(weight) for group in optimizer.param_groups for weight in group["params"]}
            for optimizer in self._optimizers
        ]
        loose = {id(weight) for weight in named.values()}.difference(*groups)
        copies = len(loose) == len({id(weight) for weight in named.values()})  # as of weights in half precision
        missing = [
            name for name, weight in named.items() if weight.requires_grad and id(weight) in loose and not copies
        ]
        if missing:
            self.told.find("parameters-not-updated", f"no optimizer holds {listed(missing)}", UPDATES)
        for optimizer, group in zip(self._optimizers, groups, strict=True):
            unheld = loose if not self._held else set()
            weights = {name: weight for name, weight in named.items()
                       if id(weight) in group or (id(weight) in unheld and name not in missing)}  # fmt: skip
            if weights:
                plan = self._plan if optimizer is self._optimizers[0] else None
                held = WatchedOptimizer(optimizer, weights, self.told, plan, self._on_cpu, holds_copies=copies)
                self._held.append(held)
                for name, weight in held.probes().items():
                    add(weight.register_hook(partial(self._run, held.expect, name)).remove)
                    add(weight.register_post_accumulate_grad_hook(partial(self._count_pass, held, name)).remove)
                add(optimizer.register_step_pre_hook(partial(self._begin_step, held)).remove)
                add(optimizer.register_step_post_hook(partial(self._after_step, held)).remove)
        add(watch_clipping(self._after_clipping))
        add(watch_losses(self._after_loss))

    def stop(self) -> None:
        """Remove the hooks."""
        self._hooks.close()

    # Forward passes, of the module itself or of the outermost parts that a step calls

    def _watch_calls(self, part: nn.Module, hooks: ExitStack) -> None:
        hooks.callback(part.register_forward_pre_hook(self._before_call, with_kwargs=True).remove)
        after = part.register_forward_hook(self._after_call, with_kwargs=True, always_call=True)
        hooks.callback(after.remove)

    @_safely
    def _before_call(self, module: nn.Module, args: Any, named: Any) -> None:
        self._depth += 1
        examined = self._depth == 1 and is_examined(self.told.update)
        if examined and torch._C._current_graph_task_id() == -1:
            self._calls[module] = args, named
        if self._depth == 1 and _trains():
            self._loss.read_inputs(args, named)
            if examined:
                self.told.place = running_place() or self.told.place

    @_safely
    def _after_call(self, module: nn.Module, args: Any, named: Any, output: Any) -> None:
        self._depth -= 1
        if self._depth == 0 and output is not None and _trains():
            if id(module) in self._dropping:
                self._modes.append(module.training)
            last = self._last_part
            if is_examined(self.told.update):
                self._loss.read_output(output, self._run, None if last is None else last[1])
            if module is self.model and self._loss.waits:  # a step that calls the module itself calls no part alone
                self._hooks_of_parts.close()
                if last is not None and not last[0]._forward_hooks:
                    self._watch_calls(last[0], self._hooks_of_parts)
            self._last_part = None
        elif isinstance(output, Tensor) and output.dim() > 1 and is_examined(self.told.update):
            self._last_part = module, output

    @_safely
    def _after_loss(self, scores: Tensor, labels: Tensor) -> None:
        if is_examined(self.told.update):
            self._loss.read_labels(scores, labels)

    @_safely
    def _run(self, function: Callable[..., None], *args: Any) -> None:
        function(*args)

    # Backward passes

    @_safely
    def _count_pass(self, held: WatchedOptimizer, name: str, weight: Tensor) -> None:
        if not held.count(name, self._all_steps):
            return
        if self._modes:
            self.told.asked.add(_MODE)
            if not any(self._modes):
                evidence = "gradients come from a forward pass in eval()"
                self.told.find("trained-in-evaluation-mode", evidence, _MODE)
        self._modes.clear()
        ids = self._loss.take_inputs()
        if ids and not self._repeats and held.looks():
            self._compare_batch(sum(map(hash_of_ids, ids)))

    def _compare_batch(self, batch: int) -> None:
        self.told.asked.add(_BATCHES)
        again = bool(self._recent) and self._recent[-1][1] == batch
        self._recent.append((self.told.update, batch))
        last = {ids for update, ids in self._recent if update > self.told.update - TIMES}
        if again and self.told.update >= TIMES and len(last) == 1:
            self.told.find("batch-repeated", f"{TIMES} updates in a row read the same ids", _BATCHES)
        if again or not self._on_cpu:
            return
        self._count += 1
        period = self._count - self._known.get(batch, self._count)
        self._in_order = self._in_order + 1 if period == self._period >= _PERIOD else 0
        self._period = period
        if self._in_order == _ORDERED:
            evidence = f"each batch is the one of {period} batches ago, {_ORDERED} times in a row"
            self.told.find("order-unchanged", evidence, _BATCHES)
        if len(self._known) < _KNOWN:
            self._known[batch] = self._count

    # Steps

    @_safely
    def _after_clipping(self, parameters: Sequence[Tensor], limit: float, norm: Tensor) -> None:
        for held in self._held:
            held.clip(parameters, limit, norm)

    def _begin_step(self, held: WatchedOptimizer, optimizer: Optimizer, args: Any, named: Any) -> Any:
        """Judge the gradients before a step; those of a closure come inside of the step."""
        closure = args[1] if len(args) > 1 else named.get("closure")
        if closure is None:
            self._before_step(held)
            return None
        judged: list[Any] = []

        def watched() -> Any:
            judged.append(closure())
            if len(judged) == 1:
                self._before_step(held)
            return judged[-1]

        return (optimizer, watched), {}

    @_safely
    def _before_step(self, held: WatchedOptimizer) -> None:
        own = [batch for update, batch in self._recent if update == self.told.update]
        held.before_step(self._loss.totals if len(set(own)) == len(own) else ())
        if not is_examined(held.steps):
            return
        if self._loss.read_positions:
            self.told.asked.add(RIGHT_POSITIONS)
        labelled_wrongly = any(finding.check == RIGHT_POSITIONS for finding in self.findings.values())
        new = len({batch for _, batch in self._recent}) == len(self._recent) > 0
        if self._loss.low is not None and held.steps < _EARLY and new and not labelled_wrongly:
            evidence = f"the mean loss of a label is {self._loss.low:.2g} nats"
            self.told.find("below-the-floor", evidence, RIGHT_POSITIONS)
        if held.steps + 1 != _DEPENDENCE or not held.untouched or _processes() or self._loss.low is not None:
            return  # of a loss near 0 no gradient is left
        for module, call in self._calls.items():
            inside = {id(weight) for weight in module.parameters()}
            names = [name for name in sorted(held.untouched) if id(held.weights[name]) in inside]
            if names and _depends_on(self.model, [held.weights[name] for name in names], module, *call):
                evidence = f"no gradient has reached {listed(names)}, and scores depend on some"
                self.told.find("parameters-without-gradient", evidence, UPDATES)

    @_safely
    def _after_step(self, held: WatchedOptimizer, optimizer: Optimizer, args: Any, named: Any) -> None:
        held.after_step()
        self._all_steps += 1
        self._loss.totals.clear()
        self._calls.clear()
        self.told.update = max(held.steps for held in self._held)
        for held in self._held:
            if not held.steps and held.waiting and self.told.update >= _MOST_UPDATES:
                evidence = f"an optimizer ({type(held.optimizer).__name__}) of {len(self._held)} made no step"
                self.told.find("parameters-not-updated", evidence, UPDATES)


def _called_parts(module: nn.Module) -> Iterator[nn.Module]:
    """Yield a module and its parts, but no compiled code, which hooks would change."""
    if module._compiled_call_impl is not None:
        return
    yield module
    if not hasattr(module, "_orig_mod"):
        for part in module.children():
            yield from _called_parts(part)


def _trains() -> bool:
    """Return whether a call belongs to a training: gradients are enabled, and no checkpoint is recomputed."""
    return torch.is_grad_enabled() and torch._C._current_graph_task_id() == -1


def _processes() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def _drops(module: nn.Module) -> bool:
    """Return whether train() and eval() of a module differ."""
    parts = [*module.modules()]
    return any(isinstance(part, nn.modules.dropout._DropoutNd) and part.p > 0 for part in parts)


def _depends_on(model: nn.Module, weights: Sequence[Tensor], module: nn.Module, args: Any, named: Any) -> bool:
    state = ModuleState(model)

    def scores() -> Tensor:
        found = tensor_of(module(*args, **named)).clone()
        state.restore()
        return found

    with restore_modes(model), torch.no_grad():
        model.eval()
        return torch.equal(scores(), scores()) and scores_depend_on(weights, model, scores)


def trainer_callback(**options: Any) -> Any:
    """Return a callback for the Trainer of transformers that watches the training; options are those of `watch`.

    Its attribute `watched` is the watch.
    """
    base = require("transformers", "the callback of its Trainer").TrainerCallback

    class WatchCallback(base):  # type: ignore[misc, valid-type]
        def on_train_begin(self, args: Any, state: Any, control: Any, **known: Any) -> None:
            self.watched = watch(known["model"], known["optimizer"], **options)
            self.watched.start()

        def on_train_end(self, args: Any, state: Any, control: Any, **known: Any) -> None:
            self.watched.stop()

    return WatchCallback()


def lightning_callback(**options: Any) -> Any:
    """Return a callback for Lightning's Trainer; `watched` is the watch, and options are those of `watch`."""
    base = require("lightning.pytorch", "the callback of its Trainer").Callback

    class WatchCallback(base):  # type: ignore[misc, valid-type]
        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            self.watched = watch(pl_module, trainer.optimizers, **options)
            self.watched.start()

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            self.watched.stop()

    return WatchCallback()
