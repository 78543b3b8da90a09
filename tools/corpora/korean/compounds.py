"""Korean-English sentences of two clauses: -고, -아서, -지만, -(으)면, -(으)러, -기 전에, -다고, relatives."""

from __future__ import annotations

from collections.abc import Callable

from tools.corpora import english
from tools.corpora.choice import Rng, Sentence, SentenceKinds, TextPair, Weighted, combine, join, make_sentence
from tools.corpora.clause import NO_TIME, Time
from tools.corpora.korean.clause_sampler import ClauseSampler, Use
from tools.corpora.korean.clauses import TIMES, Clause, embedded, statement
from tools.corpora.korean.hangul import SSANG_SIOS, Predicate, particle, with_final
from tools.corpora.korean.phrase_sampler import PLAIN_SUBJECT_KINDS
from tools.corpora.korean.verbs import adjective_predicate, reported_past
from tools.corpora.korean.words import Phrase, noun_phrase

__all__ = ["Compounds"]

SPEAKERS = Weighted({"I": 3, "name": 6, "kin": 3})
REPORTS = (("말했어요", "said"), ("들었어요", "heard"))
REPORTED_SUBJECTS = Weighted({"name": 6, "person": 3, "kin": 3})
RELATIVE_SUBJECTS = Weighted({"I": 4, "name": 6, "person": 2, "kin": 3})
TIRED_SUBJECTS = Weighted({"I": 3, "we": 1, "name": 7})
WEATHER_PAST = (*TIMES.past[:2], *TIMES.on_day)
WEATHER_FUTURE = (Time("내일", "tomorrow"), Time("모레", "the day after tomorrow"), *TIMES.on_day)
CONSUMED = ("fruit", "dish", "snack", "drink")
PEOPLE = ("person", "kin", "parent", "senior")


