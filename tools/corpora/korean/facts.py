"""Korean-English sentences about qualities, identity, location and possession."""

from __future__ import annotations

from tools.corpora import english
from tools.corpora.choice import Rng, Sentence, SentenceKinds, TextPair, Weighted, combine, join, make_sentence
from tools.corpora.clause import NO_TIME, Time
from tools.corpora.korean.clause_sampler import ClauseSampler
from tools.corpora.korean.clauses import TIMES
from tools.corpora.korean.hangul import particle
from tools.corpora.korean.phrase_sampler import COUNTS
from tools.corpora.korean.verbs import adjective_predicate
from tools.corpora.korean.words import Noun, Phrase, noun_phrase

__all__ = ["Facts"]

DEGREES = Weighted({("", ""): 5, ("아주", "very"): 3, ("정말", "really"): 2})
DEGREES_WITH_TOO = Weighted({("", ""): 5, ("아주", "very"): 3, ("정말", "really"): 1, ("너무", "too"): 3})
TODAY = Time("오늘", "today")
STATE_SUBJECTS = Weighted({"I": 3, "name": 5, "kin": 3, "person": 3, "senior": 2})
JOB_SUBJECTS = Weighted({"I": 2, "name": 6, "kin": 4})
POSSESSION_SUBJECTS = Weighted({"I": 4, "name": 6, "kin": 2, "person": 2})
DEMONSTRATIVES = (("이것은", ("this", "these")), ("그것은", ("that", "those")))


