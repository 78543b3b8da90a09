"""Matrices rounded to 8 bits: near the originals, and computed exactly on every processor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.interop.parts import make_parts, sentences

from manyheads.inference.parity import Samples
from manyheads.interop.ctranslate2.convert import load_ctranslate2, write_ctranslate2
from manyheads.interop.ctranslate2.quantize import _round_rows
from manyheads.interop.reference import reference

pytest.importorskip("ctranslate2")

EIGHT_BITS = ("int8", "int8_float32", "int8_bfloat16", "int8_float16")
# Environment variables that limit the kernels of oneDNN and MKL on x86-64.
LIMITS = {
    "none": {},
    "AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "CT2_FORCE_CPU_ISA": "AVX2"},
    "SSE4.1": {"ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "CT2_FORCE_CPU_ISA": "GENERIC"},
}
# Scores outputs with CTranslate2 alone; the program starts faster without torch.
SCORER = """
import json, sys
sys.modules["torch"] = None
import ctranslate2
sources, outputs = json.load(sys.stdin)
found = ctranslate2.Translator(sys.argv[1]).score_batch(sources, outputs)
print(json.dumps([result.log_probs for result in found]))
"""


def matrices() -> list[torch.Tensor]:
    """Return matrices of odd and even widths, of one sign, of halves, of tiny values and of zeros."""
    rng = torch.Generator().manual_seed(1)
    drawn = [torch.randn(41, width, generator=rng) for width in (1, 2, 37, 64)]
    halves = torch.full((3, 6), 63.5)
    halves[1].neg_()
    tiny = torch.full((2, 5), 1e-41)
    return [*drawn, drawn[2].abs(), -drawn[3].abs(), halves, tiny, torch.zeros(2, 7)]


@pytest.mark.parametrize("index", range(9))
def test_products_with_two_neighbouring_weights_fit_into_16_bits(index: int) -> None:
    rounded = torch.nn.functional.pad(_round_rows(matrices()[index])[0], (0, 1)).int()
    pairs = rounded[:, : rounded.size(1) // 2 * 2].unflatten(1, (-1, 2))
    highest, lowest = (255 * pairs.clamp(min=0)).sum(2), (255 * pairs.clamp(max=0)).sum(2)
    assert int(highest.max()) <= 2**15 - 1
    assert int(lowest.min()) >= -(2**15)


@pytest.mark.parametrize("index", range(9))
def test_each_weight_is_within_half_a_step(index: int) -> None:
    weight = matrices()[index]
    rounded, scale = _round_rows(weight)
    assert rounded.dtype == torch.int8
    assert bool(torch.isfinite(scale).all())
    steps = rounded.double() - weight.double() * scale.double()[:, None]
    assert float(steps.abs().max()) <= 0.5 + 1e-5


def test_the_range_of_8_bits_is_used() -> None:
    """Rows whose neighbours do not add up use the full range, and normal weights at least two thirds of it."""
    alone = torch.tensor([[1.0, 0.0, -1.0, 1.0]])
    assert _round_rows(alone)[0].tolist() == [[127, 0, -127, 127]]
    drawn = torch.randn(200, 256, generator=torch.Generator().manual_seed(1))
    assert float(_round_rows(drawn)[0].abs().amax(1).float().mean()) > 85


def score_outputs(folder: Path, sources: list[list[str]], outputs: list[list[str]], limit: str) -> torch.Tensor:
    """Return the log-probabilities of all output tokens, computed in a process with a limited instruction set."""
    free = {
        name: value
        for name, value in os.environ.items()
        if not any(name in variables for variables in LIMITS.values())
    }
    done = subprocess.run(
        [sys.executable, "-c", SCORER, str(folder)],
        input=json.dumps([sources, outputs]),
        env=free | LIMITS[limit],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return torch.tensor([score for row in json.loads(done.stdout) for score in row])


def test_every_instruction_set_computes_the_same_from_8_bits(tmp_path: Path) -> None:
    """Saturated 16-bit sums would change these scores by 0.5 nats, rounding of the inputs by 0.02."""
    parts = make_parts()
    write_ctranslate2(tmp_path, *parts, quantization="int8")
    expected = reference(parts[2], Samples(parts[1].source.encode(sentences(13, seed=5)), ""))
    _, engine = load_ctranslate2(tmp_path, compute_type="float32")
    exact = torch.tensor([score for row in engine.score(expected.samples.rows, expected.outputs) for score in row])
    sources = [engine.source_text(row) for row in expected.samples.rows]
    outputs = [[engine.target_names[token] for token in row] for row in expected.outputs]
    found = {limit: score_outputs(tmp_path, sources, outputs, limit) for limit in LIMITS}
    for scores in found.values():
        assert 0 < float((scores - exact).abs().mean()) < 0.1
        assert float((scores - found["none"]).abs().mean()) < 0.005  # single inputs are rounded differently


@pytest.mark.parametrize("numbers", EIGHT_BITS)
def test_tied_matrices_are_stored_once(tmp_path: Path, numbers: str) -> None:
    sizes = []
    for tied in ("all", "none"):
        parts = make_parts(tied_embeddings=tied)
        folder = tmp_path / tied
        folder.mkdir()
        write_ctranslate2(folder, *parts, quantization=numbers)
        sizes.append((folder / "model.bin").stat().st_size)
    vocabulary = parts[1].source.size
    saved = sizes[1] - sizes[0]
    assert saved >= 2 * vocabulary * 30  # two of three matrices, with one byte per weight


def test_norms_and_biases_have_the_number_type_in_the_name(tmp_path: Path) -> None:
    """Norms and biases of int8_bfloat16 and int8_float16 use half the bytes."""
    sizes = {}
    for numbers in EIGHT_BITS:
        folder = tmp_path / numbers
        folder.mkdir()
        write_ctranslate2(folder, *make_parts(), quantization=numbers)
        sizes[numbers] = (folder / "model.bin").stat().st_size
    assert sizes["int8"] == sizes["int8_float32"] > sizes["int8_bfloat16"] == sizes["int8_float16"]
