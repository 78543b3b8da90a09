"""Stop texts of text generation: a generated text ends before the first one that occurs in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from torch import Tensor

from manyheads.search.greedy import ChooseTokens
from manyheads.text.interface import Tokenizer

__all__ = ["end_after_stop", "stream_before_stop", "text_before_stop"]


def text_before_stop(text: str, stops: Sequence[str]) -> str | None:
    """Return the text before the first stop text in it; None if there is no stop text."""
    starts = [start for stop in stops if (start := text.find(stop)) >= 0]
    return text[: min(starts)] if starts else None


def stream_before_stop(pieces: Iterable[str], stops: Sequence[str]) -> Iterator[str]:
    """Yield a text that arrives in pieces up to the first stop text; a possible beginning of one is held back."""
    held = ""
    for piece in pieces:
        held += piece
        rest = text_before_stop(held, stops)
        if rest is not None:
            yield from filter(None, [rest])
            return
        safe = len(held) - max((overlap(held, stop) for stop in stops), default=0)
        yield from filter(None, [held[:safe]])
        held = held[safe:]
    yield from filter(None, [held])


def overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of a text that is a beginning of a stop text, but not all of it."""
    lengths = range(min(len(text), len(stop) - 1), 0, -1)
    return next((length for length in lengths if text.endswith(stop[:length])), 0)


def end_after_stop(choose: ChooseTokens, tokenizer: Tokenizer, stops: Sequence[str]) -> ChooseTokens:
    """Return a function that chooses like `choose`, and ends a row (value -inf) once it contains a stop text."""
    if not stops:
        return choose
    written: dict[int, list[int]] = defaultdict(list)
    # A token spells at least one byte, so that this many last tokens contain a stop text that has just ended.
    num_last_tokens = max(len(stop.encode()) for stop in stops)

    def choose_or_end(log_probs: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        tokens, values = choose(log_probs, rows)
        for index, row in enumerate(rows.tolist()):
            if text_before_stop(tokenizer.decode(written[row][-num_last_tokens:]), stops) is not None:
                values[index] = -float("inf")
            written[row].append(int(tokens[index]))
        return tokens, values

    return choose_or_end
