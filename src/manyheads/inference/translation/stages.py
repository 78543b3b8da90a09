"""Stages of a translation: a feature is a stage, and one loop searches until every stage accepts the outputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from manyheads.errors import MissingExtraError, UsageError
from manyheads.search.interface import never_cancelled
from manyheads.search.options import UNCONSTRAINED, Constraints, SearchOptions

if TYPE_CHECKING:
    from manyheads.config.schema import Config
    from manyheads.inference.translation.parts import Line
    from manyheads.inference.translation.result import Translation
    from manyheads.inference.translation.translator import Translator
    from manyheads.search.interface import Engine, Hypothesis


@dataclass(frozen=True)
class Request:
    """A call of a translator.

    Attributes:
        method: the method that was called.
        texts: one text a line.
        options: complete options of the search.
        prefixes: see `Translator.translate`, also for the next three.
        forbidden: phrases of each line.
        required: phrases of each line.
        stop: whether the search is to end.
    """

    method: Literal["translate", "stream", "score"]
    texts: Sequence[str]
    options: SearchOptions
    prefixes: Sequence[str] = ()
    forbidden: Sequence[Sequence[str]] = ()
    required: Sequence[Sequence[str]] = ()
    stop: Callable[[], bool] | None = None


@dataclass(frozen=True)
class Part:
    """A part of a line, which is searched by itself.

    Attributes:
        source: token ids (S).
        constraints: constraints on the output; None for those of the line.
        outputs: hypotheses, best first; None for a part that is to be searched.
        earlier: outputs that a stage did not accept before it changed the part.
        optional: whether the `earlier` outputs stay if the engine does not support the search.
    """

    source: list[int]
    constraints: Constraints | None = None
    outputs: list[Hypothesis] | None = None
    earlier: list[Hypothesis] | None = None
    optional: bool = False


@dataclass(frozen=True)
class Draft:
    """A line on the way to its translation.

    Attributes:
        number: index of the line in the call.
        line: the line, cut into parts.
        options: options of its search.
        parts: one for each part of the line.
        first: constraints on the output of the first part.
        others: constraints on the outputs of the other parts.
    """

    number: int
    line: Line
    options: SearchOptions
    parts: tuple[Part, ...]
    first: Constraints = UNCONSTRAINED
    others: Constraints = UNCONSTRAINED

    def with_line(self, line: Line) -> Draft:
        """Return a draft of the line cut otherwise, of which every part is to be searched."""
        return replace(self, line=line, parts=tuple(map(Part, line.parts)))

    def with_outputs(self, outputs: Iterable[list[Hypothesis]]) -> Draft:
        """Return a draft with other outputs of its parts."""
        parts = (replace(part, outputs=own) for part, own in zip(self.parts, outputs, strict=True))
        return replace(self, parts=tuple(parts))

    def constrained(self, change: Callable[[Constraints], Constraints]) -> Draft:
        """Return a draft with the constraints on each part changed."""
        return replace(self, first=change(self.first), others=change(self.others))

    def constraints(self, number: int) -> Constraints:
        """Return the constraints on the output of a part."""
        own = self.parts[number].constraints
        return own if own is not None else self.others if number else self.first

    @property
    def waits(self) -> bool:
        """Whether a part is to be searched."""
        return any(part.outputs is None for part in self.parts)

    @property
    def outputs(self) -> list[list[Hypothesis]]:
        """The hypotheses of each part, best first."""
        return [part.outputs or [] for part in self.parts]

    @property
    def best(self) -> list[Hypothesis]:
        """The best hypothesis of each part."""
        return [outputs[0] for outputs in self.outputs]


class Stage:
    """A feature of a translation. Each method has a default that changes nothing.

    A translator makes its stages anew for each call, so that a stage can keep what it finds of the lines. `before`
    and `after` are called in the order of the stages, `accepts` and `found` in the opposite order. The class
    variables and class methods say what the feature adds elsewhere: to vocabularies, tables, pages and servers.

    Args:
        translator: the translator.
        request: the call.
    """

    warnings: ClassVar[Mapping[str, str]] = {}  # names of the warnings that it gives -> their meaning
    columns: ClassVar[Mapping[str, Callable[[Translation], object]]] = {}  # of a table of translations -> the value

    def __init__(self, translator: Translator, request: Request) -> None:
        self.translator = translator
        self.request = request

    def before(self, drafts: list[Draft]) -> list[Draft]:
        """Return the lines of the call as they are to be searched."""
        return drafts

    def accepts(self, draft: Draft, part: int) -> bool:
        """Return whether the outputs of a part may stay; true where `change` has nothing left to try."""
        return True

    def change(self, draft: Draft, parts: Sequence[int]) -> Draft:
        """Return a line in which the parts that are not accepted are changed, and have no outputs."""
        return draft

    def found(self, draft: Draft) -> Draft:
        """Return a line with its outputs as they are read, once every stage accepts them."""
        return draft

    def writer(self, draft: Draft, part: int) -> Callable[[str], str] | None:
        """Return the function that rewrites the texts of the outputs of a part; None if they stay as they are."""
        return None

    def after(self, draft: Draft, translation: Translation) -> Translation:
        """Return the translation of a line that has a part."""
        return translation

    @classmethod
    def after_pivot(cls, first: Translation, translation: Translation) -> Translation:
        """Return the second of two translations by way of a pivot language; `first` is that into the language."""
        return translation

    @classmethod
    def reserved_symbols(cls, config: Config) -> Sequence[str]:
        """Return the reserved symbols that a vocabulary needs."""
        return ()

    @classmethod
    def page_data(cls, translator: Translator) -> dict[str, Any]:
        """Return the data that an exported page needs, by name (JSON)."""
        return {}

    @classmethod
    def answer_fields(cls, translator: Translator, translations: Sequence[Translation]) -> dict[str, Any]:
        """Return fields of a server's answer about a document, from the translations of its texts (JSON)."""
        return {}


