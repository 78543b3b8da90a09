"""The grammar of the corpus ko-en."""

from __future__ import annotations

from manyheads.data.grammars.choice import Dice, Sentence, Weighted
from manyheads.data.grammars.korean.compounds import Compounds
from manyheads.data.grammars.korean.count import count_statements
from manyheads.data.grammars.korean.drawing import Drawing
from manyheads.data.grammars.korean.facts import Facts
from manyheads.data.grammars.korean.figures import Figures
from manyheads.data.grammars.korean.statements import Statements
from manyheads.data.grammars.korean.words import load_lexicon

__all__ = ["Korean"]


class Korean:
    """Korean sentences with their English."""

    def __init__(self) -> None:
        self.words = words = Drawing(load_lexicon())
        parts = (Statements(words), Facts(words), Figures(words), Compounds(words))
        self.kinds = Weighted({kind: share for part in parts for kind, share in part.kinds().items()})

    def draw(self, dice: Dice) -> Sentence:
        """Make one sentence."""
        return dice.weigh(self.kinds)(dice)

    def count(self) -> int:
        """A lower bound of the number of different sentences: see `count_statements`."""
        return count_statements(self.words)
