"""Results of commands, as JSON for programs and as lines for people; sentences that only --verbose prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any


class Note(str):
    """A sentence or line that asks for no action; the command line prints it with --verbose only."""

    __slots__ = ()


def verdict_lines(sentences: Sequence[str]) -> list[str]:
    """Return the sentences of a verdict as lines of text; the line of a `Note` is one."""
    lines = [f"verdict: {sentence}" for sentence in sentences]
    return [
        Note(line) if isinstance(sentence, Note) else line for line, sentence in zip(lines, sentences, strict=True)
    ]


def plain(value: Any) -> Any:
    """Return a value of JSON: results and other dataclasses by the names of their fields, paths as text."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


class Result:
    """The result of a command: figures, a verdict on them, and the next command. Subclasses are dataclasses."""

    def figures(self) -> dict[str, Any]:
        """Return the figures by name."""
        return vars(self)

    def report(self) -> list[str]:
        """Return the figures as lines of text."""
        raise NotImplementedError

    def verdict(self) -> list[str]:
        """Return the sentences of the verdict."""
        raise NotImplementedError

    def following(self) -> str:
        """Return the command to run next; "" for none."""
        return ""

    def to_json(self) -> dict[str, Any]:
        """Return figures and verdict as plain values."""
        return {**plain(self.figures()), "verdict": ". ".join(self.verdict())}

    def lines(self) -> list[str]:
        """Return report, verdict and next command as lines of text."""
        following = self.following()
        return [*self.report(), *verdict_lines(self.verdict()), *([f"Next: {following}"] if following else [])]
