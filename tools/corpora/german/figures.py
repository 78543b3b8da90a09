"""German-English sentences with numbers: ages, prices, amounts, times of day, dates, years."""

from __future__ import annotations

from tools.corpora import english
from tools.corpora.choice import Half, Kinds, Rng, Sentence, Weighted, combine, finished, join
from tools.corpora.clause import NO_TIME
from tools.corpora.german.clauses import TIMES
from tools.corpora.german.common import AND, LINKS, be, linked, was
from tools.corpora.german.drawing import Drawing
from tools.corpora.german.phrases import NOBODY
from tools.corpora.german.words import Noun, Phrase, noun_phrase, number

__all__ = ["Figures"]

BECAME = ("wurde", "wurdest", "wurde", "wurden")
RANGES = Weighted({range(2, 13): 1, range(13, 100): 10, range(100, 1000, 100): 1})
PRICES = Weighted({range(13, 100): 10, range(100, 1000, 100): 1})
YEARS = range(1980, 2010)
EVENTS = (("beginnt", "begins"), ("endet", "ends"))
TRAINS = (("fährt", "ab", "leaves"), ("kommt", "an", "arrives"))


class Figures:
    """Sentences with kosten, es gibt, geboren werden and the like."""

    def __init__(self, words: Drawing) -> None:
        self.words = words
        said, resolve = words.lexicon.tables["said"], words.lexicon.resolve
        self.said = said
        self.groups = {name: resolve(said[name]) for name in ("priced", "aged", "built")}
        self.contents = [(place, word, resolve(things)) for place, word, things in said["contents"]]
        self.cities = words.places["in_cities"][:8]

    def kinds(self) -> Kinds:
        """The kinds of sentence made here."""
        return {
            self.age: 6,
            self.price: 8,
            self.amount: 6,
            self.event: 3,
            self.departure: 2,
            self.birth: 4,
            self.construction: 2,
        }

    def age(self, rng: Rng) -> Sentence:
        """Mein Bruder ist einundzwanzig Jahre alt, und Anna ist zwanzig Jahre alt."""
        if rng.chance(0.6):
            return finished(*self.one_age(rng))
        return finished(*linked(AND, self.one_age(rng), self.one_age(rng)))

    def one_age(self, rng: Rng) -> Half:
        """Somebody or something is so many years old."""
        value = rng.pick(rng.weigh(RANGES))
        if value > 99 or rng.chance(0.3):
            subject = self.words.known_phrase(rng, rng.pick(self.groups["aged"]), NOBODY, 0.1)
        else:
            subject = self.words.subject(rng, rng.pick(("kin", "name", "pronoun")), "012")
        texts = (
            f"{subject.nominative} {be(subject)[0]} {number(value)} Jahre alt",
            f"{subject.english} {be(subject)[1]} {english.number(value)} years old",
        )
        met = [combine(subject.head, f"{value} Jahre")] if subject.head else []
        return texts, [*met, *subject.combinations]

    def price(self, rng: Rng) -> Sentence:
        """Dieser Hut kostet einundzwanzig Euro, aber die Jacke kostet neunzig Euro."""
        if rng.chance(0.5):
            return finished(*self.one_price(rng))
        return finished(*linked(rng.pick(LINKS), self.one_price(rng), self.one_price(rng)))

    def one_price(self, rng: Rng) -> Half:
        """Something costs so many euros."""
        noun, value = rng.pick(self.groups["priced"]), rng.pick(rng.weigh(PRICES))
        thing = self.outward(rng, noun, rng.pick(("der", "dies")), bool(noun.plural) and rng.chance(0.25))
        german, said = ("kosten", "cost") if thing.person == 3 else ("kostet", "costs")
        texts = (
            f"{thing.nominative} {german} {number(value)} Euro",
            f"{thing.english} {said} {english.number(value)} euros",
        )
        return texts, [combine(noun.singular, f"{value} Euro"), *thing.combinations]

    def outward(self, rng: Rng, noun: Noun, determiner: str, many: bool) -> Phrase:
        """A noun, in some cases with an adjective of looks."""
        plain = [word for word in noun.adjectives if word in self.said["outward"]]
        adjective = rng.pick(plain) if plain and rng.chance(0.35) else ""
        return noun_phrase(noun.singular, determiner, adjective, many)

    def amount(self, rng: Rng) -> Sentence:
        """Im Garten gibt es einundzwanzig Bäume."""
        place, said, things = rng.pick(self.contents)
        noun, value = rng.pick(things), rng.pick(rng.weigh(RANGES))
        counted = self.outward(rng, noun, str(value), True)
        texts = (f"{place} gibt es {counted.accusative}", f"{said} there are {counted.english}")
        return finished(texts, counted.combinations)

    def event(self, rng: Rng) -> Sentence:
        """Das Konzert beginnt am Montag um halb vier."""
        (event, name), (german, said) = rng.pick(self.said["events"]), rng.pick(EVENTS)
        day, clock = rng.pick((NO_TIME, rng.pick(TIMES.on_day))), rng.pick(TIMES.clock)
        texts = (join(event, german, day.foreign, clock.foreign), join(name, said, day.english, clock.english))
        return finished(texts, [combine(event, clock.foreign)])

    def departure(self, rng: Rng) -> Sentence:
        """Der Zug nach Berlin fährt um halb vier ab."""
        (german, prefix, said), (inside, word) = rng.pick(TRAINS), rng.pick(self.cities)
        city, name, clock = inside.removeprefix("in "), word.removeprefix("in "), rng.pick(TIMES.clock)
        link, linked = ("nach", "to") if prefix == "ab" else ("aus", "from")
        texts = (
            f"der Zug {link} {city} {german} {clock.foreign} {prefix}",
            f"the train {linked} {name} {said} {clock.english}",
        )
        return finished(texts, [combine(city, clock.foreign)])

    def birth(self, rng: Rng) -> Sentence:
        """Anna wurde am dritten Mai 1987 in Berlin geboren."""
        subject = self.words.subject(rng, rng.pick(("name", "name", "kin", "pronoun")), "023")
        date, year, (city, said) = rng.pick(TIMES.dates), rng.pick(YEARS), rng.pick(self.cities)
        texts = (
            f"{subject.nominative} {BECAME[subject.person]} {date.foreign} {year} {city} geboren",
            f"{subject.english} {was(subject)[1]} born {said} {date.english} {year}",
        )
        return finished(texts, [date.combination, *subject.combinations])

    def construction(self, rng: Rng) -> Sentence:
        """Diese Brücke wurde 1987 gebaut."""
        noun, year = rng.pick(self.groups["built"]), rng.pick(YEARS)
        thing = self.words.known_phrase(rng, noun, NOBODY, 0.3)
        texts = (
            f"{thing.nominative} {BECAME[thing.person]} {year} gebaut",
            f"{thing.english} {was(thing)[1]} built in {year}",
        )
        met = [combine("bauen", noun.singular), combine(noun.singular, str(year))]
        return finished(texts, [*met, *thing.combinations])
