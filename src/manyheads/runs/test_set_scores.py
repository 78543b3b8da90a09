"""The scores of a run on its test set, as its model card shows them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.corpus import Pair
from manyheads.data.locate import Split
from manyheads.errors import DataError
from manyheads.evaluation.scores import score
from manyheads.interop.opened import OpenedModel
from manyheads.runs.corpus import cleaning, read_split
from manyheads.runs.evaluate import evaluate_labels
from manyheads.runs.text_scores import guess_hidden, score_text
from manyheads.runs.validation import evenly
from manyheads.tasks.classification import Classifier
from manyheads.tasks.encoding import Encoder
from manyheads.tasks.language_modeling import Generator
from manyheads.tasks.translation import Translator
from manyheads.training.log import Listener, SilentListener

__all__ = ["MOST", "pairs_at_hand", "scored_pairs", "test_scores", "text_scores", "with_scores"]

MOST = 1_000  # sentences
LINE = re.compile(r"^- Scores\b.*\n", re.MULTILINE)


def pairs_at_hand(config: Config, split: Split, most: int) -> list[Pair]:
    """Return the first normalised pairs of a split; none if its text is not on this machine."""
    if (config.data.dataset or "").startswith("hf:"):
        return []
    normal = cleaning(config)
    try:
        found = list(islice(read_split(config.data, split, config.task), most))
    except (DataError, OSError):
        return []
    return [Pair(normal(pair.source), normal(pair.target), pair.line) for pair in found]


def scored_pairs(config: Config) -> list[Pair]:
    """Return the pairs of the test set that are scored."""
    return [pair for pair in pairs_at_hand(config, "test", MOST) if pair.source and pair.target]


def test_scores(opened: OpenedModel) -> str | None:
    """Return a line for a card: BLEU and chrF with signatures, by the run's own search; None without the text."""
    config, pairs = opened.config, scored_pairs(opened.config)
    if not pairs:
        return None
    found = Translator(config, opened.tokenizers, opened.model).translate([pair.source for pair in pairs])
    outputs, references = [one.translation for one in found], [pair.target for pair in pairs]
    scores = score(outputs, references, language=config.data.target, protocol=config.evaluation.protocol)
    return (
        f"- Scores on {len(pairs):,} sentences of its test set, beam {config.search.beam_size}: "
        f"BLEU {scores.bleu:.2f} ({scores.signature['bleu']}), chrF {scores.chrf:.2f} ({scores.signature['chrf']})"
    )


def with_scores(card: str, line: str) -> str:
    """Return a card with this line of scores: in place of an older one, before the sections to fill in, or last."""
    bare = LINE.sub("", card)
    before, mark, after = bare.partition("- Intended use")
    return f"{before}{line}\n{mark}{after}" if mark else f"{bare.rstrip()}\n\n{line}\n"


NO_LISTENER = SilentListener()
EVERY = 1_000_000  # examples: all of any test set
MOST_BYTES = 500_000  # of a text that a language model reads
CHOSEN = "its validation set (by which its weights were chosen)"


def text_scores(path: Path, listener: Listener = NO_LISTENER) -> str | None:
    """Return a line of scores for the card of a run of another task; None if its text is not on this machine.

    The text is the test set, or the validation set if the run names no test set.

    Raises:
        RunError: the run cannot be read.
        DataError: the text has labels that the run does not know.
    """
    run = RunDirectory.existing(path)
    task = run.config().task
    if task == "classification":
        return class_line(run, Classifier.load(path), listener)
    if task == "masked-lm":
        return guessing_line(run, Encoder.load(path), listener)
    return writing_line(run, Generator.load(path), listener)


def class_line(run: RunDirectory, classifier: Classifier, listener: Listener) -> str | None:
    """Return accuracy and F1 on texts evenly spaced over the set, because files may be sorted by label."""
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
    """Return the loss of masked tokens."""
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
    """Return the perplexity of a text."""
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
    """Return the first examples of the test set, else of the validation set, and its name; none if not available.

    The validation set of an imported run is not used, because its training did not use it.
    """
    sets: list[tuple[Split, str]] = [("test", "its test set")]
    if config.data.test is None:
        sets = [("valid", CHOSEN)] if run.metrics_path.is_file() else []
    for split, which in sets:
        return pairs_at_hand(config, split, most), which
    return [], ""


def beginning(texts: Sequence[str], most: int) -> list[str]:
    """Return the first texts within a number of bytes."""
    kept: list[str] = []
    size = 0
    for text in texts:
        size += len(text.encode())
        if kept and size > most:
            break
        kept.append(text)
    return kept
