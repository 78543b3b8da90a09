"""Write a run in the format of another program, compared with the run before it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.locate import Split
from manyheads.errors import DataError, UsageError
from manyheads.interop.ctranslate2 import check_ctranslate2, write_ctranslate2
from manyheads.interop.drafts import drafted
from manyheads.interop.parity import Parity, Samples, random_samples, reference
from manyheads.runs.corpus import cleaning, read_split
from manyheads.text.tokenizer import TokenizerPair
from manyheads.training.log import Listener, SilentListener

__all__ = ["FORMATS", "Export", "export", "samples_of"]

SILENT = SilentListener()
FORMATS = ("ctranslate2",)
SAMPLES = 16  # sentences that are compared


@dataclass(frozen=True)
class Export:
    """What was written.

    Attributes:
        out: where.
        to: the format.
        quantization: what the matrices are stored as.
        size: bytes of all files.
        parity: how it compares with the run.
    """

    out: Path
    to: str
    quantization: str
    size: int
    parity: Parity

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "out": str(self.out),
            "to": self.to,
            "quantization": self.quantization,
            "bytes": self.size,
            "parity": self.parity.to_json(),
        }

    def lines(self) -> list[str]:
        """The same for people."""
        return [
            f"{self.out}: {self.to}, {self.quantization}, {self.size / 2**20:.1f} MiB",
            self.parity.line(),
        ]


def export(run: Path, out: Path, to: str, *, quantization: str = "float32", listener: Listener = SILENT) -> Export:
    """Write a run as `out` in another format; what does not give what the run gives is not kept.

    Raises:
        RunError: the run cannot be read, `out` exists, or the format cannot hold such a model.
        UsageError: there is no such format or quantisation.
        ParityError: the written model gives other results than the run.
        MissingExtraError: the format needs a package that is not installed.
    """
    if to not in FORMATS:
        raise UsageError(f"--to {to} is none of {', '.join(FORMATS)}.")
    directory = RunDirectory.existing(run)
    config = directory.config()
    tokenizers = directory.tokenizers(config)
    model = directory.model(config, tokenizers)
    listener.message(f"{run}: read")
    right = reference(model, samples_of(config, tokenizers))
    with drafted(out) as draft:
        write_ctranslate2(draft, config, tokenizers, model, quantization)
        parity = check_ctranslate2(draft, right)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    return Export(out, to, quantization, size, parity)


def samples_of(config: Config, tokenizers: TokenizerPair) -> Samples:
    """The first test or validation sentences of a run, or random pieces where its text is not on this machine."""
    normal = cleaning(config)
    splits: list[Split] = ["test", "valid"]
    remote = (config.data.dataset or "").startswith("hf:")
    for split in splits if not remote else []:
        try:
            texts = [normal(pair.source) for pair in islice(read_split(config.data, split), SAMPLES)]
        except (DataError, OSError):
            continue
        rows = [row for row in tokenizers.source.encode(texts) if row]
        if rows:
            return Samples(rows, f"the first of the run's {split} set")
    return random_samples(tokenizers.source)
