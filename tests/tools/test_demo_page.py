"""The page of the demo model in the documentation: trained once, written each time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.page_files import SMALL

from manyheads.config.load import load_config, resolve_recipe
from tools import demo_page

TINY = (*SMALL, "data.limit=200", "tokenizer.vocab_size=700")


def test_the_demo_is_trained_once_and_its_page_written_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert demo_page.main([str(page)], cache=tmp_path / "cache", overrides=TINY) == 0
    assert "Training the demo" in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    assert 'class="manyheads-tensors"' in text
    page.unlink()
    monkeypatch.setattr(demo_page, "train", lambda *_: pytest.fail("the demo is trained again"))
    assert demo_page.main([str(page)], cache=tmp_path / "cache", overrides=TINY) == 0
    assert page.read_text(encoding="utf-8") == text


def test_another_recipe_or_text_has_another_cached_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_config(resolve_recipe("demo-de-en"))
    changed = load_config(resolve_recipe("demo-de-en"), ["training.steps=361"])
    run = demo_page.cached_run(config, tmp_path)
    assert run.name == "demo-de-en"
    assert demo_page.cached_run(config, tmp_path) == run != demo_page.cached_run(changed, tmp_path)
    monkeypatch.setattr(demo_page, "BUILTIN", {"de-en": "another hash"})
    assert demo_page.cached_run(config, tmp_path) != run
