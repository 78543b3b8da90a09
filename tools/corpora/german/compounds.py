"""German-English sentences of two clauses: dass, ob, weil, wenn, obwohl, bevor, and relative clauses."""

from __future__ import annotations

from tools.corpora.choice import Kinds, Rng, Sentence, Texts, combine, finished
from tools.corpora.clause import NO_TIME, Time
from tools.corpora.german.clauses import TIMES, Clause, fronted, inverted, statement, verb_last
from tools.corpora.german.common import be, being, was
from tools.corpora.german.drawing import Drawing, Use
from tools.corpora.german.phrases import pronoun
from tools.corpora.german.words import Phrase, noun_phrase

__all__ = ["Compounds"]

RELATIVE = {"m": ("der", "den"), "f": ("die", "die"), "n": ("das", "das")}
KNOWN = ("name", "kin", "pronoun")  # whom a pronoun can stand for
CONSUMED = ("fruit", "dish", "pastry", "food", "drink")
WEATHER_TIMES = (Time("morgen", "tomorrow"), Time("übermorgen", "the day after tomorrow"), *TIMES.on_day)
DOUBTS = (("ich weiß", "I do"), ("wir wissen", "we do"), ("er weiß", "he does"), ("sie weiß", "she does"))


def relative(phrase: Phrase) -> Texts:
    """The relative pronoun of a noun phrase as subject and as object."""
    return ("die", "die") if phrase.person == 3 else RELATIVE[phrase.gender]


