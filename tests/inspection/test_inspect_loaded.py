"""Inspections, compared with the results of the translator and with direct computations."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from tests.inference.test_classifier import make_classifier
from tests.inference.test_generator import make_generator
from tests.inference.translation.test_translator import LETTERS, lines, make_translator
from tests.tolerances import approx
from torch import Tensor

from manyheads.config.schema import ModelConfig, TrainingConfig
from manyheads.decoding.engine import TorchEngine
from manyheads.errors import UsageError
from manyheads.inference.classifier import Classifier
from manyheads.inference.generator import GenerateOptions
from manyheads.inference.inspect_options import InspectOptions
from manyheads.inference.native_engine import NativeEngine
from manyheads.inference.translation.translator import SearchOptions, Translator
from manyheads.inspection.classification import inspect_classification
from manyheads.inspection.language_model import inspect_language_model
from manyheads.inspection.model import inspect_model
from manyheads.inspection.translation import inspect_translation
from manyheads.model.encoder_only import TextClassifier
from manyheads.text.tokenizer import BOS, EOS, PAD
from manyheads.text.training import train_tokenizer
from manyheads.views.documents import Inspection, TranslationInspection

WORDS = "ab cde f"
KOREAN = "나는 밥을 먹고 학교에 갔다"


def korean() -> Translator:
    return make_translator(letters=KOREAN + LETTERS + " ", num_decoder_layers=2)


def log_probs(translator: Translator, source: list[int], target: list[int]) -> Tensor:
    """Return the log-probability of every token at every position, by the model itself: (T, V), float64."""
    with torch.inference_mode():
        logits = translator.model(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]]))
    return logits[0].double().log_softmax(-1)


def ids_of(tokens: Iterable[Any]) -> list[int]:
    return [token.id for token in tokens]


def scores_of(predictions: Iterable[Any]) -> list[float]:
    return [prediction.log_probability for prediction in predictions]


@pytest.fixture(scope="module")
def translator() -> Translator:
    return make_translator(letters="a " + LETTERS)


@pytest.fixture(scope="module")
def found(translator: Translator) -> TranslationInspection:
    return inspect_translation(translator, WORDS)


# --- translation ---


@pytest.mark.parametrize("search", [{}, {"beam_size": 1}, {"no_repeat_ngram": 1}, {"length_penalty": 0.0}])
def test_the_output_is_that_of_translate_and_does_not_change_it(search: dict[str, Any]) -> None:
    translator = make_translator(search=search)
    texts = lines(6)
    before = [translator.translate([text])[0] for text in texts]
    for text, expected in zip(texts, before, strict=True):
        found = inspect_translation(translator, text)
        assert found.target.text == expected.translation
        assert found.score == approx(expected.score)
        assert scores_of(found.predictions) == approx(expected.hypotheses[0].token_scores)
    assert [translator.translate([text])[0] for text in texts] == before


def test_a_broken_character_is_completed_from_the_source_as_by_translate() -> None:
    """The output begins with two of the three bytes of the snowman, a blank and a letter."""
    options = InspectOptions(prefix=tuple(4 + byte for byte in b"\xe2\x98 a"))
    found = inspect_translation(make_translator(kind="bytes"), "ein ☃", options)
    assert found.hypotheses[0].text == found.target.text
    assert found.target.text.startswith("☃ a")
    assert found.target.words[0] == "☃"
    assert [token.word for token in found.target.tokens[:4]] == [0, 0, 0, 1]
    assert [token.word for token in found.inputs[1:5]] == [0, 0, 0, 1]


def test_hypotheses_are_the_n_best_and_the_tree_holds_them(translator: Translator, found: Any) -> None:
    (expected,) = translator.translate([WORDS], n_best=4)
    assert [hypothesis.text for hypothesis in found.hypotheses] == [
        hypothesis.text for hypothesis in expected.hypotheses
    ]
    assert [hypothesis.score for hypothesis in found.hypotheses] == approx(
        [hypothesis.score for hypothesis in expected.hypotheses]
    )
    ends = [tuple(node.id for node in found.beam.path(end.number)) for end in found.beam.nodes]
    assert all(hypothesis.ids in ends for hypothesis in found.hypotheses)
    best = [node for node in found.beam.nodes if node.best]
    assert tuple(node.id for node in best) == found.hypotheses[0].ids


def test_predictions_are_those_of_the_model(translator: Translator, found: TranslationInspection) -> None:
    ids = ids_of(found.predictions)
    source = ids_of(found.source.tokens)[:-1]
    expected = log_probs(translator, source, ids[:-1])
    assert ids == ids_of(found.target.tokens)
    for position, prediction in enumerate(found.predictions):
        row = expected[position].tolist()
        assert prediction.log_probability == approx(row[prediction.id])
        assert prediction.probability == approx(math.exp(row[prediction.id]))
        assert prediction.rank == 1 + sum(value > row[prediction.id] for value in row)
        assert prediction.entropy == approx(-sum(value * math.exp(value) for value in row))
        others = sorted(
            (-value, token) for token, value in enumerate(row) if token not in (prediction.id, PAD, BOS)
        )[:5]
        assert ids_of(prediction.alternatives) == [token for _, token in others]
        assert scores_of(prediction.alternatives) == approx([-value for value, _ in others])
        assert not prediction.forced


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_a_temperature_divides_the_logits_of_the_predictions(translator: Translator, temperature: float) -> None:
    options = InspectOptions(temperature=temperature, occlusion=False)
    found, plain = inspect_translation(translator, WORDS, options), inspect_translation(translator, WORDS)
    generator = make_generator(window=30)
    texts = [inspect_language_model(generator, "abc", given) for given in (options, InspectOptions())]
    assert (found.score, found.target) == (plain.score, plain.target)
    assert [prediction.rank for prediction in found.predictions] == [
        prediction.rank for prediction in plain.predictions
    ]
    for warm, own in [*zip(found.predictions, plain.predictions, strict=True),
                      *zip(texts[0].predictions, texts[1].predictions, strict=True)]:  # fmt: skip
        alternative, own_alternative = warm.alternatives[0], own.alternatives[0]
        odds, own_odds = warm.probability / alternative.probability, own.probability / own_alternative.probability
        assert math.log(odds) == approx(math.log(own_odds) / temperature)
        assert (warm.entropy > own.entropy) == (temperature > 1)
    with pytest.raises(UsageError, match=r"temperature = 4 must be 0\.1 to 3"):
        InspectOptions(temperature=4)
    with pytest.raises(UsageError, match="temperature has no meaning"):
        inspect_classification(make_classifier(), "abc", options)


def test_inputs_are_the_tokens_that_the_decoder_has_read(found: TranslationInspection) -> None:
    assert ids_of(found.inputs) == [BOS, *(token.id for token in found.target.tokens[:-1])]
    encoder, decoder, cross = found.attention
    source, target = len(found.source.tokens), len(found.target.tokens)
    assert encoder.weights.shape[2:] == (source, source)
    assert decoder.weights.shape[2:] == (target, target)
    assert cross.weights.shape[2:] == (target, source)


def test_a_given_target_is_scored_unchanged(translator: Translator) -> None:
    found = inspect_translation(translator, "abc", InspectOptions(target="dad"))
    ids = translator.tokenizers.target.encode(["dad"])[0]
    (source,) = translator.tokenizers.source.encode(["abc"])
    expected = log_probs(translator, source, ids)
    wanted = [float(expected[position, token]) for position, token in enumerate([*ids, EOS])]
    assert scores_of(found.predictions) == approx(wanted)
    assert found.log_probability == approx(sum(wanted))
    assert found.score == approx(sum(wanted) / len(wanted))
    assert (found.forced, found.beam, found.hypotheses, found.target.text) == (True, None, (), "dad")
    assert all(prediction.forced for prediction in found.predictions)


def test_an_alternative_in_place_of_a_token_is_a_prefix_that_is_continued(
    translator: Translator, found: Any
) -> None:
    position = 1
    alternative = next(choice for choice in found.predictions[position].alternatives if choice.id != EOS)
    prefix = [*(prediction.id for prediction in found.predictions[:position]), alternative.id]
    other = inspect_translation(translator, WORDS, InspectOptions(prefix=prefix))
    assert ids_of(other.predictions[: position + 1]) == prefix
    assert [prediction.forced for prediction in other.predictions][: position + 2] == [True] * (position + 1) + [
        False
    ]
    text = translator.tokenizers.target.decode(prefix)
    (expected,) = translator.translate([WORDS], prefixes=[text])
    assert other.target.text == expected.translation
    ended = inspect_translation(translator, WORDS, InspectOptions(prefix=[*prefix, EOS]))
    assert ids_of(ended.predictions) == [*prefix, EOS]


def test_occlusion_leaves_out_words_one_by_one(translator: Translator, found: TranslationInspection) -> None:
    assert found.occlusion is not None
    (ids,) = translator.tokenizers.source.encode([WORDS])
    output = ids_of(found.predictions)
    words = [token.word for token in found.source.tokens[:-1]]
    whole = log_probs(translator, ids, output[:-1])
    assert [word.word for word in found.occlusion.words] == [0, 1, 2]
    for left_out in found.occlusion.words:
        rest = [token for token, word in zip(ids, words, strict=True) if word != left_out.word]
        drops = whole - log_probs(translator, rest, output[:-1])
        expected = [float(drops[position, token]) for position, token in enumerate(output)]
        assert left_out.drops == approx(expected)
        assert left_out.drop == approx(sum(expected))
        text = translator.tokenizers.source.decode(rest).strip()
        assert left_out.output == translator.translate([text], beam_size=1)[0].translation


def test_occlusion_of_a_single_word_leaves_an_empty_source(translator: Translator) -> None:
    found = inspect_translation(translator, "abc")
    assert [word.output for word in found.occlusion.words] == [""]


def test_the_alignment_is_that_of_translate() -> None:
    translator = korean()
    found = inspect_translation(translator, KOREAN)
    (expected,) = translator.translate([KOREAN], options=SearchOptions(alignment=True))
    assert found.source.words == tuple(KOREAN.split())
    assert (found.alignment.pharaoh if found.alignment else "") == expected.alignment


def test_padding_changes_nothing_and_gets_no_attention(
    translator: Translator, found: TranslationInspection
) -> None:
    padded = inspect_translation(translator, WORDS, InspectOptions(padding=3))
    assert [token.piece for token in padded.source.tokens[-3:]] == ["<pad>"] * 3
    assert not padded.attention[2].weights[..., -3:].any()
    real = padded.attention[2].weights[..., :-3]
    assert real == approx(found.attention[2].weights)
    assert scores_of(padded.predictions) == approx(scores_of(found.predictions))


def test_neighbours_have_the_largest_cosines(translator: Translator, found: TranslationInspection) -> None:
    rows = translator.model.source_embedding.tokens.weight.detach().double().numpy()
    for neighbour in found.source_neighbours:
        cosines = {
            token: float(row @ rows[neighbour.id] / np.linalg.norm(row) / np.linalg.norm(rows[neighbour.id]))
            for token, row in enumerate(rows)
            if token not in (neighbour.id, PAD, BOS, EOS)
        }
        expected = sorted(cosines, key=lambda token: -cosines[token])[:5]
        assert [near.id for near in neighbour.near] == expected
        assert [near.cosine for near in neighbour.near] == approx([cosines[token] for token in expected])


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "the sentence is empty"),
        (" \t ", {}, "the sentence is empty"),
        ("a" * 3_000, {}, "3,000 tokens; 40 can be looked at, as much as the model takes"),
        ("abc", {"target": "d" * 41}, "the target has 41 tokens"),
        ("abc", {"prefix": "d" * 41}, "the prefix has 41 tokens"),
        ("abc", {"target": "d", "prefix": "d"}, "give one of them"),
        ("abc", {"prefix": "가"}, "cannot come out"),
        ("abc", {"prefix": [999]}, "outside this vocabulary"),
        ("abc", {"prefix": [EOS, 5]}, "nothing can come after"),
        ("abc", {"alternatives": -1}, "alternatives = -1"),
        ("abc", {"beam_size": 0}, "beam_size = 0"),
    ],
)
def test_invalid_texts_and_options_are_refused(translator, text, options, message) -> None:
    with pytest.raises(UsageError, match=message):
        inspect_translation(translator, text, InspectOptions(**options))


def test_an_empty_target_is_one_end_mark(translator: Translator) -> None:
    found = inspect_translation(translator, "abc", InspectOptions(target=""))
    assert ids_of(found.predictions) == [EOS]
    assert found.alignment is None


def test_an_ensemble_and_another_engine_are_refused() -> None:
    translator = make_translator()
    ensemble = replace(translator, engine=TorchEngine([translator.model, make_translator().model]))
    with pytest.raises(UsageError, match="ensemble"):
        inspect_translation(ensemble, "abc")
    with pytest.raises(UsageError, match='engine = "auto"'):
        inspect_translation(replace(translator, engine=NativeEngine.__new__(NativeEngine)), "abc")


# --- other tasks ---


def test_an_inspected_classifier_has_its_usual_classes_and_the_occlusion_of_each_word() -> None:
    classifier = classifier_with_blanks()
    text = "abc de f"
    (expected,) = classifier.classify([text])
    found = inspect_classification(classifier, text)
    assert found.label == expected.label
    probabilities = {label_class.label: label_class.probability for label_class in found.classes}
    assert probabilities == approx(expected.probabilities)
    assert found.text.pieces[0] == "<s>"
    assert found.text.pieces[-1] == "</s>"
    names = [label_class.label for label_class in found.classes]
    for left_out, rest in zip(found.occlusion.words, ("  de f", "abc  f", "abc de "), strict=True):
        ids = [token for token, word in zip(*plain_words(classifier, text), strict=True) if word != left_out.word]
        probability = dict(zip(names, classifier.probabilities([ids])[0].tolist(), strict=True))
        assert left_out.output == max(probability, key=probability.__getitem__), rest
        assert left_out.drop == approx(math.log(expected.probability) - math.log(probability[expected.label]))


def classifier_with_blanks() -> Classifier:
    """Return a classifier whose vocabulary has a blank."""
    plain = make_classifier()
    tokenizer = train_tokenizer(plain.config.tokenizer, ["a " + LETTERS], "en")
    torch.manual_seed(3)
    return Classifier(
        plain.config, tokenizer, plain.labels, TextClassifier(plain.config.model, tokenizer.size, 3, pad=PAD)
    )


def plain_words(classifier: Classifier, text: str) -> tuple[list[int], list[int]]:
    """Return the ids of the characters and the word of each; a blank belongs to the word before it."""
    (ids,) = classifier.tokenizer.encode([text])
    return ids, [max(0, len(text[: end + 1].split()) - 1) for end in range(len(text))]


def test_two_texts_of_a_classifier_are_inspected_as_one_input() -> None:
    found = inspect_classification(make_classifier(texts=2, token_types=2), ("abc", "de"))
    assert found.text.pieces == ["<s>", "a", "b", "c", "</s>", "d", "e", "</s>"]
    assert found.label == make_classifier(texts=2, token_types=2).classify([("abc", "de")])[0].label


@pytest.mark.parametrize("name", ["target", "prefix", "beam_size", "padding"])
def test_options_of_translation_are_refused_elsewhere(name: str) -> None:
    options = InspectOptions(**{name: {"target": "a", "prefix": "a", "beam_size": 2, "padding": 2}[name]})
    with pytest.raises(UsageError, match=f"{name} has no meaning"):
        inspect_classification(make_classifier(), "abc", options)


def test_a_long_text_to_classify_is_refused_where_it_would_be_cut() -> None:
    with pytest.raises(UsageError, match="24 tokens; 23 can"):
        inspect_classification(make_classifier(), "a" * 24)


@pytest.mark.parametrize("documents", ["line", "file"])
def test_a_language_model_scores_each_token_and_continues_the_text(documents: str) -> None:
    generator = make_generator(documents)
    found = inspect_language_model(generator, "abc", InspectOptions(max_tokens=4))
    options = GenerateOptions(sampling=None, max_tokens=4)
    (expected,) = generator.generate(["abc"], options)
    if documents == "line":
        assert found.text.text == "abc" + expected.samples[0].text
        scores = scores_of(found.predictions[found.prefix :])
        assert scores == approx(expected.samples[0].token_scores)
    ids = torch.tensor([ids_of((*found.inputs, found.text.tokens[-1]))])
    with torch.inference_mode():
        log_probs = generator.model.eval()(ids)[0].double().log_softmax(-1)
    for position, prediction in enumerate(found.predictions):
        assert prediction.log_probability == approx(float(log_probs[position, prediction.id]))
        assert prediction.forced == (position < 3)
    assert found.next[0].log_probability == approx(float(log_probs[-1].max()))
    assert found.attention[0].weights.shape[2:] == (len(found.text.tokens) + 1,) * 2


def test_a_text_longer_than_the_window_of_a_language_model_is_refused() -> None:
    generator = make_generator(window=12)
    with pytest.raises(UsageError, match="the text has 14 tokens; 11 can"):
        inspect_language_model(generator, "abcd", InspectOptions(max_tokens=10))
    with pytest.raises(UsageError, match="empty"):
        inspect_language_model(generator, "")


# --- the model as a whole ---


def test_blocks_and_tensors_add_up_to_the_model() -> None:
    translator = make_translator(tied_embeddings="decoder", num_decoder_layers=2)
    found = inspect_model(translator.config, translator.model)
    expected = sum(parameter.numel() for parameter in translator.model.parameters())
    assert found.parameters == sum(block.parameters for block in found.blocks) == expected
    tied = [tensor for tensor in found.tensors if tensor.tied_to]
    assert [(tensor.name, tensor.tied_to) for tensor in tied] == [
        ("output.weight", "target_embedding.tokens.weight")
    ]
    names = dict(translator.model.named_parameters(remove_duplicate=False))
    assert {tensor.name: tensor.shape for tensor in found.tensors} == {
        name: tuple(parameter.shape) for name, parameter in names.items()
    }


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_positions_are_those_that_the_model_uses(positions: str) -> None:
    translator = make_translator(positions=positions)
    found = inspect_model(translator.config, translator.model).positions
    model = translator.model
    if positions == "rotary":
        assert model.rotary is not None
        rotary_cos_sin = model.rotary(torch.arange(7)[None])[0, 0]  # (P, E / 2, 2)
        assert found.signal[:7] == approx(rotary_cos_sin.flatten(1).numpy())
        vector = torch.tensor([1.0, 0.0] * (found.signal.shape[1] // 2))
        rotated = torch.view_as_real(
            torch.view_as_complex(vector.view(-1, 2)) * torch.view_as_complex(rotary_cos_sin)
        )
        flat = rotated.flatten(1)
        expected = (flat @ flat.T) / (found.signal.shape[1] / 2)
        assert found.products[:7, :7] == approx(expected.numpy())
    else:
        assert model.source_embedding.positions is not None
        signal = model.source_embedding.positions(torch.arange(7)[None], 7)[0].detach()
        assert found.signal[:7] == approx(signal.numpy())
        assert found.products[:7, :7] == approx((signal @ signal.T).numpy())


@pytest.mark.parametrize("schedule", get_args(TrainingConfig.model_fields["schedule"].annotation))
def test_every_schedule_has_an_equation_and_a_curve(schedule: Any) -> None:
    translator = make_translator()
    training = translator.config.training.model_copy(update={"schedule": schedule})
    found = inspect_model(translator.config.model_copy(update={"training": training}), translator.model)
    assert found.learning_rate.schedule == schedule
    assert [symbol.equation for symbol in found.symbols if symbol.symbol == "lrate" and "lr" in symbol.equation]


@pytest.mark.parametrize("setting", ["norm", "positions", "activation", "tied_embeddings"])
def test_a_model_of_every_kind_is_inspected_and_drawn(setting: str) -> None:
    for value in get_args(ModelConfig.model_fields[setting].annotation):
        translator = make_translator(**{setting: value})
        assert inspect_model(translator.config, translator.model).charts()


def test_symbols_name_the_lines_that_define_them() -> None:
    from pathlib import Path

    import manyheads

    translator = make_translator()
    for symbol in inspect_model(translator.config, translator.model).symbols:
        name, _, line = symbol.source.partition(":")
        text = (Path(manyheads.__file__).parent / name).read_text(encoding="utf-8").split("\n")[int(line) - 1]
        assert text.lstrip().startswith(("def ", "class ")), symbol


# --- as JSON ---


def all_inspections() -> list[Inspection]:
    translator = korean()
    return [
        inspect_translation(translator, KOREAN),
        inspect_translation(translator, "abc", InspectOptions(target="d")),
        inspect_classification(make_classifier(), "abc de"),
        inspect_language_model(make_generator(), "ab\nc"),
        inspect_model(translator.config, translator.model),
    ]


def test_inspections_are_restored_from_listed_and_packed_json() -> None:
    for inspection in all_inspections():
        listed = inspection.to_dict()
        assert Inspection.from_dict(json.loads(json.dumps(listed))).to_dict() == listed
        packed = json.loads(json.dumps(inspection.packed_dict(), allow_nan=False))
        restored = Inspection.from_dict(packed)
        assert type(restored) is type(inspection)
        for other, own in zip(
            vars(restored).get("attention", ()), vars(inspection).get("attention", ()), strict=True
        ):
            assert other.weights == approx(own.weights)
        assert json.loads(inspection.to_json()) == listed


def test_other_documents_are_refused_with_the_reason(found: TranslationInspection) -> None:
    document = found.to_dict()
    wrong = [
        ({}, "no inspection"),
        (document | {"version": 99}, "version 99"),
        (document | {"kind": "poem"}, "poem"),
        ({key: value for key, value in document.items() if key != "beam"}, "no 'beam'"),
        (document | {"source": 5}, "the inspection.source is int"),
        (document | {"attention": [{"kind": "cross", "weights": "x", "mask": [], "entropy": []}]}, "no array"),
    ]
    for value, message in wrong:
        with pytest.raises(UsageError, match=message):
            Inspection.from_dict(value)
