"""German-English sentences of one clause with a verb of action: statements and questions."""

from __future__ import annotations

from tools.corpora.choice import Kinds, Rng, Sentence, Texts, combine, finished, join
from tools.corpora.clause import NO_TIME
from tools.corpora.german.clauses import Clause, fronted, question, statement
from tools.corpora.german.drawing import Drawing, Use
from tools.corpora.german.words import Phrase

__all__ = ["Statements"]

WHY = ("warum", "why")
ADVERBIALS = (("wo", "where"), WHY, ("wann", "when"))
ASKED_ABOUT = ("name", "person", "kin")
SOMEBODY = Phrase("wer", "wen", "wem", "who", 2, "", "")


def asked(words: Texts, clause: Clause) -> Sentence:
    """A question with a question word."""
    german, said = question(clause)
    return finished((f"{words[0]} {german}", f"{words[1]} {said}"), clause.met(), "?")


class Statements:
    """Who does what to whom, where and when; and who, what, where, when, why."""

    def __init__(self, words: Drawing) -> None:
        self.words = words
        verbs, resolve = words.lexicon.verbs, words.lexicon.resolve
        putting = words.lexicon.tables["said"]["putting"]
        self.putting = [Use(verbs[verb], "gpfm", nouns=resolve(things)) for verb, things in putting]

    def kinds(self) -> Kinds:
        """The kinds of sentence made here."""
        return {
            self.simple: 40,
            self.yes_no: 7,
            self.who: 3,
            self.what: 3,
            self.why: 3,
            self.how_many: 2,
            self.put: 4,
        }

    def simple(self, rng: Rng) -> Sentence:
        """Gestern hat Anna den Ball gesucht."""
        clause = self.words.any_clause(rng)
        order = fronted if clause.time.fronts and rng.chance(0.4) else statement
        return finished(order(clause), clause.met())

    def yes_no(self, rng: Rng) -> Sentence:
        """Hat Anna gestern den Ball gesucht?"""
        clause = self.words.any_clause(rng, "higpfm")
        if clause.subject.person == 0:
            return self.yes_no(rng)
        return finished(question(clause), clause.met(), "?")

    def who(self, rng: Rng) -> Sentence:
        """Wer hat gestern den Ball gesucht?"""
        clause = self.words.any_clause(rng, "pfm", SOMEBODY)
        return finished(statement(clause), clause.met(), "?")

    def what(self, rng: Rng) -> Sentence:
        """Was hat Anna gestern gesucht? Wen hat Anna gestern besucht?"""
        use = rng.weigh(self.words.object_uses)
        clause, _ = self.words.started(rng, use, "pfgmsk", self.words.subject(rng, rng.pick(ASKED_ABOUT)))
        clause.negative = False
        return asked(("wen", "who") if use.nouns[0].kind in ("kin", "person") else ("was", "what"), clause)

    def why(self, rng: Rng) -> Sentence:
        """Warum hat Anna den Ball gesucht?"""
        clause = self.words.object_clause(rng, "pf")
        words = rng.pick(ADVERBIALS)
        if clause.subject.person == 0 or (clause.negative and words is not WHY):
            return self.why(rng)
        clause.time = NO_TIME
        return asked(words, clause)

    def how_many(self, rng: Rng) -> Sentence:
        """Wie viele Äpfel hat Anna gestern gekauft?"""
        use = self.words.object_use(rng, "p")
        counted = [noun for noun in use.nouns if "-" in noun.plural_determiners]
        if not counted:
            return self.how_many(rng)
        noun = rng.pick(counted)
        clause, _ = self.words.started(rng, use, "pf", self.words.subject(rng, rng.pick(ASKED_ABOUT)))
        clause.negative = False
        clause.combinations.append(combine(use.verb.infinitive, noun.singular))
        return asked((f"wie viele {noun.plural}", f"how many {noun.english_plural}"), clause)

    def put(self, rng: Rng) -> Sentence:
        """Anna hat den Schlüssel auf den Tisch gelegt."""
        use = rng.pick(self.putting)
        clause, letter = self.words.started(rng, use)
        clause.negative = False
        thing = self.words.thing(rng, clause, letter, use.nouns)
        german, word, place = self.words.location(rng, "indoors")
        clause.late = join(thing.accusative, german, place.accusative)
        clause.rest = join(thing.english, word, place.english)
        clause.combinations += [combine(thing.head, german), combine(thing.head, place.head), *place.combinations]
        return finished(statement(clause), clause.met())
