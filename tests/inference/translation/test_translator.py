"""Translator: the translation of a line depends on that line alone, and its scores are the model's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.tolerances import approx
from torch import Tensor

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.decoding.engine import TorchEngine
from manyheads.errors import RunError, UsageError
from manyheads.inference.native_engine import NativeEngine
from manyheads.inference.translation.confidence import ConfidenceModel, measure
from manyheads.inference.translation.translator import SearchOptions, Translation, Translator
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.interface import Hypothesis
from manyheads.tasks.translation.scoring import target_nats
from manyheads.text.tokenizer import BOS, EOS
from manyheads.text.training import train_tokenizers

LETTERS = "abcdefghijklm"
MAX_POSITIONS = 41


def make_translator(
    *,
    seed: int = 3,
    end_bias: float = 2.5,
    search: dict[str, Any] | None = None,
    data: dict[str, Any] | None = None,
    letters: str = LETTERS,
    kind: str = "characters",
    **model: Any,
) -> Translator:
    """Return a translator with D = 16, 1 + 1 layers and large random weights; `end_bias` shortens outputs."""
    sizes = {"d_model": 16, "d_ff": 20, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
    config = Config.model_validate(
        {
            "data": {"source": "de", "target": "en"} | (data or {}),
            "tokenizer": {"kind": kind},
            "model": sizes | {"dropout": 0.4, "max_positions": MAX_POSITIONS, "tied_embeddings": "none"} | model,
            "search": {"beam_size": 4} | (search or {}),
        }
    )
    tokenizers = train_tokenizers(config.tokenizer, [letters], [letters], "de", "en")
    torch.manual_seed(seed)
    network = EncoderDecoder(config.model, tokenizers.source.size, tokenizers.target.size).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn_like(parameter)
            else:
                parameter *= 1.6
        if network.output.bias is not None:
            network.output.bias[EOS] += end_bias
    return Translator(config, tokenizers, network)


def save_run(translator: Translator, path: Path) -> Path:
    """Write a translator as a run, and return its directory."""
    run = RunDirectory(path)
    run.begin(translator.config, translator.tokenizers, {})
    run.publish(dict(translator.model.named_parameters()))
    return path


def lines(count: int = 13, seed: int = 1) -> list[str]:
    """Return random words of 1 to 14 letters."""
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(LETTERS), rng.integers(1, 15))) for _ in range(count)]


def assert_same(found: Translation, expected: Translation) -> None:
    assert found.source == expected.source
    assert found.truncated == expected.truncated
    assert [hypothesis.tokens for hypothesis in found.hypotheses] == [
        hypothesis.tokens for hypothesis in expected.hypotheses
    ]
    assert [hypothesis.text for hypothesis in found.hypotheses] == [
        hypothesis.text for hypothesis in expected.hypotheses
    ]
    for hypothesis, other in zip(found.hypotheses, expected.hypotheses, strict=True):
        assert hypothesis.score == approx(other.score)
        assert hypothesis.token_scores == approx(other.token_scores)


def translate_separately(translator: Translator, texts: list[str], **options: Any) -> list[Translation]:
    return [translator.translate([text], **options)[0] for text in texts]


# --- independence of other lines (invariant D) ---


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("batch_tokens", [1, 60, 4_096])
def test_other_lines_order_and_batch_size_change_nothing(beam_size: int, batch_tokens: int) -> None:
    texts = lines()
    expected = translate_separately(make_translator(), texts, beam_size=beam_size, n_best=beam_size)
    assert len({len(translation.hypotheses[0].tokens) for translation in expected}) > 3, (
        "outputs of several lengths"
    )
    batched = make_translator(search={"batch_tokens": batch_tokens})
    for order in (np.arange(13), np.arange(13)[::-1], np.random.default_rng(2).permutation(13)):
        found = batched.translate([texts[index] for index in order], beam_size=beam_size, n_best=beam_size)
        for index, translation in zip(order, found, strict=True):
            assert_same(translation, expected[index])


def test_dropout_is_off_and_the_model_returns_to_training_mode() -> None:
    translator = make_translator()
    expected = translator.translate(lines(4))
    translator.model.train()
    found = translator.translate(lines(4))
    assert translator.model.training
    assert translator.model.encoder_layers[0].training
    for translation, other in zip(found, expected, strict=True):
        assert_same(translation, other)
    translator.model.eval()
    translator.translate(["a"])
    assert not translator.model.training


# --- empty and unusual lines ---


def test_empty_and_blank_lines_keep_their_position() -> None:
    translator = make_translator()
    texts = ["", "abc", "   ", "\t", "def", ""]
    found = translator.translate(texts)
    assert [translation.source for translation in found] == texts
    for index in (0, 2, 3, 5):
        assert (found[index].translation, found[index].score, found[index].truncated) == (texts[index], 0.0, False)
    for index in (1, 4):
        assert_same(found[index], translator.translate([texts[index]])[0])
    for blank in ([], [""], ["", " "]):
        assert [translation.translation for translation in translator.translate(blank)] == blank


def test_unknown_symbols_are_translated_without_an_error() -> None:
    (found,) = make_translator().translate(["한글 ☃ \U0001f642"])
    assert len(found.hypotheses) == 1


def test_a_text_instead_of_a_list_is_refused() -> None:
    with pytest.raises(UsageError, match="a list of texts"):
        make_translator().translate("abc")


# --- candidates and scores (invariant M) ---


def test_more_candidates_than_the_beam_size_widen_the_beam() -> None:
    (found,) = make_translator().translate(["abc"], beam_size=2, n_best=3)
    assert len(found.hypotheses) == 3


def teacher_forced(translator: Translator, text: str, ids: list[int], *, ended: bool) -> Tensor:
    """Return the teacher-forced log-probability of each token of an output and of its end mark."""
    source = torch.tensor([[*translator.tokenizers.source.encode([text])[0], EOS]])
    with torch.no_grad():
        log_probs = translator.model(source, torch.tensor([[BOS, *ids]]))[0].log_softmax(-1)
    right = [*ids, EOS] if ended else ids
    return log_probs[range(len(right)), right]


def test_the_text_is_the_joined_tokens() -> None:
    for found in make_translator().translate(lines()):
        for hypothesis in found.hypotheses:
            assert hypothesis.text == "".join(
                token.replace("▁", " ") for token in hypothesis.tokens if token != "</s>"
            )
            assert len(hypothesis.tokens) == len(hypothesis.token_scores)


# --- limits ---


def test_a_source_longer_than_the_model_allows_is_truncated_and_marked() -> None:
    translator = make_translator(end_bias=9.0)
    limit = MAX_POSITIONS - 1
    exact, longer, much_longer = "abcd" * (limit // 4), "abcd" * (limit // 4) + "k", "abcd" * 300
    whole = SearchOptions(split="none")
    found = translator.translate([exact, longer, much_longer], options=whole)
    assert [translation.truncated for translation in found] == [False, True, True]
    assert [translation.source for translation in found] == [exact, longer, much_longer]
    found = make_translator().translate([longer, much_longer], options=whole)
    first, second = (translation.hypotheses[0] for translation in found)
    assert first.tokens == second.tokens
    assert first.token_scores == approx(second.token_scores)


def test_an_output_that_does_not_end_is_truncated_and_marked() -> None:
    translator = make_translator(end_bias=-1e9, search={"max_length_ratio": 1.5, "max_length_offset": 3})
    for beam_size in (1, 4):
        found = translator.translate(["a", "abcdef", "ab" * 20], beam_size=beam_size)
        assert [translation.truncated for translation in found] == [True] * 3
        assert [len(translation.hypotheses[0].tokens) for translation in found] == [4, 12, MAX_POSITIONS - 1]
        assert "</s>" not in found[0].hypotheses[0].tokens


def watch_sources(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Record the shapes of all batches of sources, with their end marks."""
    shapes: list[tuple[int, int]] = []
    for kind in (NativeEngine, TorchEngine):

        def recorded(
            engine: Any, rows: Sequence[Sequence[int]], *others: Any, search: Any = kind.search_batch
        ) -> list[list[Hypothesis]]:
            shapes.append((len(rows), max(map(len, rows)) + 1))
            found: list[list[Hypothesis]] = search(engine, rows, *others)
            return found

        monkeypatch.setattr(kind, "search_batch", recorded)
    return shapes


