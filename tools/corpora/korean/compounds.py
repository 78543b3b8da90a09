"""Korean-English sentences of two clauses: -고, -아서, -지만, -(으)면, -(으)러, -기 전에, -다고, relatives."""

from __future__ import annotations

from collections.abc import Callable

from tools.corpora import english
from tools.corpora.choice import Kinds, Rng, Sentence, Texts, Weighted, combine, finished, join
from tools.corpora.clause import NO_TIME, Time
from tools.corpora.korean.clauses import TIMES, Clause, embedded, statement
from tools.corpora.korean.drawing import Drawing, Use
from tools.corpora.korean.hangul import SSANG_SIOS, Predicate, particle, with_final
from tools.corpora.korean.phrases import COMMON
from tools.corpora.korean.verbs import past_said, quality
from tools.corpora.korean.words import Phrase, noun_phrase

__all__ = ["Compounds"]

SPEAKERS = Weighted({"I": 3, "name": 6, "kin": 3})
REPORTS = (("말했어요", "said"), ("들었어요", "heard"))
TOLD_OF = Weighted({"name": 6, "person": 3, "kin": 3})
GIVERS = Weighted({"I": 4, "name": 6, "person": 2, "kin": 3})
WHO_FEELS = Weighted({"I": 3, "we": 1, "name": 7})
WHICH = Phrase("", "who", "who", "", 2, "")
WEATHER_PAST = (*TIMES.past[:2], *TIMES.on_day)
WEATHER_FUTURE = (Time("내일", "tomorrow"), Time("모레", "the day after tomorrow"), *TIMES.on_day)
CONSUMED = ("fruit", "dish", "snack", "drink")
PEOPLE = ("person", "kin", "parent", "senior")


