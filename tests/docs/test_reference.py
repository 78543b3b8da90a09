"""The reference in docs/reference is up to date and complete, and can be read without a build."""

from __future__ import annotations

import pytest
from tools.reference import FOLDER, pages

import manyheads
from manyheads.cli.main import _Program
from manyheads.config.schema import Config

PAGES = pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_is_up_to_date(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8")
    assert written == PAGES[name], "Run: python -m tools.reference --write"


def test_the_reference_holds_every_setting_command_and_public_name() -> None:
    for section, field in Config.model_fields.items():
        for name, setting in getattr(field.annotation, "model_fields", {}).items():
            assert (f"\n### `{section}.{name}`\n" in PAGES["settings.md"]) != setting.internal
    assert all(f"## manyheads {verb}\n" in PAGES["commands.md"] for verb in _Program.verbs)
    assert all(f"## `{name}`\n" in PAGES["names.md"] for name in manyheads.__all__)
