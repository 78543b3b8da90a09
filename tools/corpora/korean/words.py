"""Korean words and noun phrases; only the English has articles and plurals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tools.corpora import english
from tools.corpora.choice import Lexicon as BaseLexicon
from tools.corpora.choice import combine, expand, join, read_lexicon
from tools.corpora.english import EnglishVerb
from tools.corpora.korean.hangul import Predicate, native_numeral

__all__ = ["Adjective", "Lexicon", "Name", "Noun", "Phrase", "load_lexicon", "noun_phrase"]

DETERMINERS = {"이": ("this", "these"), "그": ("that", "those"), "제": ("my", "my"), "우리": ("our", "our")}
PRONOUNS = {
    "남동생": "he",
    "아들": "he",
    "아버지": "he",
    "할아버지": "he",
    "여동생": "she",
    "딸": "she",
    "어머니": "she",
    "할머니": "she",
}
HONORIFIC_KINDS = ("parent", "senior")
NO_VERB = EnglishVerb("", "", "", "")


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun with its counter, and the determiners and adjectives that it can have.

    Attributes:
        plural: the English plural; "" if English does not count the noun, "=" if it is always plural.
        counter: the Korean counter, "" if the noun is not counted.
        unit, units: the English unit that the noun is counted in (cup, cups), "" if the noun itself is counted.
        determiners: 이, 그, 제, 우리; "-" for none, 의 for the possessive of a name.
    """

    korean: str
    english: str
    plural: str
    counter: str
    unit: str
    units: str
    kind: str
    determiners: tuple[str, ...]
    adjectives: tuple[str, ...]

    @property
    def person(self) -> int:
        """The grammatical person: 2 singular or mass noun, 3 always plural."""
        return 3 if self.plural == "=" else 2


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective; `predicate` is None if it is only attributive."""

    english: str
    attributive: str
    predicate: Predicate | None
    comparative: str


@dataclass(frozen=True, slots=True)
class Name:
    """A given name, its English form, and the English pronoun for the person."""

    korean: str
    english: str
    pronoun: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase or pronoun without its particle.

    Attributes:
        text: the Korean text.
        measure: number and counter, which follow the particle (``세 개``).
        english: the definite English (the bag); indefinite: a bag; generic: bags.
        person: 0 I, 2 third singular, 3 plural.
        head: the noun or name, "" for pronouns.
        pronoun: the English pronoun he, she, I or we, or "" for none.
        honorific: whether it is a person who takes honorific verbs.
        combinations: the combinations of words in the phrase.
    """

    text: str
    english: str
    indefinite: str
    generic: str
    person: int
    head: str
    pronoun: str = ""
    honorific: bool = False
    measure: str = ""
    combinations: tuple[str, ...] = ()


class Lexicon(BaseLexicon[Noun, Adjective, Predicate, Name]):
    """The lexicon of the corpus ko-en."""


@cache
def load_lexicon() -> Lexicon:
    """Read the Korean lexicon of the package."""
    tables = read_lexicon("korean")
    kinds = {kind: tuple(row[0] for row in rows) for kind, rows in tables["nouns"].items()}
    adjectives, fitting = {}, dict[str, list[str]]()
    for word, (stem, infinitive, base, comparative, fitting_nouns) in tables["adjectives"].items():
        predicate = Predicate(stem, infinitive, base, NO_VERB, base)
        adjectives[word] = Adjective(word, predicate.attributive(), predicate, comparative)
        for noun in expand(fitting_nouns, kinds):
            fitting.setdefault(noun, []).append(word)
    for word, (attributive, fitting_nouns) in tables["attributes"].items():
        adjectives[word] = Adjective(word, attributive, None, "")
        for noun in expand(fitting_nouns, kinds):
            fitting.setdefault(noun, []).append(word)
    nouns = {}
    for kind, rows in tables["nouns"].items():
        determiners = tuple(tables["determiners"].get(kind, tables["determiners"]["thing"]).split())
        for korean, word, plural, counter, unit, units in rows:
            fitting_nouns = tuple(fitting.get(korean, ()))
            nouns[korean] = Noun(korean, word, plural, counter, unit, units, kind, determiners, fitting_nouns)
    verbs = {
        name: Predicate(stem, infinitive, base, EnglishVerb(*words.split("/")), honorific or base)
        for name, (stem, infinitive, base, words, honorific) in tables["verbs"].items()
    }
    names = {name: Name(name, word, pronoun) for name, (word, pronoun) in tables["names"].items()}
    return Lexicon(nouns, kinds, adjectives, verbs, names, tables)


def with_determiner(noun: Noun, determiner: str, words: str) -> tuple[str, str, str]:
    """Return the Korean determiner, and the definite and indefinite English phrase."""
    if determiner == "-":
        if not noun.plural and noun.kind in ("subject", "sport", "instrument", "music"):
            return "", words, words
        counted = noun.plural not in ("", "=")
        return "", f"the {words}", english.with_article(words) if counted else words
    if determiner in DETERMINERS:
        english_determiner = DETERMINERS[determiner][noun.plural == "="]
        if noun.kind == "parent" and determiner == "우리":
            english_determiner = "my"
        return determiner, f"{english_determiner} {words}", f"{english_determiner} {words}"
    possessive = f"{load_lexicon().names[determiner].english}'s {words}"
    return f"{determiner} 씨의", possessive, possessive


@cache
def noun_phrase(name: str, determiner: str, adjective: str, count: int = 0) -> Phrase:
    """Return a noun with determiner, adjective ("" for none) and number (0 for none), in both languages.

    Args:
        name: a noun of the lexicon.
        determiner: 이, 그, 제, 우리, "-" for none, or a given name for its possessive.
        adjective: the English name of an adjective, or "".
        count: number of things; if not 0, the determiner is "-".
    """
    lexicon = load_lexicon()
    noun = lexicon.nouns[name]
    attributive = lexicon.adjectives[adjective].attributive if adjective else ""
    before, definite, indefinite = with_determiner(noun, determiner, join(adjective, noun.english))
    english_plural = noun.english if noun.plural in ("", "=") else noun.plural
    generic, measure, person = join(adjective, english_plural), "", noun.person
    combinations = [combine(adjective, name)] if adjective else []
    if count:
        measure = f"{native_numeral(count)} {noun.counter}"
        if noun.unit:
            indefinite = f"{english.number(count)} {noun.unit if count == 1 else noun.units} of {generic}"
        else:
            indefinite = join(english.number(count), adjective, noun.english if count == 1 else noun.plural)
        definite, person = indefinite, 2 if count == 1 else 3
        combinations += [combine(str(count), name)] if count > 1 else []
    if determiner in lexicon.names:
        combinations.append(combine(determiner, "의", name))
        generic = indefinite
    pronoun = PRONOUNS.get(name, "")
    honorific = noun.kind in HONORIFIC_KINDS
    text = join(before, attributive, name)
    return Phrase(
        text, definite, indefinite, generic, person, name, pronoun, honorific, measure, tuple(combinations)
    )
