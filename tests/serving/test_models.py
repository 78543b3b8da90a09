"""Runs are loaded with the settings of the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.serving.models import load_model
from manyheads.serving.settings import ServeSettings
from manyheads.tasks.translation import Translator

GOLDEN = Path(__file__).parent.parent / "golden/format-1/run"


@pytest.mark.parametrize("beam", [None, 1, 3])
def test_a_translator_searches_with_the_beam_of_the_settings_or_else_of_the_run(beam: int | None) -> None:
    own = Translator.load(GOLDEN, device="cpu")
    served = load_model(GOLDEN, ServeSettings(beam=beam, device="cpu"))
    assert isinstance(served, Translator)
    size = beam or own.config.search.beam_size
    assert served.config.search.beam_size == size
    (result,) = served.translate(["Ein Hund läuft ."], n_best=size)
    assert len(result.hypotheses) == size
