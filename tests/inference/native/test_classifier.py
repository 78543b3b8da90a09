"""A classifier in C has the probabilities of the model in torch, with the same bits in any batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from tests.inference.test_classifier import make_classifier, some_texts, values
from tests.tolerances import assert_close

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import ModelConfig
from manyheads.inference.classifier import Classifier
from manyheads.inference.labels import LABELS
from manyheads.inference.native.build import library
from manyheads.text.tokenizer import TokenizerPair

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler here")


def save_classifier(classifier: Classifier, path: Path) -> Path:
    """Write a classifier as a run, and return its directory."""
    run, tokenizer = RunDirectory(path), classifier.tokenizer
    documents = {LABELS: classifier.labels.to_json()}
    run.begin(classifier.config, TokenizerPair(tokenizer, tokenizer, joint=True), {}, documents)
    run.publish(dict(classifier.model.named_parameters()))
    return path


@pytest.mark.parametrize(
    "model",
    [
        {},
        {"positions": "learned", "pooling": "cls", "pooler": "relu", "norm": "post"},
        {"positions": "rotary", "token_types": 2, "embedding_norm": True},
        {"positions": "learned", "token_types": 2},
        {"token_types": 1, "activation": "gelu", "num_encoder_layers": 2},
        *({"pooling": pooling} for pooling in get_args(ModelConfig.model_fields["pooling"].annotation)),
        *({"pooler": pooler} for pooler in get_args(ModelConfig.model_fields["pooler"].annotation)),
    ],
    ids=str,
)
def test_a_run_is_classified_in_c_as_by_torch(tmp_path: Path, model: dict[str, Any]) -> None:
    run = save_classifier(make_classifier(texts=2, **model), tmp_path / "run")
    texts = [*map("\t".join, zip(some_texts(), some_texts(seed=2), strict=True)), "abc"]
    classifier = Classifier.load(run, device="cpu")
    found = values(classifier, texts)
    assert np.array_equal(found, np.concatenate([values(classifier, [text]) for text in texts]))
    assert classifier.native is not None
    assert classifier.model is not None  # loads it with torch, which then computes
    assert classifier.native is None
    assert_close(torch.from_numpy(found), torch.from_numpy(values(classifier, texts)), dtype=torch.float32)
