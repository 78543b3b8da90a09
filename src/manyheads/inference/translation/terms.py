"""Terms of a glossary and required phrases: hints in the source, requirements of the search, and their price."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bitext.languages import SENTENCE_ENDS, upper
from manyheads.errors import UsageError
from manyheads.inference.translation.glossary import Glossary, Place, ends_open, goes_on, holds_form, holds_phrase
from manyheads.inference.translation.options import check_entries, encode_forced, normalise
from manyheads.inference.translation.result import Translation
from manyheads.inference.translation.stages import Draft, Part, Request, Stage
from manyheads.search.interface import Hypothesis
from manyheads.search.options import Constraints, Ids, WordTokens
from manyheads.text.normalize import source_form
from manyheads.text.reserved import NONCHARACTERS, TERM_SYMBOLS, remove_noncharacters
from manyheads.text.sentences import CLOSERS
from manyheads.text.tokenizer import UNK, Tokenizer

if TYPE_CHECKING:
    from manyheads.config.schema import Config
    from manyheads.inference.translation.parts import Line
    from manyheads.inference.translation.translator import Translator

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


@dataclass(frozen=True)
class _Wanted:
    """Phrases that the output of a part must hold.

    Attributes:
        ids: tokens of each phrase, at least one phrase.
        exact: as text, the phrases that must come out as they are.
        forms: translations of terms of which a form will do, because the source has hints.
        hinted: token ids of the source with hints; None without hints.
        required: whether a phrase is required by the caller, not by the glossary alone.
    """

    ids: tuple[Ids, ...]
    exact: tuple[str, ...]
    forms: tuple[str, ...]
    hinted: list[int] | None
    required: bool

    def is_in(self, text: str, language: str) -> bool:
        """Return whether an output holds the phrases; `language` is that of the output."""
        return all(holds_form(text, form, language) for form in self.forms) and all(
            holds_phrase(text, phrase) for phrase in self.exact
        )


class Terms(Stage):
    """Required phrases, and the translations of the terms of a glossary.

    A part whose outputs lack a phrase is searched again: first, where the model knows hints, with the translations
    in the place of the terms, of which forms will do; then constrained to outputs with the phrases. After hints,
    outputs stay as they are, with a warning, if there is no constrained search (no torch).
    """

    warnings: ClassVar = {
        "missing-phrase": "a required phrase or the translation of a term did not come out",
        "forced-term": "a required phrase or the translation of a term does not fit into the translation",
    }

    def __init__(self, translator: Translator, request: Request) -> None:
        super().__init__(translator, request)
        self.wanted: dict[tuple[int, int], _Wanted] = {}  # of a part of a line
        self.exact: dict[int, tuple[str, ...]] = {}  # phrases of a line that must come out as they are
        self.forms: dict[int, tuple[str, ...]] = {}  # phrases of a line of which a form will do

    def before(self, drafts: list[Draft]) -> list[Draft]:
        """Find the phrases of each part; refuse what obeys none.

        Translations beyond `_MAX_REQUIRED` tokens are not required of a part, but a warning says so if they do not
        come out.
        """
        required, has_glossary = self.request.required, self.translator.glossary is not None
        check_entries("required", required, len(drafts))
        if self.request.method == "score" or not (has_glossary or any(map(any, required))):
            return drafts
        if self.request.method == "stream":
            raise UsageError("a translation with a glossary is not streamed. Use translate.")
        if self.request.options.sampling:
            raise UsageError("a glossary and required phrases are obeyed by beam search, not by sampling.")
        for draft, phrases in zip(drafts, required or [()] * len(drafts), strict=True):
            self._add_line(draft.number, draft.line, [*filter(str.strip, phrases)])
        return drafts

    def _add_line(self, number: int, line: Line, required: Sequence[str]) -> None:
        source, target = self.translator.tokenizers.source, self.translator.tokenizers.target
        form, parts = source_form if source.side else str, range(len(line.parts))
        texts = [unicodedata.normalize("NFC", form(remove_noncharacters(line.part_text(part)))) for part in parts]
        glossary = self.translator.glossary or Glossary(())
        found = [glossary.find(text) for text in texts]
        terms = [tuple(dict.fromkeys(place.term.target for place in places)) for places in found]
        forms = [normalise(target, own) for own in terms]
        knows_hints = TERM_SYMBOLS[0] in source.reserved and not self.request.options.alignment
        hints = knows_hints and any(found)
        first = tuple(encode_forced(target, phrase, "phrase") for phrase in required)
        for part in parts:
            own = () if part else first
            if ids := (*own, *_within_limit(target.encode(terms[part]))):
                self.wanted[number, part] = _Wanted(
                    ids,
                    exact=tuple(map(target.decode, own if hints else ids)),
                    forms=forms[part] if hints else (),
                    hinted=_add_hints(source, texts[part], found[part], line.parts[part]) if hints else None,
                    required=bool(own),
                )
        every_form = tuple(chain.from_iterable(forms))
        self.exact[number] = (*normalise(target, required), *(() if hints else every_form))
        self.forms[number] = every_form if hints else ()

    def accepts(self, draft: Draft, part: int) -> bool:
        """Return whether all outputs of a part hold its phrases, or were forced to."""
        wanted, tokenizer = self.wanted.get((draft.number, part)), self.translator.tokenizers.target
        if wanted is None or draft.parts[part].earlier is not None:
            return True
        language = self.translator.config.data.target
        return all(wanted.is_in(tokenizer.decode(output.tokens), language) for output in draft.outputs[part])

    def change(self, draft: Draft, parts: Sequence[int]) -> Draft:
        """Give hints to parts that have none yet; force the phrases in the others."""
        changed = [*draft.parts]
        for number in parts:
            part, wanted = changed[number], self.wanted[draft.number, number]
            if wanted.hinted is None or part.source is wanted.hinted:
                free, constraints = draft.outputs[number], draft.constraints(number)
                forced = force_phrases(self.translator.tokenizers.target, free[0], constraints, wanted.ids)
                changed[number] = Part(part.source, forced, earlier=free, optional=wanted.hinted is not None)
            else:
                changed[number] = Part(wanted.hinted)
        return replace(draft, parts=tuple(changed))

    def found(self, draft: Draft) -> Draft:
        """Choose between the forced outputs and those before."""
        outputs = draft.outputs
        for number, part in enumerate(draft.parts):
            wanted = self.wanted.get((draft.number, number))
            if wanted is not None and part.earlier:
                outputs[number] = _choose_outputs(part.earlier, outputs[number], required=wanted.required)
        return draft.with_outputs(outputs) if self.wanted else draft

    def after(self, draft: Draft, translation: Translation) -> Translation:
        """Add the warnings."""
        if draft.number not in self.exact:
            return translation
        line, text = draft.line, translation.translation
        signs = {
            "missing-phrase": not all(_holds(line, phrase, text) for phrase in self.exact[draft.number])
            or not all(_holds_form(line, form, text) for form in self.forms[draft.number]),
            "forced-term": any(output.strained for output in draft.best),
        }
        return translation.with_warnings(signs)

    @classmethod
    def reserved_symbols(cls, config: Config) -> Sequence[str]:
        """Return the symbols of hints."""
        return TERM_SYMBOLS if config.data.terms else ()


def add_hint(text: str, start: int, end: int, translation: str) -> str:
    """Replace the characters from `start` to `end` of a text by a hint."""
    return f"{text[:start]} {NONCHARACTERS['<term>']}{translation}{NONCHARACTERS['</term>']} {text[end:]}"


def _add_hints(tokenizer: Tokenizer, text: str, places: Sequence[Place], ids: list[int]) -> list[int]:
    """Return the token ids of a text with hints; `ids`, those of the text, if the vocabulary cannot write them."""
    for place in reversed(places):
        text = add_hint(text, place.start, place.end, place.term.target)
    (hinted,) = tokenizer.encode_marked([text])
    return ids if UNK in hinted and UNK not in ids else hinted


def force_phrases(
    tokenizer: Tokenizer, free: Hypothesis, constraints: Constraints, required: tuple[Ids, ...]
) -> Constraints:
    """Return constraints with required phrases, and with as many sentences as the output `free` has."""
    words, tokens = word_tokens(tokenizer), np.array(free.tokens, dtype=np.int64)
    last = int(words.has_letters[tokens].nonzero()[0].max(initial=0))
    sentences = 1 + int(words.ends_sentence[tokens[:last]].sum())
    return replace(constraints, required=required, words=words, sentences=sentences)


def _choose_outputs(free: list[Hypothesis], forced: list[Hypothesis], *, required: bool) -> list[Hypothesis]:
    """Return the forced outputs, if they are not far less likely than the free ones.

    If they are, the outputs are `strained`: the forced ones where a phrase is required, the free ones for a
    glossary.
    """
    means = [best.log_probability / max(1, len(best.tokens) + best.ended) for best in (free[0], forced[0])]
    if means[1] >= means[0] - _MOST_STRAIN:
        return forced
    return [replace(output, strained=True) for output in (forced if required else free)]


def _holds(line: Line, phrase: str, text: str) -> bool:
    """Return whether a translation of a line holds a phrase, in capitals where the line is."""
    return holds_phrase(text, phrase) or (any(line.capitals) and holds_phrase(text, upper(phrase, line.target)))


def _holds_form(line: Line, phrase: str, text: str) -> bool:
    """Return whether a translation of a line holds a form of a phrase, in capitals where the line is."""
    return holds_form(text, phrase, line.target) or (
        any(line.capitals) and holds_form(text, upper(phrase, line.target), line.target)
    )


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
