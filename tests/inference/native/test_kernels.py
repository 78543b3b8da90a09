"""The functions of the C headers at the edges of their domain: nothing to attend to, infinity, overflow."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from manyheads.inference.native import build

pytestmark = pytest.mark.skipif(build.library() is None, reason="no C compiler here")

WRAPPER = """#include "{}"
void exponentials(const float *x, float *y) {{ store_floats(exp_lanes(load_floats(x, LANES)), y, LANES); }}
int64_t lanes(void) {{ return LANES; }}
void attend_to(const float *query, const float *keys, const float *values, int64_t count, const float *bias,
               float *workspace, float *out, float *weights) {{
    attend(query, keys, values, count, 7, 7, bias, workspace, out, weights);
}}
void normalize(const float *weight, const float *x, int64_t rows, float *y) {{
    layer_norm((LayerNorm){{weight, 0}}, x, rows, 7, 1e-5f, y);
}}
"""


@pytest.fixture(scope="module", params=sorted({build.instruction_set(), "DEFAULT"}))
def code(request, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Compile the functions for the vectors of this processor, and for narrow ones."""
    folder = tmp_path_factory.mktemp("kernels")
    source = folder / "wrapper.c"
    source.write_text(WRAPPER.format(Path(build.__file__).with_name("sublayers.h")))
    vectors = build._VECTORS.get(request.param, ())
    return ctypes.CDLL(str(build._compile_library(source, folder / "wrapper.so", vectors)))


def address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def test_the_exponential_is_zero_infinity_or_nan_where_it_must_be(code) -> None:
    x = np.resize(np.array([np.inf, -np.inf, np.nan, 3e38, -3e38, 88.5, -88, 0], dtype=np.float32), 16)
    y = np.empty_like(x)
    for first in range(0, 16, code.lanes()):
        code.exponentials(address(x[first:]), address(y[first:]))
    assert np.array_equal(y[:8], [np.inf, 0, np.nan, np.inf, 0, np.inf, 0, 1], equal_nan=True)


@pytest.mark.parametrize("count", [0, 1, 5, 64])
def test_attention_without_a_visible_key_is_zero_as_in_torch(code, count) -> None:
    rng = np.random.default_rng(1)
    query, keys, values = (rng.normal(size=size).astype(np.float32) for size in (7, (count, 7), (count, 7)))
    bias = np.full(count, -np.inf, dtype=np.float32)
    out, weights = np.full(7, 9, dtype=np.float32), np.full(count, 9, dtype=np.float32)
    workspace = np.empty(2 * (count + 16), dtype=np.float32)
    arrays = (query, keys, values)
    code.attend_to(
        *map(address, arrays), ctypes.c_int64(count), address(bias), *map(address, (workspace, out, weights))
    )
    tensors = (torch.from_numpy(array).view(1, 1, -1, 7) for array in arrays)
    mask = torch.zeros(1, 1, 1, count, dtype=torch.bool)
    right = functional.scaled_dot_product_attention(*tensors, attn_mask=mask)
    assert np.array_equal(out, right.flatten().numpy())
    assert not weights.any()


@pytest.mark.parametrize(("value", "finite"), [(1.0, True), (1e18, True), (1e30, False), (np.inf, False)])
def test_a_norm_whose_variance_overflows_is_nan(code, value, finite) -> None:
    """The factor 1 / sqrt(infinity) = 0 would hide the overflow."""
    x = np.array([[1, -1, 1, -1, 1, -1, 0], [value, -1, 1, -1, 1, -1, 0]], dtype=np.float32)
    y = np.empty_like(x)
    code.normalize(address(np.ones(7, dtype=np.float32)), address(x), ctypes.c_int64(2), address(y))
    assert np.isfinite(y[0]).all()
    assert np.isfinite(y[1]).all() == np.isfinite(y[1]).any() == finite
