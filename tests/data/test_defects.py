"""Damage, repetitions and letters of a line."""

from __future__ import annotations

import pytest

from manyheads.data.defects import damage, letters_of, repeats


@pytest.mark.parametrize("text", ["Schöne Grüße aus Köln", "Ça va à l'école", "Kraków", "안녕하세요"])
@pytest.mark.parametrize("codec", ["latin-1", "cp1252"])
def test_utf_8_read_as_something_else_is_damage(text: str, codec: str) -> None:
    assert damage(text) is None
    assert damage(text.encode().decode(codec, errors="replace")) in ("misread", "lost")


def test_repetitions_and_letters() -> None:
    assert repeats("so so so so so")
    assert not repeats("so so good")
    assert letters_of("Ein Hund, 3!") == "einhund3"
