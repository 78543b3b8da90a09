"""Korean-English sentences about what is how, what it is, where it is, and who has it."""

from __future__ import annotations

from tools.corpora import english
from tools.corpora.choice import Kinds, Rng, Sentence, Texts, Weighted, combine, finished, join
from tools.corpora.clause import NO_TIME, Time
from tools.corpora.korean.clauses import TIMES
from tools.corpora.korean.drawing import Drawing
from tools.corpora.korean.hangul import particle
from tools.corpora.korean.phrases import COUNTS
from tools.corpora.korean.verbs import quality
from tools.corpora.korean.words import Noun, Phrase, noun_phrase

__all__ = ["Facts"]

DEGREES = Weighted({("", ""): 5, ("아주", "very"): 3, ("정말", "really"): 2})
EXCESSES = Weighted({("", ""): 5, ("아주", "very"): 3, ("정말", "really"): 1, ("너무", "too"): 3})
TODAY = Time("오늘", "today")
WHO_FEELS = Weighted({"I": 3, "name": 5, "kin": 3, "person": 3, "senior": 2})
WHO_WORKS = Weighted({"I": 2, "name": 6, "kin": 4})
WHO_HAS = Weighted({"I": 4, "name": 6, "kin": 2, "person": 2})
POINTING = (("이것은", ("this", "these")), ("그것은", ("that", "those")))


