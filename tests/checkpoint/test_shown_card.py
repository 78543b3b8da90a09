"""Model cards are shown by the page, and written in Korean."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import manyheads
from manyheads.checkpoint.shown_card import korean_card, shown_card
from manyheads.config.schema import TASKS
from manyheads.runs.evaluate import with_line
from manyheads.tasks.language_modeling.scoring import TextEvaluation
from manyheads.tasks.masked_lm.scoring import MaskedEvaluation
from manyheads.tasks.translation.task import scores_line
from manyheads.training.registry import task_of

PACKAGE = Path(manyheads.__file__).parent

CARD = """---
language: [de, en]
license: cc-by-4.0
---
# de to en

A *small* model,
see `config.json` and [its text](https://example.org/a).

- Data: some & <b>text</b>
  - europarl
- Intended use and limits: to be filled in by you

```
manyheads translate DIRECTORY
```
    indented code
"""


def test_the_page_shows_a_card_without_code_and_what_is_to_be_filled_in_as_not_stated() -> None:
    english = [
        ["h1", "de to en"],
        ["p", "A small model, see config.json and its text."],
        ["li", "Data: some & <b>text</b>"],
        ["li", "europarl"],
        ["li", "Intended use and limits: not stated"],
    ]
    korean = [
        ["h1", "de-en 번역기"],
        english[1],
        ["li", "데이터: some & <b>text</b>"],
        english[3],
        ["li", "용도와 한계: 적혀 있지 않음"],
    ]
    assert shown_card(CARD) == {"licence": "cc-by-4.0", "blocks": english, "korean": korean}
    assert shown_card("") == {"licence": "", "blocks": [], "korean": []}


# --- the card in Korean ---

TEMPLATES = tomllib.loads((PACKAGE / "runs" / "model_cards.toml").read_text("utf-8"))
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"\{(\w+)[^}]*\}")
TITLES = ["# Encoder for ", "# Language model for "]
SEARCH = SimpleNamespace(search=SimpleNamespace(method="beam 5"))
SCORES = SimpleNamespace(bleu=1.0, chrf=2.0, signature={"bleu": "b", "chrf": "c"})
COUNTS = SimpleNamespace(texts=3, tokens=4, perplexity=5.0, bytes=6, bits_per_byte=7.0, window=8, stride=9)
SCORE_LINES = [
    scores_line(SEARCH, 500, SCORES),  # type: ignore[arg-type]
    scores_line(SEARCH, 1000, SCORES),  # type: ignore[arg-type]
    f"- Scores on {MaskedEvaluation.card_text(COUNTS, 'test')}",  # type: ignore[arg-type]
    f"- Scores on {TextEvaluation.card_text(COUNTS, 'test')}",  # type: ignore[arg-type]
    "- Scores on 3 texts of test: accuracy 1.00%, macro F1 2.00%, calibration error 3.00%",
]


def texts_of(templates: dict[str, Any]) -> Iterator[str]:
    """Yield all templates of cards and of their parts."""
    for text in templates.values():
        yield from texts_of(text) if isinstance(text, dict) else [text]


TEMPLATE_TEXTS = list(texts_of(TEMPLATES))


def test_every_sentence_of_a_card_has_a_korean_form() -> None:
    for template in TEMPLATE_TEXTS:
        card = korean_card(NAME.sub(r"<\1>", template).replace("<title>", "Encoder for x").replace("<lost>", ""))
        lines = CODE.sub("", card).rpartition("---\n")[2].split("\n")
        assert [line for line in lines if re.search("[a-z]{2}", line) and not re.search("[가-힣]|^<", line)] == []


@pytest.mark.parametrize("line", SCORE_LINES)
def test_a_line_of_scores_is_in_the_language_of_the_card_and_replaces_an_older_one(line: str) -> None:
    assert re.match(r"- 점수\(.*\): ", korean_card(line))
    korean = with_line(korean_card(CARD), line)
    assert f"\n{korean_card(line)}\n- 용도와 한계" in korean
    assert with_line(korean, line) == korean
    assert f"\n{line}\n- Intended use" in with_line(CARD, line)


def test_the_title_of_every_task_has_a_korean_form() -> None:
    titles = {f"# {task_of(SimpleNamespace(task=name)).model_noun} for " for name in TASKS}  # type: ignore[arg-type]
    assert titles == set(TITLES)
    assert korean_card("# Encoder for masked-lm\n# Language model for x") == "# 인코더(masked-lm)\n# 언어 모델(x)"


def test_no_korean_form_of_a_card_is_stale_and_each_has_the_values_of_its_sentence() -> None:
    forms = tomllib.loads((PACKAGE / "checkpoint" / "model_cards.ko.toml").read_text("utf-8"))
    code = (PACKAGE / "runs" / "model_card.py").read_text("utf-8")
    written = "\n".join([*TEMPLATE_TEXTS, *TITLES, *SCORE_LINES, code])
    stale = [part for english in forms for part in NAME.split(english)[::2] if part.strip("- \n") not in written]
    assert stale == []
    assert all(set(NAME.findall(english)) == set(NAME.findall(form)) for english, form in forms.items())


def test_what_an_author_wrote_and_code_stay_as_they_are() -> None:
    code = CODE.search(CARD)
    assert code is not None
    assert code[0] in korean_card(CARD)
    assert "\nA *small* model,\n" in korean_card(CARD)
    assert korean_card("# How to use it") == "# How to use it"
