"""Read rows with named columns: TSV, CSV, JSON Lines, Parquet, and Hugging Face data sets."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bitext.errors import DataError, UsageError, require
from bitext.file_names import is_language
from bitext.formats.opening import check_ratio, text_lines
from bitext.formats.text import ParallelText, Skipped, TextRequest, choose_languages, list_names, match_language
from bitext.hub import PREFIX, failures_named, numbered_rows, open_splits
from bitext.pairs import checked_text, parsed_json
from bitext.tsv import split_row

if TYPE_CHECKING:
    import _csv

_LONGEST_CELL = 1 << 24  # characters of a text in a CSV file
_SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)  # first line of a CSV file of a spreadsheet
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_BATCH = 256  # rows of a Parquet file in memory
_NESTED = "translation"  # column of data sets that holds the texts by language

_Rows = Iterator[tuple[str, Mapping[str, Any]]]  # file and line, and the row by column


def read_tsv(stream: io.BufferedReader, request: TextRequest, name: str) -> ParallelText:
    """Read a table of columns separated by tabs (`bitext.tsv`)."""
    skipped = Skipped(request.strict)
    rows = (split_row(line) for line in text_lines(stream, name) if line)
    return _read_rows(_named_columns(rows, request, name, skipped), request, name, skipped)


def read_csv(stream: io.BufferedReader, request: TextRequest, name: str) -> ParallelText:
    """Read a table of quoted columns separated by the most frequent of , ; | and tab in the first line.

    A line "sep=;" before it, as spreadsheets write it, names the separator.
    """
    skipped, lines = Skipped(request.strict), text_lines(stream, name)
    first = next(lines, "")
    named = _SEPARATOR.fullmatch(first)
    separator = named[1] if named else max(",;\t|", key=_QUOTED.sub("", first).count)
    ended = (f"{line}\n" for line in (lines if named else itertools.chain([first], lines)))
    rows = _csv_rows(csv.reader(ended, delimiter=separator, strict=True), name, skipped, 2 if named else 1)
    return _read_rows(_named_columns(rows, request, name, skipped), request, name, skipped)


def _csv_rows(reader: _csv.Reader, name: str, skipped: Skipped, first_line: int) -> Iterator[list[str]]:
    """Yield the rows of a CSV reader; a row with a misplaced quotation mark is counted as damaged, and is empty.

    Raises:
        DataError: a quotation mark is missing, so that the rest of the file would be one text.
    """
    for number in itertools.count(1):
        line = first_line + reader.line_num
        limit = csv.field_size_limit(_LONGEST_CELL)  # of the process: other users of the module keep theirs
        try:
            fields = next(reader, None)
        except csv.Error as error:
            reason = f"{error}. Is a quotation mark missing?"
            if any(fatal in reason for fatal in ("unexpected end", "field limit")):
                raise DataError(
                    f"{name}, row {number:,}: {reason} The row begins in line {line:,}: end its quotation, or "
                    'double the marks that belong to a text ("").'
                ) from error
            skipped.add_damage(name, f"row {number:,}", reason)
            fields = []
        finally:
            csv.field_size_limit(limit)
        if fields is None:
            return
        yield fields


def read_jsonl(stream: io.BufferedReader, request: TextRequest, name: str) -> ParallelText:
    """Read one JSON object a line; blank lines are skipped."""
    skipped = Skipped(request.strict)

    def rows() -> _Rows:
        for number, line in enumerate(text_lines(stream, name), 1):
            if line.strip():
                where, row = f"{name}, line {number:,}", None
                with _left_out(name, where, skipped):
                    row = _checked_row(parsed_json(line, where), where)
                if row is not None:
                    yield where, row

    return _read_rows(rows(), request, name, skipped)


def read_parquet(stream: io.BufferedReader, request: TextRequest, name: str) -> ParallelText:
    """Read the two columns of a Parquet file, some rows at a time.

    A text that the file stores once for many rows is also held in memory once (`read_dictionary`).
    """
    parquet = require("pyarrow.parquet", extra="parquet", purpose=f"Reading {name}")
    with failures_named(f"{name} is no Parquet file that can be read"):
        file = parquet.ParquetFile(stream)
        leaves = [file.schema.column(index) for index in range(len(file.schema))]
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        file = parquet.ParquetFile(stream, metadata=file.metadata, read_dictionary=texts)
    size = stream.seek(0, io.SEEK_END)
    for group in range(file.metadata.num_row_groups):
        check_ratio(file.metadata.row_group(group).total_byte_size, size, name)
    names = file.schema_arrow.names
    columns = [_NESTED] if _NESTED in names else _choose_columns(names, request, name)[0]

    def rows() -> _Rows:
        number = unpacked = 0
        batches = itertools.chain.from_iterable(  # a batch over two groups cannot hold structs
            file.iter_batches(batch_size=_BATCH, row_groups=[group], columns=list(columns))
            for group in range(file.metadata.num_row_groups)
        )
        while True:
            with failures_named(f"{name} is damaged after row {number:,}"):
                batch = next(batches, None)
                more = sum(map(_unpacked_size, batch.columns)) if batch else 0
            if batch is None:
                return
            unpacked += more
            check_ratio(unpacked, size, name)
            with failures_named(f"{name} is damaged after row {number:,}"):
                rows = list(zip(*(_refuse_repeated(column).to_pylist() for column in batch.columns), strict=True))
            for values in rows:
                number += 1
                yield f"{name}, row {number:,}", dict(zip(batch.schema.names, values, strict=True))

    return _read_rows(rows(), request, name, Skipped(request.strict))


def _unpacked_size(column: Any) -> int:
    """Return the size in bytes of the result of `_refuse_repeated` for a column of pyarrow."""
    kinds, compute = import_module("pyarrow.types"), import_module("pyarrow.compute")
    if kinds.is_struct(column.type):
        return sum(map(_unpacked_size, column.flatten()))
    if not kinds.is_dictionary(column.type):
        return int(column.nbytes)
    return compute.sum(compute.binary_length(column.dictionary).take(column.indices)).as_py() or 0


def _refuse_repeated(column: Any) -> Any:
    """Return a column of pyarrow decoded from a dictionary and indices to plain texts."""
    kinds = import_module("pyarrow.types")
    if kinds.is_struct(column.type):
        names = [field.name for field in column.type]
        return type(column).from_arrays([*map(_refuse_repeated, column.flatten())], names)
    return column.dictionary_decode() if kinds.is_dictionary(column.type) else column


def read_dataset(dataset: str, request: TextRequest) -> ParallelText:
    """Read a split of a Hugging Face data set, "hf:NAME" or "hf:FOLDER"; the licence is taken from its description.

    Raises:
        MissingExtraError: the package datasets is not installed.
        DataError: there is no such data set or split.
    """
    splits = open_splits(require("datasets", extra="hf", purpose=f"Reading {dataset}"), dataset, Path())
    if request.split not in splits:
        raise DataError(f'{dataset} has no split "{request.split}". It has: {", ".join(splits) or "none"}.')
    split: Any = splits[request.split]

    rows = (
        (f"{dataset}, row {number:,}", _checked_row(row, dataset)) for number, row in numbered_rows(split, dataset)
    )
    text = _read_rows(rows, request, dataset, Skipped(request.strict))
    address = split.info.homepage or dataset.removeprefix(PREFIX)
    return ParallelText(text.languages, text.pairs, split.info.license or None, address, text.skipped)


def _named_columns(rows: Iterable[list[str]], request: TextRequest, name: str, skipped: Skipped) -> _Rows:
    """Yield rows by the names of their columns: from the header, or numbers without a header.

    A row with more columns than the first is damaged: a text holds the separator.
    """
    numbered = request.columns is not None and all(map(str.isdecimal, request.columns))
    header: list[str] = []
    for number, fields in enumerate(rows, 1):
        if not header:
            header = [str(index) if numbered else field.strip() for index, field in enumerate(fields, 1)]
            if not numbered:
                continue
        if any(fields[len(header) :]):
            reason = f"{len(fields)} columns in place of {len(header)}. A text with the separator must be quoted"
            skipped.add_damage(name, f"row {number:,}", reason)
        elif fields:
            yield f"{name}, row {number:,}", dict(zip(header, fields, strict=False))


@contextmanager
def _left_out(name: str, where: str, skipped: Skipped) -> Iterator[None]:
    """Count a row that cannot be read as damaged."""
    try:
        yield
    except DataError as error:
        skipped.add_damage(name, where.removeprefix(f"{name}, "), str(error).removeprefix(f"{where}: "))


def _read_rows(rows: _Rows, request: TextRequest, name: str, skipped: Skipped) -> ParallelText:
    first = next(rows, None)
    if first is None:
        skipped.check(name, 0)
        raise DataError(f"{name} holds no rows. Name a table with a header and text below it.")
    try:
        columns, languages = _choose_columns(_nest(first[1]), request, name)
    except (DataError, UsageError) as error:
        mistakes = [str(error), *_later_mistakes(rows, skipped)]
        head = [f"{name}: {len(mistakes)} mistakes"] if len(mistakes) > 1 else []
        raise type(error)("\n  ".join([*head, *mistakes])) from error

    def pairs() -> Iterator[tuple[str, str]]:
        good = 0
        for where, row in itertools.chain([first], rows):
            pair, texts = None, _nest(row)
            with _left_out(name, where, skipped):
                pair = _cell(texts, columns[0], where), _cell(texts, columns[1], where)
            if pair is not None:
                good += 1
                yield pair
        skipped.check(name, good)

    return ParallelText(languages, pairs(), skipped=skipped)


def _later_mistakes(rows: _Rows, skipped: Skipped) -> Iterator[str]:
    """Read the other rows of a table that cannot be used; yield what else is wrong with it."""
    try:
        deque(rows, maxlen=0)
    except DataError as error:
        yield str(error)
    yield from (f"damaged: {damage}" for damage in skipped.damage)


def _nest(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the texts of a row: the content of its column "translation", if it has one."""
    inner = row.get(_NESTED)
    return inner if isinstance(inner, Mapping) else row


