"""Updates read one number from the device: each read makes the CPU wait for all computations before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch
from tests.training.parts import PairUpdates, TrainerHarness, random_pairs, tiny_model
from torch.utils._python_dispatch import TorchDispatchMode

from manyheads.text.tokenizer import BOS, EOS

READ_OPERATIONS = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "_unique2", "is_nonzero")


class DeviceReads(TorchDispatchMode):
    """Count the operations whose result, or the size of it, must be known to the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        masked = name in ("index", "index_put_") and any(
            index is not None and index.dtype is torch.bool for index in args[1]
        )
        if name in READ_OPERATIONS or masked:
            self.counts[name] += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "muon"])
@pytest.mark.parametrize(
    "settings", [{}, {"accumulation": 2}, {"r_drop": 1.0}, {"ema": 0.9}], ids=lambda settings: " ".join(settings)
)
def test_an_update_reads_the_norm_of_its_gradient_alone(optimizer: str, settings: dict[str, Any]) -> None:
    """Losses are read at log points, all together."""
    parts = settings.get("accumulation", 1)
    harness = TrainerHarness(
        None, PairUpdates(*random_pairs(23), parts=parts), optimizer=optimizer, log_every=100, **settings
    )
    counts: list[Counter[str]] = []
    losses: list[Counter[str]] = []

    def read_losses_after_three_updates() -> bool:
        counts.append(Counter(reads.counts))
        if len(counts) < 3:
            return False
        with DeviceReads() as own:
            assert len(harness.trainer.window.read()) == 5
        losses.append(own.counts)
        return True

    with DeviceReads() as reads:
        harness.trainer.run(stop=read_losses_after_three_updates)
    assert [later - earlier for earlier, later in pairwise(counts)] == [{"_local_scalar_dense": 1}] * 2
    assert losses[0]["_local_scalar_dense"] <= 3 * 2 * parts


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
@pytest.mark.parametrize("zero", [True, False])
def test_a_zero_vector_of_the_begin_symbol_stays_zero_and_others_are_trained(optimizer: str, zero: bool) -> None:
    model = tiny_model()
    weight = model.target_embedding.tokens.weight
    with torch.no_grad():
        weight[BOS] *= not zero
    before = weight.detach().clone()
    TrainerHarness(model, optimizer=optimizer, accumulation=2).trainer.run()
    moved = (weight.detach() != before).any(1)
    assert moved[BOS] != zero
    assert moved[EOS]
