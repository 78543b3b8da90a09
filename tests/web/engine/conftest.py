"""A process of Node.js for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.web.engine.node import Node, open_node


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """Run the engine in Node.js."""
    with open_node() as opened:
        yield opened
