"""Scripts and words are known by language code."""

from __future__ import annotations

from manyheads.data.languages import FREQUENT, SCRIPTS, SCRIPTS_OF, base_code, scripts_of


def test_a_country_does_not_change_the_language() -> None:
    assert base_code("pt-BR") == base_code("PT_br") == "pt"
    assert scripts_of("de-AT") == ("latin",)
    assert list(scripts_of("ja")) == ["kana", "han"]
    assert scripts_of("xx") == ()


def test_every_script_of_a_language_is_defined() -> None:
    assert {script for scripts in SCRIPTS_OF.values() for script in scripts} <= set(SCRIPTS)
    assert not set(SCRIPTS_OF) & set(FREQUENT)
