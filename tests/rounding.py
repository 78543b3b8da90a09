"""A rounding mode of the tests: results of sums differ in their last bits, as they do on other processors.

    MANYHEADS_TEST_ROUNDING=1 .venv/bin/python -m pytest tests/model

Each result of a matrix product, a sum, a mean, a norm, a softmax or an attention of torch is moved by one or two
units in the last place, forwards and backwards, in every thread. In numpy it is what `manyheads` computes with `@`,
`sum`, `mean`, `dot` and `exp`: these expressions are rewritten when its modules are imported, as numpy has no
dispatch mode. What C computes is not moved, and neither are processes that a test starts.

The move is a hash of the value and of the number in MANYHEADS_TEST_ROUNDING. So a computation that is repeated in
the same way gives the same bits, and a row has the same bits in every batch; a failure comes again with the same
number, and another number gives other moves. Whole numbers (zero, counts, one-hot probabilities), infinities, NaN
and subnormal numbers stay, as sums of them are exact. A test that needs the processor's own bits is marked
`@pytest.mark.exact_bits("which promise")`.
"""

from __future__ import annotations

import ast
import builtins
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

PACKAGE = Path(__file__).parent.parent / "src" / "manyheads"

# Operators of torch whose results are moved, by their names without overload.
OPERATORS = frozenset(
    """
    mm addmm bmm baddbmm addbmm mv addmv addr dot vdot linear convolution embedding_dense_backward
    sum nansum mean var std var_mean std_mean cumsum logsumexp logcumsumexp norm linalg_vector_norm _foreach_norm
    _softmax _safe_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data index_add scatter_add
    native_layer_norm native_layer_norm_backward _fused_rms_norm _fused_rms_norm_backward
    nll_loss_forward nll_loss2d_forward binary_cross_entropy mse_loss _scaled_dot_product_attention_math
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward
    """.split()  # noqa: SIM905
)
PROBABILITIES = frozenset({"_softmax", "_safe_softmax"})  # never above 1
FORMATS = (np.float64, np.float32)
NUMPY_CALLS = frozenset({"sum", "mean", "dot", "matmul", "einsum", "exp", "average", "std", "var"})

INTEGERS = {
    torch.float64: torch.int64,
    torch.float32: torch.int32,
    torch.bfloat16: torch.int16,
    torch.float16: torch.int16,
}
FACTORS = {8: 0x1E3779B97F4A7C15, 4: 0x1E3779B1, 2: 0x1E37}  # odd: spread low bits over the highest
PLAIN_TYPES = (Tensor, torch.nn.Parameter)


def move(x: Tensor, seed: int = 1) -> None:
    """Move the elements of a tensor by one or two units in the last place, in place, but for whole numbers."""
    if type(x) not in PLAIN_TYPES or x.device.type != "cpu" or x.dtype not in INTEGERS or x.layout != torch.strided:
        return
    bits = x.view(INTEGERS[x.dtype])
    steps = (
        bits.bitwise_xor(40_503 * seed & 0x7FFF).mul_(FACTORS[x.itemsize]).bitwise_right_shift_(8 * x.itemsize - 2)
    )
    steps += steps >= 0  # -2, -1, 1, 2
    steps *= (x != x.round()) & (x.abs() > torch.finfo(x.dtype).tiny)
    bits += steps


class Rounding(TorchDispatchMode):
    """Move the results of `OPERATORS`, those written to `out` or in place too."""

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seed = seed

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__.removesuffix("_")
        if name in OPERATORS:
            for tensor in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(tensor, Tensor):
                    move(tensor, self.seed)
                    if name in PROBABILITIES:
                        tensor.clamp_(max=1)
        return result


class Active:
    """The seed of the moves; None outside of the mode."""

    seed: int | None = None


def rounded(value: Any) -> Any:
    """Return a result of numpy, moved in the mode; whatever else is given comes back as it is."""
    if Active.seed is None or not isinstance(value, (np.ndarray, np.floating)) or value.dtype not in FORMATS:
        return value
    array = np.array(value)
    move(torch.from_numpy(array), Active.seed)
    return array if isinstance(value, np.ndarray) else array[()]


class NumpyResults(ast.NodeTransformer):
    """Pass the results of `a @ b` and of calls such as `a.sum()` through `rounded`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return wrapped(node) if isinstance(node.op, ast.MatMult) else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        return wrapped(node) if isinstance(node.func, ast.Attribute) and node.func.attr in NUMPY_CALLS else node


def wrapped(node: ast.expr) -> ast.expr:
    """Return the syntax of `rounded(node)`."""
    call = ast.Call(ast.Name("__rounded__", ast.Load()), [node], [])
    return ast.fix_missing_locations(ast.copy_location(call, node))


class Loader(SourceFileLoader):
    """A loader of modules with `NumpyResults`, which reads and writes no bytecode."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = NumpyResults().visit(ast.parse(self.get_data(path), path))
        return compile(tree, path, "exec", dont_inherit=True)


def install() -> None:
    """Rewrite the modules of the package that are imported from now on."""

    def hook(path: str) -> FileFinder:
        if not Path(path).is_relative_to(PACKAGE):
            raise ImportError
        return FileFinder(path, (Loader, [".py"]))

    builtins.__rounded__ = rounded  # type: ignore[attr-defined]
    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()


@contextmanager
def rounding(seed: int = 1) -> Iterator[None]:
    """Move the results within the context, in threads that are started in it too."""
    start = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def start_in_mode(thread: threading.Thread) -> None:
        with Rounding(seed):
            start(thread)

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(Active, "seed", seed))
        stack.enter_context(mock.patch.object(threading.Thread, "_bootstrap_inner", start_in_mode))
        stack.enter_context(Rounding(seed))
        yield
