"""State that a model keeps between calls is restored, and so are weights that were replaced for a while."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from transformer_doctor import examine
from transformer_doctor.model_adapter import restore_modes
from transformer_doctor.module_state import ModuleState, WholeState, filled_zero_weights, in_precision


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


class Restless(nn.Module):
    """Model that changes itself and its surroundings in each call, in ways that raise no version of a tensor."""

    def __init__(self, error: BaseException | None) -> None:
        super().__init__()
        self.words, self.norm, self.head = nn.Embedding(23, 16), nn.BatchNorm1d(16), nn.Linear(16, 23)
        self.register_buffer("seen", torch.tensor([float("nan"), -0.0, 1.0]))
        self.register_buffer("grown", torch.zeros(2))
        self.head.weight.grad = torch.ones(23, 16)
        self.head.eval()
        self.error, self.calls = error, iter(range(10**9))

    def forward(self, ids: Tensor) -> Tensor:
        if self.error is not None and next(self.calls) == 40:
            raise self.error
        hidden = self.words(ids).cumsum(1)
        nn.functional.batch_norm(
            hidden.transpose(1, 2), self.norm.running_mean, self.norm.running_var, training=True
        )
        self.seen.numpy()[:2] += 1
        self.grown.data = torch.ones(3)
        self.head.bias.data += 1e-4
        self.words.weight.data = self.words.weight.data * 1.0001
        self.head.bias.requires_grad_(False)
        if self.head.weight.grad is not None:
            self.head.weight.grad.numpy()[:] += 1
        self.head.train()
        self.head.register_forward_hook(lambda *_: None)
        random.random(), np.random.rand(), torch.rand(1)
        torch.use_deterministic_algorithms(True)
        return self.head(hidden)


def everything(model: Restless) -> list[Any]:
    assert model.head.weight.grad is not None
    tensors = [*model.state_dict().values(), model.head.weight.grad, torch.get_rng_state()]
    modes = [(part.training, len(part._forward_hooks)) for part in model.modules()]
    trained = [weight.requires_grad for weight in model.parameters()]
    numbers = random.getstate(), np.random.get_state()[1].tobytes(), torch.are_deterministic_algorithms_enabled()
    return [*(tensor.numpy().tobytes() for tensor in tensors), modes, trained, numbers]


@pytest.mark.parametrize("error", [None, ValueError("no more"), KeyboardInterrupt()])
@pytest.mark.parametrize("examined", [True, False])
def test_a_model_is_left_to_the_byte_as_it_was(error: BaseException | None, examined: bool) -> None:
    """Also after an error, and after Ctrl-C."""
    model = Restless(error)
    before = everything(model)
    try:
        if examined:
            examine(model, vocab_size=23, kind="decoder", longest=16)
        else:
            with restore_modes(model):
                for _ in range(50):
                    model(torch.ones(2, 3, dtype=torch.int64))
    except (ValueError, KeyboardInterrupt):
        pass
    assert everything(model) == before


def test_sparse_buffers_are_left_as_they_are() -> None:
    module = nn.Linear(3, 3)
    module.register_buffer("sparse", torch.eye(3).to_sparse())
    state = WholeState(module)
    module.weight.data.zero_()
    state.restore()
    assert module.weight.any()
    assert torch.equal(module.sparse.to_dense(), torch.eye(3))
