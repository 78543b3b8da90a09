"""Classification as training sees it: an encoder on texts, each with a label."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.corpus import Pair
from manyheads.data.examples import Example, Examples, blank_examples, cut_text, make_examples, make_texts
from manyheads.data.labelled import split_texts
from manyheads.data.store import TokenStore
from manyheads.data.texts import TextStore
from manyheads.evaluation import accuracy, confusion_matrix, macro_f1
from manyheads.inspection.capture import mean_entropies, watch_text
from manyheads.model.encoder_only import TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.runs.cards.encoder import classifier_card
from manyheads.runs.corpus import Corpus, held_out
from manyheads.runs.kinds.interface import Kind
from manyheads.runs.kinds.labels import check_labels, doubts, found_labels, label_numbers
from manyheads.runs.prepare import prepare_single, tokenise
from manyheads.runs.updates import CorpusUpdates
from manyheads.runs.validation import LOOKED_INTO, evenly
from manyheads.tasks.classification import LABELS, Labels, class_probabilities, encode_texts, longest_text
from manyheads.text.tokenizer import BOS, EOS, PAD, Tokenizer, TokenizerPair
from manyheads.training.distributed import World
from manyheads.training.feed import Updates
from manyheads.training.log import Listener, ValidationReport
from manyheads.training.objective import ClassificationObjective, Objective
from manyheads.training.progress import Progress

__all__ = ["ClassificationKind", "LabelledBatches", "prepare_classification"]

UNBALANCED = 10  # the largest class over the smallest, from where on a warning is due


def prepare_classification(
    config: Config, run: RunDirectory, corpus: Corpus, listener: Listener
) -> ClassificationKind:
    """Labels, vocabulary and token ids of a run: taken from it where they are there, else made.

    Raises:
        DataError: the training text has one label only, or the validation or test text has others.
    """
    labels = Labels.of_run(run) if run.exists else found_labels(corpus)
    for doubt in doubts(config, corpus, labels.names):
        listener.message(f"warning: {doubt}")
    check_labels(corpus.valid, labels.names, "data.valid")
    if config.data.test is not None and config.data.drop_overlap:  # it has been read before, as it is held out
        check_labels(held_out(config, "test"), labels.names, "data.test")
    tokenizers = prepare_single(config, run, lambda most: parts_of(corpus.train, most), listener)
    tokenizer = tokenizers.source

    def numbers(texts: Sequence[str]) -> list[list[int]]:
        return [[number] for number in label_numbers(texts, labels.names, "data.train").tolist()]

    def ids(texts: Sequence[str]) -> list[list[int]]:
        return encode_texts(tokenizer.encode, texts, tokenizer.marks_between)

    store = tokenise(config, run, corpus, tokenizers, (ids, numbers), max_length=None)
    kind = ClassificationKind(config, corpus, tokenizers, labels, store)
    kind.tell(listener)
    return kind


def parts_of(texts: TextStore, most: int | None) -> list[str]:
    """What a tokenizer is learnt from: texts, those of an example apart; at most `most`, evenly spread."""
    return [part for joined in texts.sides(most)[0] for part in split_texts(joined)]


class ClassificationKind(Kind):
    """See `Kind`."""

    def __init__(
        self, config: Config, corpus: Corpus, tokenizers: TokenizerPair, labels: Labels, store: TokenStore
    ) -> None:
        super().__init__(config, corpus, tokenizers)
        self.labels = labels
        self.store = store

    @property
    def vocabulary(self) -> str:
        """Tokens and classes."""
        return f"{self.tokenizers.source.size:,}, {len(self.labels.names):,} classes"

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels."""
        return self.labels.names

    @property
    def counts(self) -> NDArray[np.int64]:
        """Training examples of each class (C,)."""
        labels = np.concatenate([self.store.target[row] for row in range(len(self.store))])
        return np.bincount(labels, minlength=len(self.labels.names))

    def tell(self, listener: Listener) -> None:
        """What of the text deserves a word: texts that are cut, classes that are rare."""
        limit, longer = longest_text(self.config), self.store.source.lengths
        cut = int((longer > limit).sum())
        if cut:
            listener.message(f"{cut:,} of {len(longer):,} texts are longer than {limit:,} tokens: cut there")
        counts = self.counts
        most, fewest = int(counts.argmax()), int(counts.argmin())
        if counts[most] > UNBALANCED * counts[fewest]:
            names = self.labels.names
            listener.message(
                f'warning: unbalanced classes: {counts[most]:,} examples of "{names[most]}", {counts[fewest]:,} of '
                f'"{names[fewest]}". Accuracy says little then: look at macro F1, and try '
                'training.class_weights = "balanced".'
            )

    def begin(self, run: RunDirectory, environment: Mapping[str, Any]) -> None:
        """Write configuration, tokenizer and labels."""
        run.begin(self.config, self.tokenizers, environment, {LABELS: self.labels.to_json()})

    def model(self) -> TextClassifier:
        """A new one."""
        return TextClassifier(self.config.model, self.tokenizers.source.size, len(self.labels.names), pad=PAD)

    def objective(self, model: Transformer) -> Objective:
        """Cross-entropy of the label."""
        assert isinstance(model, TextClassifier)
        training = self.config.training
        weights = None
        if training.class_weights == "balanced":
            counts = self.counts
            weights = torch.tensor(counts.sum() / (len(counts) * np.maximum(1, counts)), dtype=torch.float32)
        return ClassificationObjective(model, training.label_smoothing, weights)

    def updates(self, world: World) -> Updates:
        """Batches of like lengths."""
        maker = LabelledBatches(self.config, self.corpus.train, self.store, self.tokenizers.source)
        return CorpusUpdates(self.config, self.corpus.train, self.store, maker, world)

    def validation(self, model: Transformer, world: World) -> Callable[[int], ValidationReport]:
        """Loss, accuracy and macro F1 of all held-out texts."""
        assert isinstance(model, TextClassifier)
        return ClassValidation(self.config, self.corpus.valid, self.tokenizers.source, self.labels, model, world)

    def card(self, progress: Progress) -> str:
        """The model card."""
        return classifier_card(self.config, self.tokenizers.source.size, self.labels.names, progress)


