"""German-English sentences with numbers: ages, prices, amounts, times of day, dates, years."""

from __future__ import annotations

from tools.corpora import english
from tools.corpora.choice import (
    BilingualClause,
    Rng,
    Sentence,
    SentenceKinds,
    Weighted,
    combine,
    join,
    make_sentence,
)
from tools.corpora.clause import NO_TIME
from tools.corpora.german.clause_sampler import ClauseSampler
from tools.corpora.german.clauses import TIMES
from tools.corpora.german.common import AND, CONJUNCTIONS, be, coordinated, was
from tools.corpora.german.phrase_sampler import NO_OWNER
from tools.corpora.german.words import Noun, Phrase, noun_phrase, number

__all__ = ["Figures"]

BECAME = ("wurde", "wurdest", "wurde", "wurden")
RANGES = Weighted({range(2, 13): 1, range(13, 100): 10, range(100, 1000, 100): 1})
PRICES = Weighted({range(13, 100): 10, range(100, 1000, 100): 1})
YEARS = range(1980, 2010)
EVENTS = (("beginnt", "begins"), ("endet", "ends"))
TRAINS = (("fährt", "ab", "leaves"), ("kommt", "an", "arrives"))


class Figures:
    """Draw sentences with numbers (kosten, es gibt, geboren ...); the docstring of each kind is an example."""

    def __init__(self, sampler: ClauseSampler) -> None:
        self.sampler = sampler
        lists, resolve = sampler.lexicon.tables["lists"], sampler.lexicon.resolve
        self.lists = lists
        self.groups = {name: resolve(lists[name]) for name in ("priced", "aged", "built")}
        self.contents = [(place, word, resolve(things)) for place, word, things in lists["contents"]]
        self.cities = sampler.places["in_cities"][:8]

    def kinds(self) -> SentenceKinds:
        """Return the functions that draw a sentence, with their frequencies."""
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
            return make_sentence(*self.one_age(rng))
        return make_sentence(*coordinated(AND, self.one_age(rng), self.one_age(rng)))

    def one_age(self, rng: Rng) -> BilingualClause:
        """Draw a clause with an age."""
        value = rng.pick(rng.pick_weighted(RANGES))
        if value > 99 or rng.chance(0.3):
            subject = self.sampler.definite_phrase(rng, rng.pick(self.groups["aged"]), NO_OWNER, 0.1)
        else:
            subject = self.sampler.subject(rng, rng.pick(("kin", "name", "pronoun")), "012")
        texts = (
            f"{subject.nominative} {be(subject)[0]} {number(value)} Jahre alt",
            f"{subject.english} {be(subject)[1]} {english.number(value)} years old",
        )
        combinations = [combine(subject.head, f"{value} Jahre")] if subject.head else []
        return texts, [*combinations, *subject.combinations]

    def price(self, rng: Rng) -> Sentence:
        """Dieser Hut kostet einundzwanzig Euro, aber die Jacke kostet neunzig Euro."""
        if rng.chance(0.5):
            return make_sentence(*self.one_price(rng))
        return make_sentence(*coordinated(rng.pick(CONJUNCTIONS), self.one_price(rng), self.one_price(rng)))

    def one_price(self, rng: Rng) -> BilingualClause:
        """Draw a clause with a price."""
        noun, value = rng.pick(self.groups["priced"]), rng.pick(rng.pick_weighted(PRICES))
        thing = self.appearance_phrase(rng, noun, rng.pick(("der", "dies")), bool(noun.plural) and rng.chance(0.25))
        german, translation = ("kosten", "cost") if thing.person == 3 else ("kostet", "costs")
        texts = (
            f"{thing.nominative} {german} {number(value)} Euro",
            f"{thing.english} {translation} {english.number(value)} euros",
        )
        return texts, [combine(noun.singular, f"{value} Euro"), *thing.combinations]

    def appearance_phrase(self, rng: Rng, noun: Noun, determiner: str, plural: bool) -> Phrase:
        """Draw a noun, in some cases with an adjective of appearance."""
        fitting = [word for word in noun.adjectives if word in self.lists["appearance"]]
        adjective = rng.pick(fitting) if fitting and rng.chance(0.35) else ""
        return noun_phrase(noun.singular, determiner, adjective, plural)

    def amount(self, rng: Rng) -> Sentence:
        """Im Garten gibt es einundzwanzig Bäume."""
        place, translation, things = rng.pick(self.contents)
        noun, value = rng.pick(things), rng.pick(rng.pick_weighted(RANGES))
        counted = self.appearance_phrase(rng, noun, str(value), True)
        texts = (f"{place} gibt es {counted.accusative}", f"{translation} there are {counted.english}")
        return make_sentence(texts, counted.combinations)

    def event(self, rng: Rng) -> Sentence:
        """Das Konzert beginnt am Montag um halb vier."""
        (event, name), (german, translation) = rng.pick(self.lists["events"]), rng.pick(EVENTS)
        day, clock = rng.pick((NO_TIME, rng.pick(TIMES.on_day))), rng.pick(TIMES.clock)
        texts = (
            join(event, german, day.foreign, clock.foreign),
            join(name, translation, day.english, clock.english),
        )
        return make_sentence(texts, [combine(event, clock.foreign)])

    def departure(self, rng: Rng) -> Sentence:
        """Der Zug nach Berlin fährt um halb vier ab."""
        (german, prefix, translation), (german_place, english_place) = rng.pick(TRAINS), rng.pick(self.cities)
        city, name, clock = (
            german_place.removeprefix("in "),
            english_place.removeprefix("in "),
            rng.pick(TIMES.clock),
        )
        german_link, english_link = ("nach", "to") if prefix == "ab" else ("aus", "from")
        texts = (
            f"der Zug {german_link} {city} {german} {clock.foreign} {prefix}",
            f"the train {english_link} {name} {translation} {clock.english}",
        )
        return make_sentence(texts, [combine(city, clock.foreign)])

    def birth(self, rng: Rng) -> Sentence:
        """Anna wurde am dritten Mai 1987 in Berlin geboren."""
        subject = self.sampler.subject(rng, rng.pick(("name", "name", "kin", "pronoun")), "023")
        date, year, (city, translation) = rng.pick(TIMES.dates), rng.pick(YEARS), rng.pick(self.cities)
        texts = (
            f"{subject.nominative} {BECAME[subject.person]} {date.foreign} {year} {city} geboren",
            f"{subject.english} {was(subject)[1]} born {translation} {date.english} {year}",
        )
        return make_sentence(texts, [date.combination, *subject.combinations])

    def construction(self, rng: Rng) -> Sentence:
        """Diese Brücke wurde 1987 gebaut."""
        noun, year = rng.pick(self.groups["built"]), rng.pick(YEARS)
        thing = self.sampler.definite_phrase(rng, noun, NO_OWNER, 0.3)
        texts = (
            f"{thing.nominative} {BECAME[thing.person]} {year} gebaut",
            f"{thing.english} {was(thing)[1]} built in {year}",
        )
        combinations = [combine("bauen", noun.singular), combine(noun.singular, str(year))]
        return make_sentence(texts, [*combinations, *thing.combinations])
