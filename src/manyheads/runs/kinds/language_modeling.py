"""Language modelling as training sees it: a decoder on one stream of tokens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from manyheads.checkpoint import RunDirectory, saving
from manyheads.config.schema import Config
from manyheads.data.stream import TokenStream
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.transformer import Transformer
from manyheads.runs.blocks import BlockUpdates
from manyheads.runs.cards.language_model import language_model_card
from manyheads.runs.corpus import ROOM_FOR_TEXT, Corpus
from manyheads.runs.kinds.interface import Kind
from manyheads.runs.prepare import prepare_single
from manyheads.runs.scoring.perplexity import TextValidation
from manyheads.text.tokenizer import EOS, TokenizerPair
from manyheads.training.distributed import World
from manyheads.training.feed import Updates
from manyheads.training.language_modeling import LanguageModelObjective
from manyheads.training.log import Listener, ValidationReport
from manyheads.training.objective import Objective
from manyheads.training.progress import Progress

__all__ = ["LanguageModelKind", "prepare_language_model"]


class LanguageModelKind(Kind):
    """See `Kind`."""

    def __init__(self, config: Config, corpus: Corpus, tokenizers: TokenizerPair, stream: TokenStream) -> None:
        super().__init__(config, corpus, tokenizers)
        self.tokenizer = tokenizers.target
        self.stream = stream

    def model(self) -> DecoderOnly:
        """A new one."""
        return DecoderOnly(self.config.model, self.tokenizer.size, absent=self.tokenizer.absent)

    def objective(self, model: Transformer) -> Objective:
        """Cross-entropy of the next token."""
        assert isinstance(model, DecoderOnly)
        return LanguageModelObjective(model, self.config.training.label_smoothing)

    def updates(self, world: World) -> Updates:
        """Blocks of the stream."""
        return BlockUpdates(self.config, self.stream, world)

    def validation(self, model: Transformer, world: World) -> Callable[[int], ValidationReport]:
        """The loss of all held-out text over a sliding window."""
        assert isinstance(model, DecoderOnly)
        texts = [pair.target for pair in self.corpus.valid]
        return TextValidation(self.config, texts, self.tokenizer, model, world)

    def card(self, progress: Progress) -> str:
        """The model card."""
        return language_model_card(self.config, self.tokenizer, progress)


def prepare_language_model(
    config: Config, run: RunDirectory, corpus: Corpus, listener: Listener
) -> LanguageModelKind:
    """The tokenizer and the stream of a run: taken from it where they are there, else made."""
    tokenizers = prepare_single(config, run, lambda most: corpus.train.sides(most)[1], listener)
    tokenizer = tokenizers.target
    folder = run.path / "cache" / "train"
    made_of = [corpus.train.sha256, tokenizer.sha256, config.data.documents]
    key = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
    if not TokenStream.has(folder, key):
        with saving("the token ids", folder, ROOM_FOR_TEXT):
            TokenStream.build(
                folder, corpus.train, tokenizer.encode, key=key, end=EOS, whole_files=config.whole_files
            )
    return LanguageModelKind(config, corpus, tokenizers, TokenStream(folder))
