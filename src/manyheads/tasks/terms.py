"""Terms of a glossary in the lines of a translator, required of its search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from manyheads.data.glossary import Glossary
from manyheads.errors import UsageError
from manyheads.search.interface import Hypothesis
from manyheads.search.options import Ids
from manyheads.tasks.options import LineConstraints, normalise
from manyheads.tasks.parts import Line
from manyheads.text.tokenizer import UNK, Tokenizer

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
    glossary: Glossary, tokenizer: Tokenizer, line: Line, constraints: LineConstraints
) -> LineConstraints:
    """Add to the constraints on a line the translations of its terms that are wanted in each part.

    `tokenizer` is that of the target. Translations beyond `_MAX_REQUIRED` tokens are not required of a part; a
    warning says so if they do not come out.
    """
    found = [glossary.find(line.part_text(part)) for part in range(len(line.parts))]
    if not any(found):
        return constraints
    phrases = [list(dict.fromkeys(term.target for term in terms)) for terms in found]
    return replace(
        constraints,
        required=(*constraints.required, *(text for part in phrases for text in normalise(tokenizer, part))),
        terms=tuple(_within_limit(tokenizer.encode(part)) for part in phrases),
    )


def lack_terms(outputs: Sequence[Hypothesis], constraints: LineConstraints, part: int) -> bool:
    """Return whether an output of a part does not contain the translations of all its terms."""
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
