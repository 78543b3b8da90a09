"""The grammar of the corpus ko-en."""

from __future__ import annotations

from tools.corpora.choice import Rng, Sentence, Weighted
from tools.corpora.korean.compounds import Compounds
from tools.corpora.korean.count import count_statements
from tools.corpora.korean.drawing import Drawing
from tools.corpora.korean.facts import Facts
from tools.corpora.korean.figures import Figures
from tools.corpora.korean.statements import Statements
from tools.corpora.korean.words import load_lexicon

__all__ = ["Korean"]


class Korean:
    """Korean sentences with their English."""

    def __init__(self) -> None:
        self.words = words = Drawing(load_lexicon())
        parts = (Statements(words), Facts(words), Figures(words), Compounds(words))
        self.kinds = Weighted({kind: share for part in parts for kind, share in part.kinds().items()})

    def draw(self, rng: Rng) -> Sentence:
        """Make one sentence."""
        return rng.weigh(self.kinds)(rng)

    def count(self) -> int:
        """A lower bound of the number of different sentences: see `count_statements`."""
        return count_statements(self.words)
