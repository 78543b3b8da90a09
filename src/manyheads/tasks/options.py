"""Constraints on single lines as tokens, and the completion of `TranslateOptions` to `SearchOptions`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from manyheads.config.schema import SearchConfig
from manyheads.errors import UsageError
from manyheads.search.options import Ids, SearchOptions, TranslateOptions
from manyheads.text.tokenizer import UNK, Tokenizer

__all__ = ["Expected", "PerLine", "TranslateOptions", "plain_search", "search_options"]

_MAX_SPELLINGS = 64  # token sequences of a forbidden phrase; further ones are too unlikely to be generated
_Entry = TypeVar("_Entry")


@dataclass(frozen=True)
class Expected:
    """The forbidden and the required phrases of one line, as text."""

    forbidden: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


@dataclass(frozen=True)
class PerLine:
    """Constraints on single lines, or on parts of lines, as tokens; each field is empty or has one entry a line.

    Attributes:
        prefixes: forced beginning of each output.
        forbidden: sequences that must not occur in each output.
        required: sequences that must occur in each output.
        texts: forbidden and required phrases of each line as text.
    """

    prefixes: tuple[Ids, ...]
    forbidden: tuple[tuple[Ids, ...], ...]
    required: tuple[tuple[Ids, ...], ...]
    texts: tuple[Expected, ...] = ()

    @classmethod
    def of(
        cls,
        tokenizer: Tokenizer,
        lines: int,
        prefixes: Sequence[str],
        forbidden: Sequence[Sequence[str]],
        required: Sequence[Sequence[str]],
    ) -> Self:
        """Encode the constraints on `lines` lines (see `Translator.translate`); empty phrases are ignored.

        Raises:
            UsageError: the number of entries is not the number of lines, or a text has unknown symbols.
        """
        for name, entries in (("prefixes", prefixes), ("forbidden", forbidden), ("required", required)):
            if len(entries) not in (0, lines):
                raise UsageError(f"{name} has {len(entries)} entries for {lines} lines. Give one for each line.")
            if isinstance(entries, str) or any(isinstance(entry, str) for entry in entries if name != "prefixes"):
                raise UsageError(f"{name} takes a list for each line, not a text.")
        required = [[phrase for phrase in phrases if phrase.strip()] for phrases in required]
        forbidden = [[phrase for phrase in phrases if phrase.strip()] for phrases in forbidden]
        return cls(
            prefixes=tuple(encode_forced(tokenizer, prefix, "prefix") for prefix in prefixes),
            forbidden=tuple(
                tuple(
                    tuple(spelling)
                    for phrase in phrases
                    for spelling in tokenizer.spellings(phrase, _MAX_SPELLINGS)
                    if spelling and UNK not in spelling
                )
                for phrases in forbidden
            ),
            required=tuple(
                tuple(encode_forced(tokenizer, phrase, "phrase") for phrase in phrases) for phrases in required
            ),
            texts=tuple(
                Expected(
                    tuple(_normalise(tokenizer, forbidden[line]) if forbidden else ()),
                    tuple(_normalise(tokenizer, required[line]) if required else ()),
                )
                for line in range(lines)
            ),
        )

    def for_parts(self, parts: Sequence[tuple[int, int]]) -> PerLine:
        """Return the constraints on parts of lines, given as pairs (line, part) in order.

        A prefix and required phrases apply to the first part of a line, forbidden phrases to all parts.
        """
        first = [not index or parts[index - 1][0] != line for index, (line, _) in enumerate(parts)]
        return PerLine(
            prefixes=_entries_of_parts(self.prefixes, parts, first, ()),
            forbidden=_entries_of_parts(self.forbidden, parts, [True] * len(parts), ()),
            required=_entries_of_parts(self.required, parts, first, ()),
        )


def _entries_of_parts(
    entries: tuple[_Entry, ...], parts: Sequence[tuple[int, int]], selected: Sequence[bool], empty: _Entry
) -> tuple[_Entry, ...]:
    """Return the entry of its line for each selected part, `empty` for other parts; nothing without entries."""
    if not entries:
        return ()
    return tuple(
        entries[line] if is_selected else empty for (line, _), is_selected in zip(parts, selected, strict=True)
    )


def encode_forced(tokenizer: Tokenizer, text: str, what: str) -> Ids:
    """Encode a forced text; `what` names it in the error message.

    Raises:
        UsageError: the text has unknown symbols.
    """
    (ids,) = tokenizer.encode([text])
    if UNK in ids:
        raise UsageError(f'the {what} "{text}" cannot come out: it has symbols that the vocabulary does not hold.')
    return tuple(ids)


def _normalise(tokenizer: Tokenizer, phrases: Sequence[str]) -> list[str]:
    """Return the phrases in the spelling and case of the model's output."""
    return [tokenizer.decode(ids) for ids in tokenizer.encode(phrases)]


def plain_search(search: SearchConfig) -> SearchOptions:
    """Return the beam search of a run, without the options of a single call and without rules for outputs."""
    return SearchOptions(
        beam_size=search.beam_size,
        length_penalty=search.length_penalty,
        max_length_ratio=search.max_length_ratio,
        max_length_offset=search.max_length_offset,
        batch_tokens=search.batch_tokens,
    )


def search_options(
    search: SearchConfig, options: TranslateOptions, beam_size: int | None, n_best: int, parts: PerLine
) -> SearchOptions:
    """Return the options of one call of the engine: each given option, else the setting of the run.

    Args:
        search: settings of the run.
        options: options of the translation.
        beam_size: overrides the beam size of the run, unless it is None.
        n_best: number of outputs to return for each part.
        parts: constraints on each part.

    Raises:
        UsageError: an option is out of its range, or cannot be combined with another.
    """
    if options.split not in ("auto", "sentences", "none"):
        raise UsageError(f'split = "{options.split}" is none of "auto", "sentences", "none".')
    settings = search.model_dump(exclude={"copy_literals", "lower_capitals"})  # options of the splitting
    values = settings | {name: value for name, value in vars(options).items() if value is not None}
    beam = search.beam_size if beam_size is None else beam_size
    values |= {"beam_size": beam if options.sampling else max(beam, n_best), "n_best": n_best, "split": "auto"}
    try:
        return SearchOptions(**values, prefixes=parts.prefixes, forbidden=parts.forbidden, required=parts.required)
    except ValueError as error:
        raise UsageError(str(error)) from error
