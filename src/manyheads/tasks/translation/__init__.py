"""Translation: an encoder-decoder, trained on pairs of sentences, that translates."""

from manyheads.tasks.translation.translator import Candidate, SearchOptions, Translation, Translator

__all__ = ["Candidate", "SearchOptions", "Translation", "Translator"]
