"""Sweeps over hosts, defects and precisions: the quick tests try each of them once, the slow ones all together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def covering(cases: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return cases for `parametrize`, all marked slow but a few in which every value of every column occurs."""
    every = list(cases)
    columns = [{(column, repr(value)) for column, value in enumerate(case)} for case in every]
    missing: set[tuple[int, str]] = set().union(*columns)
    quick: set[int] = set()
    while missing:
        chosen = max(range(len(every)), key=lambda index: len(missing & columns[index]))
        quick.add(chosen)
        missing -= columns[chosen]
    return [
        pytest.param(*case, marks=() if index in quick else pytest.mark.slow) for index, case in enumerate(every)
    ]
