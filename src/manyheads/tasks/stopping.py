"""Where a text that is written ends: at a stop text that has come out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from torch import Tensor

from manyheads.search.greedy import Choose
from manyheads.text.interface import Tokenizer

__all__ = ["before_stop", "stopping", "until_stop"]


def before_stop(text: str, stops: Sequence[str]) -> str | None:
    """The text before the first stop text in it; None when there is none."""
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(places)] if places else None


def until_stop(pieces: Iterable[str], stops: Sequence[str]) -> Iterator[str]:
    """A text that comes in pieces, up to the first stop text; what may be the beginning of one is held back."""
    held = ""
    for piece in pieces:
        held += piece
        rest = before_stop(held, stops)
        if rest is not None:
            yield from filter(None, [rest])
            return
        sure = len(held) - max((overlap(held, stop) for stop in stops), default=0)
        yield from filter(None, [held[:sure]])
        held = held[sure:]
    yield from filter(None, [held])


def overlap(text: str, stop: str) -> int:
    """How many of its last characters a text has in common with the beginning of a stop text."""
    lengths = range(min(len(text), len(stop) - 1), 0, -1)
    return next((length for length in lengths if text.endswith(stop[:length])), 0)


def stopping(choose: Choose, tokenizer: Tokenizer, stops: Sequence[str]) -> Choose:
    """A choice after which nothing can follow once a stop text has come out."""
    if not stops:
        return choose
    written: dict[int, list[int]] = defaultdict(list)
    # a token spells a byte at least, so that so many tokens hold a stop text that ends in the last of them
    longest = max(len(stop.encode()) for stop in stops)

    def choose_or_end(log_probs: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        tokens, values = choose(log_probs, rows)
        for place, row in enumerate(rows.tolist()):
            if before_stop(tokenizer.decode(written[row][-longest:]), stops) is not None:
                values[place] = -float("inf")
            written[row].append(int(tokens[place]))
        return tokens, values

    return choose_or_end
