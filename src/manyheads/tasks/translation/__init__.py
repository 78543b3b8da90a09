"""Translation: an encoder-decoder, trained on pairs of sentences, that translates."""

from manyheads.former_names import former_names

__getattr__ = former_names(
    __name__,
    {
        "Candidate": "inference.translation.result",
        "SearchOptions": "search.options",
        "Translation": "inference.translation.result",
        "Translator": "inference.translation.translator",
    },
)
