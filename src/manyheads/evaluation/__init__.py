"""How good outputs are: scores with their signatures, and whether a difference is more than chance."""

from manyheads.evaluation.scores import Protocol, Scores, exact_match, perplexity, score
from manyheads.evaluation.significance import BootstrapResult, paired_bootstrap

__all__ = ["BootstrapResult", "Protocol", "Scores", "exact_match", "paired_bootstrap", "perplexity", "score"]
