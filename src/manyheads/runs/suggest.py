"""Suggest a configuration for a corpus by its size, with a reason for each setting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from manyheads.config.load import parse_config, to_toml
from manyheads.config.schema import Config, DataConfig
from manyheads.data.locate import best_match, splits_of
from manyheads.data.report import DataReport, report
from manyheads.errors import DataError
from manyheads.runs.corpus import read_split
from manyheads.text.normalize import normalize

__all__ = ["Suggestion", "suggest"]

TOKENS_A_WORD = 1.4  # subwords, about; what an epoch comes to need not be known exactly


class Size(NamedTuple):
    """Settings for corpora below a number of pairs.

    The first two are those of the recipes tatoeba-ko-en and multi30k-en-de, the others come from the base model of
    the paper, less regularised the more text there is (Sennrich and Zhang 2019; Araabi and Monz 2020).
    """

    pairs: float
    vocab_size: int
    d_model: int
    d_ff: int
    num_heads: int
    layers: int
    dropout: float
    sampling: float
    batch_tokens: int
    epochs: int


SIZES = (
    Size(15_000, 3_000, 192, 384, 4, 3, 0.3, 0.1, 1_024, 40),
    Size(150_000, 6_000, 256, 1_024, 4, 3, 0.3, 0.0, 2_048, 15),
    Size(1_500_000, 16_000, 512, 2_048, 8, 4, 0.2, 0.0, 8_192, 15),
    Size(float("inf"), 32_000, 512, 2_048, 8, 6, 0.1, 0.0, 16_384, 10),
)


@dataclass(frozen=True)
class Choice:
    """A suggested setting: section, name, value, reason."""

    section: str
    key: str
    value: Any
    reason: str


@dataclass(frozen=True)
class Suggestion:
    """A suggested configuration.

    Attributes:
        report: report on the text.
        choices: settings that differ from the defaults, in the order of the file.
    """

    report: DataReport
    choices: tuple[Choice, ...]

    @property
    def config(self) -> Config:
        """The configuration."""
        sections: dict[str, dict[str, Any]] = {}
        for choice in self.choices:
            sections.setdefault(choice.section, {})[choice.key] = choice.value
        return parse_config(sections, origin="suggestion")

    def to_toml(self) -> str:
        """Return a TOML file to edit: each setting with its reason in a comment."""
        train = self.report.splits["train"]
        lines = [
            f"# {self.report.source}-{self.report.target}, chosen for {train.read:,} pairs of "
            f"{train.source.words.mean:.1f} and {train.target.words.mean:.1f} words on average.",
            "# All other settings have their defaults: manyheads show-config shows and explains them.",
            'task = "translation"',
        ]
        section = ""
        for choice in self.choices:
            if choice.section != section:
                section = choice.section
                lines += ["", f"[{section}]"]
            why = f"  # {choice.reason}" if choice.reason else ""
            lines.append(f"{choice.key} = {to_toml(choice.value)}{why}")
        return "\n".join(lines) + "\n"


def suggest(root: Path, source: str, target: str) -> Suggestion:
    """Measure the text in a folder, and suggest settings for it.

    Args:
        root: folder of files {split}.{language}, with the splits train, and valid, val or dev.
        source: language translated from.
        target: language translated into.

    Raises:
        DataError: text is missing or cannot be used.
    """
    data = data_section(root, source, target)
    config = DataConfig.model_validate(data)
    splits = {
        name: read_split(config, name, "translation") for name in ("train", "valid", "test") if data.get(name)
    }
    measured = report(config, splits, normalize)
    if measured.splits["train"].filtered is None or not measured.splits["train"].filtered.kept:
        raise DataError(f"{root} holds no pair to train with. See: manyheads data report.")
    choices = [Choice("data", key, value, "") for key, value in data.items()]
    return Suggestion(measured, (*choices, *choose(measured)))


def data_section(root: Path, source: str, target: str) -> dict[str, Any]:
    """Return the `[data]` settings: the splits by the names of their files."""
    if not root.is_dir():
        raise DataError(f"{root} is no folder. Give the folder that holds train.{source} and train.{target}.")
    there = splits_of(root, source, target)
    names = {split: best_match(split, there) for split in ("train", "valid", "test")}
    for split in ("train", "valid"):
        if names[split] is None:
            raise DataError(
                f"{root} holds no {split}.{source} and {split}.{target}; in both languages there is: "
                f"{', '.join(sorted(there)) or 'nothing'}. "
                "A few hundred pairs put aside for validation tell when to stop."
            )
    present = {split: name for split, name in names.items() if name}
    return {"root": str(root), "source": source, "target": target, **present}


def choose(measured: DataReport) -> Iterator[Choice]:
    """Return the settings that depend on the text."""
    train = measured.splits["train"]
    assert train.filtered is not None
    pairs = train.filtered.kept
    size = next(size for size in SIZES if pairs < size.pairs)
    few = f"{pairs:,} pairs"
    longest = max(side.words.p99 for side in (train.source, train.target))
    if TOKENS_A_WORD * longest > 128:
        yield Choice("data", "max_length", 256, f"one text of a hundred has more than {longest:.0f} words")
    yield Choice("tokenizer", "kind", "bpe", "")
    yield Choice("tokenizer", "vocab_size", size.vocab_size, f"each piece must be seen often enough in {few}")
    if size.sampling:
        reason = "so little text is worth more when words are split in many ways"
        yield Choice("tokenizer", "sampling", size.sampling, reason)
    yield Choice("model", "d_model", size.d_model, f"as wide as {few} can fill")
    yield Choice("model", "d_ff", size.d_ff, "")
    yield Choice("model", "num_heads", size.num_heads, "")
    yield Choice("model", "num_encoder_layers", size.layers, "")
    yield Choice("model", "num_decoder_layers", size.layers, "")
    yield Choice("model", "dropout", size.dropout, "the less text, the more; 0.1 in the paper")
    yield Choice("model", "positions", "rotary", "learns order from less text than sinusoids (docs/decisions.md)")
    tokens = pairs * TOKENS_A_WORD * train.target.words.mean
    updates = max(1, round(tokens / size.batch_tokens))
    yield Choice("training", "epochs", size.epochs, f"about {size.epochs * updates:,} updates")
    yield Choice("training", "batch_tokens", size.batch_tokens, "target tokens an update")
    yield Choice("training", "optimizer", "muon", "needs fewer updates than Adam")
    yield Choice("training", "learning_rate", 8e-3 if size.d_model < 512 else 4e-3, "")
    yield Choice("training", "muon_factor", 0.6 if size.d_model < 512 else 1.0, "")
    yield Choice("training", "schedule", "linear", "down to nothing at the end")
    yield Choice("training", "warmup_steps", min(400, max(1, size.epochs * updates // 10)), "")
    yield Choice("training", "save_every", max(1, min(1_000, size.epochs * updates // 12)), "each also validates")
    yield Choice("training", "average_checkpoints", 5, "their mean is kept if it is better")
