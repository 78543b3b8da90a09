"""The figures of `training_speed.py` agree with the given text and model, and its count with torch's."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.runs.parts import make_config, write_corpus, write_split
from tests.tolerances import approx
from torch.utils.flop_counter import FlopCounterMode

from manyheads.config.schema import ModelConfig
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.tensors.pairs import make_batch
from manyheads.training.objective import translation_loss
from manyheads.training.update import Updater
from training_speed import (
    LEARNING_RATE,
    WARM_UPDATES,
    flops_per_target_token,
    measure_training,
    product_ceiling,
)

S, T = 5, 13  # tokens a side, end marks counted
BYTES = 260  # the vocabulary


def test_figures_of_text_of_one_length_are_exact(tmp_path: Path) -> None:
    """Every source has S - 1 letters and every target T - 1: nothing is padding."""
    for name, first in (("train", 0), ("valid", 60)):
        numbers = range(first, first + 40)
        write_split(tmp_path / "corpus", name, [(f"{n:0{S - 1}}", f"{n:0{T - 1}}") for n in numbers])
    config = make_config(tmp_path / "corpus", data={"test": None}, tokenizer={"kind": "bytes"})
    found = measure_training(config, rounds=3, updates=2)
    model = EncoderDecoder(config.model, BYTES, BYTES)
    assert found.padding == 0
    assert found.source_tokens_per_second == pytest.approx(found.median * S / T)
    assert found.gflops == pytest.approx(found.median * flops_per_target_token(model, S, T) / 1e9)
    assert found.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert found.precision == "fp32"


def test_complete_updates_are_timed_after_warm_up_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []
    apply = Updater.apply

    def recording_apply(updater: Updater, rate: float) -> float:
        rates.append(rate)
        return apply(updater, rate)

    monkeypatch.setattr(Updater, "apply", recording_apply)
    measure_training(make_config(write_corpus(tmp_path / "corpus")), rounds=2, updates=5)
    assert rates == [LEARNING_RATE] * (WARM_UPDATES + 2 * 5)


B, V = 3, 23


def make_model(**settings: object) -> EncoderDecoder:
    config = {
        "d_model": 16,
        "d_ff": 20,
        "num_heads": 2,
        "num_encoder_layers": 2,
        "num_decoder_layers": 3,
        "dropout": 0,
    }
    return EncoderDecoder(ModelConfig.model_validate(config | settings), V, V)


@pytest.mark.parametrize("settings", [{}, {"activation": "swiglu", "bias": False}, {"tied_embeddings": "none"}])
def test_the_flops_per_token_are_those_that_torch_counts_for_products_with_weights(
    settings: dict[str, object],
) -> None:
    """The keys and values of the cross-attention are corrected for the length of the source."""
    model = make_model(**settings)
    batch = make_batch([[5] * (S - 1)] * B, [[6] * (T - 1)] * B, pad=1, bos=2, eos=3)
    with FlopCounterMode(display=False) as counter:
        translation_loss(model, batch, 0.1)[0].backward()
    counted = counter.get_flop_counts()["Global"]
    products = sum(flops for op, flops in counted.items() if str(op) in ("aten.mm", "aten.addmm"))
    cross = 3 * 2 * 16 * 16  # layers, keys and values
    expected = B * T * flops_per_target_token(model, S, T) + 6 * B * (S - T) * cross
    assert products == approx(expected, dtype=torch.float64)


def test_the_measured_ceiling_of_a_matrix_product_is_plausible() -> None:
    found = product_ceiling(torch.device("cpu"), "fp32", seconds=0.05)
    assert 1e8 < found < 1e14
