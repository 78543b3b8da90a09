"""A configuration is suggested for a user's text by the pairs that training will use."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bitext.discover import find_text
from manyheads.config.schema import Config
from manyheads.errors import DataError
from manyheads.runs import suggest as module
from manyheads.runs.estimate import MachineSpeed
from manyheads.runs.suggest import _MODEL_SIZES, Suggestion
from manyheads.text.training import train_tokenizers


def suggest(root: Path, minutes: float | None = None, *, measure: bool = False) -> Suggestion:
    return module.suggest(
        find_text(root, "aa", "bb"), root, root / "mine", minutes=minutes, device="cpu" if measure else None
    )


def write_text(folder: Path, pairs: int, source_words: int = 5, target_words: int = 5, times: int = 1) -> Path:
    """Write a train split with each pair repeated `times` times, and a valid split."""
    folder.mkdir()
    for split, count in (("train", pairs), ("valid", 3)):
        for language, words in (("aa", source_words), ("bb", target_words)):
            lines = [f"{split} {n} {'x ' * (words - 2)}" for n in range(count)]
            text = "".join(f"{line.strip()}\n" for line in lines)
            (folder / f"{split}.{language}").write_text(text * times, encoding="utf-8")
    return folder


def reason_of(suggestion: Suggestion, key: str) -> str:
    (reason,) = re.findall(rf"^{key} = \S+  # (.*)$", suggestion.toml, re.MULTILINE)
    return str(reason)


def test_pairs_that_the_filters_drop_do_not_count(tmp_path: Path) -> None:
    once = suggest(write_text(tmp_path / "once", 700))
    thrice = suggest(write_text(tmp_path / "thrice", 700, times=3))
    assert "700 pairs" in reason_of(thrice, "vocab_size")
    assert thrice.config.training == once.config.training


@pytest.mark.parametrize("words", [(110, 40), (40, 110)])
def test_long_texts_on_either_side_get_a_larger_maximum_length(tmp_path: Path, words: tuple[int, int]) -> None:
    """A word is more than one token: 110 words are more than 128 tokens."""
    found = suggest(write_text(tmp_path / "text", 50, *words))
    assert found.config.data.max_length == 256
    assert suggest(write_text(tmp_path / "short", 50, 40, 40)).config.data.max_length == 128


def test_the_plan_counts_target_tokens_and_sets_warm_up_and_checkpoints(tmp_path: Path) -> None:
    found = suggest(write_text(tmp_path / "text", 900, source_words=5, target_words=20))
    training = found.config.training
    (count,) = re.findall(r"about ([\d,]+) updates", reason_of(found, "epochs"))
    updates = int(count.replace(",", ""))
    words = 900 * 20 * (training.epochs or 0) / training.batch_tokens
    assert words < updates < 2 * words, "between one and two tokens a word"
    assert 0.09 * updates < training.warmup_steps < 0.11 * updates
    assert 11 < updates / training.save_every < 13, "a dozen checkpoints"


def test_a_folder_without_a_pair_to_train_with_is_named(tmp_path: Path) -> None:
    """All pairs are in the validation set too."""
    root = write_text(tmp_path / "text", 5)
    for language in ("aa", "bb"):
        (root / f"valid.{language}").write_bytes((root / f"train.{language}").read_bytes())
    with pytest.raises(DataError, match=r"text holds no pair to train with: .*5 also held out"):
        suggest(root)


def test_more_text_gives_a_larger_model_and_less_dropout(tmp_path: Path, large_text: Path) -> None:
    small, large = (suggest(text).config for text in (write_text(tmp_path / "text", 500), large_text))
    assert small.model.d_model < large.model.d_model
    assert small.tokenizer.vocab_size == large.tokenizer.vocab_size, "all that the same few words allow"
    assert small.tokenizer.sampling > large.tokenizer.sampling == 0
    assert [size.dropout for size in _MODEL_SIZES] == sorted((size.dropout for size in _MODEL_SIZES), reverse=True)


class FakeMachine:
    """Measures a speed in proportion to the squared width.

    Attributes:
        widths: the models that were measured.
    """

    def __init__(self, tokens_per_second: float, free: float = 1.0) -> None:
        self.tokens_per_second = tokens_per_second
        self.free = free
        self.widths: list[int] = []

    def measure(self, config: Config, lengths: NDArray[np.int64]) -> MachineSpeed:
        self.widths.append(config.model.d_model)
        assert lengths.min() >= 1
        assert lengths.shape[1] == 2
        return MachineSpeed(config.model.d_model**2 / 192**2 / self.tokens_per_second, 0.0, 1, self.free)


@pytest.fixture(scope="module")
def large_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write 16,000 pairs, which tests only read."""
    return write_text(tmp_path_factory.mktemp("large") / "text", 16_000)


