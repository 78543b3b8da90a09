"""Korean forms of sentences: of the evidence of every finding that tests make, and none that the code lacks."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from transformer_doctor.catalogue import KnownFinding
from transformer_doctor.report import Finding
from transformer_doctor.texts import Language, placeholders, translate

_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`|: [A-Z]\w+(?:Error|Warning).*", re.DOTALL)  # texts, errors
# Keys of the English file alone, as they hold no words.
_NOT_TEXTS = {"severity", "exhibit", "check", "number", "origin"}
_MADE_UP = 10  # letters of the evidence that tests make up
_HANGUL = re.compile("[가-힣]")
_NAMED = re.compile(r"(?:data|tokenizer|model|training|search)\.[a-z_]+|`[^`]+`")  # settings and verbs
_WORD = re.compile("[a-z]{3,}")
_ENGLISH = re.compile(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}")


def flattened(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of a table and of those inside it, each with its dotted name."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{prefix}{name}.")
        elif name not in _NOT_TEXTS:
            yield f"{prefix}{name}", value


def disagreement(texts: Mapping[Language, Mapping[str, Any]]) -> list[str]:
    """Return the names that the texts of one language alone hold, and those whose placeholders differ."""
    english, korean = (dict(flattened(texts[language])) for language in ("en", "ko"))
    if list(english) != list(korean):
        return sorted(english.keys() ^ korean.keys()) or ["the order of the names"]
    return [name for name, text in english.items() if placeholders(text) != placeholders(korean[name])]


def check_finding_texts(findings: Iterable[KnownFinding], alike: Container[tuple[str, str]] = ()) -> None:
    """Check the texts of findings in both languages; `alike` are those that are a command line in both.

    A setting or a verb that the Korean text names, and the English does not, would be a mistake, and the reverse.
    """
    for known in findings:
        english, korean = vars(known.texts["en"]), vars(known.texts["ko"])
        for part, text in korean.items():
            assert _HANGUL.search(text) or (known.name, part) in alike or text == english[part] == "", (known, part)
        assert not _HANGUL.search(english["title"] + english["cause"]), known
        for part in ("cause", "cure"):
            assert sorted(_NAMED.findall(english[part])) == sorted(_NAMED.findall(korean[part])), (known, part)


def in_english(text: str, sentences: Mapping[str, str]) -> bool:
    """Return whether a part of a text is English still after its translation."""
    korean = translate(text, sentences)
    return not re.search("[가-힣]", korean) or bool(_ENGLISH.search(_QUOTED.sub("", korean)))


def expect_korean(monkeypatch: pytest.MonkeyPatch, sentences: Mapping[str, str]) -> Iterator[None]:
    """Record the evidence of all findings of a test; fail where one has no Korean form."""
    recorded: list[str] = []
    create = Finding.__init__

    def record(finding: Finding, *arguments: Any, **named: Any) -> None:
        create(finding, *arguments, **named)
        recorded.append(finding.evidence)

    monkeypatch.setattr(Finding, "__init__", record)
    yield
    real = [text for text in recorded if sum(map(str.isalpha, text)) >= _MADE_UP]
    missing = [text for text in real if in_english(text, sentences)]
    assert not missing, f"without a Korean form: {missing}"


def expect_korean_verdicts(
    monkeypatch: pytest.MonkeyPatch, sentences: Mapping[str, str], *judges: tuple[object, str]
) -> Iterator[None]:
    """Record the sentences that functions return, each an owner and a name; fail where one has no Korean form."""
    recorded: list[str] = []

    def recording(judge: Callable[..., str | Iterable[str]]) -> Callable[..., Any]:
        def record(*arguments: Any, **named: Any) -> str | list[str]:
            found = judge(*arguments, **named)
            found = found if isinstance(found, str) else [*found]
            recorded.extend([found] if isinstance(found, str) else found)
            return found

        return record

    for owner, name in judges:
        monkeypatch.setattr(owner, name, recording(vars(owner)[name]))
    yield
    missing = [text for text in recorded if text and in_english(text, sentences)]
    assert not missing, f"without a Korean form: {missing}"


def stale_sentences(sentences: Mapping[str, str], files: Iterable[Path]) -> list[str]:
    """Return the sentences with a word that no text in the code holds."""
    nodes = (node for path in files for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    words = {word for text in texts for word in _WORD.findall(text)}
    fixed = {sentence: " ".join(part for part, *_ in Formatter().parse(sentence)) for sentence in sentences}
    return [sentence for sentence, text in fixed.items() if set(_WORD.findall(text)) - words]
