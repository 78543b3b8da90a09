"""Divide parallel text into train, valid and test so that no sentence, and no near copy of it, is in two of them.

The text is read twice: once for the keys of its pairs (`data.copies`), once to write it. Each split keeps the order
and the characters of the text. Shapes: N pairs with text on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.config.schema import DataConfig
from manyheads.data.copies import CopyKeys, connected
from manyheads.data.corpus import Pair, read_pairs
from manyheads.data.filtering import digest
from manyheads.data.lines import COMPRESSIONS, read_lines
from manyheads.data.locate import contents, existing
from manyheads.data.placing import open_packed, placing_files
from manyheads.data.store import chunked
from manyheads.errors import DataError

__all__ = ["SplitOptions", "SplitResult", "split_corpus"]

SPLITS = ("train", "valid", "test")
TRAIN, VALID, TEST, REPEATED, EMPTY = range(5)  # destinations of a pair; the last two are not written
CHUNK = 4_096  # pairs
LEAST_PAIRS = 3  # one for each split
SHARE, MOST = 0.05, 2_000  # of the pairs, and pairs, for valid and for test unless other numbers are given
LARGEST_GROUP = 0.1  # of a held-out split; larger groups of copies stay in train
OVERSHOOT = 0.5  # of a held-out split, by which it may become larger because documents are not divided

Advance = Callable[[int], object]


@dataclass(frozen=True)
class SplitResult:
    """Where the pairs of a text went.

    Attributes:
        root: folder of the written files.
        source, target: the languages.
        read: number of pairs read; empty: left out because a side had no text.
        repeated: left out of valid and test because the pair came before, or also stands in another document.
        train, valid, test: number of pairs written.
        copies: number of pairs with a copy or near copy.
        largest_group: number of pairs in the largest group of copies.
        documents: number of documents; None where they are not known.
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
    documents: int | None
    near: bool
    seed: int

    def to_json(self) -> dict[str, Any]:
        """Return plain values by attribute name."""
        return {**asdict(self), "root": str(self.root)}

    def lines(self) -> list[str]:
        """Return the counts with what they mean."""
        lines = [f"{self.read:,} pairs read"]
        if self.empty:
            lines.append(f"  {self.empty:,} left out: no text on a side")
        if self.repeated:
            reason = "they also stand in other documents" if self.documents else "repetitions of held-out pairs"
            lines.append(f"  {self.repeated:,} left out: {reason}")
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
class Text:
    """The keys and the documents of the pairs of a text.

    Attributes:
        columns: keys of the pairs with text on both sides, each (N,).
        complete: 1 for each pair with text on both sides, 0 for the others, as bytes.
        documents: number of the document of each such pair (N,); None where documents are not known.
    """

    columns: list[NDArray[np.uint64]]
    complete: bytearray
    documents: NDArray[np.uint64] | None


@dataclass(frozen=True)
class SplitOptions:
    """How a text is divided.

    Attributes:
        valid: number of pairs for valid; None is 5 % of the pairs, at most 2,000.
        test: number of pairs for test, likewise; 0 writes no test.
        seed: seed of the choice.
        near: whether near copies are kept together, too; else only pairs with an equal source or target are.
        documents: file with the name of the document of each pair, one a line.
        blank_lines: whether a line that is blank on both sides ends a document.
    """

    valid: int | None = None
    test: int | None = None
    seed: int = 1
    near: bool = True
    documents: Path | None = None
    blank_lines: bool = False


def default_size(pairs: int) -> int:
    """Return how many of so many pairs valid and test get each: 5 %, at least one and at most 2,000."""
    return max(1, min(MOST, int(SHARE * pairs)))


