"""The form of what is told at an exhibit."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Labels", "Words"]


@dataclass(frozen=True)
class Words:
    """At one exhibit: its title, what a person sees, what is wrong, and what mends it."""

    title: str
    seen: str
    wrong: str
    mend: str


@dataclass(frozen=True)
class Labels:
    """The headings."""

    met_in: str
    seen: str
    wrong: str
    doctor: str
    mend: str
    after: str
