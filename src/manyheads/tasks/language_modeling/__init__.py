"""Language modelling: a decoder, trained on running text, that continues texts."""

from manyheads.tasks.language_modeling.generator import Continuation, GenerateOptions, Generation, Generator

__all__ = ["Continuation", "GenerateOptions", "Generation", "Generator"]
