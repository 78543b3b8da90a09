"""Forward passes of all models on a pretended CUDA device.

`FakeTensorMode` would do the same, but has no CUDA device in builds of torch for CPUs alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.devices.pretended import CUDA, MixedDevicesError, pretended_cuda
from torch import Tensor

from manyheads.config.schema import ModelConfig
from manyheads.model import encoder_decoder
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.encoder_only import MaskedLanguageModel, TextClassifier
from manyheads.model.masks import causal_mask
from manyheads.model.transformer import Transformer

VOCABULARY, CLASSES = 23, 3
MODELS: dict[str, Callable[[ModelConfig], Transformer]] = {
    "translation": lambda config: EncoderDecoder(config, VOCABULARY, VOCABULARY),
    "classification": lambda config: TextClassifier(config, VOCABULARY, CLASSES),
    "masked-lm": lambda config: MaskedLanguageModel(config, VOCABULARY),
    "language-modeling": lambda config: DecoderOnly(config, VOCABULARY, absent=(2,)),
}
LENGTHS = {"translation": (7, 11), "classification": (7, 7)}  # of the inputs: ids, or ids and types


def logits_on_cuda(task: str, **settings: Any) -> Tensor:
    """Build a model on the CPU, move it, and compute logits of 5 texts in training mode."""
    sizes = {"d_model": 16, "d_ff": 20, "num_heads": 2, "num_encoder_layers": 2, "num_decoder_layers": 2}
    model = MODELS[task](ModelConfig(**(sizes | {"dropout": 0.1} | settings))).to("cuda").train()
    inputs = [torch.ones(5, length, dtype=torch.int64, device="cuda") for length in LENGTHS.get(task, (7,))]
    logits: Tensor = model(*inputs)
    return logits


@pytest.mark.parametrize("task", MODELS)
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_logits_are_computed_on_the_device_of_the_model(task: str, positions: str, norm: str) -> None:
    types = {"token_types": 2} if task == "classification" else {}
    with pretended_cuda():
        logits = logits_on_cuda(task, positions=positions, norm=norm, **types)
        assert logits.device == CUDA
    assert logits.size(-1) == (CLASSES if task == "classification" else VOCABULARY)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_a_mask_on_the_cpu_raises_an_error(positions: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_decoder, "causal_mask", lambda length, device=None: causal_mask(length))
    with pretended_cuda(), pytest.raises(MixedDevicesError):
        logits_on_cuda("translation", positions=positions)
