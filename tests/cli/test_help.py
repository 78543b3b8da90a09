"""`help`: the help of a verb, as its option --help prints it."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Call


@pytest.mark.parametrize("verb", ["", "train", "train average", "serve", "serve keys", "serve keys add"])
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_help_of_a_verb_is_that_of_its_option(verb: str, option: str, call: Call) -> None:
    shown = call("help", *verb.split()).out
    assert call(*verb.split(), option).out == shown
    assert shown.startswith(f"Usage: manyheads {verb}".rstrip())


def test_a_verb_below_one_without_verbs_is_named(call: Call) -> None:
    message = "there is no command all below manyheads recipes. See: manyheads recipes --help"
    assert call("help", "recipes", "all", code=2).err == f"error: {message}\n"
