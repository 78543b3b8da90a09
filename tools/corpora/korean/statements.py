"""Korean-English sentences of one clause with a verb of action: statements and questions."""

from __future__ import annotations

from collections import Counter

from tools.corpora.choice import Kinds, Rng, Sentence, Weighted, combine, finished, join
from tools.corpora.clause import NO_TIME, question_english, statement_english
from tools.corpora.korean.clauses import fronted, predicate, question, statement
from tools.corpora.korean.drawing import Drawing
from tools.corpora.korean.hangul import particle
from tools.corpora.korean.words import Phrase

__all__ = ["Statements"]

OTHERS = Weighted({"name": 26, "person": 20, "kin": 12})
SOMEBODY = Phrase("누구", "who", "who", "", 2, "")
ADVERBIALS = (("어디에서", "where"), ("왜", "why"), ("언제", "when"))
PEOPLE = ("person", "kin", "senior")


class Statements:
    """Who does what to whom, where and when; and who, what, where, when, why."""

    def __init__(self, words: Drawing) -> None:
        self.words = words
        uses = words.object_uses.items
        shared = Counter(verb for verb in {use.name: use.verb.english.base for use in uses}.values())
        self.asked = Weighted(
            {use: 1 for use in uses if shared[use.verb.english.base] == 1 and set("pfgm") & set(use.modes)}
        )  # "what did she wear" would not say which verb is meant

    def kinds(self) -> Kinds:
        """The kinds of sentence made here."""
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
        clause = self.words.any_clause(rng)
        order = fronted if clause.time.fronts and rng.chance(0.4) else statement
        return finished(order(clause), clause.met())

    def yes_no(self, rng: Rng) -> Sentence:
        """민수 씨는 어제 책을 샀어요?"""
        clause = self.words.any_clause(rng, "higpfm", self.words.subject(rng, OTHERS))
        return finished(question(clause), clause.met(), "?")

    def who(self, rng: Rng) -> Sentence:
        """어제 누가 그 책을 샀어요?"""
        clause = self.words.any_clause(rng, "pf", SOMEBODY)
        korean = join(clause.time.foreign, "누가", clause.before, predicate(clause))
        return finished((korean, statement_english(clause)), clause.met(), "?")

    def what(self, rng: Rng) -> Sentence:
        """민수 씨는 어제 무엇을 샀어요? 민수 씨는 어제 누구를 만났어요?"""
        use = rng.weigh(self.asked)
        clause, _ = self.words.started(rng, use, "pfgm", self.words.subject(rng, OTHERS))
        clause.mode, clause.negative = "past" if clause.mode == "could" else clause.mode, False
        asked, word = ("누구를", "who") if use.nouns[0].kind in PEOPLE else ("무엇을", "what")
        clause.before = asked
        return finished((statement(clause)[0], f"{word} {question_english(clause)}"), clause.met(), "?")

    def why(self, rng: Rng) -> Sentence:
        """민수 씨는 왜 책을 샀어요?"""
        asked, word = rng.pick(ADVERBIALS)
        clause = self.words.any_clause(rng, "pf", self.words.subject(rng, OTHERS))
        known_place = "에서 " in f"{clause.before} " or clause.verb.english.base in ("go", "come", "arrive", "live")
        if (word != "why" and clause.negative) or (word == "where" and known_place):
            return self.why(rng)
        clause.time, clause.before = NO_TIME, join(asked, clause.before)
        return finished((statement(clause)[0], f"{word} {question_english(clause)}"), clause.met(), "?")

    def how_many(self, rng: Rng) -> Sentence:
        """민수 씨는 어제 사과를 몇 개 샀어요?"""
        use = self.words.object_use(rng, "p")
        counted = [noun for noun in use.nouns if noun.counter and "-" in noun.determiners and "o" not in use.modes]
        if not counted:
            return self.how_many(rng)
        noun = rng.pick(counted)
        clause, _ = self.words.started(rng, use, "p", self.words.subject(rng, OTHERS))
        clause.mode, clause.negative = "past", False
        clause.combinations.append(combine(use.name, noun.korean))
        many = f"{noun.units} of {noun.english}" if noun.unit else noun.plural
        clause.before = f"{particle(noun.korean, 'object')} 몇 {noun.counter}"
        return finished((statement(clause)[0], f"how many {many} {question_english(clause)}"), clause.met(), "?")
