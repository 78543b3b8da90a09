"""The status of the Korean pages, their code and links, and the words that they use."""

from __future__ import annotations

import json
import os
import re
import tomllib

import pytest
from tests.docs.book import extension
from tools.korean import (
    CODE,
    DOCS,
    KOREAN,
    blocks,
    origin,
    stamped,
    translation_status,
    translation_statuses,
    with_code,
)
from tools.pages import blocks as python_blocks

from korean_evidence import flattened
from manyheads.config.load import json_schema

ENGLISH = "# One\nHello.\n\n```python\nx = 1\n```\n\n## Two\nMore.\n\n## Three\nMost.\n"
PACKAGE = DOCS.parent / "src" / "manyheads"
PAGES = {
    path.relative_to(KOREAN).as_posix(): path.read_text("utf-8")
    for path in sorted(KOREAN.rglob("*.md"))
    if "generated" not in path.parts
}
README = (DOCS.parent / "README.ko.md").read_text("utf-8")
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
# All translations except those of generated pages, whose tables differ.
TRANSLATIONS = [
    name
    for name, text in PAGES.items()
    if origin(text) and not (DOCS / origin(text)).read_text("utf-8").startswith("<!-- Written by")
]
KOREAN_PAGE = "# 하나\n안녕하세요.\n\n```python\n# 낡음\n```\n\n## 둘\n더.\n\n<!-- page.md in Korean: -->\n"


@pytest.mark.parametrize(
    ("old", "new", "stale"),
    [("", "", ()), ("More.", "Less.", ("## Two",)), ("More.", "More. ", ()), ("x = 1", "x = 2", ())],
)
def test_a_section_whose_english_words_have_changed_is_stale_and_no_other(
    old: str, new: str, stale: tuple[str, ...]
) -> None:
    found = translation_status("page.md", ENGLISH.replace(old, new), stamped(ENGLISH, KOREAN_PAGE))
    assert (found.sections, found.translated, found.stale) == (3, 2, stale)
    assert translation_status("page.md", ENGLISH, KOREAN_PAGE).stale == ("# One", "## Two"), "never compared"


def test_a_block_that_differs_in_comments_alone_keeps_its_comments() -> None:
    english, korean = "```toml\nx = 1  # one\n```\n", "```\nx = 1  # 하나\n```\n"
    assert with_code(english, korean) == "```toml\nx = 1  # 하나\n```\n"
    assert blocks(with_code(english, korean)) == blocks(english)
    assert with_code(english, korean.replace("1", "2")) == english


def test_every_korean_page_names_an_english_page_that_exists() -> None:
    names = [origin(text) for name, text in PAGES.items() if name != "index.md"]
    assert all((DOCS / name).is_file() for name in names)
    assert len(set(names)) == len(names) >= 7


def test_a_page_and_its_korean_translation_link_to_each_other() -> None:
    for name in TRANSLATIONS:
        english = DOCS / origin(PAGES[name])
        assert f"[English]({os.path.relpath(english, (KOREAN / name).parent)})" in PAGES[name]
        assert f"[한국어]({os.path.relpath(KOREAN / name, english.parent)})" in english.read_text("utf-8")


def test_a_korean_page_shows_the_same_code_commands_and_outputs() -> None:
    """Compare the blocks; `python -m tools.korean --code docs/ko/PAGE` copies them."""
    for name in TRANSLATIONS:
        assert blocks(PAGES[name]) == blocks((DOCS / origin(PAGES[name])).read_text("utf-8")), name
    assert python_blocks(README) == python_blocks((DOCS.parent / "README.md").read_text("utf-8")) != []


def test_a_korean_page_links_to_korean_pages_where_they_exist() -> None:
    """Ignore the link to the English page, and links whose label says that they lead to an English page."""
    translated = {origin(text) for text in PAGES.values()}
    for name, text in PAGES.items():
        links = re.findall(r"\[([^\]]*)\]\(([^)#\s]+\.md)(?:#[^)]*)?\)", text)
        targets = {
            os.path.relpath((KOREAN / name).parent / target, DOCS)
            for label, target in links
            if label != "English" and not label.startswith("영어")
        }
        assert not targets & translated, name


