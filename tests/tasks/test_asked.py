"""Options of a translator, with a real model: prefixes, phrases, sampling, rivals, ensembles."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.tasks.test_translation import (
    LETTERS,
    MAX_POSITIONS,
    alone,
    assert_same,
    lines,
    make_translator,
    teacher_forced,
)

from manyheads.checkpoint import RunDirectory
from manyheads.decoding.engine import TorchEngine
from manyheads.decoding.rescoring import coverage_term
from manyheads.errors import UsageError
from manyheads.inspection.capture import attention_maps
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.options import Sampling, SearchOptions
from manyheads.tasks.translation import TranslateOptions, Translator
from manyheads.text.tokenizer import BOS, EOS, PAD, train_tokenizers

WAYS = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 4, "n_best": 2},
    "sampling": {"n_best": 2, "options": TranslateOptions(sampling=Sampling(seed=5))},
    "diverse": {"n_best": 4, "options": TranslateOptions(diverse_groups=2)},
    "coverage": {"n_best": 3, "options": TranslateOptions(coverage_penalty=0.4)},
    "lengths": {"options": TranslateOptions(min_length_ratio=0.7, max_length_ratio=1.1, no_repeat_ngram=2)},
    "told": {"n_best": 2, "options": TranslateOptions(rivals=3, alignment=True)},
}


@pytest.mark.parametrize("asked", WAYS.values(), ids=WAYS)
def test_whatever_is_asked_the_line_alone_decides(asked) -> None:
    texts, rng = lines(9), np.random.default_rng(4)
    prefixes = ["".join(rng.choice(list(LETTERS), rng.integers(0, 3))) for _ in texts]
    forbidden = [list(rng.choice(list(LETTERS), 2)) for _ in texts]
    translator = make_translator(search={"batch_tokens": 90}, end_bias=1.0)
    together = translator.translate(texts, prefixes=prefixes, forbidden=forbidden, **asked)
    for text, prefix, phrases, found in zip(texts, prefixes, forbidden, together, strict=True):
        (expected,) = make_translator(end_bias=1.0).translate(
            [text], prefixes=[prefix], forbidden=[phrases], **asked
        )
        assert_same(found, expected)
        assert found.alignment == expected.alignment
        for one in found.hypotheses:
            assert one.text.startswith(prefix)
            assert not set(one.tokens[len(prefix) :]) & set(phrases)


@pytest.mark.parametrize("asked", WAYS.values(), ids=WAYS)
def test_scores_are_those_of_the_output_given_to_the_model(asked) -> None:
    translator = make_translator(end_bias=1.0)
    for found in translator.translate(lines(6), **asked):
        for one in found.hypotheses:
            ids = [
                EOS if piece == "</s>" else 0 if piece == "<unk>" else encode(translator, piece)
                for piece in one.tokens
            ]
            ended = ids[-1] == EOS
            expected = teacher_forced(translator, found.source, ids[: len(ids) - ended], ended=ended)
            assert one.token_scores == pytest.approx(expected.tolist(), abs=1e-4)
            assert one.log_probability == pytest.approx(sum(one.token_scores))


def encode(translator: Translator, piece: str) -> int:
    return translator.tokenizers.target.encode([piece])[0][0]


def test_required_phrases_are_in_every_candidate_whatever_stands_beside_them() -> None:
    texts = lines(8)
    required = [["ab"], [], ["m", "lk"], ["abcdef"], [], ["c", "d", "e"], ["kk"], [""]]
    translator = make_translator()
    together = translator.translate(texts, n_best=3, required=required)
    free = alone(translator, texts, n_best=3)
    for text, phrases, found, without in zip(texts, required, together, free, strict=True):
        (expected,) = translator.translate([text], n_best=3, required=[phrases])
        assert_same(found, expected)
        assert all(phrase in one.text for one in found.hypotheses for phrase in phrases)
        assert "missing-phrase" not in found.warnings
        if not any(phrases):
            assert_same(found, without)


def test_lengths_keep_to_the_source() -> None:
    texts = lines(9)
    options = TranslateOptions(min_length_ratio=1.0)
    for found in make_translator(end_bias=6.0).translate(texts, options=options):
        assert len(found.translation) >= len(found.source)
    translator = make_translator(end_bias=-9.0, search={"max_length_offset": 0})
    for found in translator.translate(texts, options=TranslateOptions(max_length_ratio=0.5)):
        assert len(found.hypotheses[0].tokens) <= max(1, len(found.source) // 2)


def test_no_ngram_comes_twice() -> None:
    translator = make_translator(end_bias=-3.0)
    free = translator.translate(lines(9))
    bound = translator.translate(lines(9), options=TranslateOptions(no_repeat_ngram=2))
    assert not any(repeats(one.hypotheses[0].tokens) for one in bound)
    assert any(repeats(one.hypotheses[0].tokens) for one in free)


def repeats(tokens: list[str]) -> bool:
    pairs = list(pairwise(tokens))
    return len(set(pairs)) < len(pairs)


# --- the second pass ---


def test_attention_and_rivals_are_those_of_the_model() -> None:
    translator = make_translator(num_decoder_layers=2)
    model = translator.model
    texts = lines(5)
    ids = translator.tokenizers.source.encode(texts)
    for layer in (0, 1, -1):
        asked = make_options(alignment=True, attention_layer=layer, rivals=3)
        for row, hypotheses in zip(ids, translator.engine.search(ids, asked), strict=True):
            for one in hypotheses:
                source, target = torch.tensor([[*row, EOS]]), torch.tensor([[BOS, *one.tokens]])
                maps = attention_maps(model, source, target).cross[layer].mean(0)[: len(one.token_scores)]
                torch.testing.assert_close(torch.tensor(one.attention), maps, atol=1e-5, rtol=0)
                with torch.no_grad():
                    log_probs = model(source, target)[0].log_softmax(-1)
                for place, (token, beside) in enumerate(zip([*one.tokens, EOS], one.rivals or (), strict=False)):
                    row_of = log_probs[place].tolist()
                    others = [i for i in range(len(row_of)) if i not in (token, PAD, BOS)]
                    best = sorted(others, key=lambda i: -row_of[i])[:3]
                    assert [i for i, _ in beside] == best
                    assert [value for _, value in beside] == pytest.approx([row_of[i] for i in best], abs=1e-4)


def make_options(**given: Any) -> SearchOptions:
    needed = {"beam_size": 3, "n_best": 2, "length_penalty": 1.0, "max_length_ratio": 2.0, "max_length_offset": 5}
    return SearchOptions(**(needed | {"batch_tokens": 300} | given))


def test_coverage_is_equation_14() -> None:
    attention = torch.tensor([[0.5, 0.2, 0.3], [0.9, 0.05, 0.05]])
    assert coverage_term(attention) == pytest.approx(np.log(1.0) + np.log(0.25))
    assert coverage_term(torch.tensor([[1.0, 0.0, 0.0]])) > -50, "a word never looked at leaves the score finite"


def test_coverage_ranks_all_that_the_beam_has_found() -> None:
    translator = make_translator(search={"beam_size": 6})
    ids = translator.tokenizers.source.encode(lines(9))
    plain = translator.engine.search(ids, make_options(beam_size=6, n_best=6, alignment=True))
    ranked = translator.engine.search(ids, make_options(beam_size=6, n_best=2, coverage_penalty=2.0))
    changed = 0
    for before, after in zip(plain, ranked, strict=True):
        scores = {one.tokens: one.score + 2.0 * coverage_term(torch.tensor(one.attention)) for one in before}
        best = sorted(scores, key=lambda tokens: -scores[tokens])[:2]
        assert [one.tokens for one in after] == best
        assert [one.score for one in after] == pytest.approx([scores[tokens] for tokens in best], abs=1e-4)
        changed += best[0] != before[0].tokens
    assert changed, "the penalty changes something here"


def test_a_layer_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match=r"attention layer 3 does not exist: the decoder has 1"):
        make_translator().translate(["a"], options=TranslateOptions(attention_layer=3, alignment=True))


# --- texts that cannot be asked for ---


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"prefixes": ["a"]}, "prefixes has 1 entries for 2 lines"),
        ({"required": [["☃"], []]}, 'the phrase "☃" cannot come out'),
        ({"prefixes": ["☃", ""]}, 'the prefix "☃" cannot come out'),
        ({"forbidden": ["ab", "c"]}, "takes a list for each line"),
        ({"prefixes": ["a" * MAX_POSITIONS, ""]}, "the longest output of this model is 40"),
        ({"n_best": 0}, "n_best = 0"),
        ({"options": TranslateOptions(diverse_groups=3)}, "diverse_groups = 3"),
        ({"options": TranslateOptions(sampling=Sampling()), "required": [["a"], []]}, "not by sampling"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(asked, message) -> None:
    with pytest.raises(UsageError, match=message):
        make_translator().translate(["abc", "def"], **asked)


def test_a_split_of_another_name_is_refused() -> None:
    with pytest.raises(UsageError, match="words"):
        make_translator().translate(["a"], options=TranslateOptions(split="words"))  # type: ignore[arg-type]


# --- ensembles ---


def saved(translator: Translator, path: Path) -> Path:
    run = RunDirectory(path)
    run.begin(translator.config, translator.tokenizers, {})
    run.publish(dict(translator.model.named_parameters()))
    return path


def test_an_ensemble_of_a_model_with_itself_is_the_model(tmp_path: Path) -> None:
    run = saved(make_translator(), tmp_path / "run")
    expected = Translator.load(run, device="cpu").translate(lines(), n_best=3)
    for geometric in (False, True):
        both = Translator.load(run, device="cpu", ensemble=[run, run], geometric=geometric)
        for found, one in zip(both.translate(lines(), n_best=3), expected, strict=True):
            assert_same(found, one)


def test_an_ensemble_scores_with_the_mean_of_probabilities(tmp_path: Path) -> None:
    runs = [saved(make_translator(seed=seed), tmp_path / str(seed)) for seed in (3, 4)]
    singles = [Translator.load(run, device="cpu") for run in runs]
    both = Translator.load(runs[0], device="cpu", ensemble=runs[1:])
    options = TranslateOptions(rivals=2, alignment=True)
    differs = 0
    for found in both.translate(lines(), options=options):
        (best,) = found.hypotheses
        ids = [EOS if piece == "</s>" else encode(both, piece) for piece in best.tokens if piece != "<unk>"]
        if len(ids) < len(best.tokens):
            continue
        ended = ids[-1] == EOS
        rows = [teacher_forced(one, found.source, ids[: len(ids) - ended], ended=ended) for one in singles]
        expected = torch.stack(rows).exp().mean(0).log()
        assert best.token_scores == pytest.approx(expected.tolist(), abs=1e-4)
        assert len(best.rivals or []) == len(best.tokens)
        differs += not torch.allclose(rows[0], expected, atol=1e-3)
    assert differs > 3


def test_runs_with_other_tokenizers_do_not_decide_together(tmp_path: Path) -> None:
    run = saved(make_translator(), tmp_path / "run")
    first = make_translator()
    tokenizers = train_tokenizers(first.config.tokenizer, ["nopq"], ["nopq"], "de", "en")
    network = EncoderDecoder(first.config.model, tokenizers.source.size, tokenizers.target.size)
    different = Translator(first.config, tokenizers, network)
    with pytest.raises(UsageError, match="cannot translate together: their source tokenizers differ"):
        Translator.load(run, device="cpu", ensemble=[saved(different, tmp_path / "other")])


def test_another_engine_is_asked_in_the_place_of_the_model() -> None:
    translator = make_translator()
    engine = TorchEngine([translator.model])

    class Other:
        def search(self, rows, options, cancelled):
            return engine.search(rows, options, cancelled)

        def stream(self, row, options):
            return engine.stream(row, options)

    other = Translator(translator.config, translator.tokenizers, Other())
    assert other.translate(lines(4)) == translator.translate(lines(4))
    assert list(other.stream("abc")) == list(translator.stream("abc"))
    with pytest.raises(UsageError, match="engine"):
        _ = other.model
    with pytest.raises(UsageError, match='no engine "abacus"'):
        Translator.load("run", engine="abacus")
