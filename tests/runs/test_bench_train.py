"""The figures of `bench train` agree with the given text and model."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runs.parts import make_config, write_corpus, write_split
from tests.tolerances import printed
from tests.training.parts import CollectingListener

from manyheads.errors import UsageError
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.runs.bench_train import _LEARNING_RATE, _WARM_UPDATES, Speed, bench_train
from manyheads.training.precision import flops_per_target_token
from manyheads.training.update import Updater

S, T = 5, 13  # tokens a side, end marks counted
BYTES = 260  # the vocabulary


def test_figures_of_text_of_one_length_are_exact(tmp_path: Path) -> None:
    """Every source has S - 1 letters and every target T - 1: nothing is padding."""
    for name, first in (("train", 0), ("valid", 60)):
        numbers = range(first, first + 40)
        write_split(tmp_path / "corpus", name, [(f"{n:0{S - 1}}", f"{n:0{T - 1}}") for n in numbers])
    config = make_config(tmp_path / "corpus", data={"test": None}, tokenizer={"kind": "bytes"})
    listener = CollectingListener()
    found = bench_train(config, rounds=3, updates=2, listener=listener)
    assert listener.phases[-1] == ("measuring", _WARM_UPDATES + 3 * 2)
    model = EncoderDecoder(config.model, BYTES, BYTES)
    assert found.padding == 0
    assert found.source_tokens_per_second == pytest.approx(found.median * S / T)
    assert found.gflops == pytest.approx(found.median * flops_per_target_token(model, S, T) / 1e9)
    assert found.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert found.precision == "fp32"
    rounds = [message.partition(": ") for message in listener.messages if message.startswith("round")]
    assert [which for which, _, _ in rounds] == ["round 1 of 3", "round 2 of 3", "round 3 of 3"]
    rates = sorted(float(speed.split()[0].replace(",", "")) for _, _, speed in rounds)
    assert [found.min, found.median, found.max] == printed(rates, 0)


def speed(low: float, high: float, median: float, unit: str = "target tokens/s") -> Speed:
    return Speed(
        unit=unit, median=median, min=low, max=high, peak_memory_mib=1, parameters=1, precision="fp32", device="x",
        threads=1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (
            speed(95, 105, 100),
            "the rounds agree within 10%. 1,000,000 target tokens take 166.7 minutes at this",
        ),
        (
            speed(94, 105, 100),
            "the rounds differ by 11%: other programs are running, so repeat it on an idle",
        ),
        (
            speed(10, 10, 10, "sentences/s"),
            "a single round does not show how steady the speed is. 1,000 sentences take 100.0 ",
        ),
    ],
)
def test_the_verdict_says_how_steady_the_speed_is_and_how_long_work_takes(measured: Speed, words: str) -> None:
    first, second = measured.verdict()
    assert words in first
    assert second.startswith("compare it only with a measurement of the same text, model")
    assert measured.to_json()["verdict"] == f"{first}. {second}"


def test_complete_updates_are_timed_after_warm_up_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []
    apply = Updater.apply

    def recording_apply(updater: Updater, rate: float) -> float:
        rates.append(rate)
        return apply(updater, rate)

    monkeypatch.setattr(Updater, "apply", recording_apply)
    bench_train(make_config(write_corpus(tmp_path / "corpus")), rounds=2, updates=5, listener=CollectingListener())
    assert rates == [_LEARNING_RATE] * (_WARM_UPDATES + 2 * 5)


@pytest.mark.parametrize(("rounds", "updates"), [(0, 5), (5, 0), (-1, 1)])
def test_zero_rounds_or_updates_are_refused(tmp_path: Path, rounds: int, updates: int) -> None:
    with pytest.raises(UsageError, match=f"{rounds} rounds of {updates} updates measure nothing"):
        bench_train(make_config(tmp_path), rounds=rounds, updates=updates, listener=CollectingListener())