class LabelledBatches:
    """Texts with labels as batches (`BatchMaker`)."""

    def __init__(self, config: Config, texts: TextStore, store: TokenStore, tokenizer: Tokenizer) -> None:
        self.texts = texts
        self.store = store
        self.tokenizer = tokenizer
        self.sampling = config.tokenizer.sampling > 0
        self.with_types = config.model.token_types > 1
        self.limit = longest_text(config)
        lengths = np.minimum(store.source.lengths, self.limit) + 2
        self.lengths = (lengths, lengths)

    def rows(self, pairs: NDArray[np.int64], dice: np.random.Generator) -> list[Example]:
        """Token ids of these texts, from the store or sampled anew, and their labels."""
        ids: Sequence[Any] = [self.store.source[pair] for pair in pairs]
        if self.sampling:
            seed = int(dice.integers(2**31))
            texts = self.texts.text(0, self.store.rows[pairs])
            tokenizer = self.tokenizer
            ids = encode_texts(lambda parts: tokenizer.sample(parts, seed), texts, tokenizer.marks_between)
        return [
            Example(cut_text(row, self.limit, eos=EOS), int(self.store.target[pair][0]))
            for row, pair in zip(ids, pairs, strict=True)
        ]

    def batch(self, rows: Sequence[Example]) -> Examples:
        """The tensors."""
        return make_examples(rows, pad=PAD, bos=BOS, eos=EOS, with_types=self.with_types)

    def blank(self) -> Examples:
        """Nothing to say."""
        return blank_examples(pad=PAD, bos=BOS, eos=EOS, with_types=self.with_types)


class ClassValidation:
    """Scores a classifier on the validation set; several processes take a share each, and all know the result."""

    def __init__(
        self,
        config: Config,
        pairs: Sequence[Pair],
        tokenizer: Tokenizer,
        labels: Labels,
        model: TextClassifier,
        world: World,
    ) -> None:
        self.model = model
        self.world = world
        limit = longest_text(config)
        rows = encode_texts(tokenizer.encode, [pair.source for pair in pairs], tokenizer.marks_between)
        self.rows = [cut_text(row, limit, eos=EOS) for row in rows]
        self.right = label_numbers((pair.target for pair in pairs), labels.names, "data.valid")

    def __call__(self, step: int) -> ValidationReport:
        """Score the weights of a step."""
        share = self.world.share(range(len(self.rows)))
        right = self.right[list(share)]
        found = class_probabilities(self.model, [self.rows[place] for place in share])
        with np.errstate(divide="ignore"):
            nats = -np.log(found[np.arange(len(right)), right])
        classes = found.shape[1]
        counts = confusion_matrix(right, found.argmax(1), classes)
        total, *flat = self.world.total([float(nats.sum()), *counts.flatten().tolist()])
        confusion = np.array(flat).reshape(classes, classes).astype(np.int64)
        scores = {"accuracy": accuracy(confusion), "macro_f1": macro_f1(confusion)}
        loss = total / len(self.rows)
        return ValidationReport(step, loss, scores, False, None, attention_entropy=self.entropy())

    def entropy(self) -> dict[str, list[list[float]]]:
        """How widely each head looks, in a few texts by themselves."""
        device = next(self.model.parameters()).device
        readings = []
        for place in evenly(len(self.rows), LOOKED_INTO):
            ids, types = make_texts(
                [self.rows[place]], pad=PAD, bos=BOS, eos=EOS, with_types=self.model.config.token_types > 1
            )
            readings.append(watch_text(self.model, ids.to(device), None if types is None else types.to(device)))
        return mean_entropies(readings)
