"""Trained models as the doctor observes them: model, tokenizers, and the text that is available.

Shapes: V vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bitext.letters import has_text
from bitext.pairs import Pair
from manyheads.checks.tokens import count_tokens, entropy, token_entropy
from manyheads.config.schema import Config
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.encoder_only import TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.search.interface import Engine
from manyheads.search.options import SearchOptions
from manyheads.text.joined_texts import split_texts
from manyheads.text.languages import LanguageProfile
from manyheads.text.tokenizer import BOS, EOS, Tokenizer, TokenizerPair
from manyheads.training.objective import Windows, corpus_nll, window_nll

_NUM_VALID_PAIRS = 300  # validation pairs whose loss is measured
_NUM_TRAIN_TEXTS = 1_000  # training texts that are encoded and decoded


@dataclass
class TrainedModel:
    """Trained model of any task, such as a masked language model, with the text that is available.

    Attributes:
        config: configuration of the run.
        tokenizers: tokenizers of source and target; twice the same for tasks other than translation.
        model: the model in eval().
        train, valid: the first clean pairs of these splits; none where their text is not available.
        logged_loss: the best validation loss in the log of the training, None without one.
        facts: measured figures by label, for people; checks add to them.
    """

    config: Config
    tokenizers: TokenizerPair
    model: Transformer
    train: Sequence[Pair]
    valid: Sequence[Pair]
    logged_loss: float | None
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def train_texts(self) -> list[tuple[str, Tokenizer, list[str]]]:
        """Return side, tokenizer and texts of train for each side that the model reads or writes."""
        return [("", self.tokenizers.target, [pair.target for pair in self.train])]

    @cached_property
    def train_counts(self) -> list[NDArray[np.int64]]:
        """Return the frequency of each token in the texts of train (V,), by side."""
        return [count_tokens(tokenizer, texts) for _, tokenizer, texts in self.train_texts]

    def unigram_loss(self) -> float | None:
        """Return the loss of a unigram model in nats a prediction; None where the text of train is missing."""
        return token_entropy(self.train_counts[-1], self.end_marks) if self.train else None

    @property
    def end_marks(self) -> int:
        """Return the number of end marks that the model learns to predict in train."""
        return 0

    def samples(self) -> Iterator[tuple[str, Tokenizer, list[str]]]:
        """Yield name, tokenizer and texts of the samples of train that are encoded and decoded."""
        for _, tokenizer, texts in self.train_texts:
            yield "train", tokenizer, texts[:_NUM_TRAIN_TEXTS]


@dataclass
class TrainedTranslator(TrainedModel):
    """Trained translator (see `TrainedModel`).

    Attributes:
        model: model of the engine.
        engine: search backend of the run.
        options: beam search of the run.
        longest_source: tokens at which sources are cut.
        translate: function of texts that returns the translation of each, and whether it ended.
        profiles: language profiles of the training text; none in an old run.
    """

    model: EncoderDecoder
    engine: Engine = field(kw_only=True)
    options: SearchOptions = field(kw_only=True)
    longest_source: int = field(kw_only=True)
    translate: Callable[[Sequence[str]], Sequence[tuple[str, bool]]] = field(kw_only=True)
    profiles: Mapping[str, LanguageProfile] = field(default_factory=dict, kw_only=True)

    @property
    def train_texts(self) -> list[tuple[str, Tokenizer, list[str]]]:
        """Return side, tokenizer and texts of train for both sides."""
        sources, targets = [pair.source for pair in self.train], [pair.target for pair in self.train]
        return [("source", self.tokenizers.source, sources), ("target", self.tokenizers.target, targets)]

    @property
    def end_marks(self) -> int:
        """Return the number of end marks that the model learns to predict in train."""
        return len(self.train)

    def samples(self) -> Iterator[tuple[str, Tokenizer, list[str]]]:
        """Yield name, tokenizer and evenly spread texts of each side of train."""
        for side, tokenizer, texts in self.train_texts:
            yield f"train, {side}", tokenizer, texts[:: max(1, len(texts) // _NUM_TRAIN_TEXTS)]

    @cached_property
    def read_pairs(self) -> list[Pair]:
        """Return the validation pairs whose loss is measured, in the order of the length of their sources."""
        pairs, limit = (
            [pair for pair in self.valid if has_text(pair.source)][:_NUM_VALID_PAIRS],
            self.config.model.position_limit,
        )
        rows = zip(pairs, *self.encode(pairs), strict=True)
        short = [pair for pair, source, target in rows if max(len(source), len(target)) < limit]
        return sorted(short, key=lambda pair: len(pair.source))

    @cached_property
    def read_rows(self) -> tuple[list[list[int]], list[list[int]]]:
        """Return source and target ids of `read_pairs`."""
        return self.encode(self.read_pairs)

    @cached_property
    def read_loss(self) -> float:
        """Return the loss of `read_pairs` in nats a target token."""
        return self.loss(*self.read_rows)

    def encode(self, pairs: Sequence[Pair]) -> tuple[list[list[int]], list[list[int]]]:
        """Return source ids, cut as in translation, and target ids of pairs.

        Targets begin with the symbol of their language, where the vocabulary has one.
        """
        targets, tokenizer = [pair.target for pair in pairs], self.tokenizers.target
        prefix = tokenizer.language_prefix(self.config.data.target)
        return self.encode_sources([pair.source for pair in pairs]), [
            [*prefix, *row] for row in tokenizer.encode(targets)
        ]

    def encode_sources(self, sources: Sequence[str]) -> list[list[int]]:
        """Return the ids of sources, cut as in translation."""
        return [list(row[: self.longest_source]) for row in self.tokenizers.source.encode(sources)]

    def loss(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], batch_tokens: int = 4_096
    ) -> float:
        """Return the loss of targets in nats a token, computed in batches of about `batch_tokens` tokens."""
        nats, count = corpus_nll(self.model, sources, targets, bos=BOS, eos=EOS, batch_tokens=batch_tokens)
        return nats / count


@dataclass
class TrainedClassifier(TrainedModel):
    """Trained classifier (see `TrainedModel`).

    Attributes:
        labels: names of the classes.
        encode: function of texts that returns their ids without begin and end marks.
        probabilities: function of rows of ids that returns the probability of each class (N, C).
        longest: tokens at which texts are cut.
    """

    model: TextClassifier
    labels: Sequence[str] = field(kw_only=True)
    encode: Callable[[Sequence[str]], list[list[int]]] = field(kw_only=True)
    probabilities: Callable[[Sequence[list[int]]], NDArray[np.float64]] = field(kw_only=True)
    longest: int = field(kw_only=True)

    @property
    def train_texts(self) -> list[tuple[str, Tokenizer, list[str]]]:
        """Return the texts of train, the two texts of a pair separately."""
        texts = [text for pair in self.train for text in split_texts(pair.source)]
        return [("", self.tokenizers.source, texts)]

    def unigram_loss(self) -> float | None:
        """Return the entropy of the labels of train in nats; None where the training text is not available."""
        return entropy(Counter(pair.target for pair in self.train).values()) if self.train else None

    @property
    def labelled(self) -> list[Pair]:
        """Return the validation texts with a label that training has seen."""
        return [pair for pair in self.valid if pair.target in self.labels]

    @cached_property
    def rows(self) -> list[list[int]]:
        """Return the ids of the labelled validation texts."""
        return self.encode([pair.source for pair in self.labelled])

    @cached_property
    def predicted(self) -> NDArray[np.float64]:
        """Return the probability of each class of the labelled validation texts (N, C)."""
        return self.probabilities(self.rows)


@dataclass
class TrainedLanguageModel(TrainedModel):
    """Trained language model (see `TrainedModel`).

    Attributes:
        tokens: ids of the validation text, with its marks (N,); none where it is not available.
        window: tokens of the longest context.
        generate: function of a number of texts and of tokens that returns sampled texts.
    """

    model: DecoderOnly
    tokens: NDArray[np.int32] = field(kw_only=True)
    window: int = field(kw_only=True)
    generate: Callable[[int, int], list[str]] = field(kw_only=True)

    @cached_property
    def read_loss(self) -> float:
        """Return the loss of the validation text in nats a token."""
        return self.loss(4_096)

    def loss(self, batch_tokens: int) -> float:
        """Return the loss of the validation text, computed in batches of about `batch_tokens` tokens."""
        width = self.config.data.max_length
        windows = Windows(len(self.tokens), width=width, step=max(1, width // 2))
        nats, count = window_nll(self.model, self.tokens, windows, batch_tokens=batch_tokens)
        return nats / max(1, count)

    @property
    def end_marks(self) -> int:
        """Return the number of end marks that the model learns to predict in train."""
        return 0 if self.config.whole_files else len(self.train)
