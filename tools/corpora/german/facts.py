"""German-English sentences about qualities, identity, possession and location."""

from __future__ import annotations

from tools.corpora.choice import (
    BilingualClause,
    Rng,
    Sentence,
    SentenceKinds,
    TextPair,
    Weighted,
    combine,
    join,
    make_sentence,
)
from tools.corpora.clause import NO_TIME, Time
from tools.corpora.german.clause_sampler import ClauseSampler
from tools.corpora.german.clauses import TIMES
from tools.corpora.german.common import CONJUNCTIONS, be, coordinated, was
from tools.corpora.german.phrase_sampler import NO_OWNER
from tools.corpora.german.words import Noun, Phrase, noun_phrase

__all__ = ["Facts"]

HAVE = (("habe", "hast", "hat", "haben"), ("have", "have", "has", "have"))
DEGREES_WITH_ZU = Weighted({("", ""): 5, ("sehr", "very"): 4, ("nicht", "not"): 2, ("zu", "too"): 2})
DEGREES = Weighted({("", ""): 5, ("sehr", "very"): 4, ("nicht", "not"): 2})
DENIALS = Weighted({("", ""): 5, ("nicht", "not"): 2})
COMPARISONS = Weighted({("{more} als", "{more} than"): 4, ("so {much} wie", "as {much} as"): 1})
NAMED = ("ein", "mein", "dein", "unser", "-")
TODAY = Time("heute", "today")
THIS, THESE = ("das ist", "that is"), ("das sind", "those are")
OWNERS = (("mein", "my"), ("dein", "your"), ("unser", "our"))


