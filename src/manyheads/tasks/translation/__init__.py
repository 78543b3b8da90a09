"""Translation: an encoder-decoder, trained on pairs of sentences, that translates."""

from manyheads.tasks.translation.translator import Candidate, TranslateOptions, Translation, Translator

__all__ = ["Candidate", "TranslateOptions", "Translation", "Translator"]
