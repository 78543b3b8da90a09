"""One update of the weights: the gradients of its parts added up, clipped, applied."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.autograd.graph import increment_version
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.nn.parallel import DistributedDataParallel

from manyheads.config.schema import TrainingConfig
from manyheads.errors import TrainingError
from manyheads.model.layers import DecoderLayer
from manyheads.model.sharded import full_tensor
from manyheads.training.compilation import CompiledLayers, EagerLayers
from manyheads.training.depth import Pace, freeze
from manyheads.training.distributed import World
from manyheads.training.memory import out_of_memory
from manyheads.training.objective import Objective
from manyheads.training.optimizer import build_optimizer
from manyheads.training.part import Part
from manyheads.training.precision import Precision, autocast

__all__ = ["Sums", "Updater"]

Sums = tuple[Part, Tensor, Tensor]  # a part, its loss and its plain negative log-likelihood


class Updater:
    """The objective, the optimiser, and what stands between them."""

    def __init__(
        self,
        objective: Objective,
        config: TrainingConfig,
        *,
        device: torch.device,
        precision: Precision,
        world: World,
    ) -> None:
        self.model = model = objective.model
        self.device = device
        self.precision = precision
        self.world = world
        self.clip_norm = config.clip_norm or math.inf
        freeze(model, config)
        self.layers = CompiledLayers(model) if config.compile else EagerLayers()
        self.objective = shared(objective, world, shard=config.shard)
        self.learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.pace = Pace(model, config)
        self.optimizer = build_optimizer(model, config, device, self.pace.depth_of)

    def gradients(self, parts: Sequence[Part], tokens: float) -> list[Sums]:
        """Add the gradients of the parts to those that are there.

        Args:
            parts: this process's part of the update, in smaller parts to save memory.
            tokens: target tokens of the whole update, in all processes: what every sum is divided by.
        """
        sums = []
        for place, part in enumerate(parts):
            batch = self.layers.padded(part.to(self.device))
            with self.unsent(last=place == len(parts) - 1):
                with autocast(self.device, self.precision), self.layers.in_use():
                    loss, nll = self.objective(batch)
                # what several processes send each other is averaged: times their number, it is the sum
                (loss * self.world.size / tokens).backward()
            sums.append((batch, loss.detach(), nll))
        return sums

    def unsent(self, *, last: bool) -> AbstractContextManager[None]:
        """While open, gradients stay in this process; those of the last part are sent with all before."""
        if isinstance(self.objective, FSDPModule):
            self.objective.set_requires_gradient_sync(last)
        if last or not isinstance(self.objective, DistributedDataParallel):
            return nullcontext()
        return self.objective.no_sync()

    @contextmanager
    def unsharded(self) -> Iterator[None]:
        """While open, this process has all of the weights, as decoding reads them outside the layers' own calls."""
        parts = [module for module in self.objective.modules() if isinstance(module, FSDPModule)]
        for part in parts:
            part.set_reshard_after_forward(False, recurse=False)
            part.unshard()
        try:
            yield
        finally:
            for part in parts:
                part.reshard()
                part.set_reshard_after_forward(part is not self.objective, recurse=False)

    def forget(self) -> None:
        """Drop the gradients."""
        self.optimizer.zero_grad(set_to_none=True)

    def apply(self, rate: float, step: int = 1) -> float:
        """Clip the gradients and step, unless they are not finite; returns their norm before clipping.

        Args:
            rate: the learning rate.
            step: which update this is, the first being 1.

        Raises:
            TrainingError: memory ran out; the weights may have moved in part.
        """
        norm = float(full_tensor(nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)))
        if math.isfinite(norm):
            for group in self.optimizer.param_groups:
                group["lr"] = rate * self.pace.factor(group, step)
            try:
                with autocast(self.device, self.precision):
                    self.optimizer.step()
                increment_version(self.learning)  # torch's fused optimisers do not tell that they have written
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                raise TrainingError(
                    "memory ran out in the optimiser. The last checkpoint is good. "
                    "Take a smaller model, or free memory and run the same line again."
                ) from error
        self.forget()
        return norm


def shared(objective: Objective, world: World, *, shard: bool) -> nn.Module:
    """The objective as several processes compute it: each with all of the weights, or with a share of them."""
    if world.size == 1:
        return objective
    if not shard:
        return DistributedDataParallel(objective)
    # the keys and values that a decoder layer returns are views of one product, and nothing changes them in place
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    for layer in objective.model.layers():
        fully_shard(layer)
        if isinstance(layer, DecoderLayer):
            register_fsdp_forward_method(layer, "keys_values")
    fully_shard(objective)
    return objective
