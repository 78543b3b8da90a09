"""The pages are correct: their code prints the shown output, and their settings exist."""

from __future__ import annotations

import codeop
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.docs.book import RUN_WHOLE
from tools.notebooks import SHORT_TRAINING
from tools.pages import run, written

from manyheads.config.schema import Config
from manyheads.improve.build.schema import KINDS

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "reference" not in path.relative_to(DOCS).parts)
FIELDS = {
    name: field.annotation.model_fields
    for name, field in Config.model_fields.items()
    if name != "task" and field.annotation is not None
}
SECTIONS = {section: set(fields) for section, fields in FIELDS.items()}
ASSIGNMENT = re.compile(rf"`({'|'.join(SECTIONS)})\.([a-z_]+) = ([^`]+)`")
SETTING = re.compile(rf"(?<![\w./])({'|'.join(SECTIONS)})\.([a-z_]+)\b(?![(\w/-]|\.\w)")
# model.safetensors, model.bin, training.md, my-model.toml, model.encode, tokenizer.source.json
NO_SETTINGS = {"bin", "safetensors", "py", "json", "md", "toml", "encode", "decode", "source", "target"}

# Replacements that shorten the chapters that train for a minute. The output after such a training is not compared.
# `python -m tools.pages docs/tutorial/*.md` runs them whole.
QUICK = {
    "train.md": {"steps = 200": "steps = 2"},
    "search.md": {'["training.steps=120"]': SHORT_TRAINING['["training.steps=360"]']},
    "translator.md": SHORT_TRAINING,
}
CHAPTERS = sorted((DOCS / "tutorial").glob("*.md"))


def ids(paths: list[Path]) -> list[Any]:
    """Return pages as parameters whose ids are their paths below docs/."""
    return [pytest.param(path, id=str(path.relative_to(DOCS))) for path in paths]


def refused_at_the_prompt(code: str) -> list[str]:
    """Return the lines that Python's prompt refuses: there only a blank line ends an indented block."""
    lines: list[str] = []
    for line in code.splitlines():
        lines.append(line)
        try:
            complete = codeop.compile_command("\n".join(lines), symbol="single")
        except SyntaxError:
            return lines
        lines = [] if complete else lines
    return []


@pytest.mark.parametrize("path", ids([DOCS / "learn.md", *CHAPTERS]))
def test_the_code_of_the_course_can_be_pasted_at_the_prompt(path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert not [refused for block in blocks if (refused := refused_at_the_prompt(block))]


def prose_and_settings(text: str) -> str:
    """Return a page without its Python, whose attributes look like settings."""
    return re.sub(r"^```python\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def test_every_setting_that_is_named_exists_and_every_value_is_valid() -> None:
    for page in PAGES:
        text = prose_and_settings(page.read_text(encoding="utf-8"))
        for found in SETTING.finditer(text):
            assert found[2] in SECTIONS[found[1]] | NO_SETTINGS, f"{page}: {found[0]}"
        for section, name, value in set(ASSIGNMENT.findall(text)):
            annotation = Config.model_fields[section].annotation
            annotation(**{name: tomllib.loads(f"x = {value}")["x"]})


def test_every_piece_of_a_configuration_holds_known_settings() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    for block in re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        tables = tomllib.loads(block)
        for step in tables.pop("steps", {}).values():  # of a plan, with sections of a configuration inside
            known = KINDS[step.get("kind", "train")].model_fields
            assert step.keys() <= known.keys()
            tables |= {name: settings for name, settings in step.items() if isinstance(settings, dict)}
        for section, settings in tables.items():
            if isinstance(settings, dict):
                assert set(settings) <= SECTIONS[section], section
            else:
                assert section == "task"


@pytest.mark.parametrize("page", ids(sorted(DOCS / name for name in RUN_WHOLE)))
def test_the_code_of_a_page_prints_the_output_below_it(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for block in run(page):
        assert block.matches_page, f"{page.name}:{block.line} printed\n{block.printed}"


@pytest.mark.parametrize("page", ids(CHAPTERS))
def test_a_chapter_of_the_course_runs_by_itself(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    quick = QUICK.get(page.name, {})
    trained = False
    for block in run(page, quick):
        trained = trained or any(piece in block.code for piece in quick)
        assert trained or block.matches_page, f"{page.name}:{block.line} printed\n{block.printed}"
        assert block.output is None or block.printed
    assert trained == bool(quick)


def test_a_page_that_prints_something_else_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 2\n```\n\n```python\nprint(x)\n```\n```text\n3\n```\n")
    silent, printing = run(page)
    assert silent.matches_page
    assert not printing.matches_page
    assert "```text\n2\n```" in written(page.read_text(), [silent, printing])
