"""The task of language modelling: a decoder that learns to predict the next token of running text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.corpus import Pair
from manyheads.data.letters import has_text
from manyheads.inspection.documents import Inspection
from manyheads.model.decoder_only import DecoderOnly
from manyheads.tasks.batch_sources import BlockUpdates
from manyheads.tasks.corpus import Corpus
from manyheads.tasks.inspecting.language_modeling import inspect_language_model
from manyheads.tasks.inspecting.options import InspectOptions
from manyheads.tasks.language_modeling.generator import Generator
from manyheads.tasks.language_modeling.scoring import TextEvaluation, TextValidation, score_text
from manyheads.tasks.preparation import make_stream, prepare_tokenizers
from manyheads.tasks.scored_text import ScoredText, first_bytes, first_held_out
from manyheads.tasks.task import Task, TrainingTask
from manyheads.text.tokenizer import TokenizerPair
from manyheads.training.log import NO_LISTENER, Listener
from manyheads.training.objective import next_token_loss

_CARD_BYTES = 500_000  # bytes of text scored for a model card


class LanguageModelingTask(Task[Generator]):
    """Prediction of the next token."""

    name = "language-modeling"
    opened_by = Generator
    model_noun = "Language model"
    pipeline = "text-generation"
    page_function = "generate"
    loss_decimals = 4
    loss_unit = " nats a token"
    token_rows: ClassVar[Mapping[str, str]] = {"embedding.tokens.weight": "target", "output.weight": "target"}

    def prepare(self, config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
        """See `Task.prepare`."""
        tokenizers = prepare_tokenizers(self, config, run, lambda most: (corpus.train.sides(most)[1], ()), listener)
        stream = make_stream(config, run, corpus, tokenizers, listener)
        texts = [pair.target for pair in corpus.valid]
        return TrainingTask(
            task=self,
            config=config,
            corpus=corpus,
            tokenizers=tokenizers,
            store=stream,
            loss=partial(next_token_loss, smoothing=config.training.label_smoothing),
            updates=lambda world: BlockUpdates(config, stream, world),
            validation=partial(TextValidation, config, texts, tokenizers.target),
        )

    def build_model(self, config: Config, tokenizers: TokenizerPair, classes: Sequence[str]) -> DecoderOnly:
        """See `Task.build_model`."""
        return DecoderOnly(config.model, tokenizers.target.size, absent=tokenizers.target.absent)

    def describe_layers(self, config: Config) -> str:
        """See `Task.describe_layers`."""
        return f"{config.model.num_decoder_layers}"

    def evaluate(self, model: Generator, config: Config, text: ScoredText, listener: Listener) -> TextEvaluation:
        """See `Task.evaluate`."""
        if config.data.max_length > model.config.data.max_length:
            listener.message(
                f"warning: the model has learnt to look at {model.config.data.max_length} tokens, not at "
                f"data.max_length = {config.data.max_length}"
            )
        return score_text(model, config, text.lines(config), listener)

    def validation_loss(self, run: Path, pairs: Sequence[Pair]) -> float:
        """See `Task.validation_loss`."""
        model = self.load(run)
        return score_text(model, model.config, [pair.target for pair in pairs], NO_LISTENER).loss

    def card_line(self, run: RunDirectory, listener: Listener) -> str | None:
        """See `Task.card_line`."""
        generator = self.load(run.path)
        examples, which = first_held_out(run, generator.config, _CARD_BYTES)
        first = first_bytes([pair.target for pair in examples], _CARD_BYTES)
        if not any(has_text(text) for text in first):
            return None
        result = score_text(generator, generator.config, first, listener)
        return (
            f"- Scores on {result.bytes:,} bytes of {which}: {result.bits_per_byte:.4f} bits a byte, perplexity "
            f"{result.perplexity:.3f} a token (window {result.window} tokens, stride {result.stride})"
        )

    def inspect(self, model: Generator, text: str, options: InspectOptions) -> Inspection:
        """See `Task.inspect`."""
        return inspect_language_model(model, text, options)
