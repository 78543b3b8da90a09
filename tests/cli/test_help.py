"""`help`: the help of a verb, as its option --help prints it."""

from __future__ import annotations

import pytest

from manyheads.cli.main import run


@pytest.mark.parametrize(
    "verb", ["", "train", "train average", "serve", "serve keys", "serve keys add", "bench decode"]
)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_help_of_a_verb_is_that_of_its_option(
    verb: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["help", *verb.split()]) == 0
    shown = capsys.readouterr().out
    assert run([*verb.split(), option]) == 0
    assert capsys.readouterr().out == shown
    assert shown.startswith(f"Usage: manyheads {verb}".rstrip())


@pytest.mark.parametrize(
    ("verbs", "message"),
    [
        ("trian", "no verb trian; did you mean train? See: manyheads --help"),
        ("serve key", "no verb key; did you mean keys? See: manyheads serve --help"),
        ("recipes all", "there is no verb all below manyheads recipes. See: manyheads recipes --help"),
    ],
)
def test_an_unknown_verb_is_named(verbs: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", *verbs.split()]) == 2
    assert capsys.readouterr().err == f"error: {message}\n"
