"""German words, and noun phrases in gender, case and number with the endings of articles and adjectives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from tools.corpora import english
from tools.corpora.choice import Lexicon as BaseLexicon
from tools.corpora.choice import combine, expand, join, read_lexicon

__all__ = ["Adjective", "Lexicon", "Noun", "Phrase", "Verb", "load_lexicon", "noun_phrase", "number", "ordinal"]

# endings by case, then by masculine, feminine, neuter, plural
ARTICLE = {
    "nominative": ("der", "die", "das", "die"),
    "accusative": ("den", "die", "das", "die"),
    "dative": ("dem", "der", "dem", "den"),
    "genitive": ("des", "der", "des", "der"),
}
STRONG = {
    "nominative": ("er", "e", "es", "e"),
    "accusative": ("en", "e", "es", "e"),
    "dative": ("em", "er", "em", "en"),
    "genitive": ("es", "er", "es", "er"),
}
AFTER_DER = {
    "nominative": ("e", "e", "e", "en"),
    "accusative": ("en", "e", "e", "en"),
    "dative": ("en", "en", "en", "en"),
}
AFTER_EIN = {
    "nominative": ("er", "e", "es", "en"),
    "accusative": ("en", "e", "es", "en"),
    "dative": ("en", "en", "en", "en"),
}
CASES = ("nominative", "accusative", "dative")
BARE = {
    "nominative",
    "accusative",
}  # cases in which ein, mein ... can have no ending, before masculine and neuter nouns
GENDERS = {"m": 0, "w": 0, "f": 1, "n": 2}
PLURAL = 3
ENGLISH_DETERMINERS = {
    "der": ("the", "the"),
    "ein": ("a", ""),
    "kein": ("a", ""),
    "dies": ("this", "these"),
    "-": ("", ""),
    "mein": ("my", "my"),
    "dein": ("your", "your"),
    "unser": ("our", "our"),
    "sein": ("his", "his"),
    "ihr": ("her", "her"),
}
ONES = ("", "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf")
TEENS = {16: "sechzehn", 17: "siebzehn"}
TENS = ("", "zehn", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")
ORDINAL_STEMS = {1: "erst", 3: "dritt", 7: "siebt", 8: "acht"}


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective: its predicative form, its stem before endings and its comparative, with the English forms."""

    predicative: str
    stem: str
    english: str
    comparative: str
    english_comparative: str


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun with the determiners and adjectives that it can have ("-" is no determiner)."""

    singular: str
    gender: str
    plural: str
    english: str
    english_plural: str
    kind: str
    determiners: tuple[str, ...]
    plural_determiners: tuple[str, ...]
    adjectives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verb:
    """The forms of a verb; `first` and `third` (ich, er) are without the separable prefix."""

    infinitive: str
    first: str
    third: str
    participle: str
    prefix: str
    auxiliary: str
    english: english.EnglishVerb


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase or pronoun in three cases and in English.

    Attributes:
        person: 0 ich, 1 du, 2 third singular, 3 plural.
        gender: m, f or n of the person or thing.
        head: the noun or name, "" for pronouns.
        combinations: the combinations of words in the phrase: adjective and noun, number and noun.
        definite: whether a clause with it is negated by nicht (else by kein).
    """

    nominative: str
    accusative: str
    dative: str
    english: str
    person: int
    gender: str
    head: str
    combinations: tuple[str, ...] = ()
    definite: bool = True


class Lexicon(BaseLexicon[Noun, Adjective, Verb, Phrase]):
    """The lexicon of the corpus de-en."""

    def genitive(self, noun: Noun) -> str:
        """Return a noun in the genitive singular."""
        if noun.gender == "f":
            return noun.singular
        return noun.plural if noun.gender == "w" else str(self.tables["genitives"][noun.singular])


