"""Terms of a glossary and required phrases: hints in the source, requirements of the search, and their price."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain

import numpy as np

from bitext.languages import SENTENCE_ENDS
from manyheads.errors import UsageError
from manyheads.inference.translation.glossary import Glossary, Place, ends_open, goes_on, holds_form, holds_phrase
from manyheads.inference.translation.options import LineConstraints, normalise
from manyheads.inference.translation.parts import Line
from manyheads.inference.translation.term_hints import mark_term
from manyheads.search.interface import Hypothesis
from manyheads.search.options import Constraints, Ids, WordTokens
from manyheads.text.normalize import source_form
from manyheads.text.reserved import remove_marks
from manyheads.text.sentences import CLOSERS
from manyheads.text.tokenizer import UNK, Tokenizer, TokenizerPair

_MAX_REQUIRED = 64  # tokens of the terms required of a part: each needs beams of its own
_MOST_STRAIN = 1.0  # nats a token by which a required phrase may make an output less likely
_SENTENCE_END = re.compile(rf"[{SENTENCE_ENDS}][{re.escape(CLOSERS)}]*\Z")


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


def lack_phrases(
    tokenizer: Tokenizer, outputs: Sequence[Hypothesis], constraints: LineConstraints, part: int, language: str = ""
) -> bool:
    """Return whether an output of a part lacks a required phrase, or the translation of a term.

    `tokenizer` and `language` are those of the target.
    """
    phrases = [tokenizer.decode(ids) for ids in constraints.required_of(part)]
    if not phrases:
        return False
    texts = [tokenizer.decode(output.tokens) for output in outputs]
    if constraints.hinted:
        forms, phrases = constraints.forms[part], phrases[: len(phrases) - len(constraints.terms[part])]
        if not all(holds_form(text, form, language) for text in texts for form in forms):
            return True
    return not all(holds_phrase(text, phrase) for text in texts for phrase in phrases)


def force_phrases(tokenizer: Tokenizer, free: Hypothesis, constraints: LineConstraints, part: int) -> Constraints:
    """Return the constraints on a part with its phrases, and with as many sentences as the output `free` has."""
    words, tokens = word_tokens(tokenizer), np.array(free.tokens, dtype=np.int64)
    last = int(words.has_letters[tokens].nonzero()[0].max(initial=0))
    return constraints.with_phrases(part, words, 1 + int(words.ends_sentence[tokens[:last]].sum()))


def choose_outputs(free: list[Hypothesis], forced: list[Hypothesis], *, required: bool) -> list[Hypothesis]:
    """Return the forced outputs, if they are not far less likely than the free ones.

    If they are, the outputs are `strained`: the forced ones where a phrase is required, the free ones for a
    glossary.
    """
    means = [best.log_probability / max(1, len(best.tokens) + best.ended) for best in (free[0], forced[0])]
    if means[1] >= means[0] - _MOST_STRAIN:
        return forced
    return [replace(output, strained=True) for output in (forced if required else free)]


@lru_cache(maxsize=4)
def word_tokens(tokenizer: Tokenizer) -> WordTokens:
    """Return how the tokens of a vocabulary make words and sentences."""
    ids = range(tokenizer.size)
    texts = [tokenizer.decode([token]) for token in ids]
    words = (tokenizer.encode([text])[0][-1:] for text in texts if ends_open(text))
    last = next((word for word in words if ends_open(tokenizer.decode(word))), [])  # the end of a word
    start = len(tokenizer.decode(last))
    return WordTokens(
        ends_open=np.array([ends_open(text) for text in texts]),
        goes_on=np.array([bool(last) and goes_on(tokenizer.decode([*last, token])[start:]) for token in ids]),
        has_letters=np.array([any(map(str.isalnum, text)) for text in texts]),
        ends_sentence=np.array([_SENTENCE_END.search(text) is not None for text in texts]),
    )


def _within_limit(sequences: Sequence[Sequence[int]]) -> tuple[Ids, ...]:
    """Return the first sequences that have `_MAX_REQUIRED` tokens together at most."""
    kept: list[Ids] = []
    for ids in sequences:
        if sum(map(len, kept)) + len(ids) <= _MAX_REQUIRED:
            kept.append(tuple(ids))
    return tuple(kept)
