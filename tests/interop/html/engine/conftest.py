"""One process of Node for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.interop.html.engine.node import Node, open_node


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """The engine in Node."""
    with open_node() as opened:
        yield opened
