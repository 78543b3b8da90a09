"""A model in memory, wherever it came from."""

from __future__ import annotations

from dataclasses import dataclass

from manyheads.config.schema import Config
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.text.tokenizer import TokenizerPair

__all__ = ["OpenedModel"]


@dataclass(frozen=True)
class OpenedModel:
    """All that translates, on the CPU, in eval mode."""

    config: Config
    tokenizers: TokenizerPair
    model: EncoderDecoder
