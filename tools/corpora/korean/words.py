"""Korean words and noun phrases; articles and plurals are there only in English."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tools.corpora import english
from tools.corpora.choice import Lexicon as BaseLexicon
from tools.corpora.choice import combine, expanded, join, read_lexicon
from tools.corpora.english import EnglishVerb
from tools.corpora.korean.hangul import Predicate, native

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
LOOKED_UP_TO = ("parent", "senior")
NO_VERB = EnglishVerb("", "", "", "")


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun with its counter, and the determiners and adjectives that go with it.

    Attributes:
        plural: the English plural; "" when English does not count it, "=" when it is always plural.
        counter: the Korean counter, "" when it is not counted.
        unit, units: what English counts it in (cup, cups), "" when it counts the noun itself.
        determiners: 이, 그, 제, 우리; "-" is none, 의 a person's.
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
        """2 singular or mass, 3 always plural."""
        return 3 if self.plural == "=" else 2


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective; `predicate` is None when it stands only before nouns."""

    english: str
    attributive: str
    predicate: Predicate | None
    comparative: str


@dataclass(frozen=True, slots=True)
class Name:
    """A person: the given name, in English, and what the person is called then."""

    korean: str
    english: str
    pronoun: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase or pronoun without its particle.

    Attributes:
        text: the Korean; measure: how many, which follows the particle (``세 개``).
        english: as something known (the bag); indefinite: as something new (a bag); generic: bags.
        person: 0 I, 2 third singular, 3 plural.
        head: the noun or name, "" for pronouns.
        pronoun: he, she, I or we, or "" when none is used.
        honorific: whether it is somebody to look up to.
        combinations: the lexical choices that meet inside it.
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
    """The Korean words."""


@cache
def load_lexicon() -> Lexicon:
    """Read the Korean lexicon of the package."""
    tables = read_lexicon("korean")
    kinds = {kind: tuple(row[0] for row in rows) for kind, rows in tables["nouns"].items()}
    adjectives, fitting = {}, dict[str, list[str]]()
    for word, (stem, infinitive, base, comparative, fits) in tables["adjectives"].items():
        predicate = Predicate(stem, infinitive, base, NO_VERB, base)
        adjectives[word] = Adjective(word, predicate.attributive(), predicate, comparative)
        for noun in expanded(fits, kinds):
            fitting.setdefault(noun, []).append(word)
    for word, (attributive, fits) in tables["attributes"].items():
        adjectives[word] = Adjective(word, attributive, None, "")
        for noun in expanded(fits, kinds):
            fitting.setdefault(noun, []).append(word)
    nouns = {}
    for kind, rows in tables["nouns"].items():
        determiners = tuple(tables["determiners"].get(kind, tables["determiners"]["thing"]).split())
        for korean, word, plural, counter, unit, units in rows:
            fits = tuple(fitting.get(korean, ()))
            nouns[korean] = Noun(korean, word, plural, counter, unit, units, kind, determiners, fits)
    verbs = {
        name: Predicate(stem, infinitive, base, EnglishVerb(*words.split("/")), honorific or base)
        for name, (stem, infinitive, base, words, honorific) in tables["verbs"].items()
    }
    names = {name: Name(name, word, pronoun) for name, (word, pronoun) in tables["names"].items()}
    return Lexicon(nouns, kinds, adjectives, verbs, names, tables)


def determined(noun: Noun, determiner: str, words: str) -> tuple[str, str, str]:
    """What stands before a noun: in Korean, and the English phrase as something known and as something new."""
    if determiner == "-":
        if not noun.plural and noun.kind in ("subject", "sport", "instrument", "music"):
            return "", words, words
        counted = noun.plural not in ("", "=")
        return "", f"the {words}", english.with_article(words) if counted else words
    if determiner in DETERMINERS:
        said = DETERMINERS[determiner][noun.plural == "="]
        if noun.kind == "parent" and determiner == "우리":
            said = "my"
        return determiner, f"{said} {words}", f"{said} {words}"
    said = f"{load_lexicon().names[determiner].english}'s {words}"
    return f"{determiner} 씨의", said, said


@cache
def noun_phrase(name: str, determiner: str, adjective: str, count: int = 0) -> Phrase:
    """Say a noun with its determiner and adjective ("" for none), and its number (0 for none), in both languages.

    Args:
        name: a noun of the lexicon.
        determiner: 이, 그, 제, 우리, "-" for none, or a given name for a person's.
        adjective: the English name of an adjective, or "".
        count: how many; the determiner is "-" then.
    """
    lexicon = load_lexicon()
    noun = lexicon.nouns[name]
    attributive = lexicon.adjectives[adjective].attributive if adjective else ""
    before, known, new = determined(noun, determiner, join(adjective, noun.english))
    many = noun.english if noun.plural in ("", "=") else noun.plural
    generic, measure, person = join(adjective, many), "", noun.person
    met = [combine(adjective, name)] if adjective else []
    if count:
        measure = f"{native(count)} {noun.counter}"
        if noun.unit:
            new = f"{english.number(count)} {noun.unit if count == 1 else noun.units} of {generic}"
        else:
            new = join(english.number(count), adjective, noun.english if count == 1 else noun.plural)
        known, person = new, 2 if count == 1 else 3
        met += [combine(str(count), name)] if count > 1 else []
    if determiner in lexicon.names:
        met.append(combine(determiner, "의", name))
        generic = new
    pronoun = PRONOUNS.get(name, "")
    honorific = noun.kind in LOOKED_UP_TO
    text = join(before, attributive, name)
    return Phrase(text, known, new, generic, person, name, pronoun, honorific, measure, tuple(met))
