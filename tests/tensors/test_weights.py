"""Weights are loaded by name, and averaged."""

from __future__ import annotations

import pytest
import torch
from tests.checkpoint.test_directory import equal_tensors, named_tensors
from tests.tolerances import assert_close

from manyheads.errors import RunError
from manyheads.tensors.weights import average_tensors, load_weights


def test_weights_that_do_not_fit_are_refused_with_names_and_shapes() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 2))
    before = {name: tensor.clone() for name, tensor in named_tensors(model).items()}
    tensors = {
        "0.weight": torch.zeros(3, 2),
        "0.bias": torch.zeros(2),
        "1.weight": torch.zeros(2, 2),
        "2.bias": torch.zeros(2),
    }
    with pytest.raises(RunError) as caught:
        load_weights(model, tensors, "run/model.safetensors")
    message = str(caught.value)
    assert message.startswith("run/model.safetensors does not fit")
    for part in ("0.weight is (3, 2), not (2, 3)", "1.bias is missing", "2.bias is unknown"):
        assert part in message
    assert equal_tensors(named_tensors(model), before), "nothing is copied"


def test_a_long_list_of_differences_is_truncated() -> None:
    model = torch.nn.Linear(2, 2)
    with pytest.raises(RunError, match=r"; \.\.\.\.$") as caught:
        load_weights(model, {f"{i}.bias": torch.zeros(2) for i in range(30)}, "x")
    assert str(caught.value).count("is unknown") + str(caught.value).count("is missing") == 5


def test_averaged_weights_are_computed_in_float64() -> None:
    rng = torch.Generator().manual_seed(1)
    models = [{"w": 1e4 + torch.randn(50, generator=rng), "b": torch.randn(3, generator=rng)} for _ in range(7)]
    mean = average_tensors(models)
    for name in ("w", "b"):
        exact = sum(model[name].double() for model in models) / 7
        assert mean[name].dtype == torch.float32
        assert_close(mean[name], exact)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_average_of_equal_weights_is_equal_bit_for_bit(dtype: torch.dtype) -> None:
    model = {"w": torch.randn(99, generator=torch.Generator().manual_seed(1)).to(dtype)}
    for count in (1, 3, 10):
        mean = average_tensors([model] * count)["w"]
        assert mean.dtype == dtype
        assert torch.equal(mean, model["w"])
