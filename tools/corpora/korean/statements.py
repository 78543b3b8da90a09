"""Korean-English sentences of one clause with a verb of action: statements and questions."""

from __future__ import annotations

from collections import Counter

from tools.corpora.choice import Rng, Sentence, SentenceKinds, Weighted, combine, join, make_sentence
from tools.corpora.clause import NO_TIME, question_english, statement_english
from tools.corpora.korean.clause_sampler import ClauseSampler
from tools.corpora.korean.clauses import fronted, predicate, question, statement
from tools.corpora.korean.hangul import particle
from tools.corpora.korean.words import Phrase

__all__ = ["Statements"]

QUESTION_SUBJECTS = Weighted({"name": 26, "person": 20, "kin": 12})
INTERROGATIVE = Phrase("누구", "who", "who", "", 2, "")
ADVERBIALS = (("어디에서", "where"), ("왜", "why"), ("언제", "when"))
PEOPLE = ("person", "kin", "senior")


class Statements:
    """Draw statements and questions of one clause; the docstring of each kind of sentence is an example."""

    def __init__(self, sampler: ClauseSampler) -> None:
        self.sampler = sampler
        uses = sampler.object_uses.items
        verb_counts = Counter(verb for verb in {use.name: use.verb.english.base for use in uses}.values())
        self.askable_uses = Weighted(
            {use: 1 for use in uses if verb_counts[use.verb.english.base] == 1 and set("pfgm") & set(use.modes)}
        )  # "what did she wear" would not tell which Korean verb is meant

    def kinds(self) -> SentenceKinds:
        """Return the functions that draw a sentence, with their frequencies."""
        return {
            self.simple: 42,
            self.yes_no: 7,
            self.who: 4,
            self.what: 4,
            self.why: 4,
            self.how_many: 3,
        }

    def simple(self, rng: Rng) -> Sentence:
        """어제 민수 씨는 책을 샀어요."""
        clause = self.sampler.any_clause(rng)
        order = fronted if clause.time.fronts and rng.chance(0.4) else statement
        return make_sentence(order(clause), clause.all_combinations())

    def yes_no(self, rng: Rng) -> Sentence:
        """민수 씨는 어제 책을 샀어요?"""
        clause = self.sampler.any_clause(rng, "higpfm", self.sampler.subject(rng, QUESTION_SUBJECTS))
        return make_sentence(question(clause), clause.all_combinations(), "?")

    def who(self, rng: Rng) -> Sentence:
        """어제 누가 그 책을 샀어요?"""
        clause = self.sampler.any_clause(rng, "pf", INTERROGATIVE)
        korean = join(clause.time.foreign, "누가", clause.before, predicate(clause))
        return make_sentence((korean, statement_english(clause)), clause.all_combinations(), "?")

    def what(self, rng: Rng) -> Sentence:
        """민수 씨는 어제 무엇을 샀어요? 민수 씨는 어제 누구를 만났어요?"""
        use = rng.pick_weighted(self.askable_uses)
        clause, _ = self.sampler.start_clause(rng, use, "pfgm", self.sampler.subject(rng, QUESTION_SUBJECTS))
        clause.mode, clause.negative = "past" if clause.mode == "could" else clause.mode, False
        question_word, english_question_word = (
            ("누구를", "who") if use.nouns[0].kind in PEOPLE else ("무엇을", "what")
        )
        clause.before = question_word
        return make_sentence(
            (statement(clause)[0], f"{english_question_word} {question_english(clause)}"),
            clause.all_combinations(),
            "?",
        )

    def why(self, rng: Rng) -> Sentence:
        """민수 씨는 왜 책을 샀어요?"""
        question_word, english_question_word = rng.pick(ADVERBIALS)
        clause = self.sampler.any_clause(rng, "pf", self.sampler.subject(rng, QUESTION_SUBJECTS))
        known_place = "에서 " in f"{clause.before} " or clause.verb.english.base in ("go", "come", "arrive", "live")
        if (english_question_word != "why" and clause.negative) or (
            english_question_word == "where" and known_place
        ):
            return self.why(rng)
        clause.time, clause.before = NO_TIME, join(question_word, clause.before)
        return make_sentence(
            (statement(clause)[0], f"{english_question_word} {question_english(clause)}"),
            clause.all_combinations(),
            "?",
        )

    def how_many(self, rng: Rng) -> Sentence:
        """민수 씨는 어제 사과를 몇 개 샀어요?"""
        use = self.sampler.object_use(rng, "p")
        counted = [noun for noun in use.nouns if noun.counter and "-" in noun.determiners and "o" not in use.modes]
        if not counted:
            return self.how_many(rng)
        noun = rng.pick(counted)
        clause, _ = self.sampler.start_clause(rng, use, "p", self.sampler.subject(rng, QUESTION_SUBJECTS))
        clause.mode, clause.negative = "past", False
        clause.combinations.append(combine(use.name, noun.korean))
        english_noun = f"{noun.units} of {noun.english}" if noun.unit else noun.plural
        clause.before = f"{particle(noun.korean, 'object')} 몇 {noun.counter}"
        return make_sentence(
            (statement(clause)[0], f"how many {english_noun} {question_english(clause)}"),
            clause.all_combinations(),
            "?",
        )
