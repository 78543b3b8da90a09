"""Score a run on a split or on files, and write the scores on its test set into its model card."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

from bitext.file_names import Split
from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.shown_card import korean_card
from manyheads.config.load import with_overrides
from manyheads.data.training_text import name_files
from manyheads.errors import OverflowedError
from manyheads.reports import NO_LISTENER, Listener
from manyheads.training.registry import task_of
from manyheads.training.scored_text import ScoredText
from manyheads.training.task import Scored

_SCORES_LINE = re.compile(r"^- (?:Scores|점수)\b.*\n", re.MULTILINE)
_KOREAN_LIMITS = "- 용도와 한계"


def evaluate(
    run: str | Path,
    *,
    split: Split = "test",
    source: str | Path | None = None,
    reference: str | Path | None = None,
    languages: tuple[str, str] = ("", ""),
    overrides: Sequence[str] = (),
    device: str = "auto",
    listener: Listener = NO_LISTENER,
) -> Scored:
    """Score a run on a split or a file: translations, labels, or the perplexity of a language model.

    Args:
        run: run directory.
        split: train, valid or test of the run's own data.
        source: file to use in place of a split.
        reference: file with its translations or labels, line by line.
        languages: source and target language, for a translator of several; "" leaves out the choice, and both ""
            score every direction that has a test text.
        overrides: settings such as `search.beam_size=1` or `data.root=DIR`.
        device: "cpu", "cuda", "cuda:1"; "auto" takes a GPU when there is one.
        listener: receives messages.

    Raises:
        RunError, DataError, ConfigError: see the message.
        OverflowedError: the loss is not a number.
    """
    run, source, reference = Path(run), source and Path(source), reference and Path(reference)
    task = task_of(RunDirectory.existing(run).config())
    model = task.load(run, device)
    config = with_overrides(model.config, overrides)
    if source is None and not overrides:
        name_files(config, [split], listener)
    text = ScoredText(split, _as_path(source), _as_path(reference), languages)
    result = task.evaluate(model, config, text, listener)
    if math.isnan(result.loss):
        raise OverflowedError
    return result


def _as_path(file: str | Path | None) -> Path | None:
    return None if file is None else Path(file)


def card_line(path: Path, listener: Listener = NO_LISTENER) -> str | None:
    """Return a line with the scores of a run for its card; None without its text.

    The text is the test set, or the validation set if the run names no test set.
    """
    run = RunDirectory.existing(path)
    return task_of(run.config()).card_line(run, listener)


def with_line(card: str, line: str | None) -> str:
    """Return a card with this line of scores: in place of an older one, before the sections to fill in, or last.

    Without a line, the card stays as it is.
    """
    if line is None:
        return card
    bare = _SCORES_LINE.sub("", card)
    korean = _KOREAN_LIMITS in bare
    line = korean_card(line) if korean else line
    before, mark, after = bare.partition(_KOREAN_LIMITS if korean else "- Intended use")
    return f"{before}{line}\n{mark}{after}" if mark else f"{bare.rstrip()}\n\n{line}\n"
