"""Language modelling: a decoder, trained on running text, that continues texts."""

from manyheads.former_names import former_names

__getattr__ = former_names(
    __name__,
    {
        "Continuation": "inference.generation",
        "GenerateOptions": "inference.generation",
        "Generation": "inference.generation",
        "Generator": "inference.generator",
    },
)
