"""The grammar of the corpus de-en."""

from __future__ import annotations

from tools.corpora.choice import Rng, Sentence, Weighted
from tools.corpora.german.compounds import Compounds
from tools.corpora.german.count import count_statements
from tools.corpora.german.drawing import Drawing
from tools.corpora.german.facts import Facts
from tools.corpora.german.figures import Figures
from tools.corpora.german.statements import Statements
from tools.corpora.german.words import load_lexicon

__all__ = ["German"]


class German:
    """German sentences with their English."""

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
