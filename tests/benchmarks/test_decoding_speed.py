"""The figures of `decoding_speed.py` are those of the text that was translated."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runs.parts import make_config, write_corpus
from tests.training.parts import CollectingListener

from decoding_speed import measure_decoding
from manyheads.inference.translation.translator import Translator
from manyheads.runs.train import train


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a beam of 2 and a test text of 6 sentences."""
    folder = tmp_path_factory.mktemp("trained")
    train(make_config(write_corpus(folder / "corpus")), folder / "run", listener=CollectingListener())
    return folder / "run"


def test_every_mode_is_measured(trained: Path) -> None:
    found = measure_decoding(Translator.load(trained, device="cpu"), sentences=5)
    assert [(mode.beam_size, mode.batch) for mode in found] == [(b, batch) for b in (1, 2) for batch in (1, 64, 0)]
    assert [mode.sentences for mode in found] == [1, 5, 5] * 2, "one a call: every tenth"
    assert all(0 < mode.min <= mode.median <= mode.max for mode in found)


def test_tokens_of_the_outputs_are_counted_with_end_marks(trained: Path) -> None:
    translator = Translator.load(trained, device="cpu")
    (mode,) = measure_decoding(translator, beams=[1], batches=[0], rounds=1)
    corpus = trained.parent / "corpus" / "test.de"
    outputs = translator.translate(corpus.read_text(encoding="utf-8").splitlines(), beam_size=1)
    tokens = sum(len(output.hypotheses[0].tokens) for output in outputs)
    assert mode.sentences == len(outputs) == 6
    assert mode.tokens_per_second == pytest.approx(mode.median * tokens / len(outputs))