def test_the_cost_of_a_line_of_100_000_tokens_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = watch_sources(monkeypatch)
    whole = SearchOptions(split="none")
    found = make_translator().translate(["a" * 100_000, "abc"], options=whole)
    assert max(length for _, length in shapes) == MAX_POSITIONS
    assert found[0].truncated
    assert len(found[0].hypotheses[0].tokens) <= MAX_POSITIONS
    assert_same(found[1], make_translator().translate(["abc"])[0])


# --- from a run directory, to JSON ---


def test_a_translator_loaded_from_a_run_translates_like_the_original(tmp_path: Path) -> None:
    translator = make_translator()
    loaded = Translator.load(str(save_run(translator, tmp_path / "run")), device="cpu")
    assert not loaded.model.training
    for found, expected in zip(loaded.translate(lines()), translator.translate(lines()), strict=True):
        assert found == expected


@pytest.mark.parametrize("line", ["abc", ""])
def test_json_holds_the_documented_keys(line: str) -> None:
    (found,) = make_translator().translate([line], n_best=2)
    value = found.to_json()
    assert {"source", "translation", "score", "hypotheses", "alignment", "truncated"} <= value.keys()
    assert value["alignment"] is None
    assert value["source"] == line
    assert value["translation"] == found.translation
    for hypothesis in value["hypotheses"]:
        assert hypothesis.keys() == {"text", "score", "tokens", "token_scores", "log_probability"}


