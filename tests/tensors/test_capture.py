"""The weights that are shown are those that the model used: each equals a softmax computed number by number."""

from __future__ import annotations

import math

import pytest
import torch
from tests.inference.test_classifier import make_classifier
from tests.inference.test_generator import make_generator
from tests.inference.translation.test_translator import make_translator
from tests.tolerances import approx, assert_close, printed
from torch import Tensor

from manyheads.model import attention as module
from manyheads.tensors.capture import Reading, capture, mean_entropies
from manyheads.views.parts import entropies

SOURCE = torch.tensor([[5, 9, 4, 7, 3, 1, 1]])  # two of padding
TARGET = torch.tensor([[2, 6, 8, 5]])
TEXT = torch.tensor([[2, 6, 8, 5, 9, 3]])


class ReferenceAttention:
    """A reference implementation of attention, in loops over every head, query and key."""

    def __init__(self) -> None:
        self.weights: list[Tensor] = []

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
        _, heads, queries, width = query.shape
        keys = key.size(2)
        allowed = torch.ones(1, heads, queries, keys).bool() if mask is None else mask
        allowed = allowed.expand(1, heads, queries, keys)
        weights = torch.zeros(heads, queries, keys, dtype=torch.float64)
        for head in range(heads):
            for t in range(queries):
                scores = {
                    s: sum(float(a) * float(b) for a, b in zip(query[0, head, t], key[0, head, s], strict=True))
                    / math.sqrt(width)
                    for s in range(keys)
                    if allowed[0, head, t, s]
                }
                total = sum(math.exp(score) for score in scores.values())
                for s, score in scores.items():
                    weights[head, t, s] = math.exp(score) / total
        self.weights.append(weights)
        return (weights[None] @ value.double()).to(value.dtype)


def compare(reading: Reading, reference: ReferenceAttention, order: list[tuple[int, int]]) -> None:
    """Compare weights with those of the reference; `order` holds (kind, layer) in the order of computation."""
    assert len(reference.weights) == len(order)
    for (kind, layer), weights in zip(order, reference.weights, strict=True):
        assert_close(reading.attention[kind].weights[layer], weights)


@pytest.mark.parametrize("positions", ["rotary", "sinusoidal"])
def test_weights_of_a_translator_equal_those_of_the_reference_implementation(
    positions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_translator(positions=positions, num_encoder_layers=2, num_decoder_layers=2).model
    reading = capture(model, SOURCE, TARGET)
    reference = ReferenceAttention()
    monkeypatch.setattr(module, "attend", reference)
    with torch.inference_mode():
        assert_close(model(SOURCE, TARGET)[0], reading.logits)
    compare(reading, reference, [(0, 0), (0, 1), (1, 0), (2, 0), (1, 1), (2, 1)])


def test_weights_of_a_classifier_and_a_language_model_equal_those_of_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    classifier, generator = make_classifier(num_encoder_layers=2).model.eval(), make_generator().model.eval()
    read, written = capture(classifier, TEXT), capture(generator, TEXT)
    monkeypatch.setattr(module, "attend", reference := ReferenceAttention())
    with torch.inference_mode():
        classifier(TEXT)
        compare(read, reference, [(0, 0), (0, 1)])
        reference.weights.clear()
        generator(TEXT)
    compare(written, reference, [(0, layer) for layer in range(len(generator.decoder_layers))])


def test_capturing_weights_changes_no_bit_of_the_output() -> None:
    translator, classifier, generator = (
        make_translator().model,
        make_classifier().model.eval(),
        make_generator().model,
    )
    generator.eval()
    with torch.inference_mode():
        assert torch.equal(capture(translator, SOURCE, TARGET).logits, translator(SOURCE, TARGET)[0])
        assert torch.equal(capture(classifier, TEXT).logits, classifier(TEXT)[0])
        assert torch.equal(capture(generator, TEXT).logits, generator(TEXT)[0])
    modules = [*translator.modules(), *classifier.modules(), *generator.modules()]
    assert all(vars(module).get("observer") is None for module in modules)


def test_masks_are_those_of_the_model_and_masked_positions_get_no_weight() -> None:
    encoder, decoder, cross = capture(make_translator().model, SOURCE, TARGET).attention
    assert decoder.mask.tolist() == torch.ones(4, 4).tril().tolist()
    assert encoder.mask.tolist() == [[1, 1, 1, 1, 1, 0, 0]] * 7
    assert cross.mask.tolist() == [[1, 1, 1, 1, 1, 0, 0]] * 4
    for captured in (encoder, decoder, cross):
        assert not (captured.weights * (captured.mask == 0)).any()
        assert captured.weights.sum(-1) == approx(1)


def test_entropy_is_0_for_one_token_and_the_logarithm_of_their_number_for_equal_ones() -> None:
    one, equal = torch.eye(4).expand(1, 1, 4, 4), torch.full((1, 1, 4, 4), 0.25)
    assert entropies(one.numpy()).tolist() == [[0.0]]
    assert entropies(equal.numpy())[0, 0] == pytest.approx(math.log(4))


def test_entropies_of_several_texts_are_their_mean() -> None:
    model = make_translator().model
    readings = [capture(model, SOURCE[:, :length], TARGET) for length in (2, 5)]
    found = mean_entropies(readings)
    assert list(found) == ["encoder", "decoder", "cross"]
    expected = (readings[0].attention[2].entropy + readings[1].attention[2].entropy) / 2
    assert found["cross"] == [printed(row, 4) for row in expected.tolist()]
