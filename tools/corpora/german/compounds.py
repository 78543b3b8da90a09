"""German-English sentences of two clauses: dass, ob, weil, wenn, obwohl, bevor, and relative clauses."""

from __future__ import annotations

from tools.corpora.choice import Rng, Sentence, SentenceKinds, TextPair, combine, make_sentence
from tools.corpora.clause import NO_TIME, Time
from tools.corpora.german.clause_sampler import ClauseSampler, Use
from tools.corpora.german.clauses import TIMES, Clause, fronted, inverted, statement, verb_last
from tools.corpora.german.common import adjective_verb_last, be, was
from tools.corpora.german.phrase_sampler import pronoun
from tools.corpora.german.words import Phrase, noun_phrase

__all__ = ["Compounds"]

RELATIVE = {"m": ("der", "den"), "f": ("die", "die"), "n": ("das", "das")}
PRONOMINAL_SUBJECTS = ("name", "kin", "pronoun")  # kinds of subjects that a pronoun can replace
CONSUMED = ("fruit", "dish", "pastry", "food", "drink")
WEATHER_TIMES = (Time("morgen", "tomorrow"), Time("übermorgen", "the day after tomorrow"), *TIMES.on_day)
DOUBTING_CLAUSES = (("ich weiß", "I do"), ("wir wissen", "we do"), ("er weiß", "he does"), ("sie weiß", "she does"))


def relative_pronouns(phrase: Phrase) -> TextPair:
    """Return the relative pronoun of a noun phrase as subject and as object."""
    return ("die", "die") if phrase.person == 3 else RELATIVE[phrase.gender]


