"""The task of masked language modelling: an encoder that learns to predict the masked tokens of its text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from bitext.letters import has_text
from manyheads.config.schema import Config
from manyheads.data.store import TextStore, TokenStore
from manyheads.tasks.batch_sources import CorpusUpdates, MaskedBatches
from manyheads.tasks.masked_lm.encoder import Encoder
from manyheads.tasks.masked_lm.scoring import MaskedValidation, score_hidden
from manyheads.tasks.preparation import tokenise
from manyheads.tasks.text_task import TextTask
from manyheads.text.tokenizer import TokenizerPair
from manyheads.training.distributed import World
from manyheads.training.objective import masked_loss


def _masked_updates(
    config: Config, text: TextStore, store: TokenStore, tokenizers: TokenizerPair, world: World
) -> CorpusUpdates:
    return CorpusUpdates(config, MaskedBatches(config, text, store, tokenizers), world)


class MaskedTask(TextTask[Encoder]):
    """Prediction of masked tokens."""

    name = "masked-lm"
    head = ("transform.", "transform_norm.", "output.")
    pipeline = "fill-mask"
    token_rows: ClassVar[Mapping[str, str]] = {
        "embedding.tokens.weight": "source",
        "output.weight": "source",
        "output.bias": "source",
    }
    batch_loss = staticmethod(masked_loss)
    tokenise = staticmethod(partial(tokenise, max_length=None))
    updates = staticmethod(_masked_updates)
    validate = MaskedValidation
    score = staticmethod(score_hidden)
    card_size = 1_000  # texts
    card_texts = staticmethod(lambda texts: [text for text in texts if has_text(text)])


TASK = MaskedTask()