class Compounds:
    """A clause within a clause, or before another."""

    def __init__(self, words: Drawing) -> None:
        self.words = words
        self.said, self.adjectives = words.lexicon.tables["said"], words.lexicon.adjectives
        verbs, resolve = words.lexicon.verbs, words.lexicon.resolve
        self.go = verbs["go"]
        self.errands = [
            (place, said, Use(verb, verbs[verb], "pfm", resolve(things)))
            for place, said, verb, things in self.said["errands"]
        ]
        self.causes = [
            (self.predicate(adjective), adjective, Use(verb, verbs[verb], "pq", places=words.places[places]))
            for adjective, verb, places in self.said["causes"]
        ]

    def kinds(self) -> Kinds:
        """The kinds of sentence made here."""
        return {
            self.report: 5,
            self.errand: 5,
            self.weather_reason: 3,
            self.weather_contrast: 3,
            self.condition: 4,
            self.tired: 3,
            self.sequence: 4,
            self.before: 3,
            self.after: 3,
            self.subject_relative: 4,
            self.object_relative: 5,
        }

    def predicate(self, adjective: str) -> Predicate:
        """The forms of an adjective that can be a predicate."""
        predicate = self.adjectives[adjective].predicate
        assert predicate, adjective
        return predicate

    def affirmed(self, rng: Rng, allowed: str, subject: Phrase, kind: str = "any") -> Clause:
        """A clause that is not denied and has no time."""
        draws: dict[str, Callable[[Rng, str, Phrase], Clause]] = {
            "any": self.words.any_clause,
            "object": self.words.sequential_clause,
            "place": self.words.place_clause,
        }
        draw = draws[kind]
        clause = draw(rng, allowed, subject)
        while clause.negative:
            clause = draw(rng, allowed, subject)
        clause.time = NO_TIME
        return clause

    # --- clauses in a row ---

    def report(self, rng: Rng) -> Sentence:
        """민수 씨는 수진 씨가 서울에 갔다고 말했어요."""
        speaker, subject = self.words.subject(rng, SPEAKERS), self.words.subject(rng, TOLD_OF)
        if speaker.head == subject.head or speaker.text in subject.text:
            return self.report(rng)
        clause = self.words.any_clause(rng, "p", subject)
        while clause.negative:
            clause = self.words.any_clause(rng, "p", subject)
        korean, said = embedded(clause, past_said(clause.verb))
        verb, word = rng.pick(REPORTS)
        met = [combine(speaker.head, verb), *speaker.combinations] if speaker.head else []
        texts = (f"{particle(speaker.text, 'topic')} {korean} {verb}", f"{speaker.english} {word} that {said}")
        return finished(texts, [*met, *clause.met()])

    def errand(self, rng: Rng) -> Sentence:
        """민수 씨는 책을 사러 서점에 갔어요."""
        place, where, use = rng.pick(self.errands)
        clause, _ = self.words.started(rng, Use("go", self.go, "pfmer"), "pfm", None)
        draw = self.words.known_phrase if use.name == "meet" else self.words.new_phrase
        thing = draw(rng, rng.pick(use.nouns))
        if thing.head == clause.subject.head:
            return self.errand(rng)
        clause.negative, clause.mode = False, "past" if clause.mode == "could" else clause.mode
        errand = f"{use.verb.before_condition()}러"
        clause.before = join(particle(thing.text, "object"), thing.measure, errand, place)
        clause.rest = f"{where} to {use.verb.english.base} {thing.indefinite}"
        clause.combinations += [combine("go", place), combine(use.name, thing.head), *thing.combinations]
        return finished(statement(clause), clause.met())

    def weather_reason(self, rng: Rng) -> Sentence:
        """어제 비가 와서 민수 씨는 집에서 쉬었어요."""
        what, infinitive, *_, words = rng.pick(self.said["weather"])
        clause, time = self.affirmed(rng, "p", self.words.subject(rng, COMMON)), rng.pick(WEATHER_PAST)
        korean, said = statement(clause)
        texts = (f"{time.foreign} {what} {infinitive}서 {korean}", f"because {words} {time.english}, {said}")
        return finished(texts, clause.met())

    def weather_contrast(self, rng: Rng) -> Sentence:
        """어제 비가 왔지만 민수 씨는 공원에 갔어요."""
        what, infinitive, *_, words = rng.pick(self.said["weather"])
        clause, time = self.affirmed(rng, "p", self.words.subject(rng, COMMON)), rng.pick(WEATHER_PAST)
        korean, said = statement(clause)
        past = with_final(infinitive, SSANG_SIOS)
        texts = (f"{time.foreign} {what} {past}지만 {korean}", f"{words} {time.english}, but {said}")
        return finished(texts, clause.met())

    def condition(self, rng: Rng) -> Sentence:
        """내일 비가 오면 민수 씨는 집에서 쉴 거예요."""
        what, _, _, base, words, _ = rng.pick(self.said["weather"])
        clause, time = self.words.any_clause(rng, "f"), rng.pick(WEATHER_FUTURE)
        clause.time = NO_TIME
        korean, said = statement(clause)
        texts = (f"{time.foreign} {what} {base}면 {korean}", f"if {words} {time.english}, {said}")
        return finished(texts, clause.met())

    def tired(self, rng: Rng) -> Sentence:
        """민수 씨는 피곤해서 집에서 쉬었어요."""
        predicate, adjective, use = rng.pick(self.causes)
        subject = self.words.subject(rng, WHO_FEELS)
        clause, _ = self.words.started(rng, use, "p", subject)
        clause.mode, clause.negative = "past", False
        clause.time = rng.pick(rng.pick((TIMES.past[:4], TIMES.on_day)))
        place, where = rng.pick(use.places)
        clause.before = f"{predicate.infinitive}서 {place}"
        clause.rest = where
        korean, said = statement(clause)
        clause.combinations.append(combine(use.name, place))
        if subject.head:
            clause.combinations.append(combine(adjective, subject.head))
        reason = f"{subject.pronoun} {english.was(subject.person)} {adjective}"
        return finished((korean, f"{said} because {reason}"), clause.met())

    def sequence(self, rng: Rng) -> Sentence:
        """민수 씨는 방을 청소하고 책을 읽었어요."""
        subject = self.words.subject(rng, COMMON)
        first, second = (self.affirmed(rng, "p", subject, "object") for _ in range(2))
        if first.verb is second.verb:
            return self.sequence(rng)
        second.before = join(first.before, f"{first.verb.stem}고", second.before)
        korean, _ = statement(second)
        one, two = (f"{clause.verb.english.past} {clause.rest}" for clause in (first, second))
        return finished((korean, f"{subject.english} {one} and {two}"), [*first.met(), *second.met()])

    def before(self, rng: Rng) -> Sentence:
        """민수 씨는 학교에 가기 전에 빵을 먹었어요."""
        subject = self.words.subject(rng, COMMON)
        first = self.affirmed(rng, "p", subject, "place")
        second = self.affirmed(rng, "p", subject, "object")
        second.before = join(first.before, f"{first.verb.stem}기 전에", second.before)
        korean, said = statement(second)
        words = f"before {join(first.verb.english.progressive, first.rest)}, {said}"
        return finished((korean, words), [*first.met(), *second.met()])

    def after(self, rng: Rng) -> Sentence:
        """민수 씨는 책을 읽은 후에 학교에 갔어요."""
        subject = self.words.subject(rng, COMMON)
        first = self.affirmed(rng, "p", subject, "object")
        second = self.affirmed(rng, "p", subject, "place")
        second.before = join(first.before, first.verb.attributive(), "후에", second.before)
        korean, said = statement(second)
        words = f"after {join(first.verb.english.progressive, first.rest)}, {said}"
        return finished((korean, words), [*first.met(), *second.met()])

    # --- relative clauses ---

    def copula(self, phrase: Phrase, adjective: str, past: bool) -> Texts:
        """What the noun that is described is like."""
        predicate = quality(self.predicate(adjective), "past" if past else "present", phrase.honorific, False)
        form = english.was if past else english.be
        return f"{particle(phrase.text, 'topic')} {predicate}", f"{form(phrase.person)} {adjective}"

    def subject_relative(self, rng: Rng) -> Sentence:
        """어제 책을 산 학생은 아주 친절해요. 서울에 사는 의사는 바빠요."""
        noun = rng.pick(self.words.people["person"])
        phrase = noun_phrase(noun.korean, "-", "")
        which = Phrase("", "who", "who", "", 2, noun.korean)
        clause = self.words.any_clause(rng, "pgs", which)
        while clause.negative:
            clause = self.words.any_clause(rng, "pgs", which)
        if clause.mode == "progressive":
            ending = f"{clause.verb.stem}고 있는"
        else:
            ending = clause.verb.attributive() if clause.mode == "past" else clause.verb.present_attributive()
        korean, said = embedded(clause, ending)
        adjective = rng.pick([word for word in noun.adjectives if self.adjectives[word].predicate])
        end, is_ = self.copula(phrase, adjective, False)
        met = [combine(adjective, noun.korean), *clause.met()]
        return finished((f"{korean} {end}", f"{phrase.english} {said} {is_}"), met)

    def object_relative(self, rng: Rng) -> Sentence:
        """민수 씨가 어제 산 가방은 예뻐요."""
        use = self.words.object_use(rng, "p")
        noun = rng.pick(use.nouns)
        fitting = [word for word in noun.adjectives if self.adjectives[word].predicate]
        if noun.kind in PEOPLE or not fitting:
            return self.object_relative(rng)
        clause, _ = self.words.started(rng, use, "p", self.words.subject(rng, GIVERS))
        clause.mode, clause.negative = "past", False
        korean, said = embedded(clause, clause.verb.attributive())
        phrase, adjective = noun_phrase(noun.korean, "-", ""), rng.pick(fitting)
        end, is_ = self.copula(phrase, adjective, noun.kind in CONSUMED)
        met = [combine(use.name, noun.korean), combine(adjective, noun.korean), *clause.met()]
        return finished((f"{korean} {end}", f"{phrase.english} that {said} {is_}"), met)