class Compounds:
    """Draw sentences of two clauses; the docstring of each kind of sentence is an example."""

    def __init__(self, sampler: ClauseSampler) -> None:
        self.sampler = sampler
        self.lists, self.adjectives = sampler.lexicon.tables["lists"], sampler.lexicon.adjectives
        verbs, places = sampler.lexicon.verbs, sampler.places
        self.causes = [
            (Use(verbs[verb], "pf", places=places.get(group, (("", ""),))), tuple(states.split()))
            for verb, group, states in self.lists["causes"]
        ]

    def kinds(self) -> SentenceKinds:
        """Return the functions that draw a sentence, with their frequencies."""
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
        speaker = self.sampler.subject(rng, rng.pick(("name", "name", "kin", "pronoun")), "023")
        *verb_forms, english_first, english_third = rng.pick(self.lists["report"])
        clause = self.sampler.any_clause(rng, "hpfms")
        while clause.mode == "present" and clause.verb.prefix:
            clause = self.sampler.any_clause(rng, "hpfms")
        subordinate, translation = verb_last(clause)
        verb, english_verb = (
            verb_forms[max(0, speaker.person - 1)],
            english_third if speaker.person == 2 else english_first,
        )
        combinations = [combine(speaker.head, verb_forms[2])] if speaker.head else []
        texts = (
            f"{speaker.nominative} {verb}, dass {subordinate}",
            f"{speaker.english} {english_verb} that {translation}",
        )
        return make_sentence(texts, [*combinations, *speaker.combinations, *clause.all_combinations()])

    def whether(self, rng: Rng) -> Sentence:
        """Ich weiß nicht, ob Peter den Ball gesucht hat."""
        clause = self.sampler.any_clause(rng, "pf")
        subordinate, translation = verb_last(clause)
        german_doubt, english_doubt = rng.pick(DOUBTING_CLAUSES)
        texts = (f"{german_doubt} nicht, ob {subordinate}", f"{english_doubt} not know whether {translation}")
        return make_sentence(texts, clause.all_combinations())

    def because(self, rng: Rng) -> Sentence:
        """Anna ist gestern zu Hause geblieben, weil sie müde war."""
        use, states = rng.pick(self.causes)
        clause, letter = self.sampler.start_clause(
            rng, use, subject=self.sampler.subject(rng, rng.pick(PRONOMINAL_SUBJECTS))
        )
        clause.negative, subject = False, clause.subject
        clause.time = rng.pick(rng.pick((TIMES.past if letter == "p" else TIMES.future, TIMES.on_day)))
        place, english_place = rng.pick(use.places)
        if place:
            clause.combinations.append(combine(use.verb.infinitive, place))
        clause.late, clause.rest = place, english_place
        adjective = rng.pick(states)
        reason_subject = pronoun(subject)
        reason = adjective_verb_last(
            reason_subject,
            self.adjectives[adjective],
            was(reason_subject) if clause.mode == "past" else be(reason_subject),
        )
        if subject.head:
            clause.combinations.append(combine(adjective, subject.head))
        order = fronted if rng.chance(0.4) else statement
        german, translation = order(clause)
        return make_sentence(
            (f"{german}, weil {reason[0]}", f"{translation} because {reason[1]}"), clause.all_combinations()
        )

    def condition(self, rng: Rng) -> Sentence:
        """Wenn es morgen regnet, wird Anna zu Hause bleiben."""
        before, after, weather = rng.pick(self.lists["weather"])
        clause, time = self.sampler.any_clause(rng, "f"), rng.pick(WEATHER_TIMES)
        clause.time = NO_TIME
        german, translation = inverted(clause)
        texts = (f"wenn {before} {time.foreign} {after}, {german}", f"if {weather} {time.english}, {translation}")
        return make_sentence(texts, clause.all_combinations())

    def concession(self, rng: Rng) -> Sentence:
        """Obwohl es geregnet hat, ist Anna in den Park gegangen. Obwohl sie müde war, hat Anna gearbeitet."""
        clause = self.sampler.any_clause(rng, "p", self.sampler.subject(rng, rng.pick(PRONOMINAL_SUBJECTS)))
        clause.time = NO_TIME
        german, translation = inverted(clause)
        if rng.chance(0.5):
            before, after, words = rng.pick(self.lists["weather_past"])
            reason = f"{before} {after}"
        else:
            adjective = rng.pick(self.lists["states"])
            reason_subject = pronoun(clause.subject)
            reason, words = adjective_verb_last(reason_subject, self.adjectives[adjective], was(reason_subject))
            if clause.subject.head:
                clause.combinations.append(combine(adjective, clause.subject.head))
        return make_sentence(
            (f"obwohl {reason}, {german}", f"although {words}, {translation}"), clause.all_combinations()
        )

    def before(self, rng: Rng) -> Sentence:
        """Bevor Anna nach Rom geflogen ist, hat sie ihren Onkel besucht."""
        subject = self.sampler.subject(rng, rng.pick(PRONOMINAL_SUBJECTS))
        first = self.sampler.place_clause(rng, "p", subject)
        second = self.sampler.object_clause(rng, "p", pronoun(subject))
        while second.negative:
            second = self.sampler.object_clause(rng, "p", pronoun(subject))
        first.negative, first.late = False, first.late.removeprefix("nicht ")
        first.time = second.time = NO_TIME
        german, translation = verb_last(first)
        main_clause, main_translation = inverted(second)
        combinations = [*first.all_combinations(), *second.all_combinations()]
        return make_sentence(
            (f"bevor {german}, {main_clause}", f"before {translation}, {main_translation}"), combinations
        )

    def subject_relative(self, rng: Rng) -> Sentence:
        """Die Frau, die gestern den Ball gesucht hat, wohnt in Wien."""
        noun = rng.pick(self.sampler.people["person"])
        phrase = noun_phrase(noun.singular, "der", "", rng.chance(0.25))
        which = Phrase(relative_pronouns(phrase)[0], "", "", "who", phrase.person, phrase.gender, phrase.head)
        clause = self.sampler.any_clause(rng, "pg", which)
        while clause.mode == "progressive" and clause.verb.prefix:
            clause = self.sampler.any_clause(rng, "pg", which)
        german, translation = verb_last(clause)
        if rng.chance(0.3):
            live, city = self.sampler.lexicon.verbs["wohnen"], rng.pick(self.sampler.places["in_cities"])
            main = Clause(phrase, live, "present", late=city[0], rest=city[1])
            ending = statement(main)
            ends = (ending[0].removeprefix(phrase.nominative), ending[1].removeprefix(phrase.english))
            combinations = [combine(phrase.head, "wohnen"), combine("wohnen", city[0])]
        else:
            adjective = rng.pick(noun.adjectives)
            word = self.adjectives[adjective].english
            ends = (f" {be(phrase)[0]} {adjective}", f" {be(phrase)[1]} {word}")
            combinations = [combine(adjective, phrase.head)]
        texts = (f"{phrase.nominative}, {german},{ends[0]}", f"{phrase.english} {translation}{ends[1]}")
        return make_sentence(texts, [*combinations, *clause.all_combinations()])

    def object_relative(self, rng: Rng) -> Sentence:
        """Das Buch, das Anna gestern gelesen hat, ist interessant."""
        use = self.sampler.object_use(rng, "p")
        noun = rng.pick(use.nouns)
        if noun.kind in ("person", "kin") or not noun.adjectives or use.agent != "human":
            return self.object_relative(rng)
        clause, _ = self.sampler.start_clause(rng, use, "p")
        clause.late = "nicht" if clause.negative else ""
        plural = bool(noun.plural_determiners) and rng.chance(0.25)
        phrase, adjective = noun_phrase(noun.singular, "der", "", plural), rng.pick(noun.adjectives)
        verb, said_verb = was(phrase) if noun.kind in CONSUMED else be(phrase)
        german, translation = verb_last(clause)
        texts = (
            f"{phrase.nominative}, {relative_pronouns(phrase)[1]} {german}, {verb} {adjective}",
            f"{phrase.english} that {translation} {said_verb} {self.adjectives[adjective].english}",
        )
        combinations = [combine(use.verb.infinitive, noun.singular), combine(adjective, noun.singular)]
        return make_sentence(texts, [*combinations, *clause.all_combinations()])
