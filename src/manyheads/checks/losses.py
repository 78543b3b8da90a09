"""Compare the loss on validation text with that of the log, other batches, other sources and other contexts.

Shapes: N windows, T length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from manyheads.checks.catalogue import run_finding
from manyheads.checks.subjects import TrainedLanguageModel, TrainedTranslator
from transformer_doctor.model_adapter import device_of
from transformer_doctor.report import Finding
from transformer_doctor.tolerances import SAME_LOSS

# Nats a prediction that other sources must cost: 4.6 more in the run multi30k-de-en.
_IGNORED, _LEAST_GAIN = 0.05, 0.3
# Loss of the validation text now, above that in the log; published weights may be averaged ones.
_DEARER, _DEARER_FACTOR = 1.0, 1.5
REPLACEMENT_DISTANCE = 7  # positions, in the order of length, from a source to the one that replaces it
_SMALL_BATCH = 60  # tokens
_CONTEXTS, _READ_TOGETHER = 128, 16  # windows whose context is replaced; how many of them at a time


def check_logged_loss(trained: TrainedTranslator) -> Iterator[Finding]:
    """Compare the validation loss of a translator with the best one in the log of its training."""
    return _logged_findings(trained.read_loss, len(trained.read_pairs), trained.logged_loss)


def check_source(trained: TrainedTranslator) -> Iterator[Finding]:
    """Compare the loss of validation targets with that of the same targets with other sources (invariant N)."""
    sources, targets = trained.read_rows
    own, shuffled = trained.read_loss, trained.loss(_rotate(sources), targets)
    trained.facts["reading"] = f"{own:.2f} nats a token of the validation set, {shuffled:.2f} with other sources"
    return source_findings(own, shuffled, len(sources))


def check_batching(trained: TrainedTranslator) -> Iterator[Finding]:
    """Compare the validation loss of a translator in large and in small batches (invariant L)."""
    return batching_findings(trained.read_loss, trained.loss(*trained.read_rows, _SMALL_BATCH))


def _rotate(rows: list[list[int]]) -> list[list[int]]:
    """Return rows rotated by `REPLACEMENT_DISTANCE` positions, or by one if there are few rows."""
    distance = REPLACEMENT_DISTANCE if len(rows) > REPLACEMENT_DISTANCE else 1
    return rows[distance:] + rows[:distance]


def check_logged_stream(trained: TrainedLanguageModel) -> Iterator[Finding]:
    """Compare the validation loss of a language model with the best one in the log of its training."""
    trained.facts["loss"] = f"{trained.read_loss:.3f} nats a token of the validation text"
    return _logged_findings(trained.read_loss, len(trained.tokens) - 1, trained.logged_loss)


def check_stream_batching(trained: TrainedLanguageModel) -> Iterator[Finding]:
    """Compare the validation loss of a language model in large and in small batches (invariant L)."""
    return batching_findings(trained.read_loss, trained.loss(trained.config.data.max_length))


def check_context(trained: TrainedLanguageModel) -> Iterator[Finding]:
    """Replace the context of the last token of some windows by that of other windows (invariant N)."""
    windows, change = _context_change(trained)
    trained.facts["context"] = f"another one changes the loss of a token by {change:.3f} nats in the mean"
    return _context_findings(change, windows)


@torch.no_grad()
def _context_change(trained: TrainedLanguageModel) -> tuple[int, float]:
    """Replace the context of the last token of some windows, all but the token before it, by that of other windows.

    Tokens stay at their positions, so that a model which uses nothing but the token before and its position
    does not pass for one that uses its context.

    Returns:
        The number of windows N, and the mean change of the loss of their last tokens, either way, in nats.
    """
    tokens, model, device = trained.tokens, trained.model, device_of(trained.model)
    width = min(trained.config.data.max_length, len(tokens) // 2)
    starts = np.unique(np.linspace(0, len(tokens) - width - 1, _CONTEXTS).astype(np.int64))
    windows = torch.from_numpy(tokens[starts[:, None] + np.arange(width + 1)]).long()  # (N, T + 1)
    own, labels = windows[:, :-1], windows[:, -1:]
    other = own.roll(1, 0)
    other[:, -1] = own[:, -1]
    losses = []
    for contexts in (own, other):
        rows = contexts.to(device).split(_READ_TOGETHER)
        log_probabilities = torch.cat([model(ids)[:, -1].float().log_softmax(-1) for ids in rows]).cpu()  # (N, V)
        losses.append(-log_probabilities.gather(1, labels))
    return len(windows), float((losses[0] - losses[1]).abs().mean())


def source_findings(own: float, shuffled: float, examples: int) -> Iterator[Finding]:
    """Yield a finding unless other sources raise the loss of the examples, in nats a prediction."""
    gain = shuffled - own
    if gain < _LEAST_GAIN:
        evidence = (
            f"{examples:,} validation texts cost {own:.2f} nats a prediction, and {shuffled:.2f} with each other's "
            "sources"
        )
        yield run_finding("source-ignored", evidence, None if gain < _IGNORED else "warning")


def _logged_findings(own: float, examples: int, logged: float | None) -> Iterator[Finding]:
    """Compare the validation loss of the weights with the best one in the log of the training, if it has any.

    Args:
        own: the loss now, in nats a prediction.
        examples: number of texts or tokens of which this is the mean.
        logged: the best one in the log, in the same unit.
    """
    if logged is not None and own > logged + _DEARER and own > _DEARER_FACTOR * logged:
        evidence = (
            f"the best validation loss in the log is {logged:.2f} nats a prediction; {examples:,} "
            f"validation texts cost {own:.2f} with these weights"
        )
        yield run_finding("training-differs", evidence)


def _context_findings(change: float, tokens: int) -> Iterator[Finding]:
    """Yield a finding unless another context changes the mean loss of the tokens, in nats."""
    if change < _IGNORED:
        evidence = (
            f"the loss of {tokens:,} tokens changes by {change:.3f} nats in the mean when all of their context but "
            "the token before is replaced by other text"
        )
        yield run_finding("context-ignored", evidence)


def batching_findings(large: float, small: float) -> Iterator[Finding]:
    """Yield a finding if the loss in large batches differs from that in small ones, in nats a prediction."""
    if abs(large - small) > SAME_LOSS * abs(large):
        evidence = f"{large:.6g} nats a prediction in large batches, {small:.6g} in small ones"
        yield run_finding("loss-depends-on-batching", evidence)
