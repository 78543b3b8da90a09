"""Designed sets of cases for sweeps over hosts, defects and precisions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def covering(cases: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return a few cases in which every value of every column occurs."""
    every = list(cases)
    columns = [{(column, repr(value)) for column, value in enumerate(case)} for case in every]
    missing: set[tuple[int, str]] = set().union(*columns)
    chosen: set[int] = set()
    while missing:
        best = max(range(len(every)), key=lambda index: len(missing & columns[index]))
        chosen.add(best)
        missing -= columns[best]
    return [every[index] for index in sorted(chosen)]
