"""Hints in a source: words replaced by their translation between reserved symbols (Dinu et al. 2019).

A model that is trained with hints copies, and inflects, the translations that a glossary puts into a source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from random import Random

from bitext.languages import lower, upper
from bitext.pairs import Pair
from manyheads.data.augment_text import NO_LANGUAGES, WORD, Texts
from manyheads.inference.translation.glossary import same_stem
from manyheads.inference.translation.terms import add_hint

_COUNTS = (1, 1, 2, 3)  # hints of a source, drawn with equal probability
_BASE_FORM = 0.5  # share of hints in the base form, if the target has another form
_JOINED = 0.5  # share of neighbouring words that are one hint
_STAND_IN = 0.4  # share of hints of single words in which hint and target get another word
_MADE_UP = 0.5  # share of these words that are made up from two others
_STEM = 3  # letters by which words that may have the same stem are found

Links = Mapping[str, Mapping[str, Texts]]
Span = tuple[int, int]


def link_words(pairs: Iterable[Pair], languages: Texts = NO_LANGUAGES) -> dict[str, dict[str, Texts]]:
    """Map each source word to its target words, and these to their usual spelling and their base form.

    Keys are in lower case. The pairs are ordered by falling count: of target words of the same stem, whose source
    words have the same stem too, the first is the base form.
    """
    related: defaultdict[tuple[str, str], list[Texts]] = defaultdict(list)
    links: defaultdict[str, dict[str, Texts]] = defaultdict(dict)
    for pair in pairs:
        source, target = lower(pair.source, languages[0]), lower(pair.target, languages[1])
        group = related[source[:_STEM], target[:_STEM]]
        forms = (
            form
            for other, form in group
            if same_stem(other, source) and same_stem(lower(form, languages[1]), target)
        )
        links[source][target] = pair.target, next(forms, pair.target)
        group.append((source, pair.target))
    return dict(links)


class TermHints:
    """Hints for pairs of sentences.

    Args:
        links: words with their translations, by `link_words`.
        languages: those of source and target.
    """

    def __init__(self, links: Links, languages: Texts = NO_LANGUAGES) -> None:
        self.links, self.languages = links, languages
        self.targets = list(dict.fromkeys(usual for found in links.values() for usual, _ in found.values()))

    def add(self, source: str, target: str, rng: Random) -> Texts:
        """Put one to three hints into a source; a pair without linked words that occur once stays as it is."""
        found = self._find(source, target, rng)
        chosen = sorted(rng.sample(found, min(len(found), rng.choice(_COUNTS))))
        replaced = []
        for (start, end), span, hint in reversed(chosen):
            if " " not in hint and rng.random() < _STAND_IN:
                hint = self._stand_in(rng)
                replaced.append((span, hint))
            source = add_hint(source, start, end, hint)
        for (start, end), word in sorted(replaced, reverse=True):
            written = upper(word[:1], self.languages[1]) + word[1:] if target[start].isupper() else word
            target = target[:start] + written + target[end:]
        return source, target

    def _find(self, source: str, target: str, rng: Random) -> list[tuple[Span, Span, str]]:
        """Return the places of linked words in a source and its target, and the hint for each."""
        targets = _words_that_occur_once(target, self.languages[1])
        found: list[tuple[Span, Span, str]] = []
        for word, place in _words_that_occur_once(source, self.languages[0]).items():
            forms = self.links.get(word, {})
            linked = [form for form in forms if form in targets]
            if len(linked) != 1:
                continue
            hint, other = forms[linked[0]][rng.random() < _BASE_FORM], targets.pop(linked[0])
            last = found[-1] if found and rng.random() < _JOINED else None
            if last and _follow(source, last[0], place) and _follow(target, last[1], other):
                found[-1] = (last[0][0], place[1]), (last[1][0], other[1]), f"{last[2]} {hint}"
            else:
                found.append((place, other, hint))
        return found

    def _stand_in(self, rng: Random) -> str:
        """Return any target word, or one that is made up from the halves of two."""
        first, second = rng.choice(self.targets), rng.choice(self.targets)
        return first[: -(-len(first) // 2)] + second[len(second) // 2 :] if rng.random() < _MADE_UP else first


def _words_that_occur_once(text: str, language: str) -> dict[str, Span]:
    """Return the words of a text in lower case, and their places."""
    places: defaultdict[str, list[Span]] = defaultdict(list)
    for match in WORD.finditer(text):
        places[lower(match[0], language)].append(match.span())
    return {word: spans[0] for word, spans in places.items() if len(spans) == 1}


def _follow(text: str, word: Span, following: Span) -> bool:
    """Return whether nothing but a blank stands between two words."""
    return text[word[1] : following[0]] == " "
