"""The task of masked language modelling: an encoder that learns to predict the masked tokens of its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.corpus import Pair
from manyheads.data.letters import has_text
from manyheads.data.masked import HIDDEN_SHARE
from manyheads.model.encoder_only import MaskedLanguageModel
from manyheads.tasks.batch_sources import CorpusUpdates, MaskedBatches
from manyheads.tasks.corpus import Corpus
from manyheads.tasks.masked_lm.encoder import Encoder
from manyheads.tasks.masked_lm.scoring import MaskedEvaluation, MaskedValidation, score_hidden
from manyheads.tasks.preparation import prepare_tokenizers, tokenise
from manyheads.tasks.scored_text import ScoredText, first_held_out
from manyheads.tasks.task import Task, TrainingTask
from manyheads.text.tokenizer import PAD, TokenizerPair
from manyheads.training.log import NO_LISTENER, Listener
from manyheads.training.objective import masked_loss

_CARD_TEXTS = 1_000  # texts scored for a model card


class MaskedTask(Task[Encoder]):
    """Prediction of masked tokens."""

    name = "masked-lm"
    opened_by = Encoder
    head = ("transform.", "transform_norm.", "output.")
    pipeline = "fill-mask"
    used_alone = False
    token_rows: ClassVar[Mapping[str, str]] = {
        "embedding.tokens.weight": "source",
        "output.weight": "source",
        "output.bias": "source",
    }

    def prepare(self, config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
        """See `Task.prepare`."""
        tokenizers = prepare_tokenizers(self, config, run, lambda most: (corpus.train.sides(most)[1], ()), listener)
        store = tokenise(config, run, corpus, tokenizers, listener, max_length=None)
        maker = MaskedBatches(config, corpus.train, store, tokenizers)
        texts = [pair.target for pair in corpus.valid]
        return TrainingTask(
            task=self,
            config=config,
            corpus=corpus,
            tokenizers=tokenizers,
            store=store,
            loss=partial(masked_loss, smoothing=config.training.label_smoothing),
            updates=lambda world: CorpusUpdates(config, maker, world),
            validation=partial(MaskedValidation, config, texts, tokenizers.source),
        )

    def build_model(self, config: Config, tokenizers: TokenizerPair, classes: Sequence[str]) -> MaskedLanguageModel:
        """See `Task.build_model`."""
        return MaskedLanguageModel(config.model, tokenizers.target.size, pad=PAD)

    def evaluate(self, model: Encoder, config: Config, text: ScoredText, listener: Listener) -> MaskedEvaluation:
        """See `Task.evaluate`."""
        return score_hidden(model, config, text.lines(config), listener)

    def validation_loss(self, run: Path, pairs: Sequence[Pair]) -> float:
        """See `Task.validation_loss`."""
        model = self.load(run)
        return score_hidden(model, model.config, [pair.target for pair in pairs], NO_LISTENER).loss

    def card_line(self, run: RunDirectory, listener: Listener) -> str | None:
        """See `Task.card_line`."""
        encoder = self.load(run.path)
        examples, which = first_held_out(run, encoder.config, _CARD_TEXTS)
        filled = [pair.target for pair in examples if has_text(pair.target)]
        if not filled:
            return None
        result = score_hidden(encoder, encoder.config, filled, listener)
        return (
            f"- Scores on {result.texts:,} texts of {which}: perplexity {result.perplexity:.3f} of "
            f"{result.tokens:,} hidden tokens ({HIDDEN_SHARE:.0%} of all)"
        )
