"""The status of the Korean pages, their code and links, and the words that they use."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import tomllib

import pytest
from tests.docs.korean import (
    CODE,
    DOCS,
    KOREAN,
    blocks,
    origin,
    sections,
    stamped,
    translation_status,
    translation_statuses,
    with_code,
)

from korean_evidence import flattened
from manyheads.config.load import json_schema

ENGLISH = "# One\nHello.\n\n```python\nx = 1\n```\n\n## Two\nMore.\n\n## Three\nMost.\n"
PACKAGE = DOCS.parent / "src" / "manyheads"
WORDS = ("web/page", "views")  # the folders of the Korean texts of the web page and of the pictures
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


def test_a_page_that_was_just_compared_is_not_stale() -> None:
    found = translation_status("page.md", ENGLISH, stamped(ENGLISH, KOREAN_PAGE))
    assert (found.sections, found.translated, found.stale) == (3, 2, ())


def test_a_section_whose_english_has_changed_is_stale_and_no_other() -> None:
    korean = stamped(ENGLISH, KOREAN_PAGE)
    assert translation_status("page.md", ENGLISH.replace("More.", "Less."), korean).stale == ("## Two",)


def test_a_page_that_was_never_compared_is_stale() -> None:
    assert translation_status("page.md", ENGLISH, KOREAN_PAGE).stale == ("# One", "## Two")


def test_changes_of_line_ends_and_code_do_not_make_a_section_stale() -> None:
    korean = stamped(ENGLISH, KOREAN_PAGE)
    assert not translation_status(
        "page.md", ENGLISH.replace("x = 1", "x = 2").replace("More.", "More. "), korean
    ).stale


def test_comments_in_code_are_no_headings() -> None:
    assert [heading for heading, _ in sections("# One\n```bash\n# no heading\n```\n")] == ["# One"]
    assert "# 낡음\n```" in stamped(ENGLISH, KOREAN_PAGE)


def test_code_is_copied_block_by_block() -> None:
    assert "```python\nx = 1\n```" in with_code(ENGLISH, KOREAN_PAGE)


def test_a_block_that_differs_in_comments_alone_keeps_its_comments() -> None:
    english, korean = "```toml\nx = 1  # one\n```\n", "```\nx = 1  # 하나\n```\n"
    assert with_code(english, korean) == "```toml\nx = 1  # 하나\n```\n"
    assert blocks(with_code(english, korean)) == blocks(english)
    assert with_code(english, korean.replace("1", "2")) == english


def test_pages_of_different_numbers_of_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="1 blocks in Korean, 0 in English"):
        with_code("# One\n", KOREAN_PAGE)


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
    """Compare the blocks; `python -m tests.docs.korean --code docs/ko/PAGE` copies them."""
    for name in TRANSLATIONS:
        assert blocks(PAGES[name]) == blocks((DOCS / origin(PAGES[name])).read_text("utf-8")), name


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
    spec = importlib.util.spec_from_file_location("search_of_the_book", DOCS / "_ext" / "korean.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert list(module.SearchKorean({}).split("CPU에서 학습을")) == ["CPU", "에서", "학습", "학습을"]


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


def test_pictures_and_notebooks_use_the_words_of_the_glossary() -> None:
    pictures = [path for path in (DOCS / "figures").rglob("*.svg") if path.parent.name == "ko"]
    notebooks = list((DOCS.parent / "notebooks" / "ko").glob("*.ipynb"))
    assert len(pictures) > 15
    assert len(notebooks) == 4
    assert not [
        (path.name, word)
        for path in (*pictures, *notebooks)
        for text in [path.read_text("utf-8")]
        for word in rejected_words()
        if word in text
    ]


def test_the_two_sides_have_one_name_in_the_page_and_in_pictures() -> None:
    page, pictures = (json.loads((PACKAGE / folder / "ko.json").read_text("utf-8")) for folder in WORDS)
    assert (page["column.source"], page["column.target"]) == (pictures["source"], pictures["target"])
    terms = re.findall(r"(?m)^\| ([^|]*?) \| (source|target) \|", PAGES["glossary.md"])
    assert terms == [(pictures["source"], "source"), (pictures["target"], "target")]


def test_a_word_of_the_glossary_has_one_entry() -> None:
    terms = re.findall(r"(?m)^\| ([^|]*?) \|", PAGES["glossary.md"].split("\n## 표기\n")[0])
    assert len(set(terms)) == len(terms) > 100


def test_korean_sentences_are_polite() -> None:
    """Expect that a sentence that ends in 다 ends in 니다."""
    plain = re.compile(r"[^.\n]{,40}(?<![니시])다\.(?=\s|$|\|)")
    assert not [
        (name, found[0]) for name, page in korean_texts().items() for found in plain.finditer(CODE.sub("", page))
    ]
