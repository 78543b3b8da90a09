"""Bring a model of another program in, as a run directory."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from manyheads import __version__
from manyheads.checkpoint import RunDirectory
from manyheads.errors import RunError
from manyheads.interop.drafts import drafted
from manyheads.interop.marian import check_marian, has_transformers, is_marian, read_marian, their_numbers
from manyheads.interop.parity import Parity, random_samples, reference
from manyheads.interop.sources import folder_of
from manyheads.runs.card import imported_card

__all__ = ["Import", "bring"]


@dataclass(frozen=True)
class Import:
    """What was brought in.

    Attributes:
        out: the run directory.
        source: where it came from.
        parameters: numbers of the model.
        parity: how ours compares with theirs in transformers; None where that is not installed.
    """

    out: Path
    source: str
    parameters: int
    parity: Parity | None

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "out": str(self.out),
            "source": self.source,
            "parameters": self.parameters,
            "parity": self.parity.to_json() if self.parity else None,
        }

    def lines(self) -> list[str]:
        """The same for people."""
        return [
            f"{self.out}: {self.parameters:,} parameters of {self.source}",
            self.parity.line() if self.parity else "not compared with the original: transformers is not installed",
            f"Next: manyheads translate {self.out}, or to fine-tune: "
            f"manyheads train CONFIG --set model.init_from={self.out}",
        ]


def bring(
    where: str, out: Path, *, source: str | None = None, target: str | None = None, trust_pickle: bool = False
) -> Import:
    """Make a run directory of a MarianMT model, in a folder or on the hub.

    Args:
        where: the folder, or user/name.
        out: the run directory to be.
        source: language of the source; the model's own word for it unless given.
        target: likewise.
        trust_pickle: read weights that are a pickle.

    Raises:
        RunError: it is no such model, cannot be read, or `out` exists.
        ParityError: ours gives something else than theirs.
    """
    folder = folder_of(where)
    if not folder.is_dir() or not is_marian(folder):
        raise RunError(f"{where} is no MarianMT model: there is no config.json that says so.")
    opened = read_marian(folder, source=source, target=target, trust_pickle=trust_pickle)
    parity = None
    if has_transformers():
        right = reference(opened.model, random_samples(opened.tokenizers.source))
        parity = check_marian(folder, their_numbers(folder), right, trust_pickle=trust_pickle)
    with drafted(out) as draft:
        run = RunDirectory(draft)
        made_with = {"manyheads": __version__, "python": platform.python_version(), "torch": torch.__version__}
        run.begin(opened.config, opened.tokenizers, {**made_with, "imported_from": where})
        run.publish({name: parameter.detach() for name, parameter in opened.model.named_parameters()})
        run.describe(imported_card(opened.config, opened.tokenizers, where))
    count = sum(parameter.numel() for parameter in opened.model.parameters())
    return Import(out, where, count, parity)
