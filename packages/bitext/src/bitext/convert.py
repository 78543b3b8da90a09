"""Convert parallel text of any known form to two packed files of lines, with a note of its sources.

A line end within a text, with the white space around it, becomes one blank, and between letters of Chinese and
Japanese nothing; white space at both ends is removed.
Access keys (`_Cancel`, `&File`) are removed. Pairs without text on a side are left out and counted.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np

from bitext.access_keys import without_access_keys
from bitext.errors import DataError, UsageError, WriteError
from bitext.executors import InlineExecutor
from bitext.file_names import check_language, existing, no_file, strip_compression
from bitext.files import is_stream, refuse_links, sum_of
from bitext.formats.markup import read_tmx, read_xliff
from bitext.formats.moses import read_archive, read_moses
from bitext.formats.opening import open_input
from bitext.formats.po import read_po
from bitext.formats.tables import read_csv, read_dataset, read_jsonl, read_parquet, read_tsv
from bitext.formats.text import ParallelText, TextRequest
from bitext.hub import PREFIX
from bitext.languages import normal_form
from bitext.letters import has_text
from bitext.lines import COMPRESSIONS, damage_named
from bitext.pairs import Pair, chunks
from bitext.placing import placing_files
from bitext.program import BITEXT, Program
from bitext.shards import map_shards, remove_shards
from bitext.sources import TextSource, sources_path, write_sources

_LINE_END = re.compile(r"\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*")
_WIDE = "\u3001-\u30ff\u3400-\u9fff\uff01-\uff60"  # letters and marks of Chinese and Japanese
_WIDE_LINE_END = re.compile(rf"(?<=[{_WIDE}]){_LINE_END.pattern}(?=[{_WIDE}])")
_SHARD_PAIRS = 4_096
_SHARD_HEAD = struct.Struct("<QQQQ")  # pairs, pairs without text, pairs with access keys, bytes of the source

_Pair = tuple[str, str]
_Reader = Callable[[io.BufferedReader, TextRequest, str], ParallelText]
_FORMATS: Mapping[str, tuple[str, _Reader]] = MappingProxyType(
    {
        ".zip": ("Moses zip", read_archive),
        ".tmx": ("TMX", read_tmx),
        ".xlf": ("XLIFF", read_xliff),
        ".xliff": ("XLIFF", read_xliff),
        ".po": ("PO", read_po),
        ".tsv": ("TSV", read_tsv),
        ".csv": ("CSV", read_csv),
        ".jsonl": ("JSON Lines", read_jsonl),
        ".parquet": ("Parquet", read_parquet),
    }
)


@dataclass(frozen=True)
class ConvertOptions:
    """Options of a conversion: name of the written files, choice of the text, licence and origin.

    Attributes:
        name: name of the written files, without language and endings.
        request: languages, columns and split.
        licence: licence of all inputs; None keeps the licence that each input states.
        origin: origin of all inputs; None keeps the origin that each input states.
        access_keys: whether the access keys of menus and buttons stay in the text.
        program: program whose name and version are noted.
    """

    name: str
    request: TextRequest = field(default_factory=TextRequest)
    licence: str | None = None
    origin: str | None = None
    access_keys: bool = False
    program: Program = BITEXT


@dataclass(frozen=True)
class ConvertResult:
    """The written files, and their sources.

    Attributes:
        files: the text of source and target.
        languages: source and target.
        note: file with the sources.
        sources: the inputs.
    """

    files: tuple[Path, Path]
    languages: tuple[str, str]
    note: Path
    sources: tuple[TextSource, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values by attribute name."""
        return {
            "files": [str(path) for path in self.files],
            "source": self.languages[0],
            "target": self.languages[1],
            "note": str(self.note),
            "pairs": sum(source.pairs or 0 for source in self.sources),
            "sources": [vars(source) for source in self.sources],
        }

    def lines(self) -> list[str]:
        """Return the counts of each input and their total."""
        lines = []
        for source in self.sources:
            lines.append(f"{source.file}: {source.format}, {source.pairs:,} pairs")
            left_out = {"no text on a side": source.empty, **source.skipped}
            if any(left_out.values()):
                counts = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)
                lines.append(f"  left out: {counts}")
            if source.damage:
                more = "; ..." if source.skipped["damaged"] > len(source.damage) else ""
                lines.append(f"  damaged: {'; '.join(source.damage)}{more}")
            if source.access_keys:
                lines.append(f"  access keys, such as _File or (&F), removed from {source.access_keys:,} pairs")
            lines.append(f"  licence: {source.licence or 'not stated'}; origin: {source.origin or 'not stated'}")
        total = sum(source.pairs or 0 for source in self.sources)
        return [*lines, f"{self.files[0]} and {self.files[1]}: {total:,} pairs", f"{self.note}: their sources"]


