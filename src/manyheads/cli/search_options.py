"""The search options of `translate`, and the files that constrain the output of each line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.cli.verbs import Decorator, option
from manyheads.data.lines import read_lines
from manyheads.errors import DataError, ManyheadsError, UsageError

if TYPE_CHECKING:
    from manyheads.tasks.options import TranslateOptions

__all__ = ["ConstraintFiles", "SearchArguments", "batches", "search_options"]


@dataclass(frozen=True)
class SearchArguments:
    """The values of the search options; None means the setting of the run."""

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
        """Convert the values to the options of `Translator.translate`.

        Args:
            token_scores: whether to compute the score of each token.

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


def run_setting(name: str) -> str:
    """Return the default to show for an option that a setting of the run replaces."""
    return f"search.{name} of the run"


OPTIONS = (
    option(
        "--length-penalty",
        type=click.FloatRange(min=0),
        metavar="X",
        show_default=run_setting("length_penalty"),
        help="Exponent of the length in score = log-probability / length ** X; 0 favours short outputs.",
    ),
    option(
        "--coverage-penalty",
        type=click.FloatRange(min=0),
        metavar="X",
        show_default=run_setting("coverage_penalty"),
        help="Weight of the penalty for source tokens without attention (Wu et al. 2016, beta).",
    ),
    option(
        "--max-length-ratio",
        type=click.FloatRange(min=0),
        metavar="X",
        show_default=run_setting("max_length_ratio"),
        help="Maximum output length: X x source tokens + search.max_length_offset.",
    ),
    option(
        "--min-length-ratio",
        type=click.FloatRange(min=0),
        default=0.0,
        metavar="X",
        help="Minimum output length: X x source tokens.",
    ),
    option(
        "--no-repeat-ngram",
        type=click.IntRange(min=0),
        metavar="N",
        show_default=run_setting("no_repeat_ngram"),
        help="Never repeat an n-gram of N tokens within an output; 0 allows repetitions.",
    ),
    option("--sample", is_flag=True, help="Draw outputs by random sampling instead of beam search."),
    option(
        "--temperature",
        type=float,
        default=1.0,
        metavar="X",
        help="Sampling temperature, above 0; below 1 makes likely tokens likelier. Requires --sample.",
    ),
    option(
        "--top-k",
        type=int,
        default=0,
        metavar="N",
        help="Sample from the N likeliest tokens only; 0 means all tokens. Requires --sample.",
    ),
    option(
        "--top-p",
        type=float,
        default=1.0,
        metavar="P",
        help="Sample from the smallest set of likeliest tokens with total probability P, above 0 and at most 1. "
        "Requires --sample.",
    ),
    option("--seed", type=click.IntRange(min=0), default=1, metavar="N", help="Random seed of --sample."),
    option(
        "--diverse-groups",
        type=click.IntRange(min=1),
        default=1,
        metavar="N",
        help="Number of diverse beam groups; must divide the beam size.",
    ),
    option(
        "--diverse-strength",
        type=click.FloatRange(min=0),
        default=0.5,
        metavar="X",
        help="Penalty on the log-probability of a token that an earlier beam group chose at the same step.",
    ),
    option(
        "--alignment",
        is_flag=True,
        help="Append the word alignment to each line, as ||| and pairs of source-target word numbers: ||| 0-0 1-2.",
    ),
    option(
        "--attention-layer",
        type=int,
        metavar="N",
        show_default=run_setting("attention_layer"),
        help="Decoder layer whose attention gives --alignment, from 0; -1 is the last layer.",
    ),
    option(
        "--rivals",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Number of alternative tokens to report for each output token. Requires --json.",
    ),
    option(
        "--split",
        type=click.Choice(["auto", "sentences", "none"]),
        default="auto",
        help="Split lines into sentences and translate each by itself: every line (sentences), only lines longer "
        "than any training example (auto), or no line (none).",
    ),
)


def search_options() -> Decorator:
    """Add all search options; the command receives their values as one `SearchArguments`, named `search`."""

    def add_options(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_search(*args: Any, **values: Any) -> Any:
            own = {name: values.pop(name) for name in SearchArguments.__dataclass_fields__}
            return command(*args, search=SearchArguments(**own), **values)

        decorated: Callable[..., Any] = with_search
        for add_option in reversed(OPTIONS):
            decorated = add_option(decorated)
        return decorated

    return add_options


@dataclass
class ConstraintFiles:
    """The files of --prefix, --forbid and --require, read along with the input: one line for each input line.

    Attributes:
        prefix: file of the beginnings of the outputs.
        forbid: file of forbidden phrases, separated by tabs.
        require: file of required phrases, separated by tabs.
        streams: path and remaining lines of each file that was opened, by option name.
    """

    prefix: Path | None = None
    forbid: Path | None = None
    require: Path | None = None
    streams: dict[str, tuple[Path, Iterator[str]]] = field(default_factory=dict, init=False)

    def prefixes(self, count: int) -> list[str]:
        """Return the prefixes of the next `count` input lines; an empty list without a file."""
        return self.take("prefix", self.prefix, count)

    def forbidden(self, count: int) -> list[list[str]]:
        """Return the forbidden phrases of the next `count` input lines; an empty list without a file."""
        return [line.split("\t") for line in self.take("forbid", self.forbid, count)]

    def required(self, count: int) -> list[list[str]]:
        """Return the required phrases of the next `count` input lines; an empty list without a file."""
        return [line.split("\t") for line in self.take("require", self.require, count)]

    def take(self, option: str, path: Path | None, count: int) -> list[str]:
        """Read the next `count` lines of the file of an option.

        Raises:
            DataError: the file has fewer lines than the input.
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
    """Yield lists of `size` lines; when a line cannot be read, the lines before it are yielded before its error."""
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
