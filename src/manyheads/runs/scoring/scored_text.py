"""What a classifier, an encoder or a language model scores on held-out text of its run, as its cards tell it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.corpus import Pair
from manyheads.data.locate import Split
from manyheads.runs.scoring.classes import evaluate_labels
from manyheads.runs.scoring.masked import guess_hidden
from manyheads.runs.scoring.perplexity import score_text
from manyheads.runs.scoring.scored import MOST, pairs_at_hand
from manyheads.runs.validation import evenly
from manyheads.tasks.classification import Classifier
from manyheads.tasks.encoding import Encoder
from manyheads.tasks.language_modeling import Generator
from manyheads.training.log import Listener, SilentListener

__all__ = ["text_scores"]

SILENT = SilentListener()
EVERY = 1_000_000  # examples: all of any test set
MOST_BYTES = 500_000  # of a text that a language model reads
CHOSEN = "its validation set (by which its weights were chosen)"


def text_scores(path: Path, listener: Listener = SILENT) -> str | None:
    """A line for the card of a run that translates nothing; None where its held-out text is not on this machine.

    The text is that of the test set, or where the run names none, of the validation set.

    Raises:
        RunError: the run cannot be read.
        DataError: the text holds labels that the run does not know.
    """
    run = RunDirectory.existing(path)
    task = run.config().task
    if task == "classification":
        return class_line(run, Classifier.load(path), listener)
    if task == "masked-lm":
        return guessing_line(run, Encoder.load(path), listener)
    return writing_line(run, Generator.load(path), listener)


def class_line(run: RunDirectory, classifier: Classifier, listener: Listener) -> str | None:
    """Accuracy and the like, on texts that are evenly spread over the set: files may be sorted by label."""
    found, which = held_out(run, classifier.config, EVERY)
    pairs = [found[place] for place in evenly(len(found), MOST)]
    texts, labels = [pair.source for pair in pairs], [pair.target for pair in pairs]
    if not any(text.strip() for text in texts):
        return None
    one = evaluate_labels(classifier, texts, labels, listener, which)
    return (
        f"- Scores on {one.examples:,} texts of {which}: accuracy {one.scores.accuracy:.2%}, macro F1 "
        f"{one.scores.macro_f1:.2%}, calibration error {one.scores.calibration_error:.2%}"
    )


def guessing_line(run: RunDirectory, encoder: Encoder, listener: Listener) -> str | None:
    """How well hidden tokens are guessed."""
    found, which = held_out(run, encoder.config, MOST)
    texts = [pair.target for pair in found if pair.target.strip()]
    if not texts:
        return None
    one = guess_hidden(encoder, encoder.config, texts, listener)
    share = f"{encoder.config.training.masked:.0%} of all"
    return (
        f"- Scores on {one.texts:,} texts of {which}: perplexity {one.perplexity:.3f} of {one.tokens:,} hidden "
        f"tokens ({share})"
    )


def writing_line(run: RunDirectory, generator: Generator, listener: Listener) -> str | None:
    """How well a text is foreseen."""
    found, which = held_out(run, generator.config, MOST_BYTES)
    texts = beginning([pair.target for pair in found], MOST_BYTES)
    if not any(text.strip() for text in texts):
        return None
    one = score_text(generator, generator.config, texts, listener)
    return (
        f"- Scores on {one.bytes:,} bytes of {which}: {one.bits_per_byte:.4f} bits a byte, perplexity "
        f"{one.perplexity:.3f} a token (window {one.window} tokens, stride {one.stride})"
    )


def held_out(run: RunDirectory, config: Config, most: int) -> tuple[list[Pair], str]:
    """The first examples of the better judge that a run has, and what that is called; none where it is not at hand.

    A run that was made of another program's model has not chosen by any validation set, whatever lies about here.
    """
    sets: list[tuple[Split, str]] = [("test", "its test set")]
    if config.data.test is None:
        sets = [("valid", CHOSEN)] if run.metrics_path.is_file() else []
    for split, which in sets:
        return pairs_at_hand(config, split, most), which
    return [], ""


def beginning(texts: Sequence[str], most: int) -> list[str]:
    """The first texts, as long as they have no more bytes together."""
    kept: list[str] = []
    size = 0
    for text in texts:
        size += len(text.encode())
        if kept and size > most:
            break
        kept.append(text)
    return kept