def convert_files(
    inputs: Sequence[str],
    out: Path,
    options: ConvertOptions,
    advance: Callable[[int], object] = lambda count: None,
    executor: Executor | None = None,
) -> ConvertResult:
    """Write NAME.{source}.gz, NAME.{target}.gz and NAME.sources.json into a folder; all of them or none.

    The inputs are read one after the other; their pairs are tidied and packed in shards.

    Args:
        inputs: files, or data sets after "hf:"; two files of lines must follow each other.
        out: folder to write into; made if it does not exist.
        options: choice of the text, and name of the files.
        advance: called with the number of pairs of each shard read.
        executor: computes the shards, see `executors.open_executor`; None for this process. The written bytes are
            the same.

    Raises:
        DataError: an input cannot be read, or a file to be written already exists.
        UsageError: a format or the languages are not known.
    """
    groups = _group_inputs(["/dev/stdin" if name == "-" else name for name in inputs], _is_readable_once)
    request = options.request
    sources: list[TextSource] = []
    with placing_files(out, options.name) as draft, ExitStack() as stack:
        files: list[Path] = []
        sides: list[IO[bytes]] = []
        refuse_links(out, [f".{options.name}.shards"])
        results = stack.enter_context(_shard_folder(out / f".{options.name}.shards", executor))
        for group in groups:
            sums = _sums_of(group)
            with _open_group(group, request) as (kind, text):
                if not files:
                    request = replace(request, source=text.languages[0], target=text.languages[1])
                    files = _output_files(out, options.name, text.languages)
                    sides = [stack.enter_context((draft / file.name).open("wb")) for file in files]
                unknown = [
                    os.urandom(8) for name in group if is_stream(Path(name))
                ]  # its shards are not used again
                parts = (options.program.version, group, sums, request, options.access_keys, *unknown)
                key = hashlib.sha256(repr(parts).encode()).hexdigest()
                shards = map_shards(
                    partial(_pack_shard, access_keys=options.access_keys),
                    _count_pairs(chunks(_read_named(text.pairs, group), _SHARD_PAIRS), advance),
                    results / str(len(sources)),
                    key=key,
                    executor=executor or InlineExecutor(),
                )
                pairs, empty, changed = _write_shards(shards, sides)
            licence, origin = options.licence or text.licence, options.origin or text.origin
            file = group[0] if group[0].startswith(PREFIX) else Path(group[0]).name
            sources.append(TextSource(
                file, kind, sums, pairs, empty, licence, origin,
                access_keys=changed, skipped=dict(text.skipped.counts), damage=text.skipped.damage,
            ))  # fmt: skip
        if not any(source.pairs for source in sources):
            raise DataError(f"{', '.join(inputs)}: no pair has text on both sides. Nothing is written.")
        note = sources_path(files[0])
        write_sources(
            draft / note.name, sources, **{options.program.name: options.program.version}, languages=text.languages
        )
    return ConvertResult((files[0], files[1]), text.languages, note, tuple(sources))


def read_parallel(inputs: Sequence[str], request: TextRequest) -> Iterator[Pair]:
    """Yield the pairs of files, numbered in each file; also those without text on a side.

    Inputs and errors are those of `convert_files`.
    """
    for group in _group_inputs(inputs):
        with _open_group(group, request) as (_, text):
            for number, (source, target) in enumerate(_read_named(text.pairs, group), start=1):
                yield Pair(_one_line(source), _one_line(target), number)


def _is_readable_once(path: Path) -> bool:
    """Return whether a path is a file, or a pipe of lines, which is not packed."""
    formats = (*_FORMATS, *COMPRESSIONS)
    return path.is_file() or (is_stream(path) and path.exists() and not path.name.lower().endswith(formats))


def is_parallel(name: str) -> bool:
    """Return whether the name of a file says that it holds text in two languages."""
    return _suffix_of(name) in _FORMATS


def _group_inputs(inputs: Sequence[str], readable: Callable[[Path], bool] = Path.is_file) -> list[tuple[str, ...]]:
    """Group the inputs, which are `readable`: two consecutive files of lines are one input.

    Raises:
        DataError: a file is missing.
        UsageError: a file of lines has no second one.
    """
    groups: list[tuple[str, ...]] = []
    waiting: str | None = None
    for name in inputs:
        if name.startswith(PREFIX):
            groups.append((name,))
            continue
        if not readable(Path(name)):
            raise no_file(Path(name))
        if _suffix_of(name) in _FORMATS:
            groups.append((name,))
        elif waiting is None:
            waiting = name
        elif waiting == name and is_stream(Path(name)):
            raise no_file(Path(name))
        else:
            groups.append((waiting, name))
            waiting = None
    if waiting is not None:
        raise UsageError(
            f"{waiting}: a format that is not known. Known are {', '.join(_FORMATS)}, hf:NAME, and two files of "
            "lines after each other, such as corpus.de corpus.en; packed as .gz, .xz or .zst too."
        )
    return groups


