"""The options of `translate` that say how to search, and what must and must not come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.data.lines import read_lines
from manyheads.errors import DataError, ManyheadsError, UsageError

if TYPE_CHECKING:
    from manyheads.tasks.options import TranslateOptions

__all__ = ["Companions", "Searching", "batches", "searching_options"]


@dataclass(frozen=True)
class Searching:
    """The values of the options, None where the run's setting holds."""

    length_penalty: float | None
    coverage_penalty: float | None
    max_length_ratio: float | None
    min_length_ratio: float
    no_repeat_ngram: int | None
    sample: bool
    temperature: float
    top_k: int
    top_p: float
    seed: int
    diverse_groups: int
    diverse_strength: float
    alignment: bool
    attention_layer: int | None
    rivals: int
    split: str

    def options(self, *, token_scores: bool) -> TranslateOptions:
        """As a translator takes them.

        Args:
            token_scores: whether they will be shown.

        Raises:
            UsageError: a value is out of its range.
        """
        from manyheads.search.options import Sampling
        from manyheads.tasks.options import TranslateOptions

        try:
            sampling = Sampling(self.temperature, self.top_k, self.top_p, self.seed)
        except ValueError as error:
            raise UsageError(str(error)) from error
        if not self.sample and sampling != Sampling(seed=self.seed):
            raise UsageError("--temperature, --top-k and --top-p are for sampling. Give --sample too.")
        return TranslateOptions(
            length_penalty=self.length_penalty,
            coverage_penalty=self.coverage_penalty,
            max_length_ratio=self.max_length_ratio,
            min_length_ratio=self.min_length_ratio,
            no_repeat_ngram=self.no_repeat_ngram,
            sampling=sampling if self.sample else None,
            diverse_groups=self.diverse_groups,
            diverse_strength=self.diverse_strength,
            alignment=self.alignment,
            attention_layer=self.attention_layer,
            rivals=self.rivals,
            token_scores=token_scores,
            split=self.split,  # type: ignore[arg-type]  # one of the choices
        )


OPTIONS = (
    click.option("--length-penalty", type=click.FloatRange(min=0), metavar="X", help="0 likes short outputs."),
    click.option("--coverage-penalty", type=click.FloatRange(min=0), metavar="X", help="For source left out."),
    click.option("--max-length-ratio", type=click.FloatRange(min=0), metavar="X", help="x source tokens, + 20."),
    click.option(
        "--min-length-ratio", type=click.FloatRange(min=0), default=0.0, metavar="X", help="x source tokens."
    ),
    click.option(
        "--no-repeat-ngram", type=click.IntRange(min=0), metavar="N", help="No N tokens come twice; 0 is off."
    ),
    click.option("--sample", is_flag=True, help="Draw by chance instead of searching for the best."),
    click.option("--temperature", type=float, default=1.0, metavar="X", help="Below 1 less by chance (--sample)."),
    click.option("--top-k", type=int, default=0, metavar="N", help="Draw from the N likeliest; 0 from all."),
    click.option(
        "--top-p", type=float, default=1.0, metavar="X", help="Draw from the likeliest that hold a share X."
    ),
    click.option("--seed", type=click.IntRange(min=0), default=1, metavar="N", help="Of --sample."),
    click.option("--diverse-groups", type=click.IntRange(min=1), default=1, metavar="N", help="Beams led apart."),
    click.option(
        "--diverse-strength", type=click.FloatRange(min=0), default=0.5, metavar="X", help="How far apart."
    ),
    click.option("--alignment", is_flag=True, help="Tell which word comes from which: ||| 0-0 1-2."),
    click.option("--attention-layer", type=int, metavar="N", help="Where --alignment looks; -1 is the last layer."),
    click.option(
        "--rivals", type=click.IntRange(min=0), default=0, metavar="N", help="Tokens beside each (--json)."
    ),
    click.option(
        "--split",
        type=click.Choice(["auto", "sentences", "none"]),
        default="auto",
        show_default=True,
        help="Translate sentences one by one: of lines longer than any in training, of all lines, or never.",
    ),
)


def searching_options() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """All of them; the command gets one `Searching` as `searching`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def collected(*args: Any, **values: Any) -> Any:
            own = {name: values.pop(name) for name in Searching.__dataclass_fields__}
            return command(*args, searching=Searching(**own), **values)

        decorated: Callable[..., Any] = collected
        for option in reversed(OPTIONS):
            decorated = option(decorated)
        return decorated

    return add


@dataclass
class Companions:
    """Files read along with the input, line by line: prefixes, and phrases between tabs."""

    prefix: Path | None = None
    forbid: Path | None = None
    require: Path | None = None
    streams: dict[str, tuple[Path, Iterator[str]]] = field(default_factory=dict, init=False)

    def prefixes(self, count: int) -> list[str]:
        """Of the next lines of the input."""
        return self.take("prefix", self.prefix, count)

    def forbidden(self, count: int) -> list[list[str]]:
        """Of the next lines of the input."""
        return [line.split("\t") for line in self.take("forbid", self.forbid, count)]

    def required(self, count: int) -> list[list[str]]:
        """Of the next lines of the input."""
        return [line.split("\t") for line in self.take("require", self.require, count)]

    def take(self, option: str, path: Path | None, count: int) -> list[str]:
        """The next lines of the file of an option.

        Raises:
            DataError: it has fewer than the input.
        """
        if path is None:
            return []
        _, stream = self.streams.setdefault(option, (path, read_lines(path)))
        lines = list(islice(stream, count))
        if len(lines) < count:
            raise DataError(
                f"{path} has fewer lines than the input. Give one for each line, empty where not needed."
            )
        return lines

    def finish(self) -> None:
        """Raise `DataError` when a file has more lines than the input."""
        for path, stream in self.streams.values():
            if next(stream, None) is not None:
                raise DataError(f"{path} has more lines than the input. Give one for each line.")


def batches(lines: Iterator[str], size: int) -> Iterator[list[str]]:
    """`size` lines at once; those before a line that cannot be read come before its error."""
    batch: list[str] = []
    while True:
        try:
            line = next(lines, None)
        except ManyheadsError:
            if batch:
                yield batch
            raise
        if line is not None:
            batch.append(line)
        if batch and (line is None or len(batch) == size):
            yield batch
            batch = []
        if line is None:
            return
