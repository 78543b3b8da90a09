"""Corrections that look wrong by themselves: other languages, copies, odd lengths, lines in another order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.runs.parts import SENTENCES
from tests.training.parts import CollectingListener

from bitext.pairs import Pair
from manyheads.errors import DataError
from manyheads.improve.tune_checks import check_news, find_doubts, misfit_share
from manyheads.inference.translation.translator import Translator

PAIRS = [Pair(german, english, line) for line, (german, english) in enumerate(SENTENCES, start=1)]
LONG = [Pair(f"{pair.source} und {pair.source}", f"{pair.target} and {pair.target}", pair.line) for pair in PAIRS]


@pytest.fixture
def translator(learned: Path) -> Translator:
    return Translator.load(learned, device="cpu")


def moved(pairs: list[Pair]) -> list[Pair]:
    """Return pairs whose targets stand some lines late."""
    late = [*pairs[7:], *pairs[:7]]
    return [pair._replace(target=other.target) for pair, other in zip(pairs, late, strict=True)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda pair: pair, None),
        (lambda pair: pair._replace(target=pair.source), "33% of the corrections are copies of their sources"),
        (lambda pair: pair._replace(target=pair.target[:9]), "33% of the corrections are less than half"),
        (lambda pair: pair._replace(target=f"{pair.target} {pair.target} {pair.target}"), "more than twice"),
    ],
)
def test_a_third_of_odd_corrections_is_a_doubt(
    change: Callable[[Pair], Pair], words: str | None, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("manyheads.improve.tune_checks.misfit_share", lambda *arguments: 0.0)
    some = [change(pair) if number % 3 == 0 else pair for number, pair in enumerate(LONG[:12])]
    found = list(find_doubts(translator, some, LONG[12:], CollectingListener()))
    assert len(found) == (words is not None)
    assert words is None or words in found[0]


def test_targets_in_another_order_fit_other_sources_as_well(translator: Translator) -> None:
    assert misfit_share(translator, PAIRS, CollectingListener()) < 0.1
    assert list(find_doubts(translator, PAIRS[:24], PAIRS[24:], CollectingListener())) == []
    (doubt,) = find_doubts(translator, moved(PAIRS[:24]), PAIRS[24:], CollectingListener())
    assert "in order" in doubt


def test_a_model_that_cannot_tell_doubts_no_order(untrained: Path) -> None:
    translator = Translator.load(untrained, device="cpu")
    assert list(find_doubts(translator, moved(PAIRS[:24]), PAIRS[24:], CollectingListener())) == []


def test_corrections_that_the_model_says_already_are_refused(translator: Translator) -> None:
    sources = [source for source, _ in SENTENCES[:3]]
    outputs = [output.translation for output in translator.translate(sources)]
    same = [Pair(*pair, line) for line, pair in enumerate(zip(sources, outputs, strict=True), start=1)]
    with pytest.raises(DataError, match="says already what the 3 corrections say"):
        check_news(Path("same.tsv"), same, translator)
    check_news(Path("new.tsv"), [*same[1:], same[0]._replace(target="the hound")], translator)