def _choose_columns(
    names: Iterable[str], request: TextRequest, name: str
) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the columns of source and target, and their languages.

    The columns are the requested ones, else "source" and "target", else the columns named by the languages.

    Raises:
        DataError: the table has no such columns.
        UsageError: the languages are not clear.
    """
    names = list(names)
    listed = f"{list_names(names)}."
    if not (request.source and request.target):
        listed += " Say the languages: --source de --target en."
    languages = [column for column in names if is_language(column)]
    if len(languages) == 3 and not request.source and not request.target:
        languages = [column for column in languages if column != "id"]  # a row number rather than Indonesian
    if request.columns:
        missing = [column for column in request.columns if column not in names]
        if missing:
            raise DataError(f"{name} has no column {' and no column '.join(missing)}. Its columns: {listed}")
        return request.columns, choose_languages(request, filter(is_language, request.columns), name)
    if {"source", "target"} <= set(names):
        return ("source", "target"), choose_languages(request, languages, name)
    if not languages:
        raise UsageError(f"{name} has no columns named by languages. Choose two with --columns among: {listed}")
    chosen = choose_languages(request, languages, name)
    source, target = (match_language(language, languages) for language in chosen)
    if source is None or target is None:
        lacking = chosen[0] if source is None else chosen[1]
        raise DataError(
            f"{name} has no column for {lacking}. Choose two with --columns among: {list_names(names)}."
        )
    return (source, target), chosen


def _checked_row(row: object, where: str) -> Mapping[str, Any]:
    if not isinstance(row, Mapping):
        raise DataError(f"{where}: {type(row).__name__} in place of an object with the two texts.")
    return row


def _cell(row: Mapping[str, Any], column: str, where: str) -> str:
    """Return the text of a column, "" for null."""
    if column not in row:
        raise DataError(f'{where}: no column "{column}". It has: {list_names(map(str, row))}.')
    value = row[column]
    return "" if value is None else checked_text(value, column, "error", where)
