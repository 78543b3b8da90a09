"""Options of a translator, with a small model: prefixes, phrases, sampling, alternatives, ensembles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.inference.translation.test_translator import (
    LETTERS,
    MAX_POSITIONS,
    assert_same,
    lines,
    make_translator,
    save_run,
    teacher_forced,
    translate_separately,
)
from tests.tolerances import approx, assert_close

from manyheads.errors import UsageError
from manyheads.inference.translation.translator import Translator
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.options import Sampling, SearchOptions
from manyheads.tensors.capture import capture
from manyheads.text.tokenizer import BOS, EOS, PAD
from manyheads.text.training import train_tokenizers

SEARCHES = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 4, "n_best": 2},
    "sampling": {"n_best": 2, "options": SearchOptions(sampling=Sampling(seed=5))},
    "lengths": {"options": SearchOptions(min_length_ratio=0.7, max_length_ratio=1.1, no_repeat_ngram=2)},
    "told": {"n_best": 2, "options": SearchOptions(alternatives=3, alignment=True)},
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_the_result_of_every_search_depends_on_its_line_alone(search) -> None:
    texts, rng = lines(9), np.random.default_rng(4)
    prefixes = ["".join(rng.choice(list(LETTERS), rng.integers(0, 3))) for _ in texts]
    forbidden = [list(rng.choice(list(LETTERS), 2)) for _ in texts]
    translator = make_translator(search={"batch_tokens": 90}, end_bias=1.0)
    batched = translator.translate(texts, prefixes=prefixes, forbidden=forbidden, **search)
    for text, prefix, phrases, found in zip(texts, prefixes, forbidden, batched, strict=True):
        (expected,) = make_translator(end_bias=1.0).translate(
            [text], prefixes=[prefix], forbidden=[phrases], **search
        )
        assert_same(found, expected)
        assert found.alignment == expected.alignment
        for hypothesis in found.hypotheses:
            assert hypothesis.text.startswith(prefix)
            assert not set(hypothesis.tokens[len(prefix) :]) & set(phrases)


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_scores_are_the_teacher_forced_scores_of_the_output(search) -> None:
    translator = make_translator(end_bias=1.0)
    for found in translator.translate(lines(6), **search):
        for hypothesis in found.hypotheses:
            ids = [
                EOS if piece == "</s>" else 0 if piece == "<unk>" else encode(translator, piece)
                for piece in hypothesis.tokens
            ]
            ended = ids[-1] == EOS
            expected = teacher_forced(translator, found.source, ids[: len(ids) - ended], ended=ended)
            assert hypothesis.token_scores == approx(expected.tolist())
            assert hypothesis.log_probability == pytest.approx(sum(hypothesis.token_scores))


def encode(translator: Translator, piece: str) -> int:
    return translator.tokenizers.target.encode([piece])[0][0]


def test_required_phrases_are_in_every_candidate_in_any_batch() -> None:
    texts = lines(8)
    required = [["ab"], [], ["m", "lk"], ["abcdef"], [], ["c", "d", "e"], ["kk"], [""]]
    translator = make_translator()
    batched = translator.translate(texts, n_best=3, required=required)
    unconstrained = translate_separately(translator, texts, n_best=3)
    for text, phrases, found, without in zip(texts, required, batched, unconstrained, strict=True):
        (expected,) = translator.translate([text], n_best=3, required=[phrases])
        assert_same(found, expected)
        assert all(phrase in hypothesis.text for hypothesis in found.hypotheses for phrase in phrases)
        assert "missing-phrase" not in found.warnings
        if not any(phrases):
            assert_same(found, without)


@pytest.mark.parametrize(("text", "capitals"), [("Abc abc", False), ("ABC ABC", True)])
def test_a_required_phrase_is_found_in_an_output_in_capitals(text: str, capitals: bool) -> None:
    translator = make_translator(search={"lower_capitals": True})
    (found,) = translator.translate([text], required=[["mlk"]])
    assert ("MLK" in found.translation, "mlk" in found.translation) == (capitals, not capitals)
    assert "missing-phrase" not in found.warnings


# --- the second pass ---


def test_attention_and_alternatives_are_those_of_the_model() -> None:
    translator = make_translator(num_decoder_layers=2)
    model = translator.model
    texts = lines(5)
    ids = translator.tokenizers.source.encode(texts)
    for layer in (0, 1, -1):
        search = make_options(alignment=True, attention_layer=layer, alternatives=3)
        for row, hypotheses in zip(ids, translator.engine.search(ids, search), strict=True):
            for hypothesis in hypotheses:
                source, target = torch.tensor([[*row, EOS]]), torch.tensor([[BOS, *hypothesis.tokens]])
                _, _, cross = capture(model, source, target).attention
                assert_close(
                    torch.tensor(hypothesis.attention), cross.of(layer, None)[: len(hypothesis.token_scores)]
                )
                with torch.no_grad():
                    log_probs = model(source, target)[0].log_softmax(-1)
                for position, (token, alternatives) in enumerate(
                    zip([*hypothesis.tokens, EOS], hypothesis.alternatives or (), strict=False)
                ):
                    row_of = log_probs[position].tolist()
                    others = [i for i in range(len(row_of)) if i not in (token, PAD, BOS)]
                    best = sorted(others, key=lambda i: -row_of[i])[:3]
                    assert [i for i, _ in alternatives] == best
                    assert [value for _, value in alternatives] == approx([row_of[i] for i in best])


def make_options(**changes: Any) -> SearchOptions:
    defaults = {"beam_size": 3, "n_best": 2, "length_penalty": 1.0, "max_length_ratio": 2.0, "max_length_offset": 5}
    return SearchOptions(**(defaults | {"batch_tokens": 300} | changes))


# --- invalid options ---


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"prefixes": ["a"]}, "prefixes has 1 entries for 2 lines"),
        ({"required": [["☃"], []]}, 'the phrase "☃" cannot come out'),
        ({"prefixes": ["☃", ""]}, 'the prefix "☃" cannot come out'),
        ({"forbidden": ["ab", "c"]}, "takes a list for each line"),
        ({"prefixes": ["a" * MAX_POSITIONS, ""]}, "the longest output of this model is 40"),
        ({"n_best": 0}, "n_best = 0"),
        ({"options": SearchOptions(sampling=Sampling()), "required": [["a"], []]}, "not by sampling"),
        (
            {"options": SearchOptions(attention_layer=3, alignment=True)},
            "attention layer 3 does not exist: the decoder has 1",
        ),
    ],
    ids=str,
)
def test_options_that_do_not_fit_the_model_or_the_lines_are_refused(search, message) -> None:
    with pytest.raises(UsageError, match=message):
        make_translator().translate(["abc", "def"], **search)


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(UsageError, match="words"):
        SearchOptions(split="words")


# --- ensembles ---


def test_an_ensemble_of_a_model_with_itself_is_the_model(tmp_path: Path) -> None:
    run = save_run(make_translator(), tmp_path / "run")
    expected = Translator.load(run, device="cpu").translate(lines(), n_best=3)
    both = Translator.load(run, device="cpu", ensemble=[run, run])
    for found, translation in zip(both.translate(lines(), n_best=3), expected, strict=True):
        assert_same(found, translation)


def test_an_ensemble_scores_with_the_mean_of_probabilities(tmp_path: Path) -> None:
    runs = [save_run(make_translator(seed=seed), tmp_path / str(seed)) for seed in (3, 4)]
    singles = [Translator.load(run, device="cpu") for run in runs]
    both = Translator.load(runs[0], device="cpu", ensemble=runs[1:])
    options = SearchOptions(alternatives=2, alignment=True)
    differs = 0
    for found in both.translate(lines(), options=options):
        (best,) = found.hypotheses
        ids = [EOS if piece == "</s>" else encode(both, piece) for piece in best.tokens if piece != "<unk>"]
        if len(ids) < len(best.tokens):
            continue
        ended = ids[-1] == EOS
        rows = [teacher_forced(single, found.source, ids[: len(ids) - ended], ended=ended) for single in singles]
        expected = torch.stack(rows).exp().mean(0).log()
        assert best.token_scores == approx(expected.tolist())
        assert len(best.alternatives or []) == len(best.tokens)
        differs += float((rows[0] - expected).abs().max()) > 1e-3
    assert differs > 3


def test_an_ensemble_of_runs_with_different_tokenizers_is_refused(tmp_path: Path) -> None:
    run = save_run(make_translator(), tmp_path / "run")
    first = make_translator()
    tokenizers = train_tokenizers(first.config.tokenizer, ["nopq"], ["nopq"], "de", "en")
    network = EncoderDecoder(first.config.model, tokenizers.source.size, tokenizers.target.size)
    different = Translator(first.config, tokenizers, network)
    with pytest.raises(UsageError, match="cannot translate together: their source tokenizers differ"):
        Translator.load(run, device="cpu", ensemble=[save_run(different, tmp_path / "other")])


def test_another_engine_replaces_the_model() -> None:
    translator = make_translator()
    engine = translator.engine

    class OtherEngine:
        def search(self, rows, options, constraints, cancelled):
            return engine.search(rows, options, constraints, cancelled)

        def stream(self, row, options, constraints):
            return engine.stream(row, options, constraints)

    other = Translator(translator.config, translator.tokenizers, OtherEngine())
    assert other.translate(lines(4)) == translator.translate(lines(4))
    assert list(other.stream("abc")) == list(translator.stream("abc"))
    with pytest.raises(UsageError, match="engine"):
        _ = other.model
    with pytest.raises(UsageError, match='no engine "abacus"'):
        Translator.load("run", engine="abacus")