def split_corpus(
    files: Sequence[Path],
    out: Path,
    languages: tuple[str, str],
    options: SplitOptions,
    advance: Advance = lambda count: None,
) -> SplitResult:
    """Write {train,valid,test}.{language} into a folder, packed as the text is.

    Args:
        files: two files of equally many lines, source first; or one .tsv or .jsonl file.
        out: folder to write into; made if it does not exist.
        languages: source and target language.
        options: sizes, seed, and what is kept together.
        advance: called with numbers of pairs, which add up to twice the pairs of the text.

    Raises:
        DataError: the text cannot be read or divided so, or a file to be written is there already.
    """
    config = corpus_config(files, languages)
    first = config.train if isinstance(config.train, str) else config.train[0]
    packed = next(filter(first.endswith, COMPRESSIONS), "")
    refuse_existing(out, languages)
    text = read_keys(config, options, advance)
    sizes = checked_sizes(text.complete.count(1), options)
    groups = connected(text.columns, text.complete.count(1))
    where = np.full(len(text.complete), EMPTY, np.uint8)
    where[np.frombuffer(text.complete, np.uint8) == 1] = choose(
        groups, text, sizes, np.random.default_rng(options.seed)
    )
    write(config, where.tobytes(), out, packed, advance)
    counts, members = np.bincount(where, minlength=5).tolist(), np.bincount(groups)
    return SplitResult(
        root=out,
        source=languages[0],
        target=languages[1],
        read=len(where),
        empty=counts[EMPTY],
        repeated=counts[REPEATED],
        train=counts[TRAIN],
        valid=counts[VALID],
        test=counts[TEST],
        copies=int(members[members > 1].sum()),
        largest_group=int(members.max()),
        documents=None if text.documents is None else len(np.unique(text.documents)),
        near=options.near,
        seed=options.seed,
    )


def checked_sizes(pairs: int, options: SplitOptions) -> dict[int, int]:
    """Return the number of pairs wanted for valid and test.

    Raises:
        DataError: less than half of the pairs would be left for train.
    """
    default = default_size(pairs)
    valid, test = (default if size is None else size for size in (options.valid, options.test))
    if pairs < LEAST_PAIRS:
        raise DataError(f"There are {pairs} pairs with text on both sides; at least {LEAST_PAIRS} can be divided.")
    if 2 * (valid + test) > pairs and (valid, test) != (default, default):
        raise DataError(
            f"valid = {valid:,} and test = {test:,} would leave less than half of {pairs:,} pairs for train. "
            f"Ask for fewer, such as --valid {default} --test {default}."
        )
    return {VALID: valid, TEST: test}


def corpus_config(files: Sequence[Path], languages: tuple[str, str]) -> DataConfig:
    """Return the settings that read the files as one training text.

    Raises:
        DataError: a file is missing, or is no text of pairs.
    """
    for file in files:
        if existing(file) is None:
            raise DataError(f"There is no file {file}. {contents(file.parent)}.")
    paths = [str(existing(file)) for file in files]
    train = (paths[0], paths[1]) if len(paths) == 2 else paths[0]
    return DataConfig(root=".", source=languages[0], target=languages[1], train=train)


def read_keys(config: DataConfig, options: SplitOptions, advance: Advance) -> Text:
    """Read the text once, for the keys and the documents of its pairs."""
    keys, complete, owners, number = CopyKeys(near=options.near), bytearray(), bytearray(), 0
    known = options.blank_lines or options.documents is not None
    for chunk in chunked(with_documents(read_pairs(config, "train"), options.documents), CHUNK):
        sources, targets, names = [], [], []
        for pair, name in chunk:
            filled = bool(pair.source.strip() and pair.target.strip())
            complete.append(filled)
            if filled:
                sources.append(pair.source.replace("\n", " "))
                targets.append(pair.target.replace("\n", " "))
                names.append(number if name is None else digest(name))
            number += not (pair.source.strip() or pair.target.strip())
        keys.add(sources, targets)
        if known:
            owners.extend(np.asarray(names, np.uint64).tobytes())
        advance(len(chunk))
    return Text(keys.arrays(), complete, np.frombuffer(owners, np.uint64) if known else None)


def with_documents(pairs: Iterable[Pair], documents: Path | None) -> Iterator[tuple[Pair, str | None]]:
    """Yield each pair with the name of its document."""
    if documents is None:
        yield from ((pair, None) for pair in pairs)
        return
    for count, (pair, name) in enumerate(zip_longest(pairs, read_lines(documents))):
        if pair is None or name is None:
            more, fewer = ("names of documents", "pairs") if pair is None else ("pairs", "names of documents")
            raise DataError(f"{documents}: after line {count:,} there are more {more}, but no more {fewer}.")
        yield pair, name


