"""The options of a translator in terms of text, and their conversion to `SearchOptions` in terms of tokens."""

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

MAX_SPELLINGS = 64  # token sequences of a forbidden phrase; further ones are too unlikely to be generated
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class TranslateOptions:
    """Options of a translation, the same for all lines. None stands for the setting of the run.

    Attributes:
        length_penalty: see `SearchConfig`.
        coverage_penalty: see `SearchConfig`.
        max_length_ratio: see `SearchConfig`.
        no_repeat_ngram: see `SearchConfig`.
        attention_layer: see `SearchConfig`.
        min_length_ratio: minimum length of a translation = min_length_ratio x source tokens.
        sampling: options of sampling, instead of a search; None is off.
        diverse_groups: number of diverse beam groups (Vijayakumar et al. 2018); 1 is off.
        diverse_strength: penalty in nats on a token that an earlier group chose, for each prefix that chose it.
        rivals: number of likeliest other tokens to return for each token.
        alignment: whether to return the word alignment.
        token_scores: whether to return the score of each token; some engines are faster without.
        split: "sentences" translates each sentence of a line separately; "auto" does so if the line is longer than
            any line of the training data (data.max_length); "none" never does, and cuts the line at the model's
            limit.
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
        """Encode the constraints of each line; empty phrases are ignored.

        Args:
            tokenizer: of the target language.
            lines: number of lines.
            prefixes: forced beginnings; empty, or one a line.
            forbidden: forbidden phrases; empty, or one list a line.
            required: required phrases; empty, or one list a line.

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
            prefixes=tuple(spelled(tokenizer, prefix, "prefix") for prefix in prefixes),
            forbidden=tuple(
                tuple(
                    tuple(spelling)
                    for phrase in phrases
                    for spelling in tokenizer.spellings(phrase, MAX_SPELLINGS)
                    if spelling and UNK not in spelling
                )
                for phrases in forbidden
            ),
            required=tuple(
                tuple(spelled(tokenizer, phrase, "phrase") for phrase in phrases) for phrases in required
            ),
            texts=tuple(
                Expected(
                    tuple(normalised(tokenizer, forbidden[line]) if forbidden else ()),
                    tuple(normalised(tokenizer, required[line]) if required else ()),
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
            prefixes=entries_of_parts(self.prefixes, parts, first, ()),
            forbidden=entries_of_parts(self.forbidden, parts, [True] * len(parts), ()),
            required=entries_of_parts(self.required, parts, first, ()),
        )

    def expected(self, line: int) -> Expected:
        """Return the phrases of a line as text."""
        return self.texts[line]


def entries_of_parts(
    entries: tuple[Entry, ...], parts: Sequence[tuple[int, int]], selected: Sequence[bool], empty: Entry
) -> tuple[Entry, ...]:
    """Return for each selected part the entry of its line, for the others `empty`; no entries stay none."""
    if not entries:
        return ()
    return tuple(entries[line] if mark else empty for (line, _), mark in zip(parts, selected, strict=True))


def spelled(tokenizer: Tokenizer, text: str, what: str) -> Ids:
    """Encode a forced text; `what` names it in the error message.

    Raises:
        UsageError: the text has unknown symbols.
    """
    (ids,) = tokenizer.encode([text])
    if UNK in ids:
        raise UsageError(f'the {what} "{text}" cannot come out: it has symbols that the vocabulary does not hold.')
    return tuple(ids)


def normalised(tokenizer: Tokenizer, phrases: Sequence[str]) -> list[str]:
    """Return the phrases in the spelling and case of the model's output."""
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
    """Return the options of one call of the engine.

    Args:
        search: settings of the run.
        options: options of the translation.
        beam_size: overrides that of the run; None does not.
        n_best: number of outputs to return for each part.
        parts: constraints on each part.

    Raises:
        UsageError: an option is out of its range, or cannot be combined with another.
    """
    beam = search.beam_size if beam_size is None else beam_size
    try:
        return replace(
            plain_search(search),
            beam_size=beam if options.sampling else max(beam, n_best),
            length_penalty=value_or(options.length_penalty, search.length_penalty),
            max_length_ratio=value_or(options.max_length_ratio, search.max_length_ratio),
            n_best=n_best,
            min_length_ratio=options.min_length_ratio,
            coverage_penalty=value_or(options.coverage_penalty, search.coverage_penalty),
            no_repeat_ngram=value_or(options.no_repeat_ngram, search.no_repeat_ngram),
            sampling=options.sampling,
            diverse_groups=options.diverse_groups,
            diverse_strength=options.diverse_strength,
            rivals=options.rivals,
            attention=options.alignment,
            attention_layer=value_or(options.attention_layer, search.attention_layer),
            token_scores=options.token_scores,
            prefixes=parts.prefixes,
            forbidden=parts.forbidden,
            required=parts.required,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


def value_or(value: Entry | None, setting: Entry) -> Entry:
    """Return the value, or the setting if the value is None."""
    return setting if value is None else value
