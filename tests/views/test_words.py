"""Pictures have the texts of the chosen language; values, tokens and files of values do not depend on it."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.views.svg.drawing import texts

from bitext.languages import _ENGLISH_NAMES
from manyheads import views as inspection
from manyheads.errors import UsageError
from manyheads.views import beam_tree, curves, picture, words
from manyheads.views.base import Document
from manyheads.views.curves import Curves
from manyheads.views.documents import Inspection
from manyheads.views.metrics import read_metrics
from manyheads.views.picture import Picture

SOURCES = sorted(Path(inspection.__file__).parent.rglob("*.py"))
HANGUL = re.compile("[가-힣]")
LOG = [
    b'{"step": 10, "total_steps": 20, "nll": 2.0, "learning_rate": 0.1, "gradient_norm": 1.0, '
    b'"target_tokens_per_second": 9.0}',
    b'{"kind": "validation", "step": 20, "loss": 1.5, "perplexity": 4.0, "bleu": 7.0, "chrf": 8.0, "best": true, '
    b'"attention_entropy": {"cross": [[1.0, 0.5]]}, "samples": [["a", "b", "c"]]}',
    b"{",
]


@pytest.fixture(scope="module")
def documents(all_inspections: list[Inspection]) -> list[Document]:
    runs = tuple(read_metrics(name, "translation", LOG) for name in ("one", "two"))
    empty = read_metrics("empty", "translation", LOG[:1])
    return [*all_inspections, Curves(runs[:1]), Curves(runs), Curves((empty,))]


def literals() -> Iterator[str]:
    """Yield the string literals that the code passes to `localize` or `names_of`."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("localize", "names_of"):
                for value in node.args:
                    options = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
                    yield from (option.value for option in options if isinstance(option, ast.Constant))


def test_every_text_of_the_code_is_in_the_table() -> None:
    table = words._words_of("ko")
    titles = {text for title, unit, _ in curves._VIEWS.values() for text in (title, unit)}
    tables = [
        picture.KIND_TITLES,
        picture._MASK_NOTES,
        beam_tree.STOPS,
        beam_tree._REASONS,
        curves._CURVE_NAMES,
        _ENGLISH_NAMES,
    ]
    known = {*literals(), *titles, *(text for table in tables for text in table.values())}
    assert known - set(table) == set()
    assert len(known) > 150


def placeholders(text: str) -> list[tuple[str, str | None]]:
    return sorted((name, form) for _, name, form, _ in string.Formatter().parse(text) if name is not None)


def test_a_translation_has_the_same_values_as_the_text_and_is_korean() -> None:
    for text, translation in words._words_of("ko").items():
        assert placeholders(text) == placeholders(translation), text
        assert HANGUL.search(translation) or placeholders(text) or "nats" in text, text


class Recorder(dict[str, str]):
    """A table that records the texts that it lacks."""

    def __init__(self, table: dict[str, str]) -> None:
        super().__init__(table)
        self.missing: set[str] = set()

    def get(self, key: str, default: str = "") -> str:  # type: ignore[override]
        self.missing |= {key} - set(self)
        return super().get(key, default)


def test_all_views_are_drawn_without_a_missing_text(
    documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(words._words_of("ko"))
    monkeypatch.setattr(words, "_words_of", lambda language: recorder)
    for document in documents:
        for view in document.views:
            document.render(Picture(view, language="ko"), "svg")
            document.lines(Picture(view, language="ko"))
    assert recorder.missing == set()


def test_sides_languages_layers_and_heads_are_named_in_korean(documents: list[Document]) -> None:
    drawn = ", ".join(texts(documents[0].render(Picture("heads", language="ko"), "svg")))
    assert {"소스(독일어)", "타깃(영어)", "쿼리", "키", "0번 층", "1번 헤드"} <= set(drawn.split(", "))
    lines = documents[0].lines(Picture("attention", language="ko"))
    assert "행: 타깃(영어), 쿼리. 열: 소스(독일어), 키." in lines
    assert "검증 손실: 1.5" in texts(documents[4].render(Picture("loss", language="ko"), "svg"))


def test_tokens_and_numbers_are_the_same_in_both_languages(documents: list[Document]) -> None:
    pictures = [Picture("attention", language=code) for code in words._LANGUAGES]
    english, korean = (set(texts(documents[0].render(picture, "svg"))) for picture in pictures)
    assert english - korean == {text for text in english - korean if re.search("[a-z]{3}", text)}
    assert {piece.replace("▁", "␣") for piece in documents[0].source.pieces} <= english & korean  # type: ignore[attr-defined]


def test_files_of_values_stay_english(documents: list[Document]) -> None:
    for document in documents:
        for form in ("csv", "json"):
            assert document.render(Picture(language="ko"), form) == document.render(Picture(), form), form


def test_the_language_is_reset_after_a_picture_in_korean_and_after_an_error(documents: list[Document]) -> None:
    before = documents[0]._repr_svg_()
    assert documents[0].render(Picture(language="ko"), "svg").decode() != before
    with pytest.raises(UsageError, match='no view "nothing"'):
        documents[0].render(Picture("nothing", language="ko"), "svg")
    assert documents[0]._repr_svg_() == before


def test_another_language_is_refused(documents: list[Document]) -> None:
    with pytest.raises(UsageError, match=r'no words in "fr" for charts\. Use en or ko\.'):
        documents[0].render(Picture(language="fr"), "svg")
