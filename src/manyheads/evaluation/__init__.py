"""Scores of outputs with their signatures, and significance tests of differences."""

from manyheads.evaluation.classes import ClassScore, ClassScores, accuracy, confusion_matrix, macro_f1
from manyheads.evaluation.scores import Protocol, Scores, exact_match, perplexity, score
from manyheads.evaluation.significance import BootstrapResult, paired_bootstrap, paired_bootstrap_of_labels

__all__ = [
    "BootstrapResult",
    "ClassScore",
    "ClassScores",
    "Protocol",
    "Scores",
    "accuracy",
    "confusion_matrix",
    "exact_match",
    "macro_f1",
    "paired_bootstrap",
    "paired_bootstrap_of_labels",
    "perplexity",
    "score",
]
