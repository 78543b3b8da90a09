"""Options of an inspection, and changes of the inspected model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from manyheads.errors import UsageError

_MOST_TOKENS = 256  # maximum length of a text; the attention weights grow with its square


@dataclass(frozen=True)
class InspectOptions:
    """Options of an inspection.

    Attributes:
        target: output to inspect instead of the one that the search finds.
        prefix: beginning of the output, as text or token ids; the search continues from there. An end mark as its
            last id ends the output.
        beam_size: beam size; None takes the setting of the run.
        alternatives: number of alternative tokens to show for each output token.
        neighbours: number of nearest tokens in the embedding for each token.
        padding: number of <pad> tokens to append to the source, to check that the attention masks hide them.
        occlusion: whether to leave out each word once, which takes a further pass for each word.
        max_tokens: language models: number of tokens to generate after the text.
        temperature: divides the logits of the predictions, from 0.1 to 3; it does not change the search.
        run: name of the run in the result.
    """

    target: str | None = None
    prefix: str | Sequence[int] = ()
    beam_size: int | None = None
    alternatives: int = 5
    neighbours: int = 5
    padding: int = 0
    occlusion: bool = True
    max_tokens: int = 0
    temperature: float = 1.0
    run: str = ""

    def __post_init__(self) -> None:
        for name in ("alternatives", "neighbours", "padding", "max_tokens"):
            if not 0 <= vars(self)[name] <= _MOST_TOKENS:
                raise UsageError(f"{name} = {vars(self)[name]} must be 0 to {_MOST_TOKENS}.")
        if not 0.1 <= self.temperature <= 3.0:
            raise UsageError(f"temperature = {self.temperature} must be 0.1 to 3.")
        if self.beam_size is not None and self.beam_size < 1:
            raise UsageError(f"beam_size = {self.beam_size} must be at least 1.")
        if self.target is not None and self.prefix:
            raise UsageError("a target is inspected as it is, and a prefix is continued: give one of them.")

    def refuse(self, task: str, *names: str) -> None:
        """Raise `UsageError` for options that a task does not have."""
        defaults = vars(InspectOptions())
        for name in names:
            is_set = len(self.prefix) > 0 if name == "prefix" else vars(self)[name] != defaults[name]
            if is_set:
                raise UsageError(f'{name} has no meaning for a run of task = "{task}". Leave it out.')


def check_length(tokens: int, what: str, most: int, *, may_be_empty: bool = False) -> None:
    """Raise `UsageError` if a text has more tokens than the model takes or pictures can show, or has none."""
    limit = min(most, _MOST_TOKENS)
    if tokens > limit:
        reason = "as much as the model takes" if most < _MOST_TOKENS else "so that pictures can be read"
        raise UsageError(
            f"the {what} has {tokens:,} tokens; {limit:,} can be looked at, {reason}. Give one sentence."
        )
    if not tokens and not may_be_empty:
        raise UsageError(f"the {what} is empty: there is nothing to look at.")


class HeadName(NamedTuple):
    """A head: kind of attention ("encoder", "decoder" or "cross"), layer and head, both from 0."""

    kind: str
    layer: int
    head: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a name such as "cross.2.1"; raise `UsageError` for any other form."""
        kind, _, numbers = text.partition(".")
        layer, _, head = numbers.partition(".")
        if not all(number.isascii() and number.isdecimal() and len(number) < 6 for number in (layer, head)):
            raise UsageError(f'"{text[:40]}" names no head. Write kind.layer.head, as "cross.2.1".')
        return cls(kind, int(layer), int(head))


@dataclass(frozen=True)
class Changes:
    """Changes of a model; the defaults change nothing.

    Attributes:
        heads: heads whose output is zero.
        mask: False: the self-attention of the decoder has no causal mask.
        positions: False: position embeddings are zero, and rotary positions rotate nothing.
    """

    heads: tuple[HeadName, ...] = ()
    mask: bool = True
    positions: bool = True

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Read {"heads": ["cross.2.1"], "mask": false, "positions": false}, each of them optional.

        Raises:
            UsageError: the value has another form.
        """
        values = {} if value is None else value
        if not isinstance(values, dict) or values.keys() - {"heads", "mask", "positions"}:
            raise UsageError("changes must be an object with heads, mask and positions.")
        heads, mask, positions = values.get("heads", []), values.get("mask", True), values.get("positions", True)
        if not isinstance(heads, list) or not all(isinstance(name, str) for name in heads):
            raise UsageError('changes.heads must be a list of names such as "cross.2.1".')
        if not isinstance(mask, bool) or not isinstance(positions, bool):
            raise UsageError("changes.mask and changes.positions must be true or false.")
        return cls(tuple(dict.fromkeys(map(HeadName.parse, heads))), mask, positions)

    def __bool__(self) -> bool:
        return self != Changes()
