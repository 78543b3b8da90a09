"""A changed model computes the outputs of a model without the removed component, and is restored afterwards."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.decoding.test_language_model import language_model
from tests.inference.test_classifier import make_classifier
from tests.inference.test_generator import make_generator
from tests.inference.translation.test_translator import lines, make_translator
from tests.tolerances import approx
from torch import Tensor

from manyheads.decoding.engine import TorchEngine
from manyheads.errors import UsageError
from manyheads.inference.generator import first_token
from manyheads.inference.inspect_options import Changes, HeadName, InspectOptions
from manyheads.inference.translation.translator import Translator
from manyheads.inspection.changes import changed
from manyheads.inspection.isolation import isolated_with_changes
from manyheads.inspection.language_model import inspect_language_model
from manyheads.inspection.translation import inspect_translation
from manyheads.model import decoder_only, encoder_decoder
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.tensors.capture import attention_groups
from manyheads.text.tokenizer import BOS, EOS, PAD

SOURCE = torch.tensor([[5, 9, 7, 4, EOS, PAD, PAD], [6, 8, 4, 9, 5, 7, EOS]])
TARGET = torch.tensor([[BOS, 6, 5, 9, 4], [BOS, 4, 4, 7, 8]])
POSITIONS = ("sinusoidal", "learned", "rotary")
NO_MASK = Changes(mask=False)


def make_model(**settings: Any) -> EncoderDecoder:
    return make_translator(num_encoder_layers=2, num_decoder_layers=2, **settings).model


def logits_with(model: Any, changes: Changes, *inputs: Tensor) -> Tensor:
    """Return the logits with the changes; check that the model gives the same logits before and after."""
    with torch.inference_mode():
        before = model(*inputs)
        with changed(model, changes):
            found: Tensor = model(*inputs)
        assert torch.equal(model(*inputs), before)
    assert float((found - before).abs().max()) > 1e-3
    return found


@pytest.mark.parametrize("off", [["encoder.0.1"], ["decoder.1.0"], ["cross.1.1", "encoder.1.0", "encoder.1.1"]])
def test_a_head_that_is_off_has_no_columns_in_the_output_projection(off: list[str]) -> None:
    model = make_model()
    found = logits_with(model, Changes.from_json({"heads": off}), SOURCE, TARGET)
    without = copy.deepcopy(model)
    for name in off:
        kind, layer, head = HeadName.parse(name)
        module = attention_groups(without)[kind][layer]
        with torch.no_grad():
            module.project_out.weight[:, 8 * head : 8 * head + 8] = 0  # E = 16 / 2
    torch.testing.assert_close(found, without(SOURCE, TARGET))


def test_without_the_causal_mask_each_target_position_attends_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    translator, generator_model = make_model(), language_model()
    text = torch.tensor([[3, 1, 4, 1, 5, 9]])
    found = logits_with(translator, NO_MASK, SOURCE, TARGET), logits_with(generator_model, NO_MASK, text)

    def no_mask(length: int, device: Any) -> Tensor:
        return torch.ones(1, 1, length, length, dtype=torch.bool, device=device)

    monkeypatch.setattr(encoder_decoder, "causal_mask", no_mask)
    monkeypatch.setattr(decoder_only, "causal_mask", no_mask)
    torch.testing.assert_close(found[0], translator(SOURCE, TARGET))
    torch.testing.assert_close(found[1], generator_model(text))


@pytest.mark.parametrize("positions", POSITIONS)
def test_without_positions_the_model_has_zero_signals(positions: str) -> None:
    model = make_model(positions=positions)
    found = logits_with(model, Changes(positions=False), SOURCE, TARGET)
    without = copy.deepcopy(model)
    for module in without.modules():
        for name in ("table", "frequencies"):  # sinusoidal and learned positions; rotary positions
            signal = getattr(module, name, None)
            if signal is not None:
                getattr(signal, "weight", signal).data.zero_()
    torch.testing.assert_close(found, without(SOURCE, TARGET))


def test_without_positions_the_order_of_the_source_has_no_effect() -> None:
    model = make_model()
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    with torch.inference_mode(), changed(model, Changes(positions=False)):
        torch.testing.assert_close(model(SOURCE[:, order], TARGET), model(SOURCE, TARGET))


def likeliest_after_prefixes(translator: Translator, source: list[int], output: list[int], mask: bool) -> list[int]:
    """Return the likeliest token after each prefix of an output, by the model with its hooks.

    With the causal mask one forward pass reads all prefixes, without it each prefix is read alone.
    """
    ids, prefixes = torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *output[:-1]]])
    if mask:
        logits = translator.model(ids, prefixes)[0]
    else:
        lengths = range(1, len(output) + 1)
        logits = torch.stack([translator.model(ids, prefixes[:, :length])[0, -1] for length in lengths])
    logits[:, [PAD, BOS]] = -torch.inf
    return logits.argmax(-1).tolist()


@pytest.mark.parametrize(
    ("changes", "positions"),
    [
        (NO_MASK, "rotary"),
        (Changes(positions=False), "sinusoidal"),
        (Changes((HeadName("cross", 0, 1),)), "learned"),
    ],
)
def test_translations_are_the_greedy_outputs_of_the_changed_model(changes: Changes, positions: str) -> None:
    translator = make_translator(positions=positions, search={"beam_size": 1}, num_decoder_layers=2)
    texts, differences = lines(5), 0
    before = [translation.translation for translation in translator.translate(texts)]
    with isolated_with_changes(translator, changes) as copied, torch.inference_mode():
        for text, translation in zip(texts, before, strict=True):
            ids = [token.id for token in inspect_translation(copied, text).target.tokens]
            (source,) = translator.tokenizers.source.encode([text])
            assert ids == likeliest_after_prefixes(copied, source, ids, changes.mask)
            found = copied.translate([text])[0].translation
            assert found == copied.tokenizers.target.decode([token for token in ids if token != EOS])
            differences += found != translation
    assert differences > 1
    assert [translation.translation for translation in translator.translate(texts)] == before


def test_a_beam_scores_each_prefix_by_the_changed_model() -> None:
    """Compare the token scores of every hypothesis with forward passes on its prefixes."""
    translator = make_translator(search={"beam_size": 3})
    with isolated_with_changes(translator, NO_MASK) as copied, torch.inference_mode():
        for text in lines(4):
            found = inspect_translation(copied, text)
            source = torch.tensor([[token.id for token in found.source.tokens]])
            for output in found.hypotheses:
                for length, token in enumerate(output.ids):
                    logits = copied.model(source, torch.tensor([[BOS, *output.ids[:length]]]))[0, -1]
                    score = logits.double().log_softmax(-1)[token]
                    assert output.token_scores[length] == approx(float(score))


def test_a_text_is_the_greedy_output_of_the_changed_language_model() -> None:
    generator = make_generator(window=30)
    options = InspectOptions(max_tokens=20)
    before = inspect_language_model(generator, "abc", options)
    with isolated_with_changes(generator, NO_MASK) as copied, torch.inference_mode():
        found = inspect_language_model(copied, "abc", options)
        ids = [token.id for token in found.text.tokens]
        start = first_token(generator.config, generator.tokenizer)
        (context,) = copied.contexts(["abc"])
        text = list(context)
        for token in ids[3:]:
            logits = copied.model(torch.tensor([text]))[0, -1]
            logits[:3] = -torch.inf  # never generated
            assert token == int(logits.argmax())
            text.append(token)
    assert (start, len(ids)) == (found.inputs[0].id, 23)
    assert found.text != before.text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "must be an object"),
        ({"head": []}, "must be an object"),
        ({"heads": "cross.0.0"}, "changes.heads must be a list"),
        ({"heads": [1]}, "changes.heads must be a list"),
        ({"heads": ["cross.0"]}, '"cross.0" names no head'),
        ({"heads": ["cross.-1.0"]}, "names no head"),
        ({"heads": ["cross.²"]}, "names no head"),
        ({"heads": ["middle.0.0"]}, 'no attention of kind "middle"; it has encoder, decoder, cross'),
        ({"heads": ["cross.2.0"]}, "there is no head cross.2.0: this model has layers 0 to 1 and heads 0 to 1"),
        ({"heads": ["cross.0.2"]}, "there is no head cross.0.2"),
        ({"mask": 0}, "must be true or false"),
    ],
)
def test_invalid_changes_are_refused_with_the_reason(value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message), changed(make_model(), Changes.from_json(value)):
        pass


def test_removing_the_causal_mask_of_a_classifier_is_refused() -> None:
    with pytest.raises(UsageError, match="no causal mask"), changed(make_classifier().model, NO_MASK):
        pass


def test_the_default_changes_change_no_translation() -> None:
    assert not Changes.from_json(None)
    assert not Changes.from_json({"heads": [], "mask": True})
    translator = make_translator()
    translator = replace(translator, engine=TorchEngine([translator.model]))
    with isolated_with_changes(translator, Changes()) as copied:
        assert copied.translate(lines(3)) == translator.translate(lines(3))