class Compounds:
    """A clause within a clause."""

    def __init__(self, words: Drawing) -> None:
        self.words = words
        self.said, self.adjectives = words.lexicon.tables["said"], words.lexicon.adjectives
        verbs, places = words.lexicon.verbs, words.places
        self.causes = [
            (Use(verbs[verb], "pf", places=places.get(group, (("", ""),))), tuple(states.split()))
            for verb, group, states in self.said["causes"]
        ]

    def kinds(self) -> Kinds:
        """The kinds of sentence made here."""
        return {
            self.report: 5,
            self.whether: 2,
            self.because: 4,
            self.condition: 4,
            self.concession: 3,
            self.before: 3,
            self.subject_relative: 3,
            self.object_relative: 4,
        }

    def report(self, rng: Rng) -> Sentence:
        """Anna sagt, dass Peter den Ball gesucht hat."""
        speaker = self.words.subject(rng, rng.pick(("name", "name", "kin", "pronoun")), "023")
        *german, says, third = rng.pick(self.said["report"])
        clause = self.words.any_clause(rng, "hpfms")
        while clause.mode == "present" and clause.verb.prefix:
            clause = self.words.any_clause(rng, "hpfms")
        order, said = verb_last(clause)
        verb, word = german[max(0, speaker.person - 1)], third if speaker.person == 2 else says
        met = [combine(speaker.head, german[2])] if speaker.head else []
        texts = (
            f"{speaker.nominative} {verb}, dass {order}",
            f"{speaker.english} {word} that {said}",
        )
        return finished(texts, [*met, *speaker.combinations, *clause.met()])

    def whether(self, rng: Rng) -> Sentence:
        """Ich weiß nicht, ob Peter den Ball gesucht hat."""
        clause = self.words.any_clause(rng, "pf")
        order, said = verb_last(clause)
        speaker, word = rng.pick(DOUBTS)
        texts = (f"{speaker} nicht, ob {order}", f"{word} not know whether {said}")
        return finished(texts, clause.met())

    def because(self, rng: Rng) -> Sentence:
        """Anna ist gestern zu Hause geblieben, weil sie müde war."""
        use, states = rng.pick(self.causes)
        clause, letter = self.words.started(rng, use, subject=self.words.subject(rng, rng.pick(KNOWN)))
        clause.negative, subject = False, clause.subject
        clause.time = rng.pick(rng.pick((TIMES.past if letter == "p" else TIMES.future, TIMES.on_day)))
        place, where = rng.pick(use.places)
        if place:
            clause.combinations.append(combine(use.verb.infinitive, place))
        clause.late, clause.rest = place, where
        adjective = rng.pick(states)
        who = pronoun(subject)
        reason = being(who, self.adjectives[adjective], was(who) if clause.mode == "past" else be(who))
        if subject.head:
            clause.combinations.append(combine(adjective, subject.head))
        order = fronted if rng.chance(0.4) else statement
        german, said = order(clause)
        return finished((f"{german}, weil {reason[0]}", f"{said} because {reason[1]}"), clause.met())

    def condition(self, rng: Rng) -> Sentence:
        """Wenn es morgen regnet, wird Anna zu Hause bleiben."""
        before, after, weather = rng.pick(self.said["weather"])
        clause, time = self.words.any_clause(rng, "f"), rng.pick(WEATHER_TIMES)
        clause.time = NO_TIME
        german, said = inverted(clause)
        texts = (f"wenn {before} {time.foreign} {after}, {german}", f"if {weather} {time.english}, {said}")
        return finished(texts, clause.met())

    def concession(self, rng: Rng) -> Sentence:
        """Obwohl es geregnet hat, ist Anna in den Park gegangen. Obwohl sie müde war, hat Anna gearbeitet."""
        clause = self.words.any_clause(rng, "p", self.words.subject(rng, rng.pick(KNOWN)))
        clause.time = NO_TIME
        german, said = inverted(clause)
        if rng.chance(0.5):
            before, after, words = rng.pick(self.said["weather_past"])
            reason = f"{before} {after}"
        else:
            adjective = rng.pick(self.said["states"])
            who = pronoun(clause.subject)
            reason, words = being(who, self.adjectives[adjective], was(who))
            if clause.subject.head:
                clause.combinations.append(combine(adjective, clause.subject.head))
        return finished((f"obwohl {reason}, {german}", f"although {words}, {said}"), clause.met())

    def before(self, rng: Rng) -> Sentence:
        """Bevor Anna nach Rom geflogen ist, hat sie ihren Onkel besucht."""
        subject = self.words.subject(rng, rng.pick(KNOWN))
        first = self.words.place_clause(rng, "p", subject)
        second = self.words.object_clause(rng, "p", pronoun(subject))
        while second.negative:
            second = self.words.object_clause(rng, "p", pronoun(subject))
        first.negative, first.late = False, first.late.removeprefix("nicht ")
        first.time = second.time = NO_TIME
        german, said = verb_last(first)
        main, told = inverted(second)
        met = [*first.met(), *second.met()]
        return finished((f"bevor {german}, {main}", f"before {said}, {told}"), met)

    def subject_relative(self, rng: Rng) -> Sentence:
        """Die Frau, die gestern den Ball gesucht hat, wohnt in Wien."""
        noun = rng.pick(self.words.people["person"])
        phrase = noun_phrase(noun.singular, "der", "", rng.chance(0.25))
        which = Phrase(relative(phrase)[0], "", "", "who", phrase.person, phrase.gender, phrase.head)
        clause = self.words.any_clause(rng, "pg", which)
        while clause.mode == "progressive" and clause.verb.prefix:
            clause = self.words.any_clause(rng, "pg", which)
        german, said = verb_last(clause)
        if rng.chance(0.3):
            live, city = self.words.lexicon.verbs["wohnen"], rng.pick(self.words.places["in_cities"])
            main = Clause(phrase, live, "present", late=city[0], rest=city[1])
            end = statement(main)
            ends = (end[0].removeprefix(phrase.nominative), end[1].removeprefix(phrase.english))
            met = [combine(phrase.head, "wohnen"), combine("wohnen", city[0])]
        else:
            adjective = rng.pick(noun.adjectives)
            word = self.adjectives[adjective].english
            ends = (f" {be(phrase)[0]} {adjective}", f" {be(phrase)[1]} {word}")
            met = [combine(adjective, phrase.head)]
        texts = (f"{phrase.nominative}, {german},{ends[0]}", f"{phrase.english} {said}{ends[1]}")
        return finished(texts, [*met, *clause.met()])

    def object_relative(self, rng: Rng) -> Sentence:
        """Das Buch, das Anna gestern gelesen hat, ist interessant."""
        use = self.words.object_use(rng, "p")
        noun = rng.pick(use.nouns)
        if noun.kind in ("person", "kin") or not noun.adjectives or use.who != "human":
            return self.object_relative(rng)
        clause, _ = self.words.started(rng, use, "p")
        clause.late = "nicht" if clause.negative else ""
        many = bool(noun.plural_determiners) and rng.chance(0.25)
        phrase, adjective = noun_phrase(noun.singular, "der", "", many), rng.pick(noun.adjectives)
        verb, said_verb = was(phrase) if noun.kind in CONSUMED else be(phrase)
        german, said = verb_last(clause)
        texts = (
            f"{phrase.nominative}, {relative(phrase)[1]} {german}, {verb} {adjective}",
            f"{phrase.english} that {said} {said_verb} {self.adjectives[adjective].english}",
        )
        met = [combine(use.verb.infinitive, noun.singular), combine(adjective, noun.singular)]
        return finished(texts, [*met, *clause.met()])
