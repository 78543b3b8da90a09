"""The grammar of the corpus ko-en."""

from __future__ import annotations

from tools.corpora.grammar import Grammar
from tools.corpora.korean.clause_sampler import ClauseSampler
from tools.corpora.korean.compounds import Compounds
from tools.corpora.korean.count import count_sentences
from tools.corpora.korean.facts import Facts
from tools.corpora.korean.figures import Figures
from tools.corpora.korean.statements import Statements
from tools.corpora.korean.words import load_lexicon

__all__ = ["korean_grammar"]


def korean_grammar() -> Grammar[ClauseSampler]:
    """Return the grammar of Korean sentences with their English."""
    sampler = ClauseSampler(load_lexicon())
    return Grammar(
        sampler, [Statements(sampler), Facts(sampler), Figures(sampler), Compounds(sampler)], count_sentences
    )