@pytest.mark.parametrize(
    ("tokens_per_second", "minutes", "width"), [(1e6, 10, 256), (20_000, 10, 192), (1, 10, 192), (1, None, 256)]
)
def test_the_suggested_model_fits_the_time(
    large_text: Path,
    monkeypatch: pytest.MonkeyPatch,
    tokens_per_second: float,
    minutes: float | None,
    width: int,
) -> None:
    """16,000 pairs of 5 words in 15 epochs are 1.7 million tokens: minutes at 256, and less at 192."""
    machine = FakeMachine(tokens_per_second / 10)
    monkeypatch.setattr(module, "measure_speed", machine.measure)
    found = suggest(large_text, minutes, measure=True)
    config = found.config
    assert (config.model.d_model, config.training.max_minutes) == (width, minutes)
    assert config.model.dropout == _MODEL_SIZES[1].dropout
    assert len(set(machine.widths)) == len(machine.widths), "each model is measured once"
    if minutes is not None and found.updates < found.planned:
        used = found.updates * found.size.batch_tokens * (width / 192) ** 2 / machine.tokens_per_second
        assert 0.9 * 60 * minutes < used <= 60 * minutes or found.updates == 1


def test_a_long_training_is_compared_with_one_of_an_hour(large_text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "measure_speed", FakeMachine(100).measure)
    first, measured, hour = suggest(large_text, measure=True).lines()
    assert re.match(r"about \d+\.\d hours on .*: 825 updates of 2,048 target tokens", first)
    assert "validations come on top" in measured
    assert re.match(r"with --minutes 60 it would be d_model = 192, \d+ updates of 1,024 target tokens", hour)
    monkeypatch.setattr(module, "measure_speed", FakeMachine(1e6).measure)
    assert len(suggest(large_text, measure=True).lines()) == 2


def test_a_busy_machine_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "measure_speed", FakeMachine(1e6, free=0.4).measure)
    lines = suggest(write_text(tmp_path / "text", 50), measure=True).lines()
    assert lines[-1].startswith("warning: other programs used 60% of the processors")


@pytest.mark.parametrize("pairs", [4, 20, 100, 453, 1_000])
@pytest.mark.parametrize("kind", ["words", "ideographs", "few"])
def test_training_accepts_the_suggested_vocabulary(tmp_path: Path, pairs: int, kind: str) -> None:
    """For texts of any size: of many words, of thousands of characters on a side, of the same few words."""
    rng = random.Random(1)
    make = {
        "words": lambda: " ".join("".join(rng.choices("abcdefghij", k=rng.randint(2, 9))) for _ in range(6)),
        "ideographs": lambda: "".join(chr(0x4E00 + rng.randrange(9_000)) for _ in range(12)),
        "few": lambda: f"{rng.choice(['yes', 'no'])} {rng.randrange(10 * pairs)}",
    }[kind]
    for split, count in (("train", pairs), ("valid", 3)):
        for language in ("aa", "bb"):
            write = make if language == "aa" else (lambda: f"line {rng.randrange(10 * pairs)} of a text")
            (tmp_path / f"{split}.{language}").write_text("".join(f"{write()}\n" for _ in range(count)))
    config = suggest(tmp_path).config
    texts = [(tmp_path / f"train.{language}").read_text(encoding="utf-8").splitlines() for language in ("aa", "bb")]
    assert train_tokenizers(config.tokenizer, *texts, "aa", "bb").source.size == config.tokenizer.vocab_size
