"""The rounding mode moves what another processor would round differently, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.rounding import Active, Loader, rounded, rounding
from tests.tolerances import assert_close

M, K, N = 5, 7, 11
COMPUTATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "matmul": lambda x: x @ x.T,
    "linear": lambda x: functional.linear(x, x, x[:, 0]),
    "batched": lambda x: torch.stack([x, x]) @ torch.stack([x.T, x.T]),
    "einsum": lambda x: torch.einsum("ik,jk->ij", x, x),
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean(),
    "norm": lambda x: x.norm(),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "layer_norm": lambda x: functional.layer_norm(x, (K,)),
    "attention": lambda x: functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    "cross_entropy": lambda x: functional.cross_entropy(x, torch.arange(M)),
    "in place": lambda x: torch.zeros(M, M, dtype=x.dtype).addmm_(x, x.T),
    "out": lambda x: torch.mm(x, x.T, out=torch.empty(M, M, dtype=x.dtype)),
}


def sample(dtype: torch.dtype = torch.float32, seed: int = 3) -> Tensor:
    return torch.randn(M, K, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.exact_bits("the results outside of the mode are those of the processor")
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_results_change_a_little_and_in_the_same_way_each_time(name: str) -> None:
    compute = COMPUTATIONS[name]
    plain = compute(sample())
    with rounding():
        found, again = compute(sample()), compute(sample())
    others = []
    for seed in range(2, 10):
        with rounding(seed):
            others.append(compute(sample()))
    assert not torch.equal(found, plain)
    torch.testing.assert_close(found, plain)
    assert torch.equal(found, again)
    assert not all(torch.equal(found, other) for other in others)


@pytest.mark.exact_bits("the results outside of the mode are those of the processor")
def test_threads_of_the_mode_are_in_it() -> None:
    found: list[Tensor] = []

    def compute() -> None:
        found.append(sample() @ sample().T)

    with rounding():
        expected = sample() @ sample().T
        thread = threading.Thread(target=compute)
        thread.start()
        thread.join()
    thread = threading.Thread(target=compute)
    thread.start()
    thread.join()
    assert torch.equal(found[0], expected)
    assert not torch.equal(found[1], expected), "threads that start later are not"


@pytest.mark.exact_bits("the results outside of the mode are those of the processor")
def test_results_of_numpy_change_in_rewritten_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.__rounded__", rounded, raising=False)
    path = tmp_path / "computing.py"
    path.write_text(
        "def product(x):\n    return x @ x.T\n\n\ndef means(x):\n    return x.mean(1)\n\n\n"
        "def total(x):\n    return x.sum()\n\n\ndef count(x):\n    return (x > 0).sum()\n"
    )
    spec = spec_from_loader("computing", Loader("computing", str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    x = sample().numpy()
    expected = {"product": x @ x.T, "means": x.mean(1), "total": x.sum()}
    for name, right in expected.items():
        np.testing.assert_array_equal(getattr(module, name)(x), right, "outside of the mode")
    with rounding():
        assert module.count(x) == (x > 0).sum()
        for name, right in expected.items():
            found = getattr(module, name)(x)
            assert type(found) is type(right)
            assert found.dtype == right.dtype
            assert (found != right).all()
            assert_close(found, right, terms=1)
    assert Active.seed is None
