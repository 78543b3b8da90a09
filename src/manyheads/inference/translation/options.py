"""Constraints on single lines, from text to tokens, and the beam search of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from manyheads.config.schema import SearchConfig
from manyheads.errors import UsageError
from manyheads.search.options import UNCONSTRAINED, Constraints, Ids, SearchOptions, WordTokens
from manyheads.text.tokenizer import BOS, EOS, PAD, UNK, Tokenizer

_MAX_SPELLINGS = 64  # token sequences of a forbidden phrase; further ones are too unlikely to be generated


@dataclass(frozen=True)
class LineConstraints:
    """Constraints on the translation of a line.

    Attributes:
        tokens: the constraints as tokens.
        forbidden: the forbidden phrases as text, in the spelling and case of the model's output.
        required: the required phrases, likewise.
        terms: translations of terms that are wanted in each part, as tokens; empty if there are none.
        forms: the same as text; with hints, forms of them will do.
        hinted: token ids of the source of each part with hints; empty without hints.
        language: tokens before all others, which say the target language; empty for a model of one direction.
    """

    tokens: Constraints = UNCONSTRAINED
    forbidden: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    terms: tuple[tuple[Ids, ...], ...] = ()
    forms: tuple[tuple[str, ...], ...] = ()
    hinted: tuple[list[int], ...] = ()
    language: Ids = ()

    def of_part(self, part: int) -> Constraints:
        """Return the constraints on a part of the line, without required phrases; a prefix is for part 0."""
        if not (self.language or self.tokens.required or (part and self.tokens.prefix)):
            return self.tokens
        prefix = () if part else self.tokens.prefix
        return replace(self.tokens, prefix=(*self.language, *prefix), required=())

    def required_of(self, part: int) -> tuple[Ids, ...]:
        """Return the required phrases of a part, which are those of part 0, and the translations of its terms."""
        return (*(() if part else self.tokens.required), *(self.terms[part] if self.terms else ()))

    def with_phrases(self, part: int, words: WordTokens, sentences: int) -> Constraints:
        """Return the constraints on a part of the line with the phrases that it must hold."""
        required = self.required_of(part)
        return replace(self.of_part(part), required=required, words=words, sentences=sentences)


def line_constraints(
    tokenizer: Tokenizer,
    lines: int,
    prefixes: Sequence[str],
    forbidden: Sequence[Sequence[str]],
    required: Sequence[Sequence[str]],
) -> list[LineConstraints]:
    """Encode the constraints on `lines` lines (see `Translator.translate`); empty phrases are ignored.

    Raises:
        UsageError: the number of entries is not the number of lines, or a text has unknown symbols.
    """
    for name, entries in (("prefixes", prefixes), ("forbidden", forbidden), ("required", required)):
        if len(entries) not in (0, lines):
            raise UsageError(f"{name} has {len(entries)} entries for {lines} lines. Give one for each line.")
        if isinstance(entries, str) or any(isinstance(entry, str) for entry in entries if name != "prefixes"):
            raise UsageError(f"{name} takes a list for each line, not a text.")
    prefixes, nothing = prefixes or [""] * lines, [()] * lines
    return [
        _encode_line(tokenizer, *line)
        for line in zip(prefixes, forbidden or nothing, required or nothing, strict=True)
    ]


def _encode_line(
    tokenizer: Tokenizer, prefix: str, forbidden: Sequence[str], required: Sequence[str]
) -> LineConstraints:
    if not (prefix or forbidden or required):
        return LineConstraints()
    forbidden, required = [*filter(str.strip, forbidden)], [*filter(str.strip, required)]
    spellings = [tuple(ids) for phrase in forbidden for ids in tokenizer.spellings(phrase, _MAX_SPELLINGS)]
    tokens = Constraints(
        prefix=encode_forced(tokenizer, prefix, "prefix"),
        forbidden=tuple(ids for ids in spellings if ids and UNK not in ids),
        required=tuple(encode_forced(tokenizer, phrase, "phrase") for phrase in required),
    )
    return LineConstraints(tokens, normalise(tokenizer, forbidden), normalise(tokenizer, required))


def encode_forced(tokenizer: Tokenizer, text: str, what: str) -> Ids:
    """Encode a forced text; `what` names it in the error message.

    Raises:
        UsageError: the text has unknown symbols.
    """
    (ids,) = tokenizer.encode([text])
    if UNK in ids:
        raise UsageError(f'the {what} "{text}" cannot come out: it has symbols that the vocabulary does not hold.')
    return tuple(ids)


def prefix_ids(prefix: str | Sequence[int], tokenizer: Tokenizer) -> tuple[Ids, bool]:
    """Return the ids of a prefix without its end mark, and whether it has one.

    Raises:
        UsageError: the prefix is impossible as the beginning of an output.
    """
    if isinstance(prefix, str):
        return encode_forced(tokenizer, prefix, "prefix"), False
    ids = tokenizer.check(prefix)
    ends = bool(ids) and ids[-1] == EOS
    body = ids[:-1] if ends else ids
    if set(body) & {BOS, EOS, PAD}:
        raise UsageError("the prefix has a begin, end or padding mark in its middle; nothing can come after that.")
    return tuple(body), ends


def normalise(tokenizer: Tokenizer, phrases: Sequence[str]) -> tuple[str, ...]:
    """Return the phrases in the spelling and case of the model's output."""
    return tuple(tokenizer.decode(ids) for ids in tokenizer.encode(phrases))


def plain_search(settings: SearchConfig) -> SearchOptions:
    """Return the beam search of a run, without rules for outputs."""
    return SearchOptions(no_repeat_ngram=0).complete(vars(settings))
