"""Snapshots: all that a training needs to resume, with the states of torch's random generators in all processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from manyheads.checkpoint.sharded import full_tensor
from manyheads.config.schema import TrainingConfig
from manyheads.training.distributed import World
from manyheads.training.optimizer import optimizer_tensors, restore_optimizer
from manyheads.training.progress import Progress, Window

if TYPE_CHECKING:
    from manyheads.training.trainer import Trainer

__all__ = [
    "Snapshot",
    "Storage",
    "full_tensors",
    "published_weights",
    "put_generators",
    "restore_snapshot",
    "seed_process",
    "take_generators",
    "take_snapshot",
    "take_state",
]

AVERAGE = "average."  # prefix of the names of averaged weights in a checkpoint


@dataclass(frozen=True)
class Snapshot:
    """The content of a checkpoint: tensors by name, and a state for JSON.

    Attributes:
        model: the weights with which training continues.
        optimizer: moments of the optimiser, averaged weights, and states of the random generators.
        state: everything else.
    """

    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]


class Storage(Protocol):
    """The checkpoints of a training; each is stored before its validation, which may take long."""

    def save(self, snapshot: Snapshot) -> None:
        """Store a checkpoint; the one before it is kept until `confirm` if its validation is pending."""
        ...

    def confirm(self, step: int, state: Mapping[str, Any], best: Mapping[str, Tensor] | None) -> None:
        """Store the state after the validation of a checkpoint.

        Args:
            step: step of the checkpoint.
            state: replaces `Snapshot.state`.
            best: the validated weights if they are the best so far, else None.
        """
        ...

    def discard(self, step: int) -> None:
        """Remove the checkpoint of a step whose validation has failed."""
        ...

    def go_back(self, trainer: Trainer) -> bool:
        """Load the weights of the last checkpoint, and call `Trainer.restore`; return False if there is none."""
        ...


def take_snapshot(trainer: Trainer) -> Snapshot:
    """Return all that resuming needs."""
    averages = {} if trainer.ema is None else trainer.ema.weights
    return Snapshot(
        model=full_tensors(dict(trainer.model.named_parameters())),
        optimizer={
            **optimizer_tensors(trainer.model, trainer.updater.optimizer),
            **generators_of_all(trainer.device, trainer.world),
            **{f"{AVERAGE}{name}": tensor for name, tensor in full_tensors(averages).items()},
        },
        state=take_state(trainer),
    )


def take_state(trainer: Trainer) -> dict[str, Any]:
    """Return `Snapshot.state`."""
    return {
        "progress": asdict(trainer.progress),
        "plan": plan(trainer.config),
        "splits": trainer.oom.splits,
        "window": trainer.window.state(),
        "watch": trainer.divergence.state(),
        "schedule": trainer.schedule.state(),
        "precision": trainer.updater.precision,
        "limit": trainer.limit.state(trainer.timed_validation),
    }


def published_weights(trainer: Trainer) -> dict[str, Tensor]:
    """Return the weights for validation and translation: the averaged ones with `training.ema`."""
    return full_tensors(dict(trainer.model.named_parameters()) if trainer.ema is None else trainer.ema.weights)


def full_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors by name, gathered from all processes where they are sharded."""
    return {name: full_tensor(tensor) for name, tensor in tensors.items()}


def restore_snapshot(trainer: Trainer, optimizer: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Restore a trainer from a snapshot whose weights have been loaded into the model already.

    Args:
        trainer: trainer to restore.
        optimizer: `Snapshot.optimizer`.
        state: `Snapshot.state`.
    """
    config = trainer.config
    restore_optimizer(trainer.model, trainer.updater.optimizer, optimizer)
    restore_generators(optimizer, trainer.device, trainer.world, config.seed)
    if trainer.ema is not None:
        averages = {key.removeprefix(AVERAGE): value for key, value in optimizer.items() if key.startswith(AVERAGE)}
        trainer.ema.restore(averages or dict(trainer.model.named_parameters()))  # `--force` may have turned EMA on
    trainer.progress = progress = Progress(**state["progress"])
    timed, changed = config.max_minutes is not None, state.get("plan", plan(config)) != plan(config)
    if changed or not timed:  # `--force` allows other settings and another corpus
        progress.total_steps, progress.fixed = trainer.planned_steps(), not timed
    progress.stopped_early = progress.out_of_patience(config.patience)
    trainer.limit.restore(state.get("limit", {}))
    trainer.oom.splits = state["splits"]
    trainer.window = Window(**state["window"])
    trainer.divergence.restore(state["watch"])
    trainer.schedule.restore(state["schedule"])
    trainer.updater.precision = state["precision"]


def plan(config: TrainingConfig) -> dict[str, float | None]:
    """Return the settings that decide how long training lasts."""
    return {"steps": config.steps, "epochs": config.epochs, "max_minutes": config.max_minutes}


# --- random generators ---


def seed_process(seed: int, rank: int) -> None:
    """Seed torch after the weights are drawn, so that each process draws other dropout masks."""
    if rank > 0:
        torch.manual_seed((seed + 0x9E3779B97F4A7C15 * rank) % 2**63)


def take_generators(device: torch.device) -> dict[str, Tensor]:
    """Return the states of the generators from which training on this device draws."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def put_generators(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Set the states that `take_generators` returned."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)


def generators_of_all(device: torch.device, world: World) -> dict[str, Tensor]:
    """Return the states in every process, for a checkpoint: generator.cpu.0, generator.cpu.1, ..."""
    return {
        f"generator.{kind}.{rank}": state
        for kind, local_state in take_generators(device).items()
        for rank, state in enumerate(world.gather_tensors(local_state))
    }


def restore_generators(tensors: Mapping[str, Tensor], device: torch.device, world: World, seed: int) -> None:
    """Set this process's states; a process that did not exist when they were saved is seeded instead."""
    end = f".{world.rank}"
    states = {
        key.removeprefix("generator.").removesuffix(end): state
        for key, state in tensors.items()
        if key.startswith("generator.") and key.endswith(end)
    }
    if states:
        put_generators(states, device)
    else:
        seed_process(seed, world.rank)