class Compounds:
    """Draw sentences of two clauses; the docstring of each kind of sentence is an example."""

    def __init__(self, sampler: ClauseSampler) -> None:
        self.sampler = sampler
        self.lists, self.adjectives = sampler.lexicon.tables["lists"], sampler.lexicon.adjectives
        verbs, resolve = sampler.lexicon.verbs, sampler.lexicon.resolve
        self.go = verbs["go"]
        self.errands = [
            (place, translation, Use(verb, verbs[verb], "pfm", resolve(things)))
            for place, translation, verb, things in self.lists["errands"]
        ]
        self.causes = [
            (self.predicate(adjective), adjective, Use(verb, verbs[verb], "pq", places=sampler.places[places]))
            for adjective, verb, places in self.lists["causes"]
        ]

    def kinds(self) -> SentenceKinds:
        """Return the functions that draw a sentence, with their frequencies."""
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
        """Return the predicate of an adjective."""
        predicate = self.adjectives[adjective].predicate
        assert predicate, adjective
        return predicate

    def affirmative_clause(self, rng: Rng, allowed: str, subject: Phrase, kind: str = "any") -> Clause:
        """Draw an affirmative clause without a time."""
        draws: dict[str, Callable[[Rng, str, Phrase], Clause]] = {
            "any": self.sampler.any_clause,
            "object": self.sampler.sequential_clause,
            "place": self.sampler.place_clause,
        }
        draw = draws[kind]
        clause = draw(rng, allowed, subject)
        while clause.negative:
            clause = draw(rng, allowed, subject)
        clause.time = NO_TIME
        return clause

    # --- coordinated and subordinate clauses ---

    def report(self, rng: Rng) -> Sentence:
        """민수 씨는 수진 씨가 서울에 갔다고 말했어요."""
        speaker, subject = self.sampler.subject(rng, SPEAKERS), self.sampler.subject(rng, REPORTED_SUBJECTS)
        if speaker.head == subject.head or speaker.text in subject.text:
            return self.report(rng)
        clause = self.sampler.any_clause(rng, "p", subject)
        while clause.negative:
            clause = self.sampler.any_clause(rng, "p", subject)
        korean, translation = embedded(clause, reported_past(clause.verb))
        verb, english_verb = rng.pick(REPORTS)
        combinations = [combine(speaker.head, verb), *speaker.combinations] if speaker.head else []
        texts = (
            f"{particle(speaker.text, 'topic')} {korean} {verb}",
            f"{speaker.english} {english_verb} that {translation}",
        )
        return make_sentence(texts, [*combinations, *clause.all_combinations()])

    def errand(self, rng: Rng) -> Sentence:
        """민수 씨는 책을 사러 서점에 갔어요."""
        place, english_place, use = rng.pick(self.errands)
        clause, _ = self.sampler.start_clause(rng, Use("go", self.go, "pfmer"), "pfm", None)
        draw = self.sampler.definite_phrase if use.name == "meet" else self.sampler.indefinite_phrase
        thing = draw(rng, rng.pick(use.nouns))
        if thing.head == clause.subject.head:
            return self.errand(rng)
        clause.negative, clause.mode = False, "past" if clause.mode == "could" else clause.mode
        errand = f"{use.verb.conditional_stem()}러"
        clause.before = join(particle(thing.text, "object"), thing.measure, errand, place)
        clause.rest = f"{english_place} to {use.verb.english.base} {thing.indefinite}"
        clause.combinations += [combine("go", place), combine(use.name, thing.head), *thing.combinations]
        return make_sentence(statement(clause), clause.all_combinations())

    def weather_reason(self, rng: Rng) -> Sentence:
        """어제 비가 와서 민수 씨는 집에서 쉬었어요."""
        weather, infinitive, *_, english_weather = rng.pick(self.lists["weather"])
        clause, time = (
            self.affirmative_clause(rng, "p", self.sampler.subject(rng, PLAIN_SUBJECT_KINDS)),
            rng.pick(WEATHER_PAST),
        )
        korean, translation = statement(clause)
        texts = (
            f"{time.foreign} {weather} {infinitive}서 {korean}",
            f"because {english_weather} {time.english}, {translation}",
        )
        return make_sentence(texts, clause.all_combinations())

    def weather_contrast(self, rng: Rng) -> Sentence:
        """어제 비가 왔지만 민수 씨는 공원에 갔어요."""
        weather, infinitive, *_, english_weather = rng.pick(self.lists["weather"])
        clause, time = (
            self.affirmative_clause(rng, "p", self.sampler.subject(rng, PLAIN_SUBJECT_KINDS)),
            rng.pick(WEATHER_PAST),
        )
        korean, translation = statement(clause)
        past = with_final(infinitive, SSANG_SIOS)
        texts = (
            f"{time.foreign} {weather} {past}지만 {korean}",
            f"{english_weather} {time.english}, but {translation}",
        )
        return make_sentence(texts, clause.all_combinations())

    def condition(self, rng: Rng) -> Sentence:
        """내일 비가 오면 민수 씨는 집에서 쉴 거예요."""
        weather, _, _, base, english_weather, _ = rng.pick(self.lists["weather"])
        clause, time = self.sampler.any_clause(rng, "f"), rng.pick(WEATHER_FUTURE)
        clause.time = NO_TIME
        korean, translation = statement(clause)
        texts = (
            f"{time.foreign} {weather} {base}면 {korean}",
            f"if {english_weather} {time.english}, {translation}",
        )
        return make_sentence(texts, clause.all_combinations())

    def tired(self, rng: Rng) -> Sentence:
        """민수 씨는 피곤해서 집에서 쉬었어요."""
        predicate, adjective, use = rng.pick(self.causes)
        subject = self.sampler.subject(rng, TIRED_SUBJECTS)
        clause, _ = self.sampler.start_clause(rng, use, "p", subject)
        clause.mode, clause.negative = "past", False
        clause.time = rng.pick(rng.pick((TIMES.past[:4], TIMES.on_day)))
        place, english_place = rng.pick(use.places)
        clause.before = f"{predicate.infinitive}서 {place}"
        clause.rest = english_place
        korean, translation = statement(clause)
        clause.combinations.append(combine(use.name, place))
        if subject.head:
            clause.combinations.append(combine(adjective, subject.head))
        reason = f"{subject.pronoun} {english.was(subject.person)} {adjective}"
        return make_sentence((korean, f"{translation} because {reason}"), clause.all_combinations())

    def sequence(self, rng: Rng) -> Sentence:
        """민수 씨는 방을 청소하고 책을 읽었어요."""
        subject = self.sampler.subject(rng, PLAIN_SUBJECT_KINDS)
        first, second = (self.affirmative_clause(rng, "p", subject, "object") for _ in range(2))
        if first.verb is second.verb:
            return self.sequence(rng)
        second.before = join(first.before, f"{first.verb.stem}고", second.before)
        korean, _ = statement(second)
        first_english, second_english = (f"{clause.verb.english.past} {clause.rest}" for clause in (first, second))
        return make_sentence(
            (korean, f"{subject.english} {first_english} and {second_english}"),
            [*first.all_combinations(), *second.all_combinations()],
        )

    def before(self, rng: Rng) -> Sentence:
        """민수 씨는 학교에 가기 전에 빵을 먹었어요."""
        subject = self.sampler.subject(rng, PLAIN_SUBJECT_KINDS)
        first = self.affirmative_clause(rng, "p", subject, "place")
        second = self.affirmative_clause(rng, "p", subject, "object")
        second.before = join(first.before, f"{first.verb.stem}기 전에", second.before)
        korean, translation = statement(second)
        words = f"before {join(first.verb.english.progressive, first.rest)}, {translation}"
        return make_sentence((korean, words), [*first.all_combinations(), *second.all_combinations()])

    def after(self, rng: Rng) -> Sentence:
        """민수 씨는 책을 읽은 후에 학교에 갔어요."""
        subject = self.sampler.subject(rng, PLAIN_SUBJECT_KINDS)
        first = self.affirmative_clause(rng, "p", subject, "object")
        second = self.affirmative_clause(rng, "p", subject, "place")
        second.before = join(first.before, first.verb.attributive(), "후에", second.before)
        korean, translation = statement(second)
        words = f"after {join(first.verb.english.progressive, first.rest)}, {translation}"
        return make_sentence((korean, words), [*first.all_combinations(), *second.all_combinations()])

    # --- relative clauses ---

    def copula(self, phrase: Phrase, adjective: str, past: bool) -> TextPair:
        """Return the predicate of a main clause: the noun is or was like the adjective."""
        predicate = adjective_predicate(
            self.predicate(adjective), "past" if past else "present", phrase.honorific, False
        )
        form = english.was if past else english.be
        return f"{particle(phrase.text, 'topic')} {predicate}", f"{form(phrase.person)} {adjective}"

    def subject_relative(self, rng: Rng) -> Sentence:
        """어제 책을 산 학생은 아주 친절해요. 서울에 사는 의사는 바빠요."""
        noun = rng.pick(self.sampler.people["person"])
        phrase = noun_phrase(noun.korean, "-", "")
        which = Phrase("", "who", "who", "", 2, noun.korean)
        clause = self.sampler.any_clause(rng, "pgs", which)
        while clause.negative:
            clause = self.sampler.any_clause(rng, "pgs", which)
        if clause.mode == "progressive":
            verb_form = f"{clause.verb.stem}고 있는"
        else:
            verb_form = clause.verb.attributive() if clause.mode == "past" else clause.verb.present_attributive()
        korean, translation = embedded(clause, verb_form)
        adjective = rng.pick([word for word in noun.adjectives if self.adjectives[word].predicate])
        ending, english_ending = self.copula(phrase, adjective, False)
        combinations = [combine(adjective, noun.korean), *clause.all_combinations()]
        return make_sentence(
            (f"{korean} {ending}", f"{phrase.english} {translation} {english_ending}"), combinations
        )

    def object_relative(self, rng: Rng) -> Sentence:
        """민수 씨가 어제 산 가방은 예뻐요."""
        use = self.sampler.object_use(rng, "p")
        noun = rng.pick(use.nouns)
        fitting = [word for word in noun.adjectives if self.adjectives[word].predicate]
        if noun.kind in PEOPLE or not fitting:
            return self.object_relative(rng)
        clause, _ = self.sampler.start_clause(rng, use, "p", self.sampler.subject(rng, RELATIVE_SUBJECTS))
        clause.mode, clause.negative = "past", False
        korean, translation = embedded(clause, clause.verb.attributive())
        phrase, adjective = noun_phrase(noun.korean, "-", ""), rng.pick(fitting)
        ending, english_ending = self.copula(phrase, adjective, noun.kind in CONSUMED)
        combinations = [combine(use.name, noun.korean), combine(adjective, noun.korean), *clause.all_combinations()]
        return make_sentence(
            (f"{korean} {ending}", f"{phrase.english} that {translation} {english_ending}"), combinations
        )
