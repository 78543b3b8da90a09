"""The choice of device and number format."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
import torch

from manyheads.errors import ConfigError
from manyheads.tensors import devices as module
from manyheads.tensors.devices import autocast, pick_device, pick_precision

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(("available", "expected"), [(True, "cuda"), (False, "cpu")])
def test_auto_takes_a_gpu_when_there_is_one(
    monkeypatch: pytest.MonkeyPatch, available: bool, expected: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    assert pick_device("auto").type == expected


@pytest.mark.parametrize("name", ["cuda:99", "tpu9", "cpu:x", ""])
def test_an_unavailable_device_is_an_error_that_names_it(name: str) -> None:
    with pytest.raises(ConfigError, match=r"training\.device = .* cannot be used") as caught:
        pick_device(name)
    assert f'"{name}"' in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("device", [CPU, CUDA])
def test_a_named_format_is_taken_without_a_measurement(
    monkeypatch: pytest.MonkeyPatch, precision: str, device: torch.device
) -> None:
    monkeypatch.setattr(module, "_product_seconds", refuse)
    assert pick_precision(precision, device) == precision  # type: ignore[arg-type]


def refuse(dtype: torch.dtype, enough: float = 10.0) -> float:
    raise AssertionError("nothing was to be measured")


def seconds(bfloat16: float) -> Callable[..., float]:
    return lambda dtype, enough=10.0: bfloat16 if dtype == torch.bfloat16 else 1.0


@pytest.mark.parametrize(("bfloat16", "expected"), [(0.5, "bf16"), (0.9, "fp32"), (2.0, "fp32")])
def test_auto_is_bf16_on_a_cpu_where_it_is_clearly_faster(
    monkeypatch: pytest.MonkeyPatch, bfloat16: float, expected: str
) -> None:
    monkeypatch.setattr(module, "_product_seconds", seconds(bfloat16))
    monkeypatch.setattr(module, "_bf16_is_faster", functools.cache(module._bf16_is_faster.__wrapped__))
    assert pick_precision("auto", CPU) == expected
    monkeypatch.setattr(module, "_product_seconds", refuse)
    assert pick_precision("auto", CPU) == expected, "measured once in a process"


@pytest.mark.parametrize(("supported", "expected"), [(True, "bf16"), (False, "fp32")])
def test_auto_is_bf16_on_a_gpu_that_has_it(monkeypatch: pytest.MonkeyPatch, supported: bool, expected: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: supported)
    assert pick_precision("auto", CUDA) == expected


def test_the_measured_time_of_a_product_is_plausible() -> None:
    assert 0 < module._product_seconds(torch.float32) < 10


def test_a_product_that_is_far_too_slow_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    products: list[torch.Tensor] = []
    monkeypatch.setattr(torch, "mm", lambda a, b: products.append(a))
    module._product_seconds(torch.bfloat16, enough=0.0)
    assert len(products) == 1


@pytest.mark.parametrize(("precision", "expected"), [("bf16", torch.bfloat16), ("fp32", torch.float32)])
def test_products_are_computed_in_the_chosen_format(precision: str, expected: torch.dtype) -> None:
    a = torch.ones(3, 3)
    with autocast(CPU, precision):  # type: ignore[arg-type]
        assert (a @ a).dtype == expected
    assert (a @ a).dtype == torch.float32
