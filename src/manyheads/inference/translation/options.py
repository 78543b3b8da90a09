"""Prefixes and forbidden phrases of single lines, and the beam search of a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from manyheads.config.schema import SearchConfig
from manyheads.errors import UsageError
from manyheads.inference.translation.result import Translation
from manyheads.inference.translation.stages import Draft, Stage
from manyheads.search.options import Ids, SearchOptions
from manyheads.text.tokenizer import BOS, EOS, PAD, UNK, Tokenizer

_MAX_SPELLINGS = 64  # token sequences of a forbidden phrase; further ones are too unlikely to be generated


class Phrases(Stage):
    """The forced beginning of each line, and phrases that no word of it may begin with."""

    warnings: ClassVar = {"forbidden-phrase": "a forbidden phrase came out, spelled in an unusual way"}

    def before(self, drafts: list[Draft]) -> list[Draft]:
        """Force the beginnings in first parts, and forbid the phrases in all."""
        prefixes, forbidden, lines = self.request.prefixes, self.request.forbidden, len(drafts)
        check_entries("prefixes", prefixes, lines)
        check_entries("forbidden", forbidden, lines)
        entries = zip(drafts, prefixes or [""] * lines, forbidden or [()] * lines, strict=True)
        return [self._constrain(draft, prefix, phrases) for draft, prefix, phrases in entries]

    def _constrain(self, draft: Draft, prefix: str, phrases: Sequence[str]) -> Draft:
        if not (prefix or phrases):
            return draft
        tokenizer = self.translator.tokenizers.target
        phrases = [*filter(str.strip, phrases)]
        spellings = [ids for phrase in phrases for ids in tokenizer.spellings(phrase, _MAX_SPELLINGS)]
        forbidden = tuple(tuple(ids) for ids in spellings if ids and UNK not in ids)
        own = draft.constrained(partial(replace, forbidden=forbidden))
        prefix_ids = (*own.first.prefix, *encode_forced(tokenizer, prefix, "prefix"))
        return replace(own, first=replace(own.first, prefix=prefix_ids))

    def after(self, draft: Draft, translation: Translation) -> Translation:
        """Add the warning."""
        if not self.request.forbidden:
            return translation
        phrases = [*filter(str.strip, self.request.forbidden[draft.number])]
        written, text = normalise(self.translator.tokenizers.target, phrases), translation.translation
        present = any(re.search(rf"(?<!\S){re.escape(phrase)}", text) for phrase in written)
        return translation.with_warnings({"forbidden-phrase": present})


def check_entries(name: str, entries: Sequence[str] | Sequence[Sequence[str]], lines: int) -> None:
    """Check that there is an entry for each line, or none: texts for "prefixes", else lists of phrases.

    Raises:
        UsageError: the number of entries is another one, or a text stands for a list.
    """
    if len(entries) not in (0, lines):
        raise UsageError(f"{name} has {len(entries)} entries for {lines} lines. Give one for each line.")
    if isinstance(entries, str) or any(isinstance(entry, str) for entry in entries if name != "prefixes"):
        raise UsageError(f"{name} takes a list for each line, not a text.")


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