class Facts:
    """Draw sentences with sein, haben, stehen ...; the docstring of each kind of sentence is an example."""

    def __init__(self, sampler: ClauseSampler) -> None:
        self.sampler, lexicon = sampler, sampler.lexicon
        lists, resolve = lexicon.tables["lists"], lexicon.resolve
        self.lists = lists
        self.owned = resolve(lists["owned"])
        self.possessions = [resolve(group) for group in lists["possessions"]]
        self.positions = [(row, resolve(things)) for *row, things in lists["positions"]]
        self.describable = [noun for noun in lexicon.nouns.values() if noun.adjectives]
        self.gradable = {word for word, adjective in lexicon.adjectives.items() if adjective.comparative}
        self.gradable |= set(lists["gradable"])
        self.same_kind = {
            noun.kind: [other for other in self.describable if other.kind == noun.kind] for noun in self.describable
        }
        self.comparable: dict[str, list[Noun]] = {
            word: [
                noun for noun in self.describable if word in noun.adjectives and noun.kind not in ("drink", "food")
            ]
            for word, adjective in lexicon.adjectives.items()
            if adjective.comparative
        }

    def kinds(self) -> SentenceKinds:
        """Return the functions that draw a sentence, with their frequencies."""
        return {
            self.quality: 5,
            self.state: 3,
            self.naming: 7,
            self.owned_quality: 4,
            self.comparison: 5,
            self.position: 4,
            self.possession: 3,
        }

    def known_owner(self, rng: Rng) -> tuple[str, str, str]:
        """Draw an owner: genitive, English possessive and noun (meines Bruders, my brother's, Bruder)."""
        if rng.chance(0.35):
            name = rng.pick(self.sampler.names).nominative
            return f"{name}s", f"{name}'s", name
        noun, (word, translation) = rng.pick(self.sampler.people["kin"]), rng.pick(OWNERS)
        ending = "er" if noun.gender == "f" else "es"
        return (
            f"{word}{ending} {self.sampler.lexicon.genitive(noun)}",
            f"{translation} {noun.english}'s",
            noun.singular,
        )

    def copula(self, rng: Rng, subject: Phrase, adjective: str, past: bool, time: Time) -> TextPair:
        """Make a clause: the subject is or was like the adjective."""
        degrees = DEGREES_WITH_ZU if adjective in self.lists["excessive"] else DEGREES
        degree, english_degree = rng.pick_weighted(degrees if adjective in self.gradable else DENIALS)
        german, translation = was(subject) if past else be(subject)
        word = self.sampler.lexicon.adjectives[adjective].english
        return (
            join(subject.nominative, german, time.foreign, degree, adjective),
            join(subject.english, translation, english_degree, word, time.english),
        )

    def state(self, rng: Rng) -> Sentence:
        """Anna war gestern sehr müde."""
        subject, adjective, past = (
            self.sampler.subject(rng, "human"),
            rng.pick(self.lists["states"]),
            rng.chance(0.5),
        )
        texts = self.copula(rng, subject, adjective, past, rng.pick(TIMES.past[:4]) if past else TODAY)
        combinations = [combine(adjective, subject.head)] if subject.head else []
        return make_sentence(texts, [*combinations, *subject.combinations])

    def quality(self, rng: Rng) -> Sentence:
        """Dieser Apfel ist sehr süß, aber die Birne ist nicht süß."""
        noun, past = rng.pick(self.describable), rng.chance(0.35)
        first = self.one_quality(rng, noun, past)
        other = rng.pick(self.same_kind[noun.kind])
        if other is noun or rng.chance(0.3):
            return make_sentence(*first)
        return make_sentence(*coordinated(rng.pick(CONJUNCTIONS), first, self.one_quality(rng, other, past)))

    def one_quality(self, rng: Rng, noun: Noun, past: bool) -> BilingualClause:
        """Draw a clause with a noun and one of its adjectives."""
        adjective = rng.pick(noun.adjectives)
        subject = self.sampler.definite_phrase(rng, noun, NO_OWNER, 0.0, 0.2)
        return self.copula(rng, subject, adjective, past, NO_TIME), [combine(adjective, noun.singular)]

    def naming(self, rng: Rng) -> Sentence:
        """Das ist mein neues Auto. Das ist keine Katze, sondern ein kleiner Hund."""
        noun = rng.pick(self.describable)
        plural = "-" in noun.plural_determiners and rng.chance(0.25)
        german, translation = THESE if plural else THIS
        first = self.named(rng, noun, plural)
        if not rng.chance(0.4):
            texts = (join(german, first.nominative), join(translation, first.english))
            return make_sentence(texts, first.combinations)
        other = rng.pick(self.same_kind[noun.kind])
        if other is noun or plural > ("-" in other.plural_determiners):
            return self.naming(rng)
        negated = self.sampler.determined_phrase(
            rng, other, "kein" if {"ein", "-"} & set(other.determiners) else "mein", plural, 0.5
        )
        negation = "nicht" if negated.definite else ""
        texts = (
            f"{join(german, negation, negated.nominative)}, sondern {first.nominative}",
            f"{translation} not {negated.english} but {first.english}",
        )
        return make_sentence(texts, [*first.combinations, *negated.combinations])

    def named(self, rng: Rng, noun: Noun, plural: bool) -> Phrase:
        """Draw a predicate noun with ein, mein ..., usually with an adjective."""
        determiners = noun.plural_determiners if plural else noun.determiners
        return self.sampler.determined_phrase(
            rng, noun, rng.pick([word for word in determiners if word in NAMED]), plural, 0.9
        )

    def owned_quality(self, rng: Rng) -> Sentence:
        """Das Auto meines Bruders ist rot. Annas Auto ist rot."""
        noun = rng.pick(self.owned)
        german, translation, owner = self.known_owner(rng)
        thing = noun_phrase(noun.singular, "der", "", False)
        place = f"{german} {noun.singular}" if " " not in german else f"{thing.nominative} {german}"
        subject = Phrase(place, "", "", f"{translation} {noun.english}", 2, thing.gender, noun.singular)
        adjective = rng.pick(noun.adjectives)
        combinations = [combine(adjective, noun.singular), combine(owner, noun.singular)]
        return make_sentence(self.copula(rng, subject, adjective, rng.chance(0.35), NO_TIME), combinations)

    def comparison(self, rng: Rng) -> Sentence:
        """Der Hund ist größer als die Katze."""
        adjective = rng.pick(tuple(self.comparable))
        word = self.sampler.lexicon.adjectives[adjective]
        if adjective in self.lists["traits"] and rng.chance(0.6):
            subject, standard = rng.pick(self.sampler.names), self.sampler.subject(rng, "kin")
            if rng.chance(0.5):
                subject, standard = standard, subject
        else:
            first = rng.pick(self.comparable[adjective])
            second = rng.pick([noun for noun in self.comparable[adjective] if noun.kind == first.kind])
            if first is second:
                return self.comparison(rng)
            subject, standard = (self.sampler.definite_phrase(rng, noun, NO_OWNER, 0.0) for noun in (first, second))
        german, translation = rng.pick_weighted(COMPARISONS)
        german = german.format(more=word.comparative, much=adjective)
        translation = translation.format(more=word.english_comparative, much=word.english)
        texts = (
            f"{subject.nominative} {be(subject)[0]} {german} {standard.nominative}",
            f"{subject.english} {be(subject)[1]} {translation} {standard.english}",
        )
        combinations = [combine(adjective, subject.head), combine(subject.head, "als", standard.head)]
        return make_sentence(texts, [*combinations, *subject.combinations, *standard.combinations])

    def position(self, rng: Rng) -> Sentence:
        """Der Schlüssel liegt unter dem Stuhl."""
        (verb, singular, plural, english_verb), things = rng.pick(self.positions)
        noun = rng.pick(things)
        thing = (
            self.sampler.definite_phrase(rng, noun, NO_OWNER)
            if rng.chance(0.6)
            else self.sampler.any_phrase(rng, noun, NO_OWNER)
        )
        preposition, english_preposition, place = self.sampler.location(
            rng, "outdoors" if verb == "sitzen" else "indoors"
        )
        if place.head == noun.singular:
            return self.position(rng)
        texts = (
            f"{thing.nominative} {singular if thing.person == 2 else plural} {preposition} {place.dative}",
            f"{thing.english} {be(thing)[1]} {english_verb} {english_preposition} {place.english}",
        )
        combinations = [combine(noun.singular, preposition), combine(noun.singular, place.head)]
        return make_sentence(texts, [*combinations, *thing.combinations, *place.combinations])

    def possession(self, rng: Rng) -> Sentence:
        """Mein Bruder hat einen Hund und drei Katzen."""
        subject = self.sampler.subject(rng, "human")
        group = rng.pick(self.possessions)
        nouns = (rng.pick(group), rng.pick(group))
        if nouns[0] is nouns[1]:
            return self.possession(rng)
        things = [
            self.sampler.determined_phrase(rng, noun, "ein", False, 0.4)
            if rng.chance(0.6)
            else self.sampler.determined_phrase(rng, noun, rng.pick(("2", "3", "4", "5")), True, 0.4)
            for noun in nouns
        ]
        texts = (
            f"{subject.nominative} {HAVE[0][subject.person]} {things[0].accusative} und {things[1].accusative}",
            f"{subject.english} {HAVE[1][subject.person]} {things[0].english} and {things[1].english}",
        )
        combinations = [*subject.combinations, *things[0].combinations, *things[1].combinations]
        return make_sentence(texts, [*combinations, combine("haben", *(noun.singular for noun in nouns))])
