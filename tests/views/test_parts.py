"""The settings of a model beside its pictures are those of its configuration."""

from __future__ import annotations

import pytest

from manyheads.config.schema import Config
from manyheads.views.parts import ModelFacts


@pytest.mark.parametrize(
    ("task", "layers"), [("translation", (3, 2)), ("classification", (3, 0)), ("language-modeling", (0, 2))]
)
def test_a_missing_encoder_or_decoder_has_no_layers(task: str, layers: tuple[int, int]) -> None:
    data = {"source": "de", "target": "en"} if task == "translation" else {"language": "en"}
    model = {
        "d_model": 16,
        "d_ff": 24,
        "num_heads": 2,
        "num_encoder_layers": 3,
        "num_decoder_layers": 2,
        "norm": "post",
    }
    config = Config.model_validate({"task": task, "data": data, "model": model})
    assert ModelFacts.of(config) == ModelFacts(task, 16, 24, 2, *layers, "post", config.model.positions)