# --- confidence, and scores of given translations ---

CONFIDENCE = ConfidenceModel(bias=0.0, weights=(0.0, 1.0, 0.0, 0.0), usual_ratio=0.0, limits=(0.31, 0.4))


def confident_translator(**options: Any) -> Translator:
    return replace(make_translator(**options), confidence=CONFIDENCE)


def test_a_translation_has_its_confidence_and_lines_below_the_limit_are_left_empty() -> None:
    translator, texts = confident_translator(end_bias=4.0), [*lines(), "", "12"]
    found = translator.translate(texts)
    known = [translation for translation in found if translation.confidence is not None]
    assert len(known) == 13, "all but the lines that are copied"
    assert {translation.confidence_level for translation in known} == {"low", "medium", "high"}
    for translation in known:
        measures = measure(
            translation.hypotheses[0].token_scores, translator.tokenizers.source.encode([translation.source]), None
        )
        assert translation.confidence == CONFIDENCE.estimate(
            measures, translation.warnings, truncated=translation.truncated
        )
        assert translation.to_json()["confidence_level"] == CONFIDENCE.level(translation.confidence)
    values = sorted({translation.confidence for translation in known})
    limit = sum(values[len(values) // 2 :][:2]) / 2
    for translation, limited in zip(
        found, translator.translate(texts, options=SearchOptions(min_confidence=limit)), strict=True
    ):
        below = translation.confidence is not None and translation.confidence < limit
        assert limited.translation == ("" if below else translation.translation)
        assert ("low-confidence" in limited.warnings) == below
        assert limited.confidence == (
            translation.confidence if translation.confidence is None else approx(translation.confidence)
        )


def test_a_limit_without_a_model_of_the_confidence_is_refused() -> None:
    with pytest.raises(UsageError, match="no model of the confidence"):
        make_translator().translate(["abc"], options=SearchOptions(min_confidence=0.5))
    with pytest.raises(UsageError, match="the confidence is known at the end of a translation"):
        next(make_translator().stream("abc", options=SearchOptions(min_confidence=0.5)))
    with pytest.raises(UsageError, match=r"min_confidence = 1\.5 must be from 0 to 1"):
        SearchOptions(min_confidence=1.5)


@pytest.mark.parametrize("native", [False, True])
def test_given_translations_have_the_scores_of_teacher_forcing(native: bool, tmp_path: Path) -> None:
    translator = confident_translator(search={"no_repeat_ngram": 2, "max_length_ratio": 0.1})
    if native:
        translator = Translator.load(save_run(translator, tmp_path / "run"), device="cpu")
    sources, targets = (
        [*lines(seed=5), "ab", "", "abc", "a"],
        [*lines(seed=6), "aaaaaaaa", "a", "", "b" * MAX_POSITIONS],
    )
    scored = translator.score(sources, targets)
    assert [translation.translation for translation in scored] == [*targets[:14], "", "", ""]
    assert [translation.truncated for translation in scored] == [*[False] * 16, True]
    encoded = [
        tokenizer.encode(texts[:14])
        for tokenizer, texts in ((translator.tokenizers.source, sources), (translator.tokenizers.target, targets))
    ]
    for batch, nats, counts in target_nats(translator.model, *encoded):
        for pair, row, count in zip(batch, nats, counts, strict=True):
            (candidate,) = scored[pair].hypotheses
            assert candidate.token_scores == approx([-value for value in row[:count].tolist()])
            assert candidate.score == approx(-row[:count].mean().item())
    assert all((translation.confidence is None) == (native or not translation.hypotheses) for translation in scored)


def test_the_model_of_the_confidence_of_a_run_is_read_and_a_damaged_one_named(tmp_path: Path) -> None:
    path = save_run(make_translator(), tmp_path / "run")
    assert Translator.load(path, device="cpu").confidence is None
    (path / "confidence.json").write_text(json.dumps(CONFIDENCE.to_json()))
    assert Translator.load(path, device="cpu").confidence == CONFIDENCE
    (path / "confidence.json").write_text("{}")
    with pytest.raises(RunError, match="holds no model of confidence"):
        Translator.load(path, device="cpu")
