"""The task of language modelling: a decoder that learns to predict the next token of running text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.store import TokenStream
from manyheads.inspection.documents import Inspection
from manyheads.model.decoder_only import DecoderOnly
from manyheads.tasks.batch_sources import BlockUpdates
from manyheads.tasks.corpus import Corpus
from manyheads.tasks.inspecting.language_modeling import inspect_language_model
from manyheads.tasks.inspecting.options import InspectOptions
from manyheads.tasks.language_modeling.generator import Generator
from manyheads.tasks.language_modeling.scoring import TextEvaluation, TextValidation, score_text
from manyheads.tasks.preparation import make_stream
from manyheads.tasks.scored_text import ScoredText, first_bytes
from manyheads.tasks.task import TrainingTask
from manyheads.tasks.text_task import TextTask
from manyheads.text.tokenizer import TokenizerPair
from manyheads.training.distributed import World
from manyheads.training.log import Listener
from manyheads.training.objective import next_token_loss


class LanguageModelingTask(TextTask[Generator]):
    """Prediction of the next token."""

    name = "language-modeling"
    opened_by = Generator
    model_noun = "Language model"
    pipeline = "text-generation"
    loss_decimals = 4
    loss_unit = " nats a token"
    token_rows: ClassVar[Mapping[str, str]] = {"embedding.tokens.weight": "target", "output.weight": "target"}
    batch_loss = staticmethod(next_token_loss)
    validate = TextValidation
    card_size = 500_000  # bytes

    def build_model(self, config: Config, tokenizers: TokenizerPair, classes: Sequence[str]) -> DecoderOnly:
        """See `Task.build_model`."""
        return DecoderOnly(config.model, tokenizers.target.size, absent=tokenizers.target.absent)

    def describe_layers(self, config: Config) -> str:
        """See `Task.describe_layers`."""
        return f"{config.model.num_decoder_layers}"

    def tokenise(
        self, config: Config, run: RunDirectory, corpus: Corpus, tokenizers: TokenizerPair, listener: Listener
    ) -> TokenStream:
        """See `TextTask.tokenise`."""
        return make_stream(config, run, corpus, tokenizers, listener)

    def updates(self, training: TrainingTask, world: World) -> BlockUpdates:
        """See `TextTask.updates`."""
        assert isinstance(training.store, TokenStream)
        return BlockUpdates(training.config, training.store, world)

    def evaluate(self, model: Generator, config: Config, text: ScoredText, listener: Listener) -> TextEvaluation:
        """See `Task.evaluate`."""
        if config.data.max_length > model.config.data.max_length:
            listener.message(
                f"warning: the model has learnt to look at {model.config.data.max_length} tokens, not at "
                f"data.max_length = {config.data.max_length}"
            )
        return score_text(model, config, text.lines(config), listener)

    def score(self, model: Generator, config: Config, texts: Sequence[str], listener: Listener) -> TextEvaluation:
        """See `TextTask.score`."""
        return score_text(model, config, texts, listener)

    def card_texts(self, texts: Sequence[str]) -> Sequence[str]:
        """See `TextTask.card_texts`."""
        return first_bytes(texts, self.card_size)

    def inspect(self, model: Generator, text: str, options: InspectOptions) -> Inspection:
        """See `Task.inspect`."""
        return inspect_language_model(model, text, options)


TASK = LanguageModelingTask()