def search(
    drafts: Sequence[Draft],
    stages: Sequence[Stage],
    engine: Engine,
    longest: int,
    stop: Callable[[], bool] | None = None,
) -> list[Draft]:
    """Search; parts that a stage does not accept are searched again with what it changes.

    Args:
        drafts: the lines.
        stages: the stages of the call.
        engine: the search backend.
        longest: tokens at which sources are cut.
        stop: see `Translator.translate`.
    """
    lines, waiting = list(drafts), [*range(len(drafts))]
    while waiting:
        found = _search_parts([lines[index] for index in waiting], engine, longest, stop)
        for index, draft in zip(waiting, found, strict=True):
            lines[index] = draft if draft.waits else _change(draft, stages)
        waiting = [index for index in waiting if lines[index].waits]
    for stage in reversed(stages):
        lines = list(map(stage.found, lines))
    return lines


def _change(draft: Draft, stages: Sequence[Stage]) -> Draft:
    """Return a line after the changes of the first stage that does not accept its outputs."""
    for stage in reversed(stages):
        if lost := [part for part in range(len(draft.parts)) if not stage.accepts(draft, part)]:
            return stage.change(draft, lost)
    return draft


def _search_parts(
    drafts: Sequence[Draft], engine: Engine, longest: int, stop: Callable[[], bool] | None
) -> list[Draft]:
    """Search for the outputs of the parts without outputs; parts with required phrases once no others are left."""
    parts = [list(draft.parts) for draft in drafts]
    groups: dict[bool, dict[SearchOptions, list[tuple[int, int]]]]
    groups = {required: defaultdict(list) for required in (False, True)}
    for index, draft in enumerate(drafts):
        for number, part in enumerate(draft.parts):
            if part.outputs is None:
                groups[bool(draft.constraints(number).required)][draft.options].append((index, number))
    for options, places in (groups[False] or groups[True]).items():
        own = [parts[index][number] for index, number in places]
        rows = [part.source[:longest] for part in own]
        constraints = [drafts[index].constraints(number) for index, number in places]
        cancelled = never_cancelled if stop is None else partial(_cancelled_rows, stop, len(rows))
        try:
            found = engine.search(rows, options, constraints, cancelled)
        except (MissingExtraError, UsageError):
            if not all(part.optional for part in own):
                raise
            found = [part.earlier or [] for part in own]
        for (index, number), part, outputs in zip(places, own, found, strict=True):
            parts[index][number] = Part(part.source, part.constraints, outputs, part.earlier, part.optional)
    return [
        Draft(draft.number, draft.line, draft.options, tuple(new), draft.first, draft.others)
        for draft, new in zip(drafts, parts, strict=True)
    ]


def _cancelled_rows(stop: Callable[[], bool], rows: int) -> Collection[int]:
    return range(rows) if stop() else ()