def choose(
    groups: NDArray[np.int64], text: Text, sizes: dict[int, int], rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Return where each pair goes (N,): whole groups of copies, or whole documents, drawn at random.

    A unit (group or document) is drawn in proportion to its pairs. Of documents, the pairs that have a copy in
    another document are written to train only, as are all groups above `LARGEST_GROUP`.
    """
    size = len(groups)
    source, target = text.columns[:2]
    held = first_of_each(source ^ (target * np.uint64(3)))  # whether a pair may stand in a held-out split
    units = groups
    if text.documents is not None:
        units = np.unique(text.documents, return_inverse=True)[1]
        lowest, highest = np.full(size, size), np.full(size, -1)
        np.minimum.at(lowest, groups, units)
        np.maximum.at(highest, groups, units)
        held &= (lowest == highest)[groups]
    usable = np.bincount(units[held], minlength=size)
    owner = np.zeros(size, np.uint8)
    order = units[rng.permutation(size)].tolist()
    for split in (TEST, VALID):
        wanted, count = sizes[split], 0
        most = wanted if text.documents is not None else max(1, int(LARGEST_GROUP * wanted))
        room = int(OVERSHOOT * wanted) if text.documents is not None else 0
        for unit in order if wanted else ():
            if owner[unit] == TRAIN and 0 < usable[unit] <= min(most + room, wanted + room - count):
                owner[unit] = split
                count += int(usable[unit])
                if count >= wanted:
                    break
        if 2 * count < wanted:
            raise too_connected(SPLITS[split], wanted, count, groups, text)
    where = owner[units]
    where[(where != TRAIN) & ~held] = REPEATED
    return where


def first_of_each(values: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return whether each value is the first of its kind (N,)."""
    first = np.zeros(len(values), np.bool_)
    first[np.unique(values, return_index=True)[1]] = True
    return first


def too_connected(split: str, wanted: int, count: int, groups: NDArray[np.int64], text: Text) -> DataError:
    """Return the error for a text in which too many pairs belong together."""
    largest = int(np.bincount(groups).max())
    what = "documents" if text.documents is not None else "groups of copies"
    near = " or separate equal sentences only (--equal-only)" if len(text.columns) > 2 else ""
    return DataError(
        f"{split}: {wanted:,} pairs are wanted, and only {count:,} of {len(groups):,} can be held out. The others "
        f"are in {what} that are too large (the largest group of copies has {largest:,} pairs). "
        f"Ask for fewer (--{split} {max(1, count)}){near}."
    )


# --- files ---


def refuse_existing(out: Path, languages: tuple[str, str]) -> None:
    """Raise an error if a file of a split is there already, also a packed one."""
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file. Name a folder: -o DIR.")
    names = (out / f"{split}.{language}" for split in SPLITS for language in languages)
    found = [path.name for name in names if (path := existing(name))]
    if found:
        raise DataError(
            f"{out} holds {', '.join(found)} already; nothing is overwritten. Name another folder: -o DIR."
        )


def write(config: DataConfig, where: bytes, out: Path, packed: str, advance: Advance) -> None:
    """Write each pair to the files of its split; either all files are written or none."""
    languages = config.source, config.target
    with placing_files(out) as draft, ExitStack() as stack:
        files = {
            split: [stack.enter_context(open_packed(draft / f"{SPLITS[split]}.{one}{packed}")) for one in languages]
            for split in sorted(set(where) & {TRAIN, VALID, TEST})
        }
        for chunk in chunked(zip_longest(read_pairs(config, "train"), where), CHUNK):
            texts: dict[int, list[Pair]] = {split: [] for split in (TRAIN, VALID, TEST, REPEATED, EMPTY)}
            for pair, split in chunk:
                if pair is None or split is None:
                    raise DataError(f"{config.train} has changed while it was read. Run the command again.")
                texts[split].append(pair)
            for split, (source, target) in files.items():
                source.write("".join(one_line(pair.source) for pair in texts[split]).encode())
                target.write("".join(one_line(pair.target) for pair in texts[split]).encode())
            advance(len(chunk))


def one_line(text: str) -> str:
    """Return a text as one line of a file; a text of a .jsonl file may hold line ends."""
    return text.replace("\n", " ") + "\n"
