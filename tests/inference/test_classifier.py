"""Classifier: the result of a text depends on that text alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.tolerances import approx, assert_close
from torch import Tensor

from manyheads.config.schema import Config
from manyheads.errors import UsageError
from manyheads.inference.classifier import Classifier
from manyheads.inference.labels import Labels
from manyheads.model.encoder_only import TextClassifier
from manyheads.text.tokenizer import BOS, EOS, PAD
from manyheads.text.training import train_tokenizer

LETTERS = "abcdefghijklm"
NAMES = ("no", "yes it is", "perhaps")


def make_classifier(*, texts: int = 1, seed: int = 3, max_length: int = 23, **model: Any) -> Classifier:
    """Return a classifier with D = 16, 1 layer over letters, three classes, and large random weights."""
    sizes = {"d_model": 16, "d_ff": 20, "num_heads": 2, "num_encoder_layers": 1, "dropout": 0.4}
    config = Config.model_validate(
        {
            "task": "classification",
            "data": {"language": "en", "max_length": max_length},
            "tokenizer": {"kind": "characters"},
            "model": sizes | model,
        }
    )
    tokenizer = train_tokenizer(config.tokenizer, [LETTERS + " "], "en")
    torch.manual_seed(seed)
    network = TextClassifier(config.model, tokenizer.size, len(NAMES), pad=PAD)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(1.6) if parameter.ndim > 1 else parameter.add_(0.3 * torch.randn_like(parameter))
    return Classifier(config, tokenizer, Labels(NAMES, texts), network)


def some_texts(count: int = 17, seed: int = 1) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(LETTERS), rng.integers(1, 20))) for _ in range(count)]


def values(classifier: Classifier, texts: list[str]) -> np.ndarray:
    return np.array([list(result.probabilities.values()) for result in classifier.classify(texts)])


def direct_probabilities(classifier: Classifier, ids: list[int], types: list[int] | None = None) -> Tensor:
    """Return the probabilities of one text by a direct call of the model, without padding."""
    kinds = None if types is None else torch.tensor([types])
    with torch.inference_mode():
        return classifier.model.eval()(torch.tensor([ids]), kinds)[0].double().softmax(-1)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_the_classes_of_a_text_do_not_depend_on_the_other_texts(
    pooling: str, positions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier = make_classifier(pooling=pooling, positions=positions)
    texts = some_texts()
    batched = values(classifier, texts)
    separate = np.concatenate([values(classifier, [text]) for text in texts])
    reversed_order = values(classifier, texts[::-1])[::-1]
    monkeypatch.setattr("manyheads.decoding.text_batches._BATCH_TOKENS", 40)
    small_batches = values(classifier, texts)
    for other in (separate, reversed_order, small_batches):
        assert_close(other, batched, dtype=torch.float32)
    assert batched.max(1).std() > 0.01, "texts differ"


def test_the_input_of_the_model_is_the_text_between_bos_and_eos() -> None:
    classifier = make_classifier()
    (found,) = classifier.classify(["abca"])
    ids = classifier.tokenizer.encode(["abca"])[0]
    expected = direct_probabilities(classifier, [BOS, *ids, EOS])
    assert list(found.probabilities.values()) == approx(expected.tolist())
    best = int(expected.argmax())
    assert (found.label, found.probability) == (NAMES[best], approx(float(expected[best])))
    assert sum(found.probabilities.values()) == pytest.approx(1)


@pytest.mark.parametrize("token_types", [0, 2])
@pytest.mark.parametrize("pair", [("abc", "de"), "abc\tde"])
def test_two_texts_are_separated_by_eos_and_by_their_token_types(token_types: int, pair: Any) -> None:
    classifier = make_classifier(texts=2, token_types=token_types)
    (found,) = classifier.classify([pair])
    first, second = classifier.tokenizer.encode(["abc", "de"])
    types = [0] * 5 + [1] * 3 if token_types else None
    expected = direct_probabilities(classifier, [BOS, *first, EOS, *second, EOS], types)
    assert list(found.probabilities.values()) == approx(expected.tolist())
    assert found.text == "abc\tde"


def test_empty_lines_are_kept_and_have_no_label() -> None:
    classifier = make_classifier()
    found = classifier.classify(["", "ab", " \t ", "\u3000"])
    assert [result.label != "" for result in found] == [False, True, False, False]
    assert [(result.probability, result.probabilities) for result in found if not result.label] == [(0.0, {})] * 3
    assert classifier.classify([]) == []


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_a_long_text_is_truncated_at_the_limit_and_marked_as_truncated(positions: str) -> None:
    classifier = make_classifier(positions=positions, max_positions=25)
    long = "abcdefg" * 15_000  # 105,000 tokens
    cut, whole, beyond = classifier.classify([long, long[:23], long[:24]])
    assert (cut.truncated, whole.truncated, beyond.truncated) == (True, False, True)
    assert list(cut.probabilities.values()) == approx(list(whole.probabilities.values()))
    assert cut.text == long


def test_learned_positions_limit_the_length_of_a_text() -> None:
    assert make_classifier(positions="learned", max_positions=12).longest == 10
    assert make_classifier(positions="rotary", max_positions=12).longest == 23


def test_invalid_inputs_are_refused() -> None:
    with pytest.raises(UsageError, match=r"not one text. Use classify\(\[text\]\)\[0\]"):
        make_classifier().classify("abc")
    with pytest.raises(UsageError, match="2 texts in one example, but this model knows 1"):
        make_classifier().classify([("a", "b")])
    with pytest.raises(UsageError, match="3 texts in one example"):
        make_classifier(texts=2).classify(["a\tb\tc"])
