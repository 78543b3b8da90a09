"""What may be asked of a translator in terms of text, and how that is said to a search in terms of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

from manyheads.config.schema import SearchConfig
from manyheads.errors import UsageError
from manyheads.search.options import Ids, Sampling, SearchOptions
from manyheads.tasks.parts import Split
from manyheads.text.tokenizer import UNK, Tokenizer

__all__ = ["Expected", "PerLine", "TranslateOptions", "plain_search", "search_options"]

SPELLINGS = 64  # of a forbidden phrase; others are too unlikely to come
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class TranslateOptions:
    """How to translate, the same for all lines. None is the setting of the run.

    Attributes:
        length_penalty: see `SearchConfig`, like all that may be None.
        coverage_penalty: see `SearchConfig`.
        max_length_ratio: see `SearchConfig`.
        no_repeat_ngram: see `SearchConfig`.
        attention_layer: see `SearchConfig`.
        min_length_ratio: the shortest translation is this x the source's tokens.
        sampling: draw the candidates by chance instead of searching for the best.
        diverse_groups: the beam falls into so many groups that are led apart (Vijayakumar et al. 2018).
        diverse_strength: how strongly.
        rivals: so many likeliest other tokens are told beside each token.
        alignment: which word comes from which is told.
        token_scores: whether the score of each token is wanted; some engines are faster without.
        split: "sentences" translates each sentence of a line by itself; "auto" does so when the line is longer
            than any that the model was trained on (data.max_length); "none" never, and cuts at the model's limit.
    """

    length_penalty: float | None = None
    coverage_penalty: float | None = None
    max_length_ratio: float | None = None
    no_repeat_ngram: int | None = None
    attention_layer: int | None = None
    min_length_ratio: float = 0.0
    sampling: Sampling | None = None
    diverse_groups: int = 1
    diverse_strength: float = 0.5
    rivals: int = 0
    alignment: bool = False
    token_scores: bool = True
    split: Split = "auto"

    def __post_init__(self) -> None:
        if self.split not in ("auto", "sentences", "none"):
            raise UsageError(f'split = "{self.split}" is none of "auto", "sentences", "none".')


@dataclass(frozen=True)
class Expected:
    """What was asked of one line, as text: phrases that must not, and phrases that must come out."""

    forbidden: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


@dataclass(frozen=True)
class PerLine:
    """What was asked of single lines, or of parts of lines, as tokens; no entry at all, or one for each."""

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
        """Turn texts into tokens of the target; empty phrases ask for nothing.

        Raises:
            UsageError: there are not as many entries as lines, or the vocabulary cannot spell a text.
        """
        for name, entries in (("prefixes", prefixes), ("forbidden", forbidden), ("required", required)):
            if len(entries) not in (0, lines):
                raise UsageError(f"{name} has {len(entries)} entries for {lines} lines. Give one for each line.")
            if isinstance(entries, str) or any(isinstance(entry, str) for entry in entries if name != "prefixes"):
                raise UsageError(f"{name} takes a list for each line, not a text.")
        wanted = [[phrase for phrase in phrases if phrase.strip()] for phrases in required]
        unwanted = [[phrase for phrase in phrases if phrase.strip()] for phrases in forbidden]
        return cls(
            prefixes=tuple(spelled(tokenizer, prefix, "prefix") for prefix in prefixes),
            forbidden=tuple(
                tuple(
                    tuple(way)
                    for phrase in phrases
                    for way in tokenizer.spellings(phrase, SPELLINGS)
                    if way and UNK not in way
                )
                for phrases in unwanted
            ),
            required=tuple(tuple(spelled(tokenizer, phrase, "phrase") for phrase in phrases) for phrases in wanted),
            texts=tuple(
                Expected(
                    tuple(shown(tokenizer, unwanted[line]) if unwanted else ()),
                    tuple(shown(tokenizer, wanted[line]) if wanted else ()),
                )
                for line in range(lines)
            ),
        )

    def of_parts(self, places: Sequence[tuple[int, int]]) -> PerLine:
        """What is asked of the parts of lines, given as (line, part) in order.

        A prefix and required phrases are for the first part of a line, forbidden phrases for all.
        """
        first = [not place or places[place - 1][0] != line for place, (line, _) in enumerate(places)]
        return PerLine(
            prefixes=at(self.prefixes, places, first, ()),
            forbidden=at(self.forbidden, places, [True] * len(places), ()),
            required=at(self.required, places, first, ()),
        )

    def expected(self, line: int) -> Expected:
        """What was asked of a line, as text."""
        return self.texts[line]


def at(
    entries: tuple[Entry, ...], places: Sequence[tuple[int, int]], which: Sequence[bool], nothing: Entry
) -> tuple[Entry, ...]:
    """The entry of the line of each part that is marked, and nothing for the others; none if there are none."""
    if not entries:
        return ()
    return tuple(entries[line] if mark else nothing for (line, _), mark in zip(places, which, strict=True))


def spelled(tokenizer: Tokenizer, text: str, what: str) -> Ids:
    """The tokens of a text that must come out."""
    (ids,) = tokenizer.encode([text])
    if UNK in ids:
        raise UsageError(f'the {what} "{text}" cannot come out: it has symbols that the vocabulary does not hold.')
    return tuple(ids)


def shown(tokenizer: Tokenizer, phrases: Sequence[str]) -> list[str]:
    """The phrases as they come out: normalised, in the case of the model."""
    return [tokenizer.decode(ids) for ids in tokenizer.encode(phrases)]


def plain_search(search: SearchConfig) -> SearchOptions:
    """Return the beam search of a run, without the options of a single call."""
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
    """What is asked of the engine.

    Raises:
        UsageError: an option is out of its range, or does not go together with another.
    """
    beam = search.beam_size if beam_size is None else beam_size
    try:
        return replace(
            plain_search(search),
            beam_size=beam if options.sampling else max(beam, n_best),
            length_penalty=given(options.length_penalty, search.length_penalty),
            max_length_ratio=given(options.max_length_ratio, search.max_length_ratio),
            n_best=n_best,
            min_length_ratio=options.min_length_ratio,
            coverage_penalty=given(options.coverage_penalty, search.coverage_penalty),
            no_repeat_ngram=given(options.no_repeat_ngram, search.no_repeat_ngram),
            sampling=options.sampling,
            diverse_groups=options.diverse_groups,
            diverse_strength=options.diverse_strength,
            rivals=options.rivals,
            attention=options.alignment,
            attention_layer=given(options.attention_layer, search.attention_layer),
            token_scores=options.token_scores,
            prefixes=parts.prefixes,
            forbidden=parts.forbidden,
            required=parts.required,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


def given(value: Entry | None, setting: Entry) -> Entry:
    """The value, or the setting when there is none."""
    return setting if value is None else value
