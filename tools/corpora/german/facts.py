"""German-English sentences about what is how, what it is, whose it is, and where."""

from __future__ import annotations

from tools.corpora.choice import Half, Kinds, Rng, Sentence, Texts, Weighted, combine, finished, join
from tools.corpora.clause import NO_TIME, Time
from tools.corpora.german.clauses import TIMES
from tools.corpora.german.common import LINKS, be, linked, was
from tools.corpora.german.drawing import Drawing
from tools.corpora.german.phrases import NOBODY
from tools.corpora.german.words import Noun, Phrase, noun_phrase

__all__ = ["Facts"]

HAVE = (("habe", "hast", "hat", "haben"), ("have", "have", "has", "have"))
EXCESSIVE = Weighted({("", ""): 5, ("sehr", "very"): 4, ("nicht", "not"): 2, ("zu", "too"): 2})
DEGREES = Weighted({("", ""): 5, ("sehr", "very"): 4, ("nicht", "not"): 2})
DENIALS = Weighted({("", ""): 5, ("nicht", "not"): 2})
COMPARISONS = Weighted({("{more} als", "{more} than"): 4, ("so {much} wie", "as {much} as"): 1})
NAMED = ("ein", "mein", "dein", "unser", "-")
TODAY = Time("heute", "today")
THIS, THESE = ("das ist", "that is"), ("das sind", "those are")
OWNERS = (("mein", "my"), ("dein", "your"), ("unser", "our"))


