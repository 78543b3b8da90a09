"""Every picture of the gallery exists, is small, and is drawn by the command above it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.docs.commands import parse_command

from tools import gallery

GOLDEN = Path(__file__).parent.parent / "golden/format-1/run"


every_page = pytest.mark.parametrize(("folder", "page"), gallery.PAGES.items(), ids=["en", "ko"])


@every_page
def test_every_picture_exists_is_small_and_in_its_language(folder: str, page: Path) -> None:
    names = set(gallery.drawing_commands(page.read_text(encoding="utf-8")))
    assert {path.name for path in (gallery.FIGURES / folder).glob("*.*")} == names
    for name in names:
        content = (gallery.FIGURES / folder / name).read_bytes()
        assert len(content) <= gallery.MAX_BYTES, name
        title = ElementTree.fromstring(content).get("aria-label")
        assert title, name
        assert bool(re.search("[가-힣]", title)) == (folder == "ko"), name


@every_page
def test_every_command_exists(folder: str, page: Path) -> None:
    for words in gallery.drawing_commands(page.read_text(encoding="utf-8")).values():
        parse_command(words[1:])
        assert ("--lang" in words) == (folder == "ko")


def test_the_commands_draw_the_pictures_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for run in ("demo-de-en", "demo-ko-en"):
        shutil.copytree(GOLDEN, tmp_path / "runs" / run)
    commands = gallery.drawing_commands(gallery.PAGES["."].read_text(encoding="utf-8"))
    names = [name for name, words in commands.items() if words[2] == "runs/demo-de-en"]
    monkeypatch.setattr(gallery, "FIGURES", tmp_path / "pictures")
    missing = ["attention.svg", "entropy.svg"]  # this small old run has no second layer and no entropy in its log
    drawn = [name for name in names if name not in missing]
    assert gallery.main([str(tmp_path), *drawn]) == 0
    for folder in gallery.PAGES:
        assert {path.name for path in (tmp_path / "pictures" / folder).glob("*.*")} == set(drawn)
    capsys.readouterr()
    assert gallery.main([str(tmp_path), *missing]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{folder}{name}: exit code 2" for folder in ("", "ko/") for name in missing
    ]