@lru_cache(maxsize=1)
def load_lexicon() -> Lexicon:
    """Read the German lexicon of the package."""
    tables = read_lexicon("german")
    kinds = {kind: tuple(row[0] for row in rows) for kind, rows in tables["nouns"].items()}
    adjectives, fitting = {}, dict[str, list[str]]()
    for predicative, stem, word, comparative, english_comparative, fits in tables["adjectives"]["list"]:
        adjectives[predicative] = Adjective(predicative, stem, word, comparative, english_comparative)
        for noun in expand(fits, kinds):
            fitting.setdefault(noun, []).append(predicative)
    nouns = {}
    for kind, rows in tables["nouns"].items():
        determiners, plural_determiners = tables["determiners"].get(kind, tables["determiners"]["thing"])
        for singular, gender, plural_form, word, english_plural in rows:
            sets = (tuple(determiners.split()), tuple(plural_determiners.split()) if plural_form else ())
            nouns[singular] = Noun(
                singular, gender, plural_form, word, english_plural, kind, *sets, tuple(fitting.get(singular, ()))
            )
    verbs = {}
    for infinitive, (first, third, participle, prefix, auxiliary, english_plural) in tables["verbs"].items():
        english_verb = english.EnglishVerb(*english_plural.split("/"))
        verbs[infinitive] = Verb(infinitive, first, third, participle, prefix, auxiliary, english_verb)
    names = {name: Phrase(name, name, name, name, 2, gender, name) for name, gender in tables["names"].items()}
    return Lexicon(nouns, kinds, adjectives, verbs, names, tables)


def inflect_determiner(determiner: str, case: str, column: int) -> str:
    """Return a determiner in its case, or a number in words."""
    if determiner == "-" or determiner.isdigit():
        return "" if determiner == "-" else number(int(determiner))
    if determiner == "der":
        return ARTICLE[case][column]
    if determiner != "dies" and case in BARE and (column == 2 or (column == 0 and case == "nominative")):
        return determiner
    return determiner + STRONG[case][column]


def inflect_noun(noun: Noun, case: str, column: int) -> str:
    """Return a noun in its case and number."""
    if column != PLURAL:
        return noun.plural if noun.gender == "w" and case != "nominative" else noun.singular
    return noun.plural if case != "dative" or noun.plural[-1] in "ns" else f"{noun.plural}n"


@cache
def noun_phrase(name: str, determiner: str, adjective: str, plural: bool) -> Phrase:
    """Return a noun with its determiner and adjective ("" for none) in every case, and in English.

    Args:
        name: a noun of the lexicon.
        determiner: der, ein, kein, dies, a possessive, "-" for none, or a number in digits.
        adjective: an adjective of the lexicon, or "".
        plural: plural instead of singular.
    """
    lexicon = load_lexicon()
    noun = lexicon.nouns[name]
    column = PLURAL if plural else GENDERS[noun.gender]
    if determiner in ("der", "dies"):
        endings = AFTER_DER
    else:
        endings = STRONG if determiner == "-" or determiner.isdigit() else AFTER_EIN
    stem = lexicon.adjectives[adjective].stem if adjective else ""
    nominative, accusative, dative = (
        join(
            inflect_determiner(determiner, case, column),
            stem and stem + endings[case][column],
            inflect_noun(noun, case, column),
        )
        for case in CASES
    )
    words = join(
        lexicon.adjectives[adjective].english if adjective else "", noun.english_plural if plural else noun.english
    )
    if determiner.isdigit():
        english_text = join(english.number(int(determiner)), words)
    else:
        article = ENGLISH_DETERMINERS[determiner][plural]
        mass = not noun.english_plural and noun.kind in ("food", "drink")
        english_text = (words if mass else english.with_article(words)) if article == "a" else join(article, words)
    gender = "n" if noun.gender == "n" else "f" if noun.gender == "f" else "m"
    definite = determiner not in ("ein", "kein", "-") and not determiner.isdigit()
    combinations = [combine(word, name) for word in (adjective, determiner if determiner.isdigit() else "") if word]
    return Phrase(
        nominative,
        accusative,
        dative,
        english_text,
        3 if plural else 2,
        gender,
        name,
        tuple(combinations),
        definite,
    )


def number(value: int) -> str:
    """Spell out a number from 2 to 999: 21 -> einundzwanzig, 300 -> dreihundert."""
    if value < 13:
        return ONES[value]
    if value < 20:
        return TEENS.get(value, f"{ONES[value - 10]}zehn")
    if value < 100:
        tens, ones = divmod(value, 10)
        return f"{ONES[ones]}und{TENS[tens]}" if ones else TENS[tens]
    hundreds, rest = divmod(value, 100)
    return f"{'' if hundreds == 1 else ONES[hundreds]}hundert{number(rest) if rest else ''}"


def ordinal(value: int) -> str:
    """Return an ordinal number as after am: 3 -> dritten, 21 -> einundzwanzigsten."""
    stem = ORDINAL_STEMS.get(value) or (number(value) + ("t" if value < 20 else "st"))
    return f"{stem}en"
