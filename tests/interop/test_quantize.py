"""Matrices rounded to 8 bits: near to what they were, and computed exactly whatever the processor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.interop.parts import make_parts, sentences

from manyheads.interop.ctranslate2.convert import load_ctranslate2, write_ctranslate2
from manyheads.interop.ctranslate2.quantize import round_rows
from manyheads.interop.parity import Samples, reference

pytest.importorskip("ctranslate2")

EIGHT_BITS = ("int8", "int8_float32", "int8_bfloat16", "int8_float16")
# What limits the kernels of oneDNN and MKL on x86-64.
LIMITS = {
    "none": {},
    "AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "CT2_FORCE_CPU_ISA": "AVX2"},
    "SSE4.1": {"ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "CT2_FORCE_CPU_ISA": "GENERIC"},
}
# Scores outputs with CTranslate2 alone; without torch it starts at once.
SCORER = """
import json, sys
sys.modules["torch"] = None
import ctranslate2
sources, outputs = json.load(sys.stdin)
found = ctranslate2.Translator(sys.argv[1]).score_batch(sources, outputs)
print(json.dumps([result.log_probs for result in found]))
"""


def matrices() -> list[torch.Tensor]:
    """Widths odd and even; rows of one sign, of zeros, of next to nothing; halves that are all rounded up."""
    rng = torch.Generator().manual_seed(1)
    drawn = [torch.randn(41, width, generator=rng) for width in (1, 2, 37, 64)]
    halves = torch.full((3, 6), 63.5)
    halves[1].neg_()
    tiny = torch.full((2, 5), 1e-41)
    return [*drawn, drawn[2].abs(), -drawn[3].abs(), halves, tiny, torch.zeros(2, 7)]


@pytest.mark.parametrize("place", range(9))
def test_no_two_neighbours_and_no_inputs_leave_16_bits(place: int) -> None:
    rounded = torch.nn.functional.pad(round_rows(matrices()[place])[0], (0, 1)).int()
    pairs = rounded[:, : rounded.size(1) // 2 * 2].unflatten(1, (-1, 2))
    highest, lowest = (255 * pairs.clamp(min=0)).sum(2), (255 * pairs.clamp(max=0)).sum(2)
    assert int(highest.max()) <= 2**15 - 1
    assert int(lowest.min()) >= -(2**15)


@pytest.mark.parametrize("place", range(9))
def test_each_weight_is_within_half_a_step(place: int) -> None:
    weight = matrices()[place]
    rounded, scale = round_rows(weight)
    assert rounded.dtype == torch.int8
    assert bool(torch.isfinite(scale).all())
    steps = rounded.double() - weight.double() * scale.double()[:, None]
    assert float(steps.abs().max()) <= 0.5 + 1e-5


def test_the_range_is_used() -> None:
    """Rows without neighbours that add up keep all of it; of normal weights a third is lost at most."""
    alone = torch.tensor([[1.0, 0.0, -1.0, 1.0]])
    assert round_rows(alone)[0].tolist() == [[127, 0, -127, 127]]
    drawn = torch.randn(200, 256, generator=torch.Generator().manual_seed(1))
    assert float(round_rows(drawn)[0].abs().amax(1).float().mean()) > 85


def scored(folder: Path, sources: list[list[str]], outputs: list[list[str]], limit: str) -> torch.Tensor:
    """Log-probabilities of all tokens of outputs, in a process with limited instructions."""
    free = {
        name: value for name, value in os.environ.items() if not any(name in given for given in LIMITS.values())
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
    """Sums of 16 bits that saturate move these scores by 0.5 nats; rounding the inputs, by 0.02."""
    parts = make_parts()
    write_ctranslate2(tmp_path, *parts, quantization="int8")
    right = reference(parts[2], Samples(parts[1].source.encode(sentences(13, seed=5)), ""))
    _, engine = load_ctranslate2(tmp_path, compute_type="float32")
    exact = torch.tensor([score for row in engine.score(right.samples.rows, right.outputs) for score in row])
    sources = [engine.source_text(row) for row in right.samples.rows]
    outputs = [[engine.target_names[token] for token in row] for row in right.outputs]
    found = {limit: scored(tmp_path, sources, outputs, limit) for limit in LIMITS}
    for scores in found.values():
        assert 0 < float((scores - exact).abs().mean()) < 0.1
        assert float((scores - found["none"]).abs().mean()) < 0.005  # an input here and there is rounded otherwise


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
    assert saved >= 2 * vocabulary * 30  # of three matrices, two of a byte a weight


def test_other_numbers_are_those_of_the_name(tmp_path: Path) -> None:
    """Norms and biases of int8_bfloat16 and int8_float16 take half the place."""
    sizes = {}
    for numbers in EIGHT_BITS:
        folder = tmp_path / numbers
        folder.mkdir()
        write_ctranslate2(folder, *make_parts(), quantization=numbers)
        sizes[numbers] = (folder / "model.bin").stat().st_size
    assert sizes["int8"] == sizes["int8_float32"] > sizes["int8_bfloat16"] == sizes["int8_float16"]
