"""Tables of the checks of `manyheads doctor CONFIG` and `manyheads doctor RUN`.

Any model is examined by `examine` (OUTPUT_CHECKS of `checks.behaviour`, then its internals, then its training);
the text of a configuration by `checks.text`; the machine by `checks.machine`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manyheads.checks import classes, decoding, heads, losses, outputs, plan, start, tokens
from manyheads.checks.check import Check, make_checks
from manyheads.checks.invariants import examine_own_model
from manyheads.checks.subjects import TrainedClassifier, TrainedLanguageModel, TrainedModel, TrainedTranslator
from manyheads.reports import NO_LISTENER, Listener
from transformer_doctor.report import Finding, Report

_MIN_TOKENS = 16  # tokens of a text in which contexts can be replaced
_NO_TRAIN = "the training text is not on this machine"
_NO_VALID = "the validation text is not on this machine"
_NO_LABELS = "validation text with known labels is not on this machine"
_NO_CONTEXT = f"this needs a validation text of at least {_MIN_TOKENS} tokens"


@dataclass(frozen=True)
class NewTraining:
    """Observations of a training that has not begun.

    Attributes:
        plan: figures of the training.
        sides: tokens of the sides of train and of the validation set.
        vocabularies: vocabularies of subword tokenizers; none of other tokenizers.
        too_long: findings about texts that are longer than data.max_length.
        first_loss: loss of the new model, number of choices and width of tied embeddings, as `start_findings` takes
            them; None where the model continues another one.
    """

    plan: plan.Plan
    sides: Sequence[tokens.SideTokens]
    vocabularies: Sequence[tokens.Vocabulary]
    too_long: Sequence[Finding]
    first_loss: tuple[float, int, int] | None


def _check_tokens(training: NewTraining) -> Iterator[Finding]:
    """Yield findings about the tokens of all sides, and texts that are too long."""
    for side in training.sides:
        yield from tokens.side_findings(side)
    yield from training.too_long


def _check_sizes(training: NewTraining) -> Iterator[Finding]:
    for vocabulary in training.vocabularies:
        yield from tokens.size_findings(vocabulary)


def _check_start(training: NewTraining) -> Iterator[Finding]:
    """Yield findings about the loss before the first update."""
    assert training.first_loss is not None
    return start.start_findings(*training.first_loss)


NEW_TRAINING: Sequence[Check[NewTraining]] = (
    Check("few tokens are unknown, and texts come back from their tokens", _check_tokens),
    Check("the vocabulary is not too large for the text", _check_sizes),
    Check("the learning rate fits the width, the batch and the optimiser",
          lambda training: plan.rate_findings(training.plan)),
    Check("the warm-up ends in time, and the whole text is read",
          lambda training: plan.epoch_findings(training.plan)),
    Check("the model is not too large for the text", lambda training: plan.size_findings(training.plan)),
    Check("memory suffices, and training does not take days",
          lambda training: plan.machine_findings(training.plan)),
    Check("the loss begins near that of a blind guess", _check_start,
          lambda training: training.first_loss is not None, "the model continues another one"),
)  # fmt: skip


def _check_round_trips(trained: TrainedModel) -> Iterator[Finding]:
    for name, tokenizer, texts in trained.samples():
        yield from tokens.side_findings(tokens.count_side(name, tokenizer, texts))


def _check_vocabulary(trained: TrainedModel) -> Iterator[Finding]:
    """Count the pieces of subword vocabularies that never occur in train."""
    if trained.config.tokenizer.kind not in ("bpe", "unigram"):
        return
    sides = list(zip(trained.train_texts, trained.train_counts, strict=True))
    if len(sides) == 2 and trained.tokenizers.joint:
        counts = trained.train_counts
        vocabularies = [("vocabulary", trained.tokenizers.source, counts[0] + counts[1])]
    else:
        vocabularies = [(f"{side} vocabulary".strip(), tokenizer, counts) for (side, tokenizer, _), counts in sides]
    for vocabulary in vocabularies:
        yield from tokens.use_findings(tokens.count_vocabulary(*vocabulary))


def _has_train(trained: TrainedModel) -> bool:
    return bool(trained.train)


def _has_valid(trained: TrainedModel) -> bool:
    """Return whether validation text is available."""
    return bool(trained.valid)


def _has_labelled(trained: TrainedClassifier) -> bool:
    """Return whether validation texts with known labels are available."""
    return bool(trained.labelled)


def _has_context(trained: TrainedLanguageModel) -> bool:
    """Return whether the validation text is long enough for contexts to be replaced."""
    return _has_valid(trained) and len(trained.tokens) >= _MIN_TOKENS


_VOCABULARY = Check("the vocabulary is used", _check_vocabulary, _has_train, _NO_TRAIN)
_ROUND_TRIPS = Check("texts come back from their tokens", _check_round_trips, _has_train, _NO_TRAIN)
_TRAINED: Mapping[type[TrainedModel], Sequence[Check[Any]]] = {
    TrainedTranslator: (
        Check("the first token is learned", decoding.check_first_token, _has_train, _NO_TRAIN),
        _ROUND_TRIPS,
        _VOCABULARY,
        Check("the loss is that of the log", losses.check_logged_loss, _has_valid, _NO_VALID),
        Check("the source is read", losses.check_source, _has_valid, _NO_VALID),
        Check("the loss does not depend on batches", losses.check_batching, _has_valid, _NO_VALID),
        Check("greedy search, beams and batches agree", decoding.check_decoding, _has_valid, _NO_VALID),
        Check(
            "outputs end, are not empty, and neither loop nor copy", outputs.check_outputs, _has_valid, _NO_VALID
        ),
        Check("few attention heads are idle", heads.check_translator_heads, _has_valid, _NO_VALID),
    ),
    TrainedClassifier: (
        _VOCABULARY,
        _ROUND_TRIPS,
        Check("the text is read", classes.check_texts, _has_labelled, _NO_LABELS),
        Check("classes are predicted better than by guessing", classes.check_classes, _has_labelled, _NO_LABELS),
        Check("no result depends on the batch", classes.check_class_batches, _has_labelled, _NO_LABELS),
        Check(None, heads.check_classifier_heads, _has_labelled, _NO_LABELS),
    ),
    TrainedLanguageModel: (
        _VOCABULARY,
        _ROUND_TRIPS,
        Check("the loss is that of the log", losses.check_logged_stream, _has_valid, _NO_VALID),
        Check("the context is used", losses.check_context, _has_context, _NO_CONTEXT),
        Check("the loss does not depend on batches", losses.check_stream_batching, _has_valid, _NO_VALID),
        Check("step-by-step decoding gives the same", decoding.check_steps, _has_valid, _NO_VALID),
        Check(None, heads.check_language_model_heads, _has_valid, _NO_VALID),
        Check("generated texts do not loop", outputs.check_generated),
    ),
    TrainedModel: (
        Check(None, _check_round_trips, _has_train, _NO_TRAIN),
        _VOCABULARY,
    ),
}  # fmt: skip


def examine_trained(trained: TrainedModel, listener: Listener = NO_LISTENER) -> Report:
    """Examine a trained model: the invariants of a model, then the checks of its task."""
    with listener.phase("checking: the invariants of every model"):
        invariants = examine_own_model(trained.model, trained.tokenizers)
    return invariants + make_checks(_TRAINED[type(trained)], trained, listener)
