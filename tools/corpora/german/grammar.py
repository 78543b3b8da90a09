"""The grammar of the corpus de-en."""

from __future__ import annotations

from tools.corpora.german.clause_sampler import ClauseSampler
from tools.corpora.german.compounds import Compounds
from tools.corpora.german.count import count_sentences
from tools.corpora.german.facts import Facts
from tools.corpora.german.figures import Figures
from tools.corpora.german.statements import Statements
from tools.corpora.german.words import load_lexicon
from tools.corpora.grammar import Grammar

__all__ = ["german_grammar"]


def german_grammar() -> Grammar[ClauseSampler]:
    """Return the grammar of German sentences with their English."""
    sampler = ClauseSampler(load_lexicon())
    return Grammar(
        sampler, [Statements(sampler), Facts(sampler), Figures(sampler), Compounds(sampler)], count_sentences
    )
