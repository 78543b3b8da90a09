"""State that a model keeps between calls is restored, and so are weights that were replaced for a while."""

from __future__ import annotations

import torch
from torch import nn

from transformer_doctor.module_state import ModuleState, filled_zero_weights, in_precision


class Cache:
    """A plain object that holds tensors."""

    def __init__(self) -> None:
        self.keys: list[torch.Tensor] = []


class StatefulLinear(nn.Linear):
    def __init__(self) -> None:
        super().__init__(3, 5)
        self.register_buffer("seen", torch.arange(7.0))
        self.cache, self.plain, self.table = Cache(), torch.ones(2), {"calls": [0]}


def test_attributes_buffers_and_their_contents_are_restored() -> None:
    module = StatefulLinear()
    state = ModuleState(module)
    module.seen.mul_(2)
    module.plain += 1
    module.cache.keys.append(torch.ones(3))
    module.table["calls"][0] += 1
    module.table["more"] = [1]
    module.added = torch.ones(11)
    module.seen = torch.zeros(2)
    state.restore()
    assert torch.equal(module.seen, torch.arange(7.0))
    assert torch.equal(module.plain, torch.ones(2))
    assert (module.cache.keys, module.table) == ([], {"calls": [0]})
    assert not hasattr(module, "added")


def test_weights_that_share_memory_share_their_copy_and_gradients_are_restored() -> None:
    module = nn.ModuleList([nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)]).bfloat16()
    module[1].weight.data = module[0].weight.data
    own, gradient = module[0].weight.data, torch.ones(3, 3, dtype=torch.bfloat16)
    module[0].weight.grad = gradient
    with in_precision(module, torch.float32):
        assert module[0].weight.dtype == torch.float32
        assert module[0].weight.data_ptr() == module[1].weight.data_ptr()
        assert module[0].weight.grad is None
    assert module[0].weight.data_ptr() == module[1].weight.data_ptr() == own.data_ptr()
    assert module[0].weight.grad is gradient


def test_zero_matrices_and_gates_are_filled_and_biases_are_not() -> None:
    module = nn.Module()
    module.head, module.other, module.gate = nn.Linear(3, 5), nn.Linear(3, 5), nn.Parameter(torch.zeros(1))
    nn.init.zeros_(module.head.weight)
    nn.init.zeros_(module.other.bias)
    with filled_zero_weights(module) as names:
        assert names == ["gate", "head.weight"]
        assert module.head.weight.any()
        assert not module.other.bias.any()
    assert not module.head.weight.any()


def test_a_frozen_embedding_of_zeros_is_not_filled() -> None:
    model = nn.ModuleDict({"tokens": nn.Embedding(5, 3), "positions": nn.Embedding(7, 3), "head": nn.Linear(3, 5)})
    for weight in model.parameters():
        nn.init.zeros_(weight)
    model["positions"].requires_grad_(False)
    with filled_zero_weights(model) as filled:
        assert filled == ["tokens.weight", "head.weight", "head.bias"]
        assert not model["positions"].weight.any()


def test_sparse_buffers_are_left_alone() -> None:
    module = nn.Linear(2, 3).bfloat16()
    heads = torch.eye(3).to_sparse()
    module.register_buffer("heads", heads, persistent=False)
    with in_precision(module, torch.float32):
        assert module.weight.dtype == torch.float32
        assert module.heads is heads
    ModuleState(module).restore()
    assert module.weight.dtype == torch.bfloat16
