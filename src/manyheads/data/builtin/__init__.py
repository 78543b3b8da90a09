"""Read the built-in corpora: 21,000 generated sentence pairs each, German-English and Korean-English.

Each file holds the lines of train, valid and test, in this order: foreign sentence, tab, English sentence. Two
grammars drew the sentences, each as a meaning that is expressed in both languages, so that it has one correct
translation. A fixed share of all combinations of words (verb and object, adjective and noun ...) is held out: every
sentence of valid and test has at least one that never occurs in train.
"""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import islice
from types import MappingProxyType

from bitext.file_names import Split
from bitext.files import cure_of
from bitext.languages import match_language
from bitext.pairs import Pair
from manyheads.errors import DataError

_Texts = tuple[tuple[str, str], ...]

_CORPUS_SIZES: Mapping[Split, int] = MappingProxyType({"train": 20_000, "valid": 500, "test": 500})  # in this order
BUILTIN: Mapping[str, str] = MappingProxyType(  # SHA-256 of the text
    {
        "de-en": "8162f928448efb8c6777e675b339b3919c96ee636e39fc7d0b400a7864be1890",
        "ko-en": "66b5b21b982668c9982a0bf3d8cd3c71419471231ed62698f2a47e6faabb201d",
    }
)


@cache
def _load_texts(name: str) -> dict[str, _Texts]:
    """Read a corpus: the pairs of foreign and English sentence of each split.

    Raises:
        DataError: there is no such corpus, or its file is damaged.
    """
    if name not in BUILTIN:
        raise DataError(f'There is no built-in corpus "{name}". Use one of: {", ".join(BUILTIN)}.')
    file = files(__name__).joinpath(f"{name}.tsv.xz")
    try:
        text = lzma.decompress(file.read_bytes())
    except (OSError, lzma.LZMAError, EOFError) as error:
        cure = cure_of(error, "Install manyheads again.")
        raise DataError(f"The built-in corpus {file} cannot be read ({error}). {cure}") from error
    if hashlib.sha256(text).hexdigest() != BUILTIN[name]:
        raise DataError(f"The built-in corpus {file} is damaged. Install manyheads again.")
    lines = iter(text.decode().removesuffix("\n").split("\n"))
    return {split: tuple(map(_foreign_and_english, islice(lines, size))) for split, size in _CORPUS_SIZES.items()}


def _foreign_and_english(line: str) -> tuple[str, str]:
    foreign, english = line.split("\t")
    return foreign, english


def builtin_pairs(name: str, split: str, *, source: str, target: str) -> list[Pair]:
    """Return the pairs of one split of a corpus of `BUILTIN`, in either direction of its two languages.

    Raises:
        DataError: there is no such corpus or split, or it has no such direction.
    """
    texts = _load_texts(name)
    if split not in texts:
        raise DataError(
            f'There is no split "{split}" in the corpus {name}. Use one of: {", ".join(_CORPUS_SIZES)}.'
        )
    foreign, english = name.split("-")
    sides = [match_language(code, (foreign, english)) for code in (source, target)]
    if set(sides) != {foreign, english}:
        raise DataError(
            f'The built-in corpus {name} has no direction "{source}" to "{target}". '
            f"Use source = {foreign}, target = {english}, or the other way round."
        )
    pairs = texts[split] if sides[0] == foreign else [(english, foreign) for foreign, english in texts[split]]
    return [Pair(*pair, line) for line, pair in enumerate(pairs, 1)]
