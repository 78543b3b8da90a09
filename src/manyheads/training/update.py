"""The steps of one update of the weights: loss, backward pass, clipping, optimiser step."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import nn
from torch.autograd.graph import increment_version
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.nn.parallel import DistributedDataParallel

from manyheads.config.schema import TrainingConfig
from manyheads.errors import TrainingError
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.layers import DecoderLayer
from manyheads.tensors.devices import Precision, autocast
from manyheads.tensors.sharded import full_tensor
from manyheads.text.tokenizer import BOS
from manyheads.training.batches import Losses, MicroBatch
from manyheads.training.distributed import World
from manyheads.training.layerwise import freeze_for_lora, layer_factors
from manyheads.training.memory import out_of_memory
from manyheads.training.objective import Objective
from manyheads.training.optimizer import build_optimizer


class Updater:
    """The objective and the optimiser, with the steps of an update as methods."""

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
        if config.lora_rank:
            freeze_for_lora(model)
        self.objective = _distribute(objective, world, shard=config.shard)
        self.trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
        # FSDP divides the rows among the processes
        self.embeddings = [] if config.shard else [m for m in model.modules() if isinstance(m, TokenEmbedding)]
        self.optimizer = build_optimizer(model, config, device, layer_factors(model, config.layer_decay))

    # --- loss and backward pass ---

    def on_device(self, micro_batches: Sequence[MicroBatch]) -> Iterator[MicroBatch]:
        """Yield each micro-batch on the training device.

        Several processes exchange gradients in the backward pass of the last micro-batch only.
        """
        for number, micro_batch in enumerate(micro_batches, 1):
            with self.gradient_sync(last=number == len(micro_batches)):
                yield micro_batch.to(self.device)

    def gradient_sync(self, *, last: bool) -> AbstractContextManager[None]:
        """Return a context for a backward pass, which exchanges gradients only if it is the last of an update."""
        if isinstance(self.objective, FSDPModule):
            self.objective.set_requires_gradient_sync(last)
        if last or not isinstance(self.objective, DistributedDataParallel):
            return nullcontext()
        return self.objective.no_sync()

    def gradients(self, micro_batches: Sequence[MicroBatch], tokens: float) -> list[Losses]:
        """Compute the gradients of all micro-batches of an update; return their losses, detached from the graph.

        Every sum is divided by `tokens`, the target tokens of the whole update in all processes.
        """
        computed = []
        for batch in self.on_device(micro_batches):
            with autocast(self.device, self.precision):
                losses = Losses(batch, *self.objective(batch))
            # Processes average the gradients that they exchange: the mean times their number is the sum.
            (losses.loss * self.world.size / tokens).backward()
            losses = losses._replace(loss=losses.loss.detach())  # frees the graph before the next forward pass
            computed.append(losses)
        self._keep_zero_starts()
        return computed

    def _keep_zero_starts(self) -> None:
        """Drop the gradient of the begin symbol's vector where that is zero, as in opus-mt models.

        CTranslate2's converter starts such a model from zeros, whatever the vector has become.
        """
        for weight in (embedding.tokens.weight for embedding in self.embeddings):
            if weight.grad is not None:
                weight.grad[BOS] *= weight.detach()[BOS].any()

    # --- clipping and optimiser step ---

    def clip_gradients(self) -> float:
        """Scale the gradients down to `training.clip_norm`; return their norm before, which may not be finite."""
        return float(full_tensor(nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)))

    def step(self, rate: float) -> None:
        """Update the weights with the optimiser, at a learning rate.

        Raises:
            TrainingError: memory ran out; some weights may have been changed already.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group.get("factor", 1.0)
        try:
            with autocast(self.device, self.precision):
                self.optimizer.step()
            increment_version(self.trainable)  # torch's fused optimisers do not do so after changing weights
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            raise TrainingError(
                "memory ran out in the optimiser. Take a smaller model, or free memory and run the same line again."
            ) from error

    def zero_grad(self) -> None:
        """Drop the gradients."""
        self.optimizer.zero_grad(set_to_none=True)

    def apply(self, rate: float) -> float:
        """Clip the gradients, step if their norm is finite, and drop them; return the norm."""
        norm = self.clip_gradients()
        if math.isfinite(norm):
            self.step(rate)
        self.zero_grad()
        return norm

    # --- sharding ---

    @contextmanager
    def unsharded(self) -> Iterator[None]:
        """Gather all weights while the context is open, because decoding reads them outside the layers' calls."""
        modules = [module for module in self.objective.modules() if isinstance(module, FSDPModule)]
        for module in modules:
            module.set_reshard_after_forward(False, recurse=False)
            module.unshard()
        try:
            yield
        finally:
            for module in modules:
                module.reshard()
                module.set_reshard_after_forward(module is not self.objective, recurse=False)


def _distribute(objective: Objective, world: World, *, shard: bool) -> nn.Module:
    """Wrap the objective for several processes: in DDP, or with `shard` in FSDP, which splits the weights."""
    if world.size == 1:
        return objective
    if not shard:
        return DistributedDataParallel(objective)
    # The keys and values that a decoder layer returns are views of one product, and nothing changes them in place.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    for layer in objective.model.layers():
        fully_shard(layer)
        if isinstance(layer, DecoderLayer):
            register_fsdp_forward_method(layer, "keys_values")
    fully_shard(objective)
    return objective
