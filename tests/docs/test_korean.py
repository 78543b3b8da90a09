"""What is said of the Korean pages: which sections are there, and which are older than the English."""

from __future__ import annotations

from tests.docs.korean import DOCS, KOREAN, origin, sections, stamped, standing, standings, with_code

from manyheads.doctor.museum import TEXTS as MUSEUM_TEXTS
from manyheads.doctor.texts import FINDING_TEXTS, flatten

ENGLISH = "# One\nHello.\n\n```python\nx = 1\n```\n\n## Two\nMore.\n\n## Three\nMost.\n"
KOREAN_PAGE = "% of page.md\n\n# 하나\n안녕하세요.\n\n```python\n# 낡음\n```\n\n## 둘\n더.\n"


def test_a_page_that_was_just_compared_is_not_stale() -> None:
    found = standing("page.md", ENGLISH, stamped(ENGLISH, KOREAN_PAGE))
    assert (found.sections, found.translated, found.stale) == (3, 2, ())


def test_a_section_whose_english_has_changed_is_stale_and_no_other() -> None:
    korean = stamped(ENGLISH, KOREAN_PAGE)
    assert standing("page.md", ENGLISH.replace("More.", "Less."), korean).stale == ("## Two",)


def test_a_page_that_was_never_compared_is_stale() -> None:
    assert standing("page.md", ENGLISH, KOREAN_PAGE).stale == ("# One", "## Two")


def test_line_ends_and_code_make_nothing_stale() -> None:
    korean = stamped(ENGLISH, KOREAN_PAGE)
    assert not standing("page.md", ENGLISH.replace("x = 1", "x = 2").replace("More.", "More. "), korean).stale


def test_comments_in_code_are_no_headings() -> None:
    assert [heading for heading, _ in sections("# One\n```bash\n# no heading\n```\n")] == ["# One"]
    assert "# 낡음\n```" in stamped(ENGLISH, KOREAN_PAGE)


def test_code_is_copied_block_by_block() -> None:
    assert "```python\nx = 1\n```" in with_code(ENGLISH, KOREAN_PAGE)


def test_every_korean_page_is_of_a_page_that_is_there() -> None:
    names = [origin(path.read_text("utf-8")) for path in KOREAN.glob("*.md") if path.stem != "index"]
    assert all((DOCS / name).is_file() for name in names)
    assert len(set(names)) == len(names) >= 7


def test_a_page_and_its_korean_one_name_each_other() -> None:
    for path in KOREAN.glob("*.md"):
        name = origin(path.read_text("utf-8"))
        if name:
            up = "../" * name.count("/")
            assert f"[English](../{name})" in path.read_text("utf-8"), path.name
            assert f"[한국어]({up}ko/{path.name})" in (DOCS / name).read_text("utf-8"), name


def test_the_tutorial_is_there_as_a_whole() -> None:
    tutorial = next(page for page in standings() if page.name == "tutorial/part-by-part.md")
    assert tutorial.translated == tutorial.sections


def test_korean_texts_use_the_terms_of_the_list() -> None:
    """Spellings and words that readers know as well, but of which the list has chosen another one."""
    others = {
        "퍼플렉서티": "퍼플렉시티",
        "워밍업": "웜업",
        "서브층": "하위층",
        "서브레이어": "하위층",
        "시작 기호": "시작 표시",
        "끝 기호": "끝 표시",
        "레이어 정규화": "층 정규화",
        "라벨": "레이블",
        "타겟": "타깃",
        "벨류": "밸류",
        "기울기": "그래디언트",
        "테스트 세트": "시험 집합",
        "검증 세트": "검증 집합",
        "트랜스포머스": "transformers",
    }
    glossary = (DOCS / "glossary.md").read_text("utf-8")
    texts = {path.name: path.read_text("utf-8") for path in [*KOREAN.glob("*.md"), DOCS.parent / "README.ko.md"]}
    for name, table in (("the museum", MUSEUM_TEXTS), ("the doctor", FINDING_TEXTS)):
        texts[name] = "\n".join(text for _, text in flatten(table["ko"]))
    texts["the page"] = (DOCS.parent / "src" / "manyheads" / "serving" / "page" / "ko.json").read_text("utf-8")
    found = [(name, other) for name, text in texts.items() for other in others if other in text]
    assert not found, [(name, other, others[other]) for name, other in found]
    assert all(term in glossary for term in others.values() if term != "transformers")
