"""Read labelled texts from TSV or JSONL files, for classification.

A `Pair` holds the text as its source and the label as its target. Two texts of one example are joined by a tab; the
texts themselves contain no tab.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bitext.file_names import Split
from bitext.letters import has_text
from bitext.pairs import Pair, checked_text, not_empty, parsed_json
from bitext.tsv import split_row
from manyheads.config.schema import DataConfig
from manyheads.data.corpus import kept_lines, numbered_lines
from manyheads.data.locate import locate_one
from manyheads.errors import DataError
from manyheads.former_names import former_names
from manyheads.text.joined_texts import BETWEEN, join_texts

__getattr__ = former_names(__name__, dict.fromkeys(("cut_text", "split_texts"), "text.joined_texts"))

_TEXT_KEYS = (("text", "text2"), ("sentence", "sentence2"), ("sentence1", "sentence2"))
_LABEL_COLUMNS = {"label", "labels", "class", "category"}  # names of columns in headers, in lower case
_TEXT_COLUMNS = {"text", "text1", "text2", "sentence", "sentence1", "sentence2", "review", "premise", "hypothesis"}

labelled_file = partial(locate_one, endings=(".tsv", ".jsonl"), need_ending=True)  # the only file of a split


def read_labelled(config: DataConfig, split: Split) -> Iterator[Pair]:
    """Read the examples of a split; at most `data.limit` of train."""
    (path,) = labelled_file(config, split)
    examples = _parse_lines(path, config, *kept_lines(config, split, path))
    return not_empty(examples, f"{path}: no lines. Name a file that holds examples.")


def _parse_lines(path: Path, config: DataConfig, first: int, end: int | None) -> Iterator[Pair]:
    """Parse the lines from `first`, counted from 0, up to `end`."""
    parse = _parse_tsv if ".tsv" in path.suffixes[-2:] else _parse_json
    for number, line in numbered_lines(path, config, first, end):
        where = f"{path}, line {number}"
        if number == 1:
            _refuse_header(line.text, where)
        label, *texts = parse(line.text, config, where) if has_text(line.text) else ("", "")
        yield Pair(join_texts(texts), label, number, line.replaced)


def _refuse_header(line: str, where: str) -> None:
    """Raise `DataError` for a header line: it would become an example with a separate label."""
    names = {name.strip().lower() for name in line.split(BETWEEN)}
    if names & _LABEL_COLUMNS and names & _TEXT_COLUMNS and names <= _LABEL_COLUMNS | _TEXT_COLUMNS:
        shown = line.strip().replace(BETWEEN, "<TAB>")
        raise DataError(
            f'{where}: "{shown}" names columns, and would be an example. Delete that line; all others must be '
            "label<TAB>text, in this order."
        )


def _parse_tsv(line: str, config: DataConfig, where: str) -> tuple[str, ...]:
    columns = split_row(line)
    if len(columns) not in (2, 3):
        tabs = "no tab" if len(columns) == 1 else f"{len(columns) - 1} tabs"
        raise DataError(f"{where}: {tabs}. Each line must be label<TAB>text or label<TAB>text<TAB>text.")
    if not has_text(columns[0]):
        raise DataError(f"{where}: there is no label before the first tab. Each line must be label<TAB>text.")
    return tuple(columns)


def _parse_json(line: str, config: DataConfig, where: str) -> tuple[str, ...]:
    record = parsed_json(line, where)
    if not isinstance(record, dict):
        raise DataError(f"{where}: {type(record).__name__} in place of an object with label and text.")
    keys = next((pair for pair in _TEXT_KEYS if pair[0] in record), None)
    if "label" not in record or keys is None:
        raise DataError(
            f'{where}: an object needs "label" and "text" (or "sentence", "sentence1"). '
            f"It has: {', '.join(map(str, list(record)[:8])) or 'none'}."
        )
    texts = [checked_text(record[key], key, config.invalid_utf8, where) for key in keys if key in record]
    return (_label_text(record["label"], config, where), *texts)


def _label_text(value: object, config: DataConfig, where: str) -> str:
    """Return a label as text; a number in its usual spelling."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = (
        str(value) if isinstance(value, int | float) else checked_text(value, "label", config.invalid_utf8, where)
    )
    if not has_text(text):
        raise DataError(f'{where}: "label" is empty. Give each text a label.')
    return text