class Facts:
    """Draw sentences with adjectives, 이다 and 있다; the docstring of each kind of sentence is an example."""

    def __init__(self, sampler: ClauseSampler) -> None:
        self.sampler, lexicon = sampler, sampler.lexicon
        self.lists = lists = lexicon.tables["lists"]
        self.predicates = {name: word.predicate for name, word in lexicon.adjectives.items() if word.predicate}
        self.gradable = {name for name, word in lexicon.adjectives.items() if word.comparative} | set(
            lists["gradable"]
        )
        self.describable = [
            noun for noun in lexicon.nouns.values() if any(word in self.predicates for word in noun.adjectives)
        ]
        self.same_kind: dict[str, list[Noun]] = {}
        for noun in self.describable:
            self.same_kind.setdefault(noun.kind, []).append(noun)
        self.positions = [(korean, word, lexicon.resolve(places)) for korean, word, places in lists["positions"]]
        groups = ("small", "pets", "possessions", "jobs", "identified")
        self.groups = {name: lexicon.resolve(lists[name]) for name in groups}
        self.compared = [noun for noun in lexicon.resolve(lists["compared"]) if self.comparatives(noun)]

    def kinds(self) -> SentenceKinds:
        """Return the functions that draw a sentence, with their frequencies."""
        return {
            self.described: 7,
            self.two_qualities: 4,
            self.two_things: 4,
            self.state: 3,
            self.naming: 5,
            self.job: 2,
            self.comparison: 6,
            self.existence: 4,
            self.location: 4,
            self.possession: 4,
        }

    def adjective(self, rng: Rng, noun: Noun) -> str:
        """Draw a predicative adjective that fits a noun."""
        return rng.pick([word for word in noun.adjectives if word in self.predicates])

    def degree(self, rng: Rng, adjective: str) -> TextPair:
        """Draw an adverb of degree that fits an adjective."""
        if adjective not in self.gradable:
            return "", ""
        return rng.pick_weighted(DEGREES_WITH_TOO if adjective in self.lists["excessive"] else DEGREES)

    def be(self, rng: Rng, subject: Phrase, adjective: str, mode: str, time: Time) -> TextPair:
        """Make a clause: the subject is or was like the adjective."""
        korean, english_degree = self.degree(rng, adjective)
        negative = not korean and adjective in self.lists["negatable"] and rng.chance(0.4)
        predicate = adjective_predicate(self.predicates[adjective], mode, subject.honorific, negative)
        copula = english.was if mode == "past" else english.be
        negation = "not" if negative else ""
        return (
            join(particle(subject.text, "topic"), time.foreign, korean, predicate),
            join(subject.english, copula(subject.person), negation, english_degree, adjective, time.english),
        )

    def described(self, rng: Rng) -> Sentence:
        """이 가방은 너무 비싸요."""
        noun = rng.pick(self.describable)
        adjective, mode = self.adjective(rng, noun), "past" if rng.chance(0.3) else "present"
        subject = self.sampler.definite_phrase(rng, noun, 0.0)
        texts = self.be(rng, subject, adjective, mode, NO_TIME)
        return make_sentence(texts, [combine(adjective, noun.korean), *subject.combinations])

    def two_qualities(self, rng: Rng) -> Sentence:
        """이 가방은 예쁜데 너무 비싸요. 이 방은 넓고 깨끗해요."""
        noun = rng.pick(self.describable)
        first, second = self.adjective(rng, noun), self.adjective(rng, noun)
        exclusive = first == second or any({first, second} <= set(group) for group in self.lists["opposites"])
        if exclusive or noun.kind in ("parent", "senior"):
            return self.two_qualities(rng)
        subject = self.sampler.definite_phrase(rng, noun, 0.0)
        first_predicate = self.predicates[first]
        contrasting = first in self.lists["conceding"] and (first in self.lists["unfavourable"]) != (
            second in self.lists["unfavourable"]
        )
        korean, conjunction = (
            (f"{first_predicate.attributive()}데", "but") if contrasting else (f"{first_predicate.stem}고", "and")
        )
        degree, english_degree = self.degree(rng, second)
        second_predicate = adjective_predicate(self.predicates[second], "present", False, False)
        texts = (
            join(
                particle(subject.text, "topic"),
                korean,
                degree,
                second_predicate,
            ),
            join(subject.english, english.be(subject.person), first, conjunction, english_degree, second),
        )
        combinations = [combine(first, noun.korean), combine(second, noun.korean)]
        return make_sentence(texts, [*combinations, *subject.combinations])

    def two_things(self, rng: Rng) -> Sentence:
        """제 방은 작고 수진 씨의 방은 넓어요."""
        noun = rng.pick(self.describable)
        other = rng.pick(self.same_kind[noun.kind])
        if noun.kind in ("parent", "senior") or other is noun:
            return self.two_things(rng)
        first, second = self.adjective(rng, noun), self.adjective(rng, other)
        first_subject, second_subject = (
            self.sampler.definite_phrase(rng, noun, 0.0),
            self.sampler.definite_phrase(rng, other, 0.0),
        )
        korean, translation = self.be(rng, second_subject, second, "present", NO_TIME)
        texts = (
            f"{particle(first_subject.text, 'topic')} {self.predicates[first].stem}고 {korean}",
            f"{first_subject.english} {english.be(first_subject.person)} {first}, and {translation}",
        )
        combinations = [combine(first, noun.korean), combine(second, other.korean)]
        return make_sentence(texts, [*combinations, *first_subject.combinations, *second_subject.combinations])

    def state(self, rng: Rng) -> Sentence:
        """민수 씨는 어제 아주 피곤했어요."""
        subject, adjective = self.sampler.subject(rng, STATE_SUBJECTS), rng.pick(self.lists["states"])
        past = rng.chance(0.5)
        time = rng.pick(TIMES.past[:4]) if past else TODAY
        texts = self.be(rng, subject, adjective, "past" if past else "present", time)
        combinations = [combine(adjective, subject.head)] if subject.head else []
        return make_sentence(texts, [*combinations, *subject.combinations])

    def naming(self, rng: Rng) -> Sentence:
        """이것은 제 새 가방이에요. 이것은 가방이 아니에요."""
        noun, determiner = rng.pick(self.groups["identified"]), rng.pick(("-", "제", "우리", "의"))
        phrase = self.sampler.determined_phrase(rng, noun, determiner, 0.6)
        (korean, translation), plural = rng.pick(DEMONSTRATIVES), phrase.person == 3
        verb = "are" if plural else "is"
        subject = translation[plural]
        if rng.chance(0.2):
            texts = (
                f"{korean} {particle(phrase.text, 'subject')} 아니에요",
                f"{subject} {verb} not {phrase.indefinite}",
            )
        else:
            texts = (f"{korean} {particle(phrase.text, 'is')}", f"{subject} {verb} {phrase.indefinite}")
        return make_sentence(texts, phrase.combinations)

    def job(self, rng: Rng) -> Sentence:
        """수진 씨는 의사예요. 수진 씨는 의사였어요. 수진 씨는 의사가 아니에요."""
        subject, noun = self.sampler.subject(rng, JOB_SUBJECTS), rng.pick(self.groups["jobs"])
        job = self.sampler.determined_phrase(rng, noun, "-", 0.3)
        form = rng.pick(("is", "is", "was", "not"))
        if form == "not":
            korean = f"{particle(job.text, 'subject')} 아니에요"
            translation = f"{english.be(subject.person)} not"
        else:
            korean = particle(job.text, form)
            translation = english.was(subject.person) if form == "was" else english.be(subject.person)
        texts = (f"{particle(subject.text, 'topic')} {korean}", f"{subject.english} {translation} {job.indefinite}")
        combinations = [combine(subject.head, "이다", noun.korean)] if subject.head else []
        return make_sentence(texts, [*combinations, *subject.combinations, *job.combinations])

    def comparatives(self, noun: Noun) -> list[str]:
        """Return the adjectives of a noun that have a comparative."""
        return [word for word in noun.adjectives if self.sampler.lexicon.adjectives[word].comparative]

    def comparison(self, rng: Rng) -> Sentence:
        """이 가방은 제 가방보다 더 커요. 민수 씨는 지영 씨보다 더 바빠요."""
        if rng.chance(0.25):
            adjective = rng.pick(self.lists["traits"])
            subject, standard = self.sampler.subject(rng, JOB_SUBJECTS), rng.pick(self.sampler.names)
        else:
            noun = rng.pick(self.compared)
            adjective = rng.pick(self.comparatives(noun))
            comparable = [
                other for other in self.compared if other.kind == noun.kind and adjective in other.adjectives
            ]
            subject, standard = (
                self.sampler.definite_phrase(rng, chosen, 0.0) for chosen in (noun, rng.pick(comparable))
            )
        if subject.head == standard.head and (
            subject.text == standard.text or standard.head in (subject.text, standard.text)
        ):
            return self.comparison(rng)
        predicate = adjective_predicate(self.predicates[adjective], "present", False, False)
        english_comparative = self.sampler.lexicon.adjectives[adjective].comparative
        texts = (
            f"{particle(subject.text, 'topic')} {standard.text}보다 더 {predicate}",
            f"{subject.english} {english.be(subject.person)} {english_comparative} than {standard.english}",
        )
        combinations = (
            [combine(adjective, subject.head), combine(subject.head, "보다", standard.head)] if subject.head else []
        )
        return make_sentence(texts, [*combinations, *subject.combinations, *standard.combinations])

    def draw_location(self, rng: Rng) -> tuple[str, str, Phrase]:
        """Draw a location: 책상 위에 | on the desk."""
        korean, english_position, places = rng.pick(self.positions)
        place = self.sampler.determined_phrase(rng, rng.pick(places), rng.pick(("-", "-", "제", "이")), 0.1)
        return f"{place.text} {korean}", f"{english_position} {place.english}", place

    def existence(self, rng: Rng) -> Sentence:
        """책상 위에 책이 세 권 있어요."""
        korean, translation, place = self.draw_location(rng)
        count = rng.pick_weighted(COUNTS) if rng.chance(0.6) else 0
        thing = self.sampler.determined_phrase(rng, rng.pick(self.groups["small"]), "-", 0.3, count)
        if thing.head == place.head:
            return self.existence(rng)
        past = rng.chance(0.3)
        verb = (english.was if past else english.be)(thing.person)
        texts = (
            join(korean, particle(thing.text, "subject"), thing.measure, "있었어요" if past else "있어요"),
            f"there {verb} {thing.indefinite} {translation}",
        )
        return make_sentence(
            texts, [combine(thing.head, "있다", place.head), *thing.combinations, *place.combinations]
        )

    def location(self, rng: Rng) -> Sentence:
        """제 열쇠는 책상 위에 있어요."""
        korean, translation, place = self.draw_location(rng)
        thing = self.sampler.definite_phrase(rng, rng.pick(self.groups["pets" if rng.chance(0.3) else "small"]))
        if thing.head == place.head:
            return self.location(rng)
        past = rng.chance(0.3)
        texts = (
            join(particle(thing.text, "topic"), korean, "있었어요" if past else "있어요"),
            join(thing.english, (english.was if past else english.be)(thing.person), translation),
        )
        return make_sentence(
            texts, [combine(thing.head, "있다", place.head), *thing.combinations, *place.combinations]
        )

    def possession(self, rng: Rng) -> Sentence:
        """저는 강아지가 두 마리 있어요. 민수 씨는 자동차가 없어요."""
        subject, noun = self.sampler.subject(rng, POSSESSION_SUBJECTS), rng.pick(self.groups["possessions"])
        has = rng.chance(0.75)
        count = rng.pick(range(1, 6)) if has else 0
        adjective = rng.pick(noun.adjectives) if noun.adjectives and rng.chance(0.25) else ""
        thing = noun_phrase(noun.korean, "-", adjective, count)
        verb = (
            ("has" if subject.person == 2 else "have")
            if has
            else f"{'does' if subject.person == 2 else 'do'} not have"
        )
        texts = (
            join(
                particle(subject.text, "topic"),
                particle(thing.text, "subject"),
                thing.measure,
                "있어요" if has else "없어요",
            ),
            f"{subject.english} {verb} {thing.indefinite}",
        )
        combinations = [combine(subject.head, "있다", noun.korean)] if subject.head else []
        return make_sentence(texts, [*combinations, *subject.combinations, *thing.combinations])
