"""The figures of `bench decode` are those of the text that was translated."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runs.parts import make_config, write_corpus
from tests.tolerances import printed
from tests.training.parts import CollectingListener

from manyheads.errors import UsageError
from manyheads.runs.bench_decode import bench_decode
from manyheads.runs.train import train
from manyheads.tasks.translation.translator import Translator


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a beam of 2 and a test text of 6 sentences."""
    folder = tmp_path_factory.mktemp("trained")
    train(make_config(write_corpus(folder / "corpus")), folder / "run", listener=CollectingListener())
    return folder / "run"


def test_every_mode_is_measured_in_every_round_and_the_fastest_with_the_run_beam_is_reported(trained) -> None:
    listener = CollectingListener()
    found = bench_decode(trained, sentences=5, rounds=3, device="cpu", listener=listener)
    modes = [(beam, batch) for beam in (1, 2) for batch in (1, 64, 0)]
    assert [(mode.beam_size, mode.batch) for mode in found.modes] == modes
    assert [mode.sentences for mode in found.modes] == [1, 5, 5] * 2, "one a call: every tenth"
    for mode in found.modes:
        assert 0 < mode.min <= mode.median <= mode.max
    fastest = max(found.modes[3:], key=lambda mode: mode.median)
    assert (found.median, found.min, found.max) == (fastest.median, fastest.min, fastest.max)
    assert listener.phases == [("measuring", (3 + 1) * len(modes))]
    rounds = [message for message in listener.messages if message.startswith("round")]
    assert [message.split(":")[0] for message in rounds] == [
        f"round {number} of 3, beam {beam}, batch {batch or 'all'}" for number in (1, 2, 3) for beam, batch in modes
    ]
    rates = sorted(
        float(message.split()[-2].replace(",", "")) for message in rounds if "beam 2, batch all" in message
    )
    last = found.modes[-1]
    assert [last.min, last.median, last.max] == printed(rates, 1)


def test_tokens_of_the_outputs_are_counted_with_end_marks(trained) -> None:
    found = bench_decode(trained, beams=[1], batches=[0], rounds=1, device="cpu", listener=CollectingListener())
    translator = Translator.load(trained, device="cpu")
    corpus = trained.parent / "corpus" / "test.de"
    outputs = translator.translate(corpus.read_text(encoding="utf-8").splitlines(), beam_size=1)
    tokens = sum(len(one.hypotheses[0].tokens) for one in outputs)
    (mode,) = found.modes
    assert mode.sentences == len(outputs) == 6
    assert mode.tokens_per_second == pytest.approx(mode.median * tokens / len(outputs))
    assert found.parameters == sum(parameter.numel() for parameter in translator.model.parameters())
    assert found.precision == "fp32"


@pytest.mark.parametrize(("rounds", "sentences"), [(0, 5), (5, 0), (-1, 1)])
def test_zero_rounds_or_sentences_are_refused(tmp_path: Path, rounds: int, sentences: int) -> None:
    with pytest.raises(UsageError, match=f"{rounds} rounds of {sentences} sentences measure nothing"):
        bench_decode(tmp_path, rounds=rounds, sentences=sentences, listener=CollectingListener())


def test_an_unknown_precision_is_named(trained) -> None:
    with pytest.raises(UsageError, match='no precision "fp8"'):
        bench_decode(trained, precision="fp8", listener=CollectingListener())
