"""German-English sentences of one clause with a verb of action: statements and questions."""

from __future__ import annotations

from tools.corpora.choice import Rng, Sentence, SentenceKinds, TextPair, combine, join, make_sentence
from tools.corpora.clause import NO_TIME
from tools.corpora.german.clause_sampler import ClauseSampler, Use
from tools.corpora.german.clauses import Clause, fronted, question, statement
from tools.corpora.german.words import Phrase

__all__ = ["Statements"]

WHY = ("warum", "why")
ADVERBIALS = (("wo", "where"), WHY, ("wann", "when"))
QUESTION_SUBJECTS = ("name", "person", "kin")
INTERROGATIVE = Phrase("wer", "wen", "wem", "who", 2, "", "")


def wh_question(question_words: TextPair, clause: Clause) -> Sentence:
    """Make a question with a question word."""
    german, translation = question(clause)
    return make_sentence(
        (f"{question_words[0]} {german}", f"{question_words[1]} {translation}"), clause.all_combinations(), "?"
    )


class Statements:
    """Draw statements and questions of one clause; the docstring of each kind of sentence is an example."""

    def __init__(self, sampler: ClauseSampler) -> None:
        self.sampler = sampler
        verbs, resolve = sampler.lexicon.verbs, sampler.lexicon.resolve
        putting = sampler.lexicon.tables["lists"]["putting"]
        self.putting = [Use(verbs[verb], "gpfm", nouns=resolve(things)) for verb, things in putting]

    def kinds(self) -> SentenceKinds:
        """Return the functions that draw a sentence, with their frequencies."""
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
        clause = self.sampler.any_clause(rng)
        order = fronted if clause.time.fronts and rng.chance(0.4) else statement
        return make_sentence(order(clause), clause.all_combinations())

    def yes_no(self, rng: Rng) -> Sentence:
        """Hat Anna gestern den Ball gesucht?"""
        clause = self.sampler.any_clause(rng, "higpfm")
        if clause.subject.person == 0:
            return self.yes_no(rng)
        return make_sentence(question(clause), clause.all_combinations(), "?")

    def who(self, rng: Rng) -> Sentence:
        """Wer hat gestern den Ball gesucht?"""
        clause = self.sampler.any_clause(rng, "pfm", INTERROGATIVE)
        return make_sentence(statement(clause), clause.all_combinations(), "?")

    def what(self, rng: Rng) -> Sentence:
        """Was hat Anna gestern gesucht? Wen hat Anna gestern besucht?"""
        use = rng.pick_weighted(self.sampler.object_uses)
        clause, _ = self.sampler.start_clause(
            rng, use, "pfgmsk", self.sampler.subject(rng, rng.pick(QUESTION_SUBJECTS))
        )
        clause.negative = False
        return wh_question(("wen", "who") if use.nouns[0].kind in ("kin", "person") else ("was", "what"), clause)

    def why(self, rng: Rng) -> Sentence:
        """Warum hat Anna den Ball gesucht?"""
        clause = self.sampler.object_clause(rng, "pf")
        question_words = rng.pick(ADVERBIALS)
        if clause.subject.person == 0 or (clause.negative and question_words is not WHY):
            return self.why(rng)
        clause.time = NO_TIME
        return wh_question(question_words, clause)

    def how_many(self, rng: Rng) -> Sentence:
        """Wie viele Äpfel hat Anna gestern gekauft?"""
        use = self.sampler.object_use(rng, "p")
        counted = [noun for noun in use.nouns if "-" in noun.plural_determiners]
        if not counted:
            return self.how_many(rng)
        noun = rng.pick(counted)
        clause, _ = self.sampler.start_clause(
            rng, use, "pf", self.sampler.subject(rng, rng.pick(QUESTION_SUBJECTS))
        )
        clause.negative = False
        clause.combinations.append(combine(use.verb.infinitive, noun.singular))
        return wh_question((f"wie viele {noun.plural}", f"how many {noun.english_plural}"), clause)

    def put(self, rng: Rng) -> Sentence:
        """Anna hat den Schlüssel auf den Tisch gelegt."""
        use = rng.pick(self.putting)
        clause, letter = self.sampler.start_clause(rng, use)
        clause.negative = False
        thing = self.sampler.draw_object(rng, clause, letter, use.nouns)
        preposition, english_preposition, place = self.sampler.location(rng, "indoors")
        clause.late = join(thing.accusative, preposition, place.accusative)
        clause.rest = join(thing.english, english_preposition, place.english)
        clause.combinations += [
            combine(thing.head, preposition),
            combine(thing.head, place.head),
            *place.combinations,
        ]
        return make_sentence(statement(clause), clause.all_combinations())