def test_the_korean_readme_links_to_korean_pages() -> None:
    translated = {f"docs/{origin(text)}" for text in PAGES.values()}
    linked = set(re.findall(r"\]\((docs/[^)#\s]+\.md)", README))
    assert not linked & translated
    assert {f"docs/ko/{name}.md" for name in ("learn", "start", "serving")} <= linked


def test_korean_pages_show_the_korean_form_of_a_picture() -> None:
    pages = {KOREAN / name: text for name, text in PAGES.items()} | {DOCS.parent / "README.ko.md": README}
    shown = [(page, page.parent / found) for page, text in pages.items() for found in PICTURE.findall(text)]
    assert len(shown) > 30
    assert not [
        (page.name, picture.name)
        for page, picture in shown
        if picture.parent.name != "ko"
        and ((picture.parent / "ko" / picture.name).exists() or picture.with_stem(f"{picture.stem}-ko").exists())
    ]


def test_the_search_of_the_documentation_finds_a_word_without_its_particle() -> None:
    pytest.importorskip("sphinx")
    assert list(extension("korean").SearchKorean({}).split("CPU에서 학습을")) == ["CPU", "에서", "학습", "학습을"]


def test_the_quick_starts_and_the_course_are_completely_translated() -> None:
    chapters = [page for page in translation_statuses() if page.name.startswith(("learn", "start", "tutorial/"))]
    assert len(chapters) == 10
    assert not [page.name for page in chapters if page.translated != page.sections]


def test_every_setting_is_explained_in_korean_with_its_default() -> None:
    schema = json_schema()
    parts = {
        name: schema["$defs"][value["$ref"].rpartition("/")[2]]["properties"] if "$ref" in value else value
        for name, value in schema["properties"].items()
    }
    settings = {
        name if section == "task" else f"{section}.{name}": setting.get("default", "")
        for section, part in parts.items()
        for name, setting in ({"task": part} if section == "task" else part).items()
    }
    rows = re.findall(r"(?m)^\| `([a-z_.0-9]+)` \| `?(.*?)`? \| \S", PAGES["settings.md"])
    assert dict(rows) == {name: json.dumps(value, ensure_ascii=False) for name, value in settings.items()}


# --- style ---


def korean_texts() -> dict[str, str]:
    """Return every Korean text that a reader sees, without the glossary's table of words to avoid."""
    texts = {**PAGES, "README.ko.md": README}
    texts["glossary.md"] = texts["glossary.md"].split("\n## 표기\n")[0]
    for path in PACKAGE.rglob("*.ko.toml"):
        texts[path.name] = "\n".join(text for _, text in flattened(tomllib.loads(path.read_text("utf-8"))))
    for path in PACKAGE.rglob("ko.json"):
        name = path.relative_to(PACKAGE).as_posix()
        texts[name] = "\n".join(json.loads(path.read_text("utf-8")).values())
    return texts


def rejected_words() -> dict[str, str]:
    """Return the words that the glossary rejects, each with the word to use and the reason."""
    table = PAGES["glossary.md"].split("\n## 표기\n")[1]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:2] == "| "
    ]
    return {word: f"{used}: {reason}" for used, rejected, reason in rows[2:] for word in rejected.split(", ")}


def test_korean_texts_use_the_words_of_the_glossary() -> None:
    words = rejected_words()
    assert len(words) > 20
    assert not [
        (name, word, words[word], text[max(0, text.index(word) - 20) :][:50])
        for name, text in korean_texts().items()
        for word in words
        if word in text
    ]


def test_korean_sentences_are_polite() -> None:
    """Expect that a sentence that ends in 다 ends in 니다."""
    plain = re.compile(r"[^.\n]{,40}(?<![니시])다\.(?=\s|$|\|)")
    assert not [
        (name, found[0]) for name, page in korean_texts().items() for found in plain.finditer(CODE.sub("", page))
    ]
