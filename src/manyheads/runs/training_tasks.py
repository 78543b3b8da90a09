"""The tasks that can be trained: model, loss, batches, validation, with tokenizers and token ids of their text.

Tokenizers and token ids are stored in the run directory and reused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from manyheads.checkpoint import RunDirectory, saving
from manyheads.config.schema import Config
from manyheads.data.labelled import split_texts
from manyheads.data.store import Encode, TextStore, TokenStore, TokenStream
from manyheads.errors import DataError
from manyheads.interop.huggingface.task_model import empty_model
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.transformer import Transformer
from manyheads.runs.augmented_batches import augmented_batches
from manyheads.runs.batch_sources import BlockUpdates, CorpusUpdates, LabelledBatches, MaskedBatches, PairBatches
from manyheads.runs.classification import (
    ClassValidation,
    check_labels,
    class_weights,
    label_numbers,
    labels_of,
    report_classes,
    warnings_of,
)
from manyheads.runs.corpus import LANGUAGES, Corpus, held_out, language_profiles, longest_side, name_limit
from manyheads.runs.initialize import Sides, initial_tokenizers
from manyheads.runs.language_modeling import TextValidation
from manyheads.runs.masked import MaskedValidation
from manyheads.runs.model_card import trained_card
from manyheads.runs.signals import call_in_thread
from manyheads.runs.translation import Validation
from manyheads.tasks.classification import LABELS, Labels, encode_texts
from manyheads.text.tokenizer import EOS, TokenizerPair, train_tokenizer, train_tokenizers
from manyheads.training.batches import BatchSource
from manyheads.training.distributed import World
from manyheads.training.log import Advance, Listener, ValidationReport
from manyheads.training.objective import (
    Objective,
    classification_loss,
    masked_loss,
    next_token_loss,
    translation_loss,
)
from manyheads.training.progress import Progress

_MOST_PAIRS = 1_000_000  # maximum number of pairs to learn subwords from, evenly spread over the text


@dataclass(frozen=True)
class TrainingTask:
    """A task to train, with text, tokenizers and token ids.

    Attributes:
        config: configuration of the run.
        corpus: text of the run.
        tokenizers: tokenizers of both sides; twice the same for tasks other than translation.
        store: token ids of the training text; a `TokenStream` for language modelling.
        objective: returns a model with its loss.
        updates: returns the batches of this process.
        validation: returns the validation of a model, a function of the step. Its arguments are the model, the
            processes that share it, and a `Watch`.
        too_long: number of training examples left out because they have too many tokens.
        classes: classes of a classifier, in the order of its outputs.
        documents: returns further JSON documents of the run directory, by file name.
    """

    config: Config
    corpus: Corpus
    tokenizers: TokenizerPair
    store: TokenStore | TokenStream
    objective: Callable[[Any], Objective]
    updates: Callable[[World], BatchSource]
    validation: Callable[..., Callable[[int], ValidationReport]]
    too_long: int = 0
    classes: tuple[str, ...] = ()
    documents: Callable[[], Mapping[str, Mapping[str, Any]]] = dict

    def model(self) -> Transformer:
        """Build a new model on the CPU."""
        if self.config.task == "translation":
            return EncoderDecoder(self.config.model, self.tokenizers.source.size, self.tokenizers.target.size)
        return empty_model(self.config, self.tokenizers.target, len(self.classes))

    @property
    def vocabulary(self) -> str:
        """Description of the vocabulary sizes, for a message."""
        source, target = self.tokenizers.source.size, self.tokenizers.target.size
        if self.config.task == "translation":
            return f"{source:,}/{target:,}"
        return f"{target:,}, {len(self.classes):,} classes" if self.classes else f"{target:,}"

    def begin(self, run: RunDirectory, environment: Mapping[str, Any]) -> None:
        """Write the files that a run directory has before the first step."""
        run.begin(self.config, self.tokenizers, environment, self.documents())

    def card(self, progress: Progress) -> str:
        """Return the model card of the finished run."""
        return trained_card(self.config, self.tokenizers, progress, self.classes)


def prepare_task(config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
    """Prepare tokenizers and token ids of a run; stored ones are reused."""
    match config.task:
        case "translation":
            return _prepare_translation(config, run, corpus, listener)
        case "classification":
            return _prepare_classification(config, run, corpus, listener)
        case "language-modeling":
            return _prepare_language_model(config, run, corpus, listener)
        case "masked-lm":
            return _prepare_masked(config, run, corpus, listener)


def _prepare_translation(config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
    """Prepare the training of an encoder-decoder on pairs of texts."""
    training, texts = config.training, corpus.train
    tokenizers = _prepare_tokenizers(config, run, texts.sides, listener)
    store = _tokenise(config, run, corpus, tokenizers, listener, max_length=longest_side(config))
    maker = _pair_batches(config, run, texts, store, tokenizers, listener)
    return TrainingTask(
        config=config,
        corpus=corpus,
        tokenizers=tokenizers,
        store=store,
        objective=lambda model: Objective(
            model, partial(translation_loss, smoothing=training.label_smoothing, r_drop=training.r_drop)
        ),
        updates=lambda world: CorpusUpdates(config, maker, world),
        validation=partial(Validation, config, corpus.valid, tokenizers),
        too_long=store.too_long,
        documents=lambda: {
            LANGUAGES: {name: profile.to_json() for name, profile in language_profiles(config, texts).items()}
        },
    )


def _pair_batches(
    config: Config,
    run: RunDirectory,
    texts: TextStore,
    store: TokenStore,
    tokenizers: TokenizerPair,
    listener: Listener,
) -> PairBatches:
    """Return the maker of the batches of a translator, with augmentation if it is configured."""
    if config.data.augment is None:
        return PairBatches(config, texts, store, tokenizers)
    return augmented_batches(config, config.data.augment, run, (texts, store), tokenizers, listener)


def _prepare_language_model(config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
    tokenizers = _prepare_tokenizers(config, run, lambda most: (corpus.train.sides(most)[1], ()), listener)
    stream = _make_stream(config, run, corpus, tokenizers, listener)
    texts = [pair.target for pair in corpus.valid]
    return TrainingTask(
        config=config,
        corpus=corpus,
        tokenizers=tokenizers,
        store=stream,
        objective=lambda model: Objective(
            model, partial(next_token_loss, smoothing=config.training.label_smoothing)
        ),
        updates=lambda world: BlockUpdates(config, stream, world),
        validation=partial(TextValidation, config, texts, tokenizers.target),
    )


def _prepare_masked(config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
    """Prepare the training of an encoder that predicts masked tokens of its text."""
    tokenizers = _prepare_tokenizers(config, run, lambda most: (corpus.train.sides(most)[1], ()), listener)
    store = _tokenise(config, run, corpus, tokenizers, listener, max_length=None)
    maker = MaskedBatches(config, corpus.train, store, tokenizers)
    texts = [pair.target for pair in corpus.valid]
    return TrainingTask(
        config=config,
        corpus=corpus,
        tokenizers=tokenizers,
        store=store,
        objective=lambda model: Objective(model, partial(masked_loss, smoothing=config.training.label_smoothing)),
        updates=lambda world: CorpusUpdates(config, maker, world),
        validation=partial(MaskedValidation, config, texts, tokenizers.source),
    )


def _prepare_classification(config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
    """Prepare the training of an encoder on texts with a label each.

    Raises:
        DataError: the training text has only one label, or the validation or test text has unknown ones.
    """
    labels = Labels.of_run(run) if run.exists else labels_of(corpus)
    names = labels.names
    for warning in warnings_of(config, corpus, names):
        listener.message(f"warning: {warning}")
    check_labels(corpus.valid, names, "data.valid")
    if config.data.test is not None and config.data.drop_overlap:  # already read, as it is held out
        check_labels(held_out(config, "test"), names, "data.test")

    def single_texts(most: int | None) -> Sides:
        return [text for example in corpus.train.sides(most)[0] for text in split_texts(example)], ()

    tokenizers = _prepare_tokenizers(config, run, single_texts, listener)
    tokenizer = tokenizers.source

    def numbers(texts: Sequence[str]) -> list[list[int]]:
        return [[number] for number in label_numbers(texts, names, "data.train").tolist()]

    def ids(texts: Sequence[str]) -> list[list[int]]:
        return encode_texts(tokenizer.encode, texts, tokenizer.marks_between)

    store = _tokenise(config, run, corpus, tokenizers, listener, (ids, numbers), max_length=None)
    maker = LabelledBatches(config, corpus.train, store, tokenizers)
    counts = np.bincount(store.target.values, minlength=len(names))
    report_classes(config, store.source.lengths, counts, names, listener)
    weights, smoothing = class_weights(config, counts), config.training.label_smoothing
    return TrainingTask(
        config=config,
        corpus=corpus,
        tokenizers=tokenizers,
        store=store,
        objective=lambda model: Objective(
            model, partial(classification_loss, smoothing=smoothing, class_weights=weights)
        ),
        updates=lambda world: CorpusUpdates(config, maker, world),
        validation=partial(ClassValidation, config, corpus.valid, tokenizer, labels),
        classes=names,
        documents=lambda: {LABELS: labels.to_json()},
    )


# --- tokenizers and token ids ---


def _prepare_tokenizers(
    config: Config, run: RunDirectory, sides: Callable[[int | None], Sides], listener: Listener
) -> TokenizerPair:
    """Return the tokenizers of a run: stored ones if it has begun, else those of `model.init_from`, else new ones.

    `sides(n)` returns at most n source and target texts (None: all), without targets for tasks other than
    translation. It is called only to train.
    """
    most = _MOST_PAIRS if config.tokenizer.kind in ("bpe", "unigram") else None  # a word list must be complete

    def learn() -> TokenizerPair:
        sources, targets = sides(most)
        if config.task == "translation":
            return train_tokenizers(config.tokenizer, sources, targets, *config.languages)
        tokenizer = train_tokenizer(config.tokenizer, sources, config.data.language, keep_space=config.keep_space)
        return TokenizerPair(tokenizer, tokenizer, joint=True)

    def learn_visibly() -> TokenizerPair:
        listener.message(f"training the tokenizer ({config.tokenizer.kind})")
        with listener.phase("training the tokenizer"):
            return call_in_thread(learn)

    if run.exists:
        return run.tokenizers(config)
    if config.model.init_from is not None:
        return initial_tokenizers(config, learn_visibly, lambda: sides(most), listener)
    return learn_visibly()


def _tokenise(
    config: Config,
    run: RunDirectory,
    corpus: Corpus,
    tokenizers: TokenizerPair,
    listener: Listener,
    encode: tuple[Encode, Encode] | None = None,
    *,
    max_length: int | None,
) -> TokenStore:
    """Return the token store of the run; it is made if it is missing or was made from other text.

    `encode` replaces the encoding of the tokenizers. Pairs with a side of more than `max_length` tokens are left
    out; None keeps all.
    """
    folder = run.path / "cache" / "train"
    sums = [corpus.train.sha256, tokenizers.source.sha256, tokenizers.target.sha256]
    key = _key_of([config.task, *sums, max_length])
    if TokenStore.has(folder, key):
        return TokenStore(folder)
    source, target = encode or (tokenizers.source.encode, tokenizers.target.encode)
    phase = listener.phase("tokenizing", len(corpus.train), "pairs")
    with saving("the token ids", folder, ""), phase as advance:
        encode = (_counted(source, advance), target)
        store = TokenStore.build(folder, corpus.train, encode, key=key, max_length=max_length)
    if not len(store):
        raise DataError(f"every training pair is longer than {name_limit(config)} tokens.")
    return store


def _make_stream(
    config: Config, run: RunDirectory, corpus: Corpus, tokenizers: TokenizerPair, listener: Listener
) -> TokenStream:
    """Return the token stream of a language model; it is made if it is missing or was made from other text."""
    folder, tokenizer = run.path / "cache" / "train", tokenizers.target
    key = _key_of([corpus.train.sha256, tokenizer.sha256, config.data.documents])
    if not TokenStream.has(folder, key):
        phase = listener.phase("tokenizing", len(corpus.train), "texts")
        with saving("the token ids", folder, ""), phase as advance:
            encode = _counted(tokenizer.encode, advance)
            TokenStream.build(folder, corpus.train, encode, key=key, end=EOS, whole_files=config.whole_files)
    return TokenStream(folder)


def _counted(encode: Encode, advance: Advance) -> Encode:
    """Return an encoding that calls `advance` with the number of encoded texts."""

    def encode_and_count(texts: Sequence[str]) -> list[list[int]]:
        ids = encode(texts)
        advance(len(texts))
        return ids

    return encode_and_count


def _key_of(parts: Sequence[Any]) -> str:
    """Return the SHA-256 of JSON values: the key of a cache that is made from them."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
