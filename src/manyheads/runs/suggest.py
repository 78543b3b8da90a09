"""Suggest a configuration for a corpus by its size, with a reason for each setting."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
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

TEMPLATE = Path(__file__).with_name("suggestion.toml.in")
SAMPLING = "sampling = {}  # so little text is worth more when words are split in many ways\n"
MAX_LENGTH = "max_length = 256  # one text of a hundred has more than {:.0f} words"


@dataclass(frozen=True)
class Suggestion:
    """A suggested configuration.

    Attributes:
        report: report on the text.
        toml: TOML file to edit, with the reasons for the settings in comments.
    """

    report: DataReport
    toml: str

    @property
    def config(self) -> Config:
        """The configuration."""
        return parse_config(tomllib.loads(self.toml), origin="suggestion")


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
    return Suggestion(measured, fill(data, measured))


def fill(data: Mapping[str, Any], measured: DataReport) -> str:
    """Return the TOML file for a text: the `[data]` settings, and the settings that depend on its size."""
    train = measured.splits["train"]
    assert train.filtered is not None
    pairs = train.filtered.kept
    size = next(size for size in SIZES if pairs < size.pairs)
    settings = [f"{key} = {to_toml(value)}" for key, value in data.items()]
    longest = max(side.words.p99 for side in (train.source, train.target))
    if TOKENS_A_WORD * longest > 128:
        settings.append(MAX_LENGTH.format(longest))
    tokens = pairs * TOKENS_A_WORD * train.target.words.mean
    updates = size.epochs * max(1, round(tokens / size.batch_tokens))
    wide = size.d_model >= 512
    facts = size._asdict() | {
        "source": measured.source,
        "target": measured.target,
        "read": train.read,
        "source_words": train.source.words.mean,
        "target_words": train.target.words.mean,
        "data": "\n".join(settings),
        "pairs": pairs,
        "sampling": SAMPLING.format(size.sampling) if size.sampling else "",
        "updates": updates,
        "learning_rate": 4e-3 if wide else 8e-3,
        "muon_factor": 1.0 if wide else 0.6,
        "warmup_steps": min(400, max(1, updates // 10)),
        "save_every": max(1, min(1_000, updates // 12)),
    }
    return TEMPLATE.read_text(encoding="utf-8").format(**facts)


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
