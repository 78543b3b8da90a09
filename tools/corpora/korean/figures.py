"""Korean-English sentences with numbers: ages, prices, amounts, times of day, dates."""

from __future__ import annotations

from collections.abc import Callable

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
from tools.corpora.korean.clause_sampler import ClauseSampler
from tools.corpora.korean.clauses import TIMES, Clause, statement
from tools.corpora.korean.hangul import native_numeral, particle, sino_numeral
from tools.corpora.korean.words import noun_phrase

__all__ = ["Figures"]

EVENTS = (("시작해요", "begins"), ("끝나요", "ends"), ("시작했어요", "began"), ("끝났어요", "ended"))
VEHICLES = (("기차", "the train"), ("버스", "the bus"), ("비행기", "the plane"))
YEARS = range(1980, 2010)
FLOORS = range(2, 31)
AGE_SUBJECTS = Weighted({"I": 2, "name": 6, "kin": 4})
BIRTH_SUBJECTS = Weighted({"I": 2, "name": 6, "kin": 3, "parent": 2})
FLOOR_SUBJECTS = Weighted({"I": 2, "name": 5, "kin": 3, "person": 2, "parent": 1, "senior": 1})
CITIES = (
    *(("서울", "Seoul"), ("부산", "Busan"), ("대구", "Daegu"), ("인천", "Incheon")),
    *(("대전", "Daejeon"), ("광주", "Gwangju")),
)


