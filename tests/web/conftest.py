from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.web.text.browser import Browser, open_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened
