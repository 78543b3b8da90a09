"""The task of masked language modelling: an encoder that learns to predict the masked tokens of its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.letters import has_text
from manyheads.data.store import TokenStore
from manyheads.model.encoder_only import MaskedLanguageModel
from manyheads.tasks.batch_sources import CorpusUpdates, MaskedBatches
from manyheads.tasks.corpus import Corpus
from manyheads.tasks.masked_lm.encoder import Encoder
from manyheads.tasks.masked_lm.scoring import MaskedEvaluation, MaskedValidation, score_hidden
from manyheads.tasks.preparation import tokenise
from manyheads.tasks.task import TrainingTask
from manyheads.tasks.text_task import TextTask
from manyheads.text.tokenizer import PAD, TokenizerPair
from manyheads.training.distributed import World
from manyheads.training.log import Listener
from manyheads.training.objective import masked_loss


class MaskedTask(TextTask[Encoder]):
    """Prediction of masked tokens."""

    name = "masked-lm"
    opened_by = Encoder
    head = ("transform.", "transform_norm.", "output.")
    pipeline = "fill-mask"
    token_rows: ClassVar[Mapping[str, str]] = {
        "embedding.tokens.weight": "source",
        "output.weight": "source",
        "output.bias": "source",
    }
    batch_loss = staticmethod(masked_loss)
    validate = MaskedValidation
    card_size = 1_000  # texts

    def build_model(self, config: Config, tokenizers: TokenizerPair, classes: Sequence[str]) -> MaskedLanguageModel:
        """See `Task.build_model`."""
        return MaskedLanguageModel(config.model, tokenizers.target.size, pad=PAD)

    def tokenise(
        self, config: Config, run: RunDirectory, corpus: Corpus, tokenizers: TokenizerPair, listener: Listener
    ) -> TokenStore:
        """See `TextTask.tokenise`."""
        return tokenise(config, run, corpus, tokenizers, listener, max_length=None)

    def updates(self, training: TrainingTask, world: World) -> CorpusUpdates:
        """See `TextTask.updates`."""
        assert isinstance(training.store, TokenStore)
        maker = MaskedBatches(training.config, training.corpus.train, training.store, training.tokenizers)
        return CorpusUpdates(training.config, maker, world)

    def score(self, model: Encoder, config: Config, texts: Sequence[str], listener: Listener) -> MaskedEvaluation:
        """See `TextTask.score`."""
        return score_hidden(model, config, texts, listener)

    def card_texts(self, texts: Sequence[str]) -> Sequence[str]:
        """See `TextTask.card_texts`."""
        return [text for text in texts if has_text(text)]


TASK = MaskedTask()
