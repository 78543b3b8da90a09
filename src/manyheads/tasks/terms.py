"""Terms of a glossary in the lines of a translator: hints in the source, or requirements of the search."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from manyheads.data.glossary import Glossary, Place, holds_form
from manyheads.errors import UsageError
from manyheads.search.interface import Hypothesis
from manyheads.search.options import Ids
from manyheads.tasks.options import LineConstraints, normalise
from manyheads.tasks.parts import Line
from manyheads.tasks.term_hints import mark_term
from manyheads.text.normalize import source_form
from manyheads.text.reserved import remove_marks
from manyheads.text.tokenizer import UNK, Tokenizer, TokenizerPair

_MAX_REQUIRED = 64  # tokens of the terms required of a part: each needs beams of its own


def check_terms(glossary: Glossary, tokenizer: Tokenizer, most: int) -> None:
    """Check that a model can write the translation of each term, in at most `most` tokens.

    Raises:
        UsageError: a translation cannot come out; the message names its place.
    """
    terms = glossary.terms
    for term, ids in zip(terms, tokenizer.encode([term.target for term in terms]), strict=True):
        if UNK in ids or not ids:
            raise UsageError(
                f'{term.where}: "{term.target}" cannot come out: it has symbols that the vocabulary does not hold.'
            )
        if len(ids) > most:
            raise UsageError(
                f"{term.where}: the translation has {len(ids):,} tokens, but the longest output of this model is "
                f"{most:,}. Use a shorter one."
            )


def require_terms(
    glossary: Glossary, tokenizers: TokenizerPair, line: Line, constraints: LineConstraints, *, hints: bool
) -> LineConstraints:
    """Add to the constraints on a line the translations of its terms that are wanted in each part.

    With `hints`, a part also gets a source with the translations in the place of the terms, and forms of these
    translations will do. Translations beyond `_MAX_REQUIRED` tokens are not required of a part; a warning says so
    if they do not come out.
    """
    form = source_form if tokenizers.source.side else str
    texts = [
        unicodedata.normalize("NFC", form(remove_marks(line.part_text(part)))) for part in range(len(line.parts))
    ]
    found = [glossary.find(text) for text in texts]
    if not any(found):
        return constraints
    phrases = [tuple(dict.fromkeys(place.term.target for place in places)) for places in found]
    target = tokenizers.target
    forms = tuple(normalise(target, part) for part in phrases)
    constraints = replace(constraints, terms=tuple(_within_limit(target.encode(part)) for part in phrases))
    if hints:
        rows = tuple(map(partial(_add_hints, tokenizers.source), texts, found, line.parts))
        return replace(constraints, forms=forms, hinted=rows)
    return replace(constraints, required=(*constraints.required, *chain(*forms)))


def _add_hints(tokenizer: Tokenizer, text: str, places: Sequence[Place], ids: list[int]) -> list[int]:
    """Return the token ids of a text with hints; `ids`, those of the text, if the vocabulary cannot write them."""
    for place in reversed(places):
        text = mark_term(text, place.start, place.end, place.term.target)
    (hinted,) = tokenizer.encode_marked([text])
    return ids if UNK in hinted and UNK not in ids else hinted


def lack_terms(
    tokenizer: Tokenizer, outputs: Sequence[Hypothesis], constraints: LineConstraints, part: int
) -> bool:
    """Return whether an output of a part lacks the translation of a term; `tokenizer` is that of the target."""
    if constraints.hinted:
        texts = [tokenizer.decode(output.tokens) for output in outputs]
        return not all(holds_form(text, form) for text in texts for form in constraints.forms[part])
    terms = constraints.terms[part] if constraints.terms else ()
    return any(not _contains(output.tokens, ids) for output in outputs for ids in terms)


def _contains(tokens: Sequence[int], ids: Ids) -> bool:
    return any(tuple(tokens[start : start + len(ids)]) == ids for start in range(len(tokens) - len(ids) + 1))


def _within_limit(sequences: Sequence[Sequence[int]]) -> tuple[Ids, ...]:
    """Return the first sequences that have `_MAX_REQUIRED` tokens together at most."""
    kept: list[Ids] = []
    for ids in sequences:
        if sum(map(len, kept)) + len(ids) <= _MAX_REQUIRED:
            kept.append(tuple(ids))
    return tuple(kept)
