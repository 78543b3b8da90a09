"""Record the sources of a text in NAME.sources.json beside it: licence, origin and SHA-256 of each input.

`bitext.convert` and `bitext.download` write it; `bitext.split` and `bitext.cleaning` copy it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bitext.errors import DataError
from bitext.files import cure_of, write_atomically
from bitext.lines import COMPRESSIONS

ENDING = ".sources.json"
_MOST_BYTES = 2**24  # of a note; larger ones are none of ours
_VERSION = 1


@dataclass(frozen=True)
class TextSource:
    """One input of a text.

    Attributes:
        file: name of the file, or "hf:" and the name of a data set.
        format: its format, such as "TMX".
        sha256: SHA-256 of each file of the input, by name; empty for a data set.
        pairs: number of pairs taken, if it was counted.
        empty: number of pairs left out, because a side had no text.
        licence: licence, if known.
        origin: name or address of the corpus, if known.
        access_keys: number of pairs whose access keys were removed.
        skipped: number of units that are no pair of texts, by reason.
        damage: line and reason of the first damaged units.
    """

    file: str
    format: str
    sha256: dict[str, str]
    pairs: int | None
    empty: int
    licence: str | None
    origin: str | None
    access_keys: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)

    def line(self) -> str:
        """Return one line of text for a model card."""
        origin = f"{self.origin} ({self.file})" if self.origin else self.file
        pairs = "" if self.pairs is None else f"{self.pairs:,} pairs; "
        return " ".join(f"{origin}: {pairs}licence: {self.licence or 'not stated'}".split())


def sources_path(text: Path) -> Path:
    """Return the path of the sources of a text file: corpus.de.gz and corpus.en have corpus.sources.json."""
    name = text.name
    for ending in COMPRESSIONS:
        name = name.removesuffix(ending)
    return text.with_name(name.rpartition(".")[0] + ENDING)


def write_sources(path: Path, sources: Sequence[TextSource], **facts: Any) -> None:
    """Write the sources of a text, with further facts about it."""
    document = {"format_version": _VERSION, **facts, "sources": [asdict(source) for source in sources]}
    write_atomically(path, (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode())


def read_sources(texts: Iterable[Path]) -> list[TextSource]:
    """Return the sources recorded beside text files, each once; empty if none are recorded.

    Raises:
        DataError: a file of sources exists, but cannot be read.
    """
    known: dict[str, TextSource] = {}
    for path in dict.fromkeys(map(sources_path, texts)):
        if not path.is_file():
            continue
        try:
            if path.stat().st_size > _MOST_BYTES:
                raise ValueError(f"more than {_MOST_BYTES:,} bytes")
            document = json.loads(path.read_text(encoding="utf-8"))
            sources = [TextSource(**source) for source in document["sources"]]
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            cure = cure_of(error, "Write it anew: convert the text again.")
            raise DataError(f"{path} is no note of sources ({error!r}). {cure}") from error
        known.update({repr(source): source for source in sources})
    return list(known.values())


def copy_sources(texts: Iterable[Path], made: Path) -> None:
    """Write the sources of text files beside a file made from them; write nothing if no sources are recorded."""
    sources = read_sources(texts)
    if sources:
        write_sources(sources_path(made), sources)
