"""All that search knows of a model: a `Stepper`; all that it returns: a `Hypothesis`; what others ask: an `Engine`.

Shapes: R rows (one a hypothesis in progress; the rows of a sentence stand together), V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from manyheads.search.options import SearchOptions

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Abandoned", "Engine", "Hypothesis", "Stepper", "nobody"]

# The numbers of the rows of a search that nobody waits for any more; asked between two steps, in any thread.
Abandoned = Callable[[], Collection[int]]


def nobody() -> Collection[int]:
    """`Abandoned` where every row is waited for."""
    return ()


class Stepper(Protocol):
    """A model in the middle of decoding: it holds R rows, each with its prefix.

    Two methods suffice to grow and reorder a beam, to drop rows that have ended, for ensembles, for
    constraints, and for tests without a network.
    """

    def step(self, tokens: Tensor) -> Tensor:
        """Append one token to each row and score what may follow: (R,) -> log-probabilities (R, V), float32."""
        ...

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, in this order, repeats allowed: (R',) indices into the R rows."""
        ...


@dataclass(frozen=True)
class Hypothesis:
    """One finished output of a search.

    Attributes:
        tokens: its ids, without the begin and end symbols.
        log_probability: sum of the log-probabilities of its tokens in nats, the end symbol's included.
        score: what hypotheses are ranked by: log_probability / length ** length_penalty, where length
            counts the tokens and the end symbol.
        token_scores: the log-probability of each token in nats, the end symbol's last (when it has ended).
        ended: whether it came to the end symbol; false when it was cut at the length limit.
        rivals: beside each of token_scores, the likeliest other tokens and their log-probabilities, best first;
            None unless asked for (`SearchOptions.rivals`).
        attention: beside each of token_scores, how much it looked at each source token and, last, at the source's
            end mark, which add up to 1; None unless asked for (`SearchOptions.attention`).
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    token_scores: tuple[float, ...]
    ended: bool
    rivals: tuple[tuple[tuple[int, float], ...], ...] | None = None
    attention: tuple[tuple[float, ...], ...] | None = None


class Engine(Protocol):
    """What a translator asks to search: source ids in, outputs out.

    Ids are those of the run's tokenizers. What comes out for a row depends on that row and its options alone:
    not on the other rows, their number or their order.
    """

    def search(
        self, rows: Sequence[Sequence[int]], options: SearchOptions, abandoned: Abandoned = nobody
    ) -> list[list[Hypothesis]]:
        """Search for each row; the engine makes its own batches.

        Args:
            rows: sources as ids without marks, none of them empty, none longer than the model allows; any number.
            options: `prefixes`, `forbidden` and `required` have no entry, or one for each row.
            abandoned: rows that need not be finished; what is returned for them means nothing.

        Returns:
            For each row 1 to n_best outputs, best first; samples in the order in which they were drawn.

        Raises:
            UsageError: an option is on that this engine does not know; the message names it.
        """
        ...

    def stream(self, row: Sequence[int], options: SearchOptions) -> Iterator[int]:
        """The tokens of the greedy output of one row, each as soon as it is known, the end symbol last if it came.

        Raises:
            UsageError: as `search`.
        """
        ...
