"""What may be asked of an inspection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from manyheads.errors import UsageError
from manyheads.search.options import Ids
from manyheads.tasks.options import spelled
from manyheads.text.tokenizer import BOS, EOS, PAD, Tokenizer

__all__ = ["MOST_TOKENS", "InspectOptions", "check_length", "prefix_ids"]

MOST_TOKENS = 256  # of a text: the weights of all heads grow with the square


@dataclass(frozen=True)
class InspectOptions:
    """What to look at.

    Attributes:
        target: translation: an output that is looked at instead of one that is searched for.
        prefix: what the output begins with, as text or as token ids; the rest is searched for from there ("use this
            word instead"). An end mark as its last id ends the output.
        beam_size: of the search; None is the setting of the run.
        rivals: how many of the likeliest other tokens are told beside each.
        neighbours: how many of the nearest tokens in the embedding.
        padding: translation: so many `<pad>` are put after the source, to see that nothing looks at them.
        occlusion: whether each word is left out once; that takes as many further passes as there are words.
        max_tokens: language models: how many tokens are written after the text.
        run: a name for the result.
    """

    target: str | None = None
    prefix: str | Sequence[int] = ()
    beam_size: int | None = None
    rivals: int = 5
    neighbours: int = 5
    padding: int = 0
    occlusion: bool = True
    max_tokens: int = 0
    run: str = ""

    def __post_init__(self) -> None:
        for name in ("rivals", "neighbours", "padding", "max_tokens"):
            if not 0 <= vars(self)[name] <= MOST_TOKENS:
                raise UsageError(f"{name} = {vars(self)[name]} must be 0 to {MOST_TOKENS}.")
        if self.beam_size is not None and self.beam_size < 1:
            raise UsageError(f"beam_size = {self.beam_size} must be at least 1.")
        if self.target is not None and self.prefix:
            raise UsageError("a target is looked at as it is, and a prefix is gone on from: give one of them.")

    def refuse(self, task: str, *names: str) -> None:
        """Raise `UsageError` for options that have no meaning for a task."""
        plain = vars(InspectOptions())
        for name in names:
            given = len(self.prefix) > 0 if name == "prefix" else vars(self)[name] != plain[name]
            if given:
                raise UsageError(f'{name} has no meaning for a run of task = "{task}". Leave it out.')


def check_length(tokens: int, what: str, most: int) -> None:
    """Raise `UsageError` when a text has too many tokens to be looked at, or has none."""
    limit = min(most, MOST_TOKENS)
    if tokens > limit:
        reason = "as much as the model takes" if most < MOST_TOKENS else "so that pictures can be read"
        raise UsageError(
            f"the {what} has {tokens:,} tokens; {limit:,} can be looked at, {reason}. Give one sentence."
        )
    if not tokens:
        raise UsageError(f"the {what} is empty: there is nothing to look at.")


def prefix_ids(prefix: str | Sequence[int], tokenizer: Tokenizer) -> tuple[Ids, bool]:
    """The ids of a prefix, and whether it ends the output.

    Raises:
        UsageError: it holds what cannot come out.
    """
    if isinstance(prefix, str):
        return spelled(tokenizer, prefix, "prefix"), False
    ids = tokenizer.check(prefix)
    ends = bool(ids) and ids[-1] == EOS
    body = ids[:-1] if ends else ids
    if set(body) & {BOS, EOS, PAD}:
        raise UsageError("the prefix has a begin, end or padding mark in its middle; nothing can come after that.")
    return tuple(body), ends
