"""Model cards are shown by the page."""

from __future__ import annotations

from manyheads.runs.shown_card import shown_card

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


def test_the_page_shows_a_card_without_code_and_without_lines_to_be_filled_in() -> None:
    assert shown_card(CARD) == {
        "licence": "cc-by-4.0",
        "blocks": [
            ["h1", "de to en"],
            ["p", "A small model, see config.json and its text."],
            ["li", "Data: some & <b>text</b>"],
            ["li", "europarl"],
        ],
    }
    assert shown_card("") == {"licence": "", "blocks": []}
