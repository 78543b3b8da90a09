"""The interfaces of search: `Stepper` (a model while it decodes), `Hypothesis` (an output, scored) and `Engine`.

Shapes: R rows (one a hypothesis in progress; the rows of a sentence are adjacent), V vocabulary.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from manyheads.search.options import UNCONSTRAINED, Constraints, SearchOptions

if TYPE_CHECKING:
    from torch import Tensor

# Returns the indices of the cancelled rows of a search; called between two steps, in any thread.
Cancelled = Callable[[], Collection[int]]


def never_cancelled() -> Collection[int]:
    """Return no row: the default of `Cancelled`."""
    return ()


def cancelled_among(cancelled: Cancelled, indices: Sequence[int]) -> Cancelled:
    """Return the callback for a batch made of some of the sentences, whose indices start at 0 again."""
    if cancelled is never_cancelled:
        return never_cancelled
    index_in_batch = {index: new for new, index in enumerate(indices)}
    return lambda: [index_in_batch[index] for index in cancelled() if index in index_in_batch]


@dataclass(frozen=True)
class SpecialIds:
    """Special ids of a vocabulary.

    Attributes:
        bos: id of the begin symbol, the input of the first step.
        eos: id of the end symbol.
        suppressed: ids that are never generated, such as padding and bos.
    """

    bos: int
    eos: int
    suppressed: Sequence[int] = ()


class Stepper(Protocol):
    """A model while it decodes: it holds R rows, each with its prefix.

    Two methods suffice to extend and reorder a beam, to drop finished rows, for ensembles, for constraints, and
    for tests without a network.
    """

    def step(self, tokens: Tensor) -> Tensor:
        """Append one token to each row: (R,) -> log-probabilities of the next token (R, V), float32."""
        ...

    def select(self, rows: Tensor) -> None:
        """Keep some of the R rows, in the given order: (R',) row indices, repeats allowed."""
        ...


@dataclass(frozen=True)
class Hypothesis:
    """One finished output of a search.

    Attributes:
        tokens: token ids, without the begin and end symbols.
        log_probability: sum of the log-probabilities of the tokens and the end symbol, in nats.
        score: ranks hypotheses: log_probability / length ** length_penalty, where length counts the tokens and
            the end symbol.
        token_scores: log-probability of each token in nats, the end symbol last (if `ended`).
        ended: whether the output has its end symbol; false if it was cut at the length limit.
        alternatives: for each of token_scores, the likeliest other tokens and their log-probabilities, best first;
            None unless requested (`SearchOptions.alternatives`).
        attention: for each of token_scores, attention weights on the source tokens and, last, on the source's end
            mark, which sum to 1; None unless requested (`SearchOptions.alignment`).
        strained: whether a required phrase makes, or would make, the output far less likely
            (`inference.translation.terms`).
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    token_scores: tuple[float, ...]
    ended: bool
    alternatives: tuple[tuple[tuple[int, float], ...], ...] | None = None
    attention: tuple[tuple[float, ...], ...] | None = None
    strained: bool = False


def make_hypothesis(
    tokens: Sequence[int], token_scores: Sequence[float], *, ended: bool, length_penalty: float
) -> Hypothesis:
    """Build a hypothesis from its tokens and their log-probabilities; when `ended`, the last is the end symbol."""
    output = Hypothesis(tuple(tokens[:-1] if ended else tokens), 0.0, 0.0, (), ended)
    return with_scores(output, token_scores, length_penalty)


def length_divisor(length: int, length_penalty: float) -> float:
    """Return length ** length_penalty, 1 for no tokens; see `length_divisors`."""
    return float(length_divisors(np.array(length), length_penalty))


def length_divisors(lengths: NDArray[np.int64], length_penalty: float) -> NDArray[np.float64]:
    """Return length ** length_penalty for each length, 1 for no tokens, from products and square roots alone.

    These have the same bits on every machine and in JavaScript (`web/engine/search.js`); a power has not.
    """
    root = np.maximum(lengths, 1).astype(np.float64)
    power, square, whole = np.ones_like(root), root, int(length_penalty)
    rest = length_penalty - whole
    with np.errstate(over="ignore"):
        while whole:
            if whole % 2:
                power = power * square
            whole, square = whole // 2, square * square
        while rest > 0:
            root, rest = np.sqrt(root), 2 * rest
            if rest >= 1:
                power, rest = power * root, rest - 1
    return power


def with_scores(output: Hypothesis, token_scores: Sequence[float], length_penalty: float) -> Hypothesis:
    """Return an output with other log-probabilities of its tokens, and the sum and the score that they give."""
    scores = tuple(token_scores)
    total = functools.reduce(operator.add, scores, 0.0)  # as in JavaScript; `sum` compensates since 3.12
    score = total / length_divisor(len(scores), length_penalty)
    return replace(output, log_probability=total, score=score, token_scores=scores)


def without_first(output: Hypothesis, count: int, length_penalty: float) -> Hypothesis:
    """Return an output without its first tokens, and without their share of the scores."""
    shorter = replace(
        output,
        tokens=output.tokens[count:],
        alternatives=None if output.alternatives is None else output.alternatives[count:],
        attention=None if output.attention is None else output.attention[count:],
    )
    return with_scores(shorter, output.token_scores[count:], length_penalty)


def best_outputs(outputs: Iterable[Hypothesis], count: int) -> list[Hypothesis]:
    """Return the outputs with the highest scores, best first; equal scores in the given order."""
    return sorted(outputs, key=lambda output: -output.score)[:count]


# Called once a sentence, with its index and its outputs, as soon as its search has stopped.
OnFinished = Callable[[int, list[Hypothesis]], None]


@runtime_checkable
class Engine(Protocol):
    """The search backend of a translator: source ids in, hypotheses out.

    The ids come from the run's tokenizers. The output of a row depends on that row and its options alone: not on
    the other rows, their number or their order.
    """

    def search(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        constraints: Sequence[Constraints] = (),
        cancelled: Cancelled = never_cancelled,
    ) -> list[list[Hypothesis]]:
        """Search for the outputs of each row; the engine makes its own batches.

        Args:
            rows: any number of sources as ids without begin and end marks, each with at least one token and at
                most as many as the model allows.
            options: complete options of the search.
            constraints: constraints on the output of each row; empty, or one for each row.
            cancelled: returns the rows to stop early; the outputs of these rows are meaningless.

        Returns:
            For each row 1 to n_best outputs, best first; samples in the order in which they were drawn.

        Raises:
            UsageError: an option or a constraint is set that this engine does not support; the message names it.
        """
        ...

    def stream(
        self, row: Sequence[int], options: SearchOptions, constraints: Constraints = UNCONSTRAINED
    ) -> Iterator[int]:
        """Yield the tokens of the greedy output of one row as they are generated; the end symbol last, if any.

        Raises:
            UsageError: see `search`.
        """
        ...


@runtime_checkable
class LimitedEngine(Engine, Protocol):
    """An engine that knows the limit of its models."""

    @property
    def longest(self) -> int:
        """Maximum length of a source or an output in tokens, without the end mark."""
        ...
