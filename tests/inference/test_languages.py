"""A run stores profiles of its languages."""

from __future__ import annotations

import pytest
from tests.runs.parts import SENTENCES, make_config, write_corpus

from manyheads.checkpoint import RunDirectory
from manyheads.errors import RunError
from manyheads.inference.languages import LANGUAGES, languages_of
from manyheads.runs.train import train
from manyheads.text.languages import confidences


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    folder = tmp_path_factory.mktemp("languages")
    train(make_config(write_corpus(folder / "corpus"), training={"steps": 4}), folder / "run")
    return RunDirectory(folder / "run")


def test_the_languages_of_a_run_are_distinguished(run: RunDirectory) -> None:
    profiles = languages_of(run)
    assert set(profiles) == {"de", "en"}
    for german, english in SENTENCES:
        assert confidences(german, profiles)[0][0] == "de"
        assert confidences(english, profiles)[0][0] == "en"


def test_a_damaged_profile_file_is_named_and_an_older_run_has_none(run: RunDirectory) -> None:
    path = run.path / LANGUAGES
    content = path.read_bytes()
    try:
        path.write_bytes(b'{"de": 3}')
        with pytest.raises(RunError, match=LANGUAGES):
            languages_of(run)
        path.unlink()
        assert languages_of(run) == {}
    finally:
        path.write_bytes(content)