class Facts:
    """Sentences with adjectives, 이다 and 있다."""

    def __init__(self, words: Drawing) -> None:
        self.words, lexicon = words, words.lexicon
        self.said = said = lexicon.tables["said"]
        self.predicates = {name: word.predicate for name, word in lexicon.adjectives.items() if word.predicate}
        self.gradable = {name for name, word in lexicon.adjectives.items() if word.comparative} | set(
            said["gradable"]
        )
        self.describable = [
            noun for noun in lexicon.nouns.values() if any(word in self.predicates for word in noun.adjectives)
        ]
        self.alike: dict[str, list[Noun]] = {}
        for noun in self.describable:
            self.alike.setdefault(noun.kind, []).append(noun)
        self.positions = [(korean, word, lexicon.resolve(places)) for korean, word, places in said["positions"]]
        groups = ("small", "pets", "having", "jobs", "named")
        self.groups = {name: lexicon.resolve(said[name]) for name in groups}
        self.compared = [noun for noun in lexicon.resolve(said["compared"]) if self.comparatives(noun)]

    def kinds(self) -> Kinds:
        """The kinds of sentence made here."""
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
        """An adjective that can be said of a noun."""
        return rng.pick([word for word in noun.adjectives if word in self.predicates])

    def degree(self, rng: Rng, adjective: str) -> Texts:
        """How very."""
        if adjective not in self.gradable:
            return "", ""
        return rng.weigh(EXCESSES if adjective in self.said["excessive"] else DEGREES)

    def be(self, rng: Rng, subject: Phrase, adjective: str, mode: str, time: Time) -> Texts:
        """Somebody or something is or was like this."""
        korean, how = self.degree(rng, adjective)
        negative = not korean and adjective in self.said["deniable"] and rng.chance(0.4)
        predicate = quality(self.predicates[adjective], mode, subject.honorific, negative)
        form = english.was if mode == "past" else english.be
        no = "not" if negative else ""
        return (
            join(particle(subject.text, "topic"), time.foreign, korean, predicate),
            join(subject.english, form(subject.person), no, how, adjective, time.english),
        )

    def described(self, rng: Rng) -> Sentence:
        """이 가방은 너무 비싸요."""
        noun = rng.pick(self.describable)
        adjective, mode = self.adjective(rng, noun), "past" if rng.chance(0.3) else "present"
        subject = self.words.known_phrase(rng, noun, 0.0)
        texts = self.be(rng, subject, adjective, mode, NO_TIME)
        return finished(texts, [combine(adjective, noun.korean), *subject.combinations])

    def two_qualities(self, rng: Rng) -> Sentence:
        """이 가방은 예쁜데 너무 비싸요. 이 방은 넓고 깨끗해요."""
        noun = rng.pick(self.describable)
        first, second = self.adjective(rng, noun), self.adjective(rng, noun)
        alike = first == second or any({first, second} <= set(group) for group in self.said["opposites"])
        if alike or noun.kind in ("parent", "senior"):
            return self.two_qualities(rng)
        subject = self.words.known_phrase(rng, noun, 0.0)
        one = self.predicates[first]
        clash = first in self.said["conceding"] and (first in self.said["bad"]) != (second in self.said["bad"])
        korean, word = (f"{one.attributive()}데", "but") if clash else (f"{one.stem}고", "and")
        how, very = self.degree(rng, second)
        end = quality(self.predicates[second], "present", False, False)
        texts = (
            join(
                particle(subject.text, "topic"),
                korean,
                how,
                end,
            ),
            join(subject.english, english.be(subject.person), first, word, very, second),
        )
        met = [combine(first, noun.korean), combine(second, noun.korean)]
        return finished(texts, [*met, *subject.combinations])

    def two_things(self, rng: Rng) -> Sentence:
        """제 방은 작고 수진 씨의 방은 넓어요."""
        noun = rng.pick(self.describable)
        other = rng.pick(self.alike[noun.kind])
        if noun.kind in ("parent", "senior") or other is noun:
            return self.two_things(rng)
        first, second = self.adjective(rng, noun), self.adjective(rng, other)
        one, two = self.words.known_phrase(rng, noun, 0.0), self.words.known_phrase(rng, other, 0.0)
        korean, said = self.be(rng, two, second, "present", NO_TIME)
        texts = (
            f"{particle(one.text, 'topic')} {self.predicates[first].stem}고 {korean}",
            f"{one.english} {english.be(one.person)} {first}, and {said}",
        )
        met = [combine(first, noun.korean), combine(second, other.korean)]
        return finished(texts, [*met, *one.combinations, *two.combinations])

    def state(self, rng: Rng) -> Sentence:
        """민수 씨는 어제 아주 피곤했어요."""
        subject, adjective = self.words.subject(rng, WHO_FEELS), rng.pick(self.said["states"])
        past = rng.chance(0.5)
        time = rng.pick(TIMES.past[:4]) if past else TODAY
        texts = self.be(rng, subject, adjective, "past" if past else "present", time)
        met = [combine(adjective, subject.head)] if subject.head else []
        return finished(texts, [*met, *subject.combinations])

    def naming(self, rng: Rng) -> Sentence:
        """이것은 제 새 가방이에요. 이것은 가방이 아니에요."""
        noun, determiner = rng.pick(self.groups["named"]), rng.pick(("-", "제", "우리", "의"))
        phrase = self.words.described(rng, noun, determiner, 0.6)
        (korean, said), plural = rng.pick(POINTING), phrase.person == 3
        verb = "are" if plural else "is"
        subject = said[plural]
        if rng.chance(0.2):
            texts = (
                f"{korean} {particle(phrase.text, 'subject')} 아니에요",
                f"{subject} {verb} not {phrase.indefinite}",
            )
        else:
            texts = (f"{korean} {particle(phrase.text, 'is')}", f"{subject} {verb} {phrase.indefinite}")
        return finished(texts, phrase.combinations)

    def job(self, rng: Rng) -> Sentence:
        """수진 씨는 의사예요. 수진 씨는 의사였어요. 수진 씨는 의사가 아니에요."""
        subject, noun = self.words.subject(rng, WHO_WORKS), rng.pick(self.groups["jobs"])
        job = self.words.described(rng, noun, "-", 0.3)
        form = rng.pick(("is", "is", "was", "not"))
        if form == "not":
            korean = f"{particle(job.text, 'subject')} 아니에요"
            said = f"{english.be(subject.person)} not"
        else:
            korean = particle(job.text, form)
            said = english.was(subject.person) if form == "was" else english.be(subject.person)
        texts = (f"{particle(subject.text, 'topic')} {korean}", f"{subject.english} {said} {job.indefinite}")
        met = [combine(subject.head, "이다", noun.korean)] if subject.head else []
        return finished(texts, [*met, *subject.combinations, *job.combinations])

    def comparatives(self, noun: Noun) -> list[str]:
        """The adjectives by which a noun is compared."""
        return [word for word in noun.adjectives if self.words.lexicon.adjectives[word].comparative]

    def comparison(self, rng: Rng) -> Sentence:
        """이 가방은 제 가방보다 더 커요. 민수 씨는 지영 씨보다 더 바빠요."""
        if rng.chance(0.25):
            adjective = rng.pick(self.said["traits"])
            one, two = self.words.subject(rng, WHO_WORKS), rng.pick(self.words.names)
        else:
            noun = rng.pick(self.compared)
            adjective = rng.pick(self.comparatives(noun))
            alike = [other for other in self.compared if other.kind == noun.kind and adjective in other.adjectives]
            one, two = (self.words.known_phrase(rng, chosen, 0.0) for chosen in (noun, rng.pick(alike)))
        if one.head == two.head and (one.text == two.text or two.head in (one.text, two.text)):
            return self.comparison(rng)
        predicate = quality(self.predicates[adjective], "present", False, False)
        more = self.words.lexicon.adjectives[adjective].comparative
        texts = (
            f"{particle(one.text, 'topic')} {two.text}보다 더 {predicate}",
            f"{one.english} {english.be(one.person)} {more} than {two.english}",
        )
        met = [combine(adjective, one.head), combine(one.head, "보다", two.head)] if one.head else []
        return finished(texts, [*met, *one.combinations, *two.combinations])

    def spot(self, rng: Rng) -> tuple[str, str, Phrase]:
        """A position: 책상 위에 | on the desk."""
        korean, word, places = rng.pick(self.positions)
        place = self.words.described(rng, rng.pick(places), rng.pick(("-", "-", "제", "이")), 0.1)
        return f"{place.text} {korean}", f"{word} {place.english}", place

    def existence(self, rng: Rng) -> Sentence:
        """책상 위에 책이 세 권 있어요."""
        korean, said, place = self.spot(rng)
        count = rng.weigh(COUNTS) if rng.chance(0.6) else 0
        thing = self.words.described(rng, rng.pick(self.groups["small"]), "-", 0.3, count)
        if thing.head == place.head:
            return self.existence(rng)
        past = rng.chance(0.3)
        verb = (english.was if past else english.be)(thing.person)
        texts = (
            join(korean, particle(thing.text, "subject"), thing.measure, "있었어요" if past else "있어요"),
            f"there {verb} {thing.indefinite} {said}",
        )
        return finished(texts, [combine(thing.head, "있다", place.head), *thing.combinations, *place.combinations])

    def location(self, rng: Rng) -> Sentence:
        """제 열쇠는 책상 위에 있어요."""
        korean, said, place = self.spot(rng)
        thing = self.words.known_phrase(rng, rng.pick(self.groups["pets" if rng.chance(0.3) else "small"]))
        if thing.head == place.head:
            return self.location(rng)
        past = rng.chance(0.3)
        texts = (
            join(particle(thing.text, "topic"), korean, "있었어요" if past else "있어요"),
            join(thing.english, (english.was if past else english.be)(thing.person), said),
        )
        return finished(texts, [combine(thing.head, "있다", place.head), *thing.combinations, *place.combinations])

    def possession(self, rng: Rng) -> Sentence:
        """저는 강아지가 두 마리 있어요. 민수 씨는 자동차가 없어요."""
        subject, noun = self.words.subject(rng, WHO_HAS), rng.pick(self.groups["having"])
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
        met = [combine(subject.head, "있다", noun.korean)] if subject.head else []
        return finished(texts, [*met, *subject.combinations, *thing.combinations])