class Figures:
    """Draw sentences with numbers (살, 원, 층, 시, 년); the docstring of each kind is an example."""

    def __init__(self, sampler: ClauseSampler) -> None:
        self.sampler = sampler
        self.lists = sampler.lexicon.tables["lists"]
        self.priced = [(sampler.lexicon.resolve(things), prices) for things, prices in self.lists["priced"]]
        self.contents = [
            (place, translation, sampler.lexicon.resolve(things))
            for place, translation, things in self.lists["contents"]
        ]

    def kinds(self) -> SentenceKinds:
        """Return the functions that draw a sentence, with their frequencies."""
        return {
            self.age: 6,
            self.price: 7,
            self.amount: 5,
            self.floor: 3,
            self.event: 4,
            self.departure: 3,
            self.birth: 8,
        }

    def one_age(self, rng: Rng, ending: str) -> BilingualClause:
        """Draw a clause with an age."""
        subject, value = self.sampler.subject(rng, AGE_SUBJECTS), rng.pick(range(3, 90))
        texts = (
            f"{particle(subject.text, 'topic')} {native_numeral(value)} 살{ending}",
            f"{subject.english} {english.be(subject.person)} {english.number(value)} years old",
        )
        combinations = [combine(subject.head, f"{value} 살")] if subject.head else []
        return texts, [*combinations, *subject.combinations]

    def age(self, rng: Rng) -> Sentence:
        """민수 씨는 스물한 살이에요. 민수 씨는 스물한 살이고 지영 씨는 서른 살이에요."""
        return self.one_or_two_clauses(rng, self.one_age)

    def one_or_two_clauses(self, rng: Rng, draw: Callable[[Rng, str], BilingualClause]) -> Sentence:
        """Draw one clause with 이에요, or two that 이고 joins."""
        texts, combinations = draw(rng, "이에요")
        if rng.chance(0.5):
            return make_sentence(texts, combinations)
        (korean, translation), first_combinations = draw(rng, "이고")
        return make_sentence(
            (f"{korean} {texts[0]}", f"{translation}, and {texts[1]}"), [*first_combinations, *combinations]
        )

    def one_price(self, rng: Rng, ending: str) -> BilingualClause:
        """Draw a clause with a price."""
        things, prices = rng.pick(self.priced)
        noun, value = rng.pick(things), rng.pick(prices)
        determiner = rng.pick(("-", "이", "그"))
        adjective = rng.pick(noun.adjectives) if noun.adjectives and rng.chance(0.2) else ""
        adjective = adjective if adjective in self.lists["appearance"] else ""
        thing = noun_phrase(noun.korean, determiner, adjective)
        texts = (
            f"{particle(thing.text, 'topic')} {sino_numeral(value * 1000)} 원{ending}",
            f"{thing.english} {'cost' if thing.person == 3 else 'costs'} {english.number(value * 1000)} won",
        )
        return texts, [combine(noun.korean, f"{value}000 원"), *thing.combinations]

    def price(self, rng: Rng) -> Sentence:
        """이 가방은 삼만 오천 원이에요. 이 가방은 삼만 원이고 저 우산은 만 원이에요."""
        return self.one_or_two_clauses(rng, self.one_price)

    def amount(self, rng: Rng) -> Sentence:
        """공원에 나무가 스물세 그루 있어요."""
        place, where, things = rng.pick(self.contents)
        noun, value = rng.pick(things), rng.pick(range(1, 100))
        adjective = rng.pick(noun.adjectives) if noun.adjectives and rng.chance(0.3) else ""
        thing = noun_phrase(noun.korean, "-", adjective if adjective in self.lists["appearance"] else "", value)
        texts = (
            f"{place} {particle(thing.text, 'subject')} {thing.measure} 있어요",
            f"there {english.be(thing.person)} {thing.indefinite} {where}",
        )
        return make_sentence(texts, thing.combinations)

    def floor(self, rng: Rng) -> Sentence:
        """민수 씨는 삼 층에 살아요."""
        subject, value = self.sampler.subject(rng, FLOOR_SUBJECTS), rng.pick(FLOORS)
        clause = Clause(subject, self.sampler.lexicon.verbs["live"], rng.pick(("present", "past")))
        clause.before, clause.rest = f"{sino_numeral(value)} 층에", f"on the {english.ordinal(value)} floor"
        combinations = [combine(subject.head, f"{value} 층")] if subject.head else []
        return make_sentence(statement(clause), [*combinations, *subject.combinations])

    def event(self, rng: Rng) -> Sentence:
        """회의는 월요일 세 시 반에 시작해요."""
        (event, name), clock = rng.pick(self.lists["events"]), rng.pick(TIMES.clock)
        korean, translation = rng.pick(EVENTS)
        day = rng.pick(TIMES.on_day) if rng.chance(0.5) else NO_TIME
        texts = (
            join(particle(event, "topic"), day.foreign.removesuffix("에"), clock.foreign, korean),
            join(name, translation, clock.english, day.english),
        )
        return make_sentence(texts, [combine(event, clock.foreign)])

    def departure(self, rng: Rng) -> Sentence:
        """부산에 가는 기차는 세 시 반에 떠나요."""
        (city, name), (vehicle, word), clock = rng.pick(CITIES), rng.pick(VEHICLES), rng.pick(TIMES.clock)
        if rng.chance(0.6):
            texts = (
                f"{city}에 가는 {particle(vehicle, 'topic')} {clock.foreign} 떠나요",
                f"{word} to {name} leaves {clock.english}",
            )
        else:
            texts = (
                f"{city}에서 오는 {particle(vehicle, 'topic')} {clock.foreign} 도착해요",
                f"{word} from {name} arrives {clock.english}",
            )
        return make_sentence(texts, [combine(city, clock.foreign)])

    def birth(self, rng: Rng) -> Sentence:
        """민수 씨는 1987년 5월 3일에 서울에서 태어났어요."""
        subject, (city, name) = self.sampler.subject(rng, BIRTH_SUBJECTS), rng.pick(CITIES)
        year, month = rng.pick(YEARS), rng.pick(range(1, 13))
        day = rng.pick(range(1, english.MONTH_LENGTHS[month - 1] + 1))
        born = "태어나셨어요" if subject.honorific else "태어났어요"
        date = f"{day} {english.MONTHS[month - 1]} {year}"
        texts = (
            f"{particle(subject.text, 'topic')} {year}년 {month}월 {day}일에 {city}에서 {born}",
            f"{subject.english} {english.was(subject.person)} born in {name} on {date}",
        )
        return make_sentence(texts, [combine(f"{month}월", f"{day}일"), *subject.combinations])
