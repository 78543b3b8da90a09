"""The task of language modelling: a decoder that learns to predict the next token of running text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from manyheads.tasks.batch_sources import BlockUpdates
from manyheads.tasks.language_modeling.generator import Generator
from manyheads.tasks.language_modeling.scoring import TextValidation, score_text
from manyheads.tasks.preparation import make_stream
from manyheads.tasks.scored_text import first_bytes
from manyheads.tasks.text_task import TextTask
from manyheads.training.objective import next_token_loss

_CARD_BYTES = 500_000  # bytes of text scored for a model card


class LanguageModelingTask(TextTask[Generator]):
    """Prediction of the next token."""

    name = "language-modeling"
    model_noun = "Language model"
    pipeline = "text-generation"
    loss_decimals = 4
    loss_unit = " nats a token"
    token_rows: ClassVar[Mapping[str, str]] = {"embedding.tokens.weight": "target", "output.weight": "target"}
    batch_loss = staticmethod(next_token_loss)
    tokenise = staticmethod(make_stream)
    updates = staticmethod(lambda config, text, stream, tokenizers, world: BlockUpdates(config, stream, world))
    validate = TextValidation
    score = staticmethod(score_text)
    card_size = _CARD_BYTES
    card_texts = staticmethod(partial(first_bytes, most=_CARD_BYTES))


TASK = LanguageModelingTask()
