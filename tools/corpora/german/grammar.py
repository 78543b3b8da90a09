"""The grammar of the corpus de-en."""

from __future__ import annotations

from tools.corpora.german.compounds import Compounds
from tools.corpora.german.count import count_sentences
from tools.corpora.german.drawing import Drawing
from tools.corpora.german.facts import Facts
from tools.corpora.german.figures import Figures
from tools.corpora.german.statements import Statements
from tools.corpora.german.words import load_lexicon
from tools.corpora.grammar import Grammar

__all__ = ["german_grammar"]


def german_grammar() -> Grammar[Drawing]:
    """Return the grammar of German sentences with their English."""
    words = Drawing(load_lexicon())
    return Grammar(words, [Statements(words), Facts(words), Figures(words), Compounds(words)], count_sentences)
