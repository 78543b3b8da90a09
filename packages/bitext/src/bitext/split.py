"""Divide parallel text into train, valid and test so that no sentence or near copy is in two splits.

The text is read twice: once for the keys of its pairs (`bitext.copies`), once to write it. Each split keeps the
order and the characters of the text. Shapes: N pairs with text on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from bitext.copies import CopyKeys, connected_components
from bitext.errors import DataError
from bitext.file_names import existing
from bitext.filtering import digest
from bitext.held_out import EMPTY, REPEATED, SPLITS, TEST, TRAIN, VALID, PairKeys, checked_sizes, choose
from bitext.letters import has_text
from bitext.lines import COMPRESSIONS, InvalidUtf8, read_lines
from bitext.pairs import Pair, TextFiles, chunks, read_pairs
from bitext.placing import open_packed, placing_files
from bitext.sources import copy_sources

_CHUNK_PAIRS = 4_096  # pairs

Advance = Callable[[int], object]


@dataclass(frozen=True)
class SplitResult:
    """Result of a division: the number of pairs in each split, and of the pairs left out.

    Attributes:
        root: folder of the written files.
        source, target: the languages.
        read: number of pairs read; empty: left out because a side had no text.
        repeated: left out of valid and test because the pair came before, or is also in another document.
        train, valid, test: number of pairs written.
        copies: number of pairs with a copy or near copy.
        largest_group: number of pairs in the largest group of copies.
        replaced: number of bytes that are not UTF-8, replaced by U+FFFD.
        documents: number of documents; None if they are not known.
        near: whether near copies were kept together, too.
        seed: seed of the choice.
    """

    root: Path
    source: str
    target: str
    read: int
    empty: int
    repeated: int
    train: int
    valid: int
    test: int
    copies: int
    largest_group: int
    replaced: int
    documents: int | None
    near: bool
    seed: int

    def to_json(self) -> dict[str, Any]:
        """Return plain values by attribute name."""
        return {**asdict(self), "root": str(self.root)}

    def lines(self) -> list[str]:
        """Return the counts as lines of text."""
        lines = [f"{self.read:,} pairs read"]
        if self.empty:
            lines.append(f"  {self.empty:,} left out: no text on a side")
        if self.repeated:
            reason = "they also stand in other documents" if self.documents else "repetitions of held-out pairs"
            lines.append(f"  {self.repeated:,} left out: {reason}")
        if self.replaced:
            lines.append(f"  {self.replaced:,} bytes that are no UTF-8 were replaced by U+FFFD")
        test = f", test {self.test:,}" if self.test else ""
        lines.append(f"{self.root}: train {self.train:,}, valid {self.valid:,}{test} pairs (seed {self.seed})")
        shared = "no document and no sentence" if self.documents else "no sentence"
        near = ", and no near copy that was found" if self.near else ""
        lines.append(f"They share {shared}{near}.")
        if self.copies:
            kind = "copies or near copies" if self.near else "copies"
            largest = f"the largest group has {self.largest_group:,}"
            lines.append(f"{self.copies:,} pairs have {kind} and were kept together; {largest}.")
        return lines


@dataclass(frozen=True)
class SplitOptions:
    """Options of a division.

    Attributes:
        valid: number of pairs for valid; None is 5 % of the pairs, at most 2,000.
        test: number of pairs for test, with the same default; 0 writes no test.
        seed: seed of the choice.
        near: whether near copies are kept together, too; otherwise only pairs with an equal source or target are.
        documents: file with the name of the document of each pair, one on each line.
        blank_lines: whether a line that is blank on both sides ends a document.
        replace_invalid: whether bytes that are not UTF-8 are replaced by U+FFFD; otherwise they are an error.
    """

    valid: int | None = None
    test: int | None = None
    seed: int = 1
    near: bool = True
    documents: Path | None = None
    blank_lines: bool = False
    replace_invalid: bool = False


def split_corpus(
    files: Sequence[Path],
    out: Path,
    languages: tuple[str, str],
    options: SplitOptions,
    advance: Advance = lambda count: None,
) -> SplitResult:
    """Write {train,valid,test}.{language} into a folder, packed as the text is.

    The text is two files of equally many lines, source first, or one .tsv or .jsonl file. `advance` is called with
    numbers of pairs, whose sum is twice the number of pairs of the text.

    Raises:
        DataError: the text cannot be read or divided with these options, or a file to be written already exists.
    """
    invalid: InvalidUtf8 = "replace" if options.replace_invalid else "error"
    text = TextFiles.of(files, languages, invalid)
    packed = next(filter(text.paths[0].name.endswith, COMPRESSIONS), "")
    with placing_files(out, "split") as draft:
        _refuse_existing(out, languages)
        keys = _read_keys(text, options, advance)
        sizes = checked_sizes(keys.complete.count(1), options.valid, options.test)
        groups = connected_components(keys.columns, keys.complete.count(1))
        destinations = np.full(len(keys.complete), EMPTY, np.uint8)
        destinations[np.frombuffer(keys.complete, np.uint8) == 1] = choose(
            groups, keys, sizes, np.random.default_rng(options.seed)
        )
        _write(text, destinations.tobytes(), draft, packed, advance)
    counts, group_sizes = np.bincount(destinations, minlength=5).tolist(), np.bincount(groups)
    return SplitResult(
        root=out,
        source=languages[0],
        target=languages[1],
        read=len(destinations),
        empty=counts[EMPTY],
        repeated=counts[REPEATED],
        train=counts[TRAIN],
        valid=counts[VALID],
        test=counts[TEST],
        copies=int(group_sizes[group_sizes > 1].sum()),
        largest_group=int(group_sizes.max()),
        replaced=keys.replaced,
        documents=None if keys.documents is None else len(np.unique(keys.documents)),
        near=options.near,
        seed=options.seed,
    )


def _read_keys(text: TextFiles, options: SplitOptions, advance: Advance) -> PairKeys:
    hashes, complete, owners, number, replaced = CopyKeys(near=options.near), bytearray(), bytearray(), 0, 0
    known = options.blank_lines or options.documents is not None
    for chunk in chunks(_with_documents(read_pairs(text), options.documents), _CHUNK_PAIRS):
        sources, targets, names = [], [], []
        for pair, name in chunk:
            filled = has_text(pair.source) and has_text(pair.target)
            complete.append(filled)
            replaced += pair.replaced
            if filled:
                sources.append(pair.source.replace("\n", " "))
                targets.append(pair.target.replace("\n", " "))
                names.append(number if name is None else digest(name))
            number += not (has_text(pair.source) or has_text(pair.target))
        hashes.add(sources, targets)
        if known:
            owners.extend(np.asarray(names, np.uint64).tobytes())
        advance(len(chunk))
    return PairKeys(hashes.arrays(), complete, np.frombuffer(owners, np.uint64) if known else None, replaced)


def _with_documents(pairs: Iterable[Pair], documents: Path | None) -> Iterator[tuple[Pair, str | None]]:
    if documents is None:
        yield from ((pair, None) for pair in pairs)
        return
    for count, (pair, name) in enumerate(zip_longest(pairs, read_lines(documents))):
        if pair is None or name is None:
            more, fewer = ("names of documents", "pairs") if pair is None else ("pairs", "names of documents")
            raise DataError(f"{documents}: after line {count:,} there are more {more}, but no more {fewer}.")
        yield pair, name


def _refuse_existing(out: Path, languages: tuple[str, str]) -> None:
    """Raise `DataError` if a file of a split already exists, plain or compressed."""
    names = (out / f"{split}.{language}" for split in SPLITS for language in languages)
    present = [path.name for name in names if (path := existing(name))]
    if present:
        raise DataError(
            f"{out} holds {', '.join(present)} already; nothing is overwritten. Name another folder: -o DIR."
        )


def _write(text: TextFiles, where: bytes, draft: Path, packed: str, advance: Advance) -> None:
    """Write each pair to the files of its split, and the sources of the text, into a folder."""
    languages = text.source, text.target
    with ExitStack() as stack:
        files = {
            split: [
                stack.enter_context(open_packed(draft / f"{SPLITS[split]}.{language}{packed}"))
                for language in languages
            ]
            for split in sorted(set(where) & {TRAIN, VALID, TEST})
        }
        for chunk in chunks(zip_longest(read_pairs(text), where), _CHUNK_PAIRS):
            texts: dict[int, list[Pair]] = {split: [] for split in (TRAIN, VALID, TEST, REPEATED, EMPTY)}
            for pair, split in chunk:
                if pair is None or split is None:
                    raise DataError(f"{text.name} has changed while it was read. Run the command again.")
                texts[split].append(pair)
            for split, (source, target) in files.items():  # a text of a .jsonl file may hold line ends
                source.write("".join(pair.source.replace("\n", " ") + "\n" for pair in texts[split]).encode())
                target.write("".join(pair.target.replace("\n", " ") + "\n" for pair in texts[split]).encode())
            advance(len(chunk))
        copy_sources(text.paths, draft / f"{SPLITS[TRAIN]}.{text.source}")
