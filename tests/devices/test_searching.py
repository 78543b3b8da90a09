"""Every search on a pretended CUDA device: no tensor is left on the wrong device, and the outputs are the CPU's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.devices.pretended import CUDA, MixedDevicesError, WithoutDevice, pretended_cuda
from tests.inference.translation.test_translator import make_translator, save_run
from tests.tolerances import approx
from tests.training.parts import CPU, EOS, PAD, VOCABULARY, random_pairs, tiny_model
from torch import Tensor

from manyheads.config.schema import ModelConfig
from manyheads.decoding import engine as engine_module
from manyheads.decoding import language_model
from manyheads.decoding import model as inference
from manyheads.decoding.engine import TorchEngine
from manyheads.decoding.greedy import greedy_search
from manyheads.decoding.language_model import DecoderOnlyStepper
from manyheads.decoding.sampling import sample
from manyheads.errors import UsageError
from manyheads.inference.engines import AutoEngine
from manyheads.inference.translation.translator import Translator
from manyheads.model.decoder_only import DecoderOnly
from manyheads.search.interface import Hypothesis, SpecialIds
from manyheads.search.options import Constraints, Sampling, SearchOptions

ROWS = random_pairs(7)[0]
BASE: dict[str, Any] = {
    "beam_size": 3,
    "length_penalty": 1.0,
    "max_length_ratio": 2.0,
    "max_length_offset": 5,
    "batch_tokens": 60,
}
SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {"beam_size": 1},
    "beam": {"n_best": 3},
    "sampling": {"sampling": Sampling(temperature=0.9, top_k=11, top_p=0.9), "n_best": 2},
    "constrained": {},
    "prefixes and rules": {"no_repeat_ngram": 2, "min_length_ratio": 0.5},
    "rescoring": {"alternatives": 2, "alignment": True, "n_best": 2},
    "greedy rescoring": {"beam_size": 1, "alternatives": 2, "alignment": True},
}
CONSTRAINTS = {
    "constrained": [Constraints(required=((7,), (8, 9)) if number % 2 else ()) for number in range(len(ROWS))],
    "prefixes and rules": [
        Constraints((5, 6) if number % 2 else (), forbidden=((7, 8), (9,))) for number in range(len(ROWS))
    ],
}
POSITIONS = ("sinusoidal", "learned", "rotary")


def engine_on(device: torch.device, models: int = 1, positions: str = "sinusoidal") -> TorchEngine:
    built = [tiny_model(seed, positions=positions, num_decoder_layers=2) for seed in range(1, models + 1)]
    return TorchEngine([model.to(device) for model in built])


def tokens_of(outputs: Sequence[Sequence[Hypothesis]]) -> list[list[Any]]:
    return [[(output.tokens, output.ended, output.attention is None) for output in row] for row in outputs]


def scores(outputs: Sequence[Sequence[Hypothesis]]) -> list[float]:
    return [score for row in outputs for output in row for score in (output.score, *output.token_scores)]


@pytest.mark.parametrize(
    ("models", "search"),
    [(1, search) for search in SEARCHES]
    + [pytest.param(2, search, marks=pytest.mark.slow) for search in ("prefixes and rules", "rescoring")],
)
def test_a_search_finds_the_outputs_of_the_cpu(models: int, search: str) -> None:
    options, constraints = SearchOptions(**(BASE | SEARCHES[search])), CONSTRAINTS.get(search, ())
    expected = engine_on(CPU, models).search(ROWS, options, constraints)
    with pretended_cuda() as device:
        found = engine_on(device, models).search(ROWS, options, constraints)
    assert tokens_of(found) == tokens_of(expected)
    assert scores(found) == approx(scores(expected))


@pytest.mark.parametrize(("positions", "beam_size"), [*zip(POSITIONS, (1, 3, 1), strict=True)])
def test_every_kind_of_positions_decodes_as_on_the_cpu(positions: str, beam_size: int) -> None:
    options = SearchOptions(**(BASE | {"beam_size": beam_size}))
    expected = engine_on(CPU, positions=positions).search(ROWS, options)
    with pretended_cuda() as device:
        assert tokens_of(engine_on(device, positions=positions).search(ROWS, options)) == tokens_of(expected)


def test_a_stream_and_a_cancelled_search_stay_on_the_device() -> None:
    greedy_options = SearchOptions(**(BASE | {"beam_size": 1}))
    expected = list(engine_on(CPU).stream(ROWS[0], greedy_options))
    with pretended_cuda() as device:
        engine = engine_on(device)
        assert list(engine.stream(ROWS[0], greedy_options)) == expected
        for search in ({}, SEARCHES["beam"], SEARCHES["sampling"]):
            outputs = engine.search(ROWS, SearchOptions(**(BASE | search)), cancelled=lambda: [1, 4])
            assert len(outputs) == len(ROWS)


def test_on_a_gpu_torch_searches_in_place_of_c() -> None:
    options = SearchOptions(**(BASE | SEARCHES["beam"]))
    expected = engine_on(CPU).search(ROWS, options)
    with pretended_cuda() as device:
        engine = AutoEngine(lambda: engine_on(device))
        assert not engine.can_batch_continuously(options)
        assert tokens_of(engine.search(ROWS, options)) == tokens_of(expected)


def test_int8_is_refused_on_a_gpu(tmp_path: Path) -> None:
    run = save_run(make_translator(), tmp_path / "run")
    message = 'precision "int8" is computed in C alone, and the device is cuda:0'
    with pretended_cuda(), pytest.raises(UsageError, match=message):
        Translator.load(run, device="cuda:0", precision="int8")


def language_model_on(device: torch.device, positions: str) -> DecoderOnly:
    torch.manual_seed(1)
    config = ModelConfig(
        d_model=16, d_ff=20, num_heads=2, num_decoder_layers=2, dropout=0.0, positions=positions, max_positions=64
    )  # fmt: skip
    return DecoderOnly(config, VOCABULARY, pad=PAD).double().eval().to(device)


def continuations(device: torch.device, positions: str, *, draw: bool) -> list[Hypothesis]:
    """Continue contexts of different lengths beyond a window of 8 tokens."""
    stepper = DecoderOnlyStepper(language_model_on(device, positions), [[5], [6, 7, 8, 9, 10], [4] * 11], 8)
    limits = torch.tensor([13, 4, 17], device=device)
    options, special = SearchOptions(length_penalty=1.0, n_best=2, sampling=Sampling()), SpecialIds(2, EOS, (PAD,))
    if not draw:
        return greedy_search(stepper, options, limits, special)
    return [output for row in sample(stepper, [[1], [2], [3]], options, limits, special) for output in row]


@pytest.mark.parametrize(("positions", "draw"), [*zip(POSITIONS, (False, True, True), strict=True)])
def test_a_language_model_with_its_cache_writes_the_texts_of_the_cpu(positions: str, draw: bool) -> None:
    with torch.inference_mode():
        expected = continuations(CPU, positions, draw=draw)
        with pretended_cuda() as device:
            found = continuations(device, positions, draw=draw)
    assert [output.tokens for output in found] == [output.tokens for output in expected]
    assert max(len(output.tokens) for output in expected) > 8


class FaultyStepper(DecoderOnlyStepper):
    """A faulty stepper whose row indices stay on the CPU."""

    def select(self, rows: Tensor) -> None:
        super().select(rows.cpu())


FAULTS: dict[str, tuple[Any, str, Any]] = {
    "positions on the CPU": (inference, "torch", WithoutDevice("arange")),
    "the bias of padding on the CPU": (inference, "torch", WithoutDevice("zeros")),
    "limits on the CPU": (
        engine_module,
        "greedy_search",
        lambda stepper, options, limits, special: greedy_search(stepper, options, limits.cpu(), special),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_injected_fault_in_the_search_of_a_translator_raises_an_error(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*FAULTS[name])
    options = SearchOptions(**(BASE | {"beam_size": 1}))
    with pretended_cuda(), pytest.raises(MixedDevicesError):
        engine_on(CUDA, positions="rotary").search(ROWS, options)
    engine_on(CPU, positions="rotary").search(ROWS, options)  # no error on a CPU


@pytest.mark.parametrize("name", ["positions", "rows"])
def test_an_injected_fault_in_a_language_model_raises_an_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "positions":
        monkeypatch.setattr(language_model, "torch", WithoutDevice("arange"))
    else:
        monkeypatch.setitem(globals(), "DecoderOnlyStepper", FaultyStepper)
    with torch.inference_mode():
        with pretended_cuda(), pytest.raises(MixedDevicesError):
            continuations(CUDA, "sinusoidal", draw=False)
        continuations(CPU, "sinusoidal", draw=False)
