"""German-English sentences of one clause with a verb of action: statements and questions."""

from __future__ import annotations

from manyheads.data.grammars.choice import Dice, Sentence, combine, join
from manyheads.data.grammars.clause import NO_TIME
from manyheads.data.grammars.german.clauses import Clause, fronted, question, statement
from manyheads.data.grammars.german.common import Kinds, Texts, finished
from manyheads.data.grammars.german.drawing import Drawing, Use
from manyheads.data.grammars.german.words import Phrase

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

    def simple(self, dice: Dice) -> Sentence:
        """Gestern hat Anna den Ball gesucht."""
        clause = self.words.any_clause(dice)
        order = fronted if clause.time.fronts and dice.chance(0.4) else statement
        return finished(order(clause), clause.met())

    def yes_no(self, dice: Dice) -> Sentence:
        """Hat Anna gestern den Ball gesucht?"""
        clause = self.words.any_clause(dice, "higpfm")
        if clause.subject.person == 0:
            return self.yes_no(dice)
        return finished(question(clause), clause.met(), "?")

    def who(self, dice: Dice) -> Sentence:
        """Wer hat gestern den Ball gesucht?"""
        clause = self.words.any_clause(dice, "pfm", SOMEBODY)
        return finished(statement(clause), clause.met(), "?")

    def what(self, dice: Dice) -> Sentence:
        """Was hat Anna gestern gesucht? Wen hat Anna gestern besucht?"""
        use = dice.weigh(self.words.object_uses)
        clause, _ = self.words.started(dice, use, "pfgmsk", self.words.subject(dice, dice.pick(ASKED_ABOUT)))
        clause.negative = False
        return asked(("wen", "who") if use.nouns[0].kind in ("kin", "person") else ("was", "what"), clause)

    def why(self, dice: Dice) -> Sentence:
        """Warum hat Anna den Ball gesucht?"""
        clause = self.words.object_clause(dice, "pf")
        words = dice.pick(ADVERBIALS)
        if clause.subject.person == 0 or (clause.negative and words is not WHY):
            return self.why(dice)
        clause.time = NO_TIME
        return asked(words, clause)

    def how_many(self, dice: Dice) -> Sentence:
        """Wie viele Äpfel hat Anna gestern gekauft?"""
        use = self.words.object_use(dice, "p")
        counted = [noun for noun in use.nouns if "-" in noun.plural_determiners]
        if not counted:
            return self.how_many(dice)
        noun = dice.pick(counted)
        clause, _ = self.words.started(dice, use, "pf", self.words.subject(dice, dice.pick(ASKED_ABOUT)))
        clause.negative = False
        clause.combinations.append(combine(use.verb.infinitive, noun.singular))
        return asked((f"wie viele {noun.plural}", f"how many {noun.english_plural}"), clause)

    def put(self, dice: Dice) -> Sentence:
        """Anna hat den Schlüssel auf den Tisch gelegt."""
        use = dice.pick(self.putting)
        clause, letter = self.words.started(dice, use)
        clause.negative = False
        thing = self.words.thing(dice, clause, letter, use.nouns)
        german, word, place = self.words.location(dice, "indoors")
        clause.late = join(thing.accusative, german, place.accusative)
        clause.rest = join(thing.english, word, place.english)
        clause.combinations += [combine(thing.head, german), combine(thing.head, place.head), *place.combinations]
        return finished(statement(clause), clause.met())
