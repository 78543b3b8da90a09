"""The help of every command is in Korean where the user asks for it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

import click
import pytest
from tests.cli.conftest import Call

from manyheads.cli import korean
from manyheads.cli.main import program
from manyheads.cli.verbs import Settings

COMMAND_LINE = re.compile(r"(?:manyheads|echo|curl) ")
NAMES = {
    "100.0", "RUN-averaged", "data/SOURCE-TARGET", "occlusion, masks, neighbours, tokens", "runs/demo-PAIR",
    "tokens",
}  # fmt: skip


def helps(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[str]:
    """Yield the Korean help of a command and of all below it, as a terminal of 80 columns shows it."""
    settings = Settings(language="ko") if parent is None else None
    context = click.Context(command, info_name=name, parent=parent, obj=settings, terminal_width=80)
    yield command.get_help(context)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            verb = command.get_command(context, inner)
            assert verb is not None
            yield from helps(verb, inner, context)


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return a set that collects the English texts whose Korean form a help wants."""
    texts: set[str] = set()

    class Noticed(dict[str, str]):
        def get(self, text: str, default: str = "") -> str:  # type: ignore[override]
            texts.add(text)
            return super().get(text, default)

    noticed = Noticed(korean.korean_texts())
    monkeypatch.setattr(korean, "korean_texts", lambda: noticed)
    return texts


def test_every_english_text_of_a_help_has_a_korean_form_and_no_form_is_stale(wanted: set[str]) -> None:
    known = set(korean.korean_texts())
    assert len(list(helps(program, "manyheads"))) > 30
    english = {text for text in wanted if re.search(r"\w", text) and not COMMAND_LINE.match(text)}
    assert english - known - NAMES == set()
    assert known - english == set()


def test_a_korean_form_keeps_the_names_and_placeholders_of_the_english_text() -> None:
    names = re.compile(r"\{\}|--[a-z-]+|\b[A-Z]{4,}(?:\.[a-z-]+)?\b|`[^`]+`|\b\w+(?:[._]\w+)+\b", re.ASCII)
    differing = {
        english: set(names.findall(english)) ^ set(names.findall(form))
        for english, form in korean.korean_texts().items()
        if english != "[OPTIONS]"
    }
    assert {english: found for english, found in differing.items() if found} == {}


def test_lines_fit_the_terminal_though_letters_in_hangul_take_two_columns() -> None:
    text = "\n".join(helps(program, "manyheads"))
    assert "\u2060" not in text
    lines = [line for line in text.splitlines() if re.search("[가-힣]", line)]
    widths = [sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in line) for line in lines]
    assert [line for line, width in zip(lines, widths, strict=True) if width > 80] == []
    assert max(widths) > 75


@pytest.mark.parametrize(
    "line", ["--lang ko train -h", "train --lang ko -h", "train -h --lang=ko", "help train --lang ko"]
)
def test_the_language_may_stand_before_and_after_the_verb_and_the_help(line: str, call: Call) -> None:
    assert call(*line.split()).out.startswith(
        "사용법: manyheads train [옵션] CONFIG\n        manyheads train average"
    )


def test_the_environment_sets_the_language_of_help_and_a_wrong_one_is_a_mistake(
    monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.setenv("LC_ALL", "ko_KR.UTF-8")  # the locale sets no language
    assert "[default: 127.0.0.1]" in call("serve", "-h").out
    monkeypatch.setenv("MANYHEADS_LANG", "ko")
    assert "[기본값: 127.0.0.1]" in call("serve", "-h").out
    assert "[default: 127.0.0.1]" in call("serve", "-h", "--lang", "en").out
    monkeypatch.setenv("MANYHEADS_LANG", "fr")
    assert "MANYHEADS_LANG=fr is no language of the program. Use en or ko." in call("serve", "-h", code=2).err


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("train", "빠진 인수: 'CONFIG'. 도움말: manyheads train --help"),
        ("train x --forc", "없는 옵션: '--forc'. 비슷한 옵션: '--force'. 도움말: manyheads train --help"),
        ("train x --device", "값이 필요한 옵션: '--device'."),
        ("train --force=1 x", "값을 받지 않는 옵션: '--force'."),
        ("train a b", "남는 인수: b. 도움말: manyheads train --help"),
        ("translate x --beam x", "'--beam'의 잘못된 값: 정수가 아닌 값 'x'. 도움말: manyheads translate --help"),
        (
            "serve x --port 70000",
            "'--port'의 잘못된 값: 범위 0<=x<=65535 밖의 값 70000. 도움말: manyheads serve --help",
        ),
        (
            "demo --pair x",
            "'--pair'의 잘못된 값: 'de-en', 'ko-en' 가운데 하나가 아닌 값 'x'. 도움말: manyheads demo --help",
        ),
        ("trian", "없는 명령: trian. 비슷한 명령: train. 도움말: manyheads --help"),
        ("train averag", "없는 파일이나 명령: averag. 비슷한 명령: train average. 도움말: manyheads train --help"),
    ],
)
def test_a_usage_error_is_in_korean_with_lang_ko(line: str, expected: str, call: Call) -> None:
    assert call("--lang", "ko", *line.split(), code=2).err == f"error: {expected}\n"
