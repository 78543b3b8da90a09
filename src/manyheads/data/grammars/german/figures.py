"""German-English sentences with numbers: ages, prices, amounts, times of day, dates, years."""

from __future__ import annotations

from manyheads.data.grammars import english
from manyheads.data.grammars.choice import Dice, Sentence, Weighted, combine, join
from manyheads.data.grammars.clause import NO_TIME
from manyheads.data.grammars.german.clauses import CLOCK, DATES, ON_DAY
from manyheads.data.grammars.german.common import AND, LINKS, Half, Kinds, be, finished, linked, was
from manyheads.data.grammars.german.drawing import Drawing
from manyheads.data.grammars.german.phrases import NOBODY
from manyheads.data.grammars.german.words import Noun, Phrase, noun_phrase, number

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

    def age(self, dice: Dice) -> Sentence:
        """Mein Bruder ist einundzwanzig Jahre alt, und Anna ist zwanzig Jahre alt."""
        if dice.chance(0.6):
            return finished(*self.one_age(dice))
        return finished(*linked(AND, self.one_age(dice), self.one_age(dice)))

    def one_age(self, dice: Dice) -> Half:
        """Somebody or something is so many years old."""
        value = dice.pick(dice.weigh(RANGES))
        if value > 99 or dice.chance(0.3):
            subject = self.words.known_phrase(dice, dice.pick(self.groups["aged"]), NOBODY, 0.1)
        else:
            subject = self.words.subject(dice, dice.pick(("kin", "name", "pronoun")), "012")
        texts = (
            f"{subject.nominative} {be(subject)[0]} {number(value)} Jahre alt",
            f"{subject.english} {be(subject)[1]} {english.number(value)} years old",
        )
        met = [combine(subject.head, f"{value} Jahre")] if subject.head else []
        return texts, [*met, *subject.combinations]

    def price(self, dice: Dice) -> Sentence:
        """Dieser Hut kostet einundzwanzig Euro, aber die Jacke kostet neunzig Euro."""
        if dice.chance(0.5):
            return finished(*self.one_price(dice))
        return finished(*linked(dice.pick(LINKS), self.one_price(dice), self.one_price(dice)))

    def one_price(self, dice: Dice) -> Half:
        """Something costs so many euros."""
        noun, value = dice.pick(self.groups["priced"]), dice.pick(dice.weigh(PRICES))
        thing = self.outward(dice, noun, dice.pick(("der", "dies")), bool(noun.plural) and dice.chance(0.25))
        german, said = ("kosten", "cost") if thing.person == 3 else ("kostet", "costs")
        texts = (
            f"{thing.nominative} {german} {number(value)} Euro",
            f"{thing.english} {said} {english.number(value)} euros",
        )
        return texts, [combine(noun.singular, f"{value} Euro"), *thing.combinations]

    def outward(self, dice: Dice, noun: Noun, determiner: str, many: bool) -> Phrase:
        """A noun, in some cases with an adjective of looks."""
        plain = [word for word in noun.adjectives if word in self.said["outward"]]
        adjective = dice.pick(plain) if plain and dice.chance(0.35) else ""
        return noun_phrase(noun.singular, determiner, adjective, many)

    def amount(self, dice: Dice) -> Sentence:
        """Im Garten gibt es einundzwanzig Bäume."""
        place, said, things = dice.pick(self.contents)
        noun, value = dice.pick(things), dice.pick(dice.weigh(RANGES))
        counted = self.outward(dice, noun, str(value), True)
        texts = (f"{place} gibt es {counted.accusative}", f"{said} there are {counted.english}")
        return finished(texts, counted.combinations)

    def event(self, dice: Dice) -> Sentence:
        """Das Konzert beginnt am Montag um halb vier."""
        (event, name), (german, said) = dice.pick(self.said["events"]), dice.pick(EVENTS)
        day, clock = dice.pick((NO_TIME, dice.pick(ON_DAY))), dice.pick(CLOCK)
        texts = (join(event, german, day.foreign, clock.foreign), join(name, said, day.english, clock.english))
        return finished(texts, [combine(event, clock.foreign)])

    def departure(self, dice: Dice) -> Sentence:
        """Der Zug nach Berlin fährt um halb vier ab."""
        (german, prefix, said), (inside, word) = dice.pick(TRAINS), dice.pick(self.cities)
        city, name, clock = inside.removeprefix("in "), word.removeprefix("in "), dice.pick(CLOCK)
        link, linked = ("nach", "to") if prefix == "ab" else ("aus", "from")
        texts = (
            f"der Zug {link} {city} {german} {clock.foreign} {prefix}",
            f"the train {linked} {name} {said} {clock.english}",
        )
        return finished(texts, [combine(city, clock.foreign)])

    def birth(self, dice: Dice) -> Sentence:
        """Anna wurde am dritten Mai 1987 in Berlin geboren."""
        subject = self.words.subject(dice, dice.pick(("name", "name", "kin", "pronoun")), "023")
        date, year, (city, said) = dice.pick(DATES), dice.pick(YEARS), dice.pick(self.cities)
        texts = (
            f"{subject.nominative} {BECAME[subject.person]} {date.foreign} {year} {city} geboren",
            f"{subject.english} {was(subject)[1]} born {said} {date.english} {year}",
        )
        return finished(texts, [date.combination, *subject.combinations])

    def construction(self, dice: Dice) -> Sentence:
        """Diese Brücke wurde 1987 gebaut."""
        noun, year = dice.pick(self.groups["built"]), dice.pick(YEARS)
        thing = self.words.known_phrase(dice, noun, NOBODY, 0.3)
        texts = (
            f"{thing.nominative} {BECAME[thing.person]} {year} gebaut",
            f"{thing.english} {was(thing)[1]} built in {year}",
        )
        met = [combine("bauen", noun.singular), combine(noun.singular, str(year))]
        return finished(texts, [*met, *thing.combinations])