def _suffix_of(name: str) -> str:
    """Return the ending of a file name that shows its format, without compression."""
    return Path(strip_compression(name)).suffix.lower()


@contextmanager
def _open_group(group: Sequence[str], request: TextRequest) -> Iterator[tuple[str, ParallelText]]:
    """Open an input; yields the name of its format, and its text."""
    if group[0].startswith(PREFIX):
        yield "Hugging Face data set", read_dataset(group[0], request)
    elif len(group) == 2:
        yield "lines", read_moses((Path(group[0]), Path(group[1])), request)
    else:
        kind, read = _FORMATS[_suffix_of(group[0])]
        with open_input(Path(group[0])) as stream:
            yield kind, read(stream, request, group[0])


def _output_files(out: Path, name: str, languages: tuple[str, str]) -> list[Path]:
    """Return the files of text to write.

    Raises:
        DataError: a file already exists, plain or compressed.
        UsageError: the languages are equal, or cannot be named in a configuration.
    """
    if normal_form(check_language(languages[0])) == normal_form(check_language(languages[1])):
        codes = " and ".join(dict.fromkeys(languages))
        raise UsageError(f"Both texts have the language {codes}. Say both: --source de --target en.")
    files = [out / f"{name}.{language}" for language in languages]
    present = [path.name for file in [*files, sources_path(files[0])] if (path := existing(file))]
    if present:
        raise DataError(
            f"{out} holds {', '.join(present)} already; nothing is overwritten. Name another text: --name NAME."
        )
    return [file.with_name(f"{file.name}.gz") for file in files]


@contextmanager
def _shard_folder(folder: Path, executor: Executor | None) -> Iterator[Path]:
    """Yield the folder of the results of shards.

    The results are removed at the end. After an error they are kept if an executor computed them, or if the disk
    failed.
    """
    try:
        yield folder
    except BaseException as error:
        if executor is None and not isinstance(error, OSError | WriteError):
            _remove_all_shards(folder)
        raise
    _remove_all_shards(folder)


def _remove_all_shards(folder: Path) -> None:
    for path in folder.iterdir() if folder.is_dir() else ():
        remove_shards(path)
    remove_shards(folder)


def _read_named(pairs: Iterable[_Pair], group: Sequence[str]) -> Iterator[_Pair]:
    """Yield the pairs of an input; an error of the disk names the input, not the output folder."""
    with damage_named(Path(" and ".join(group))):
        yield from pairs


def _count_pairs(shards: Iterable[list[_Pair]], advance: Callable[[int], object]) -> Iterator[list[_Pair]]:
    """Yield shards, and call `advance` with the number of pairs of each."""
    for shard in shards:
        yield shard
        advance(len(shard))


def _pack_shard(pairs: list[_Pair], *, access_keys: bool) -> bytes:
    """Return a shard as `_SHARD_HEAD`, the packed source lines, and the packed target lines."""
    plain = pairs if access_keys else [without_access_keys(*pair) for pair in pairs]
    lines = [(_one_line(source), _one_line(target)) for source, target in plain]
    full = [line for line in lines if all(map(has_text, line))]
    changed = sum(pair != before for pair, before in zip(plain, pairs, strict=True))
    source, target = (
        gzip.compress("".join(f"{line[side]}\n" for line in full).encode(), 6, mtime=0) if full else b""
        for side in (0, 1)
    )
    return _SHARD_HEAD.pack(len(full), len(lines) - len(full), changed, len(source)) + source + target


def _write_shards(shards: Iterable[bytes], sides: Sequence[IO[bytes]]) -> tuple[int, int, int]:
    """Write packed shards to both files; return the numbers of pairs with text, without, and with access keys."""
    counts = np.zeros(3, np.int64)
    for shard in shards:
        *found, size = _SHARD_HEAD.unpack_from(shard)
        border = _SHARD_HEAD.size + size
        sides[0].write(shard[_SHARD_HEAD.size : border])
        sides[1].write(shard[border:])
        counts += found
    written, empty, changed = counts.tolist()
    return written, empty, changed


def _one_line(text: str) -> str:
    """Return a text as one line: a line end becomes a blank or nothing, and white space at both ends is removed."""
    return _LINE_END.sub(" ", _WIDE_LINE_END.sub("", text)).strip()


def _sums_of(group: Sequence[str]) -> dict[str, str]:
    sums = {}
    for path in (Path(name) for name in group if not name.startswith(PREFIX)):
        if not is_stream(path):
            with damage_named(path):
                sums[path.name] = sum_of(path)
    return sums
