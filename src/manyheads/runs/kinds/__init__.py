"""The kinds of Transformer that can be trained, each as training sees it."""

from __future__ import annotations

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.runs.corpus import Corpus
from manyheads.runs.kinds.classification import prepare_classification
from manyheads.runs.kinds.interface import Kind
from manyheads.runs.kinds.language_modeling import prepare_language_model
from manyheads.runs.kinds.masked import prepare_masked
from manyheads.runs.kinds.translation import TranslationKind
from manyheads.runs.prepare import prepare
from manyheads.training.log import Listener

__all__ = ["Kind", "prepare_kind"]


def prepare_kind(config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> Kind:
    """Vocabularies and token ids of a run: taken from it where they are there, else made."""
    match config.task:
        case "translation":
            return TranslationKind(config, corpus, *prepare(config, run, corpus, listener))
        case "classification":
            return prepare_classification(config, run, corpus, listener)
        case "language-modeling":
            return prepare_language_model(config, run, corpus, listener)
        case "masked-lm":
            return prepare_masked(config, run, corpus, listener)