class Facts:
    """Sentences with sein, haben, stehen and the like."""

    def __init__(self, words: Drawing) -> None:
        self.words, lexicon = words, words.lexicon
        said, resolve = lexicon.tables["said"], lexicon.resolve
        self.said = said
        self.owned = resolve(said["owned"])
        self.having = [resolve(group) for group in said["having"]]
        self.positions = [(row, resolve(things)) for *row, things in said["positions"]]
        self.describable = [noun for noun in lexicon.nouns.values() if noun.adjectives]
        self.gradable = {word for word, adjective in lexicon.adjectives.items() if adjective.comparative}
        self.gradable |= set(said["gradable"])
        self.alike = {
            noun.kind: [other for other in self.describable if other.kind == noun.kind] for noun in self.describable
        }
        self.comparable: dict[str, list[Noun]] = {
            word: [
                noun for noun in self.describable if word in noun.adjectives and noun.kind not in ("drink", "food")
            ]
            for word, adjective in lexicon.adjectives.items()
            if adjective.comparative
        }

    def kinds(self) -> Kinds:
        """The kinds of sentence made here."""
        return {
            self.quality: 5,
            self.state: 3,
            self.naming: 7,
            self.owned_quality: 4,
            self.comparison: 5,
            self.position: 4,
            self.possession: 3,
        }

    def known_owner(self, rng: Rng) -> tuple[str, str, str]:
        """An owner in the genitive, in English, and as a word: (meines Bruders, my brother's, Bruder)."""
        if rng.chance(0.35):
            name = rng.pick(self.words.names).nominative
            return f"{name}s", f"{name}'s", name
        noun, (word, said) = rng.pick(self.words.people["kin"]), rng.pick(OWNERS)
        ending = "er" if noun.gender == "f" else "es"
        return f"{word}{ending} {self.words.lexicon.genitive(noun)}", f"{said} {noun.english}'s", noun.singular

    def copula(self, rng: Rng, subject: Phrase, adjective: str, past: bool, time: Time) -> Texts:
        """Somebody or something is or was like this."""
        degrees = EXCESSIVE if adjective in self.said["excessive"] else DEGREES
        degree, very = rng.weigh(degrees if adjective in self.gradable else DENIALS)
        german, said = was(subject) if past else be(subject)
        word = self.words.lexicon.adjectives[adjective].english
        return (
            join(subject.nominative, german, time.foreign, degree, adjective),
            join(subject.english, said, very, word, time.english),
        )

    def state(self, rng: Rng) -> Sentence:
        """Anna war gestern sehr müde."""
        subject, adjective, past = (
            self.words.subject(rng, "human"),
            rng.pick(self.said["states"]),
            rng.chance(0.5),
        )
        texts = self.copula(rng, subject, adjective, past, rng.pick(TIMES.past[:4]) if past else TODAY)
        met = [combine(adjective, subject.head)] if subject.head else []
        return finished(texts, [*met, *subject.combinations])

    def quality(self, rng: Rng) -> Sentence:
        """Dieser Apfel ist sehr süß, aber die Birne ist nicht süß."""
        noun, past = rng.pick(self.describable), rng.chance(0.35)
        first = self.one_quality(rng, noun, past)
        other = rng.pick(self.alike[noun.kind])
        if other is noun or rng.chance(0.3):
            return finished(*first)
        return finished(*linked(rng.pick(LINKS), first, self.one_quality(rng, other, past)))

    def one_quality(self, rng: Rng, noun: Noun, past: bool) -> Half:
        """Something is or was like this."""
        adjective = rng.pick(noun.adjectives)
        subject = self.words.known_phrase(rng, noun, NOBODY, 0.0, 0.2)
        return self.copula(rng, subject, adjective, past, NO_TIME), [combine(adjective, noun.singular)]

    def naming(self, rng: Rng) -> Sentence:
        """Das ist mein neues Auto. Das ist keine Katze, sondern ein kleiner Hund."""
        noun = rng.pick(self.describable)
        many = "-" in noun.plural_determiners and rng.chance(0.25)
        german, said = THESE if many else THIS
        first = self.named(rng, noun, many)
        if not rng.chance(0.4):
            texts = (join(german, first.nominative), join(said, first.english))
            return finished(texts, first.combinations)
        other = rng.pick(self.alike[noun.kind])
        if other is noun or many > ("-" in other.plural_determiners):
            return self.naming(rng)
        denied = self.words.described(
            rng, other, "kein" if {"ein", "-"} & set(other.determiners) else "mein", many, 0.5
        )
        no = "nicht" if denied.definite else ""
        texts = (
            f"{join(german, no, denied.nominative)}, sondern {first.nominative}",
            f"{said} not {denied.english} but {first.english}",
        )
        return finished(texts, [*first.combinations, *denied.combinations])

    def named(self, rng: Rng, noun: Noun, many: bool) -> Phrase:
        """What something is: ein, mein ... with an adjective most times."""
        options = noun.plural_determiners if many else noun.determiners
        return self.words.described(rng, noun, rng.pick([word for word in options if word in NAMED]), many, 0.9)

    def owned_quality(self, rng: Rng) -> Sentence:
        """Das Auto meines Bruders ist rot. Annas Auto ist rot."""
        noun = rng.pick(self.owned)
        german, said, owner = self.known_owner(rng)
        thing = noun_phrase(noun.singular, "der", "", False)
        place = f"{german} {noun.singular}" if " " not in german else f"{thing.nominative} {german}"
        subject = Phrase(place, "", "", f"{said} {noun.english}", 2, thing.gender, noun.singular)
        adjective = rng.pick(noun.adjectives)
        met = [combine(adjective, noun.singular), combine(owner, noun.singular)]
        return finished(self.copula(rng, subject, adjective, rng.chance(0.35), NO_TIME), met)

    def comparison(self, rng: Rng) -> Sentence:
        """Der Hund ist größer als die Katze."""
        adjective = rng.pick(tuple(self.comparable))
        word = self.words.lexicon.adjectives[adjective]
        if adjective in self.said["traits"] and rng.chance(0.6):
            one, other = rng.pick(self.words.names), self.words.subject(rng, "kin")
            if rng.chance(0.5):
                one, other = other, one
        else:
            first = rng.pick(self.comparable[adjective])
            second = rng.pick([noun for noun in self.comparable[adjective] if noun.kind == first.kind])
            if first is second:
                return self.comparison(rng)
            one, other = (self.words.known_phrase(rng, noun, NOBODY, 0.0) for noun in (first, second))
        german, said = rng.weigh(COMPARISONS)
        german = german.format(more=word.comparative, much=adjective)
        said = said.format(more=word.english_comparative, much=word.english)
        texts = (
            f"{one.nominative} {be(one)[0]} {german} {other.nominative}",
            f"{one.english} {be(one)[1]} {said} {other.english}",
        )
        met = [combine(adjective, one.head), combine(one.head, "als", other.head)]
        return finished(texts, [*met, *one.combinations, *other.combinations])

    def position(self, rng: Rng) -> Sentence:
        """Der Schlüssel liegt unter dem Stuhl."""
        (verb, third, many, doing), things = rng.pick(self.positions)
        noun = rng.pick(things)
        thing = (
            self.words.known_phrase(rng, noun, NOBODY)
            if rng.chance(0.6)
            else self.words.any_phrase(rng, noun, NOBODY)
        )
        german, word, place = self.words.location(rng, "outdoors" if verb == "sitzen" else "indoors")
        if place.head == noun.singular:
            return self.position(rng)
        texts = (
            f"{thing.nominative} {third if thing.person == 2 else many} {german} {place.dative}",
            f"{thing.english} {be(thing)[1]} {doing} {word} {place.english}",
        )
        met = [combine(noun.singular, german), combine(noun.singular, place.head)]
        return finished(texts, [*met, *thing.combinations, *place.combinations])

    def possession(self, rng: Rng) -> Sentence:
        """Mein Bruder hat einen Hund und drei Katzen."""
        subject = self.words.subject(rng, "human")
        group = rng.pick(self.having)
        nouns = (rng.pick(group), rng.pick(group))
        if nouns[0] is nouns[1]:
            return self.possession(rng)
        things = [
            self.words.described(rng, noun, "ein", False, 0.4)
            if rng.chance(0.6)
            else self.words.described(rng, noun, rng.pick(("2", "3", "4", "5")), True, 0.4)
            for noun in nouns
        ]
        texts = (
            f"{subject.nominative} {HAVE[0][subject.person]} {things[0].accusative} und {things[1].accusative}",
            f"{subject.english} {HAVE[1][subject.person]} {things[0].english} and {things[1].english}",
        )
        met = [*subject.combinations, *things[0].combinations, *things[1].combinations]
        return finished(texts, [*met, combine("haben", *(noun.singular for noun in nouns))])
