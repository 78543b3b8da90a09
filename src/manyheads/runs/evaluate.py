"""Score a run on a split or on files, and write the scores on its test set into its model card."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from manyheads.checkpoint import RunDirectory
from manyheads.config.load import with_overrides
from manyheads.config.schema import Config
from manyheads.data.corpus import Pair
from manyheads.data.letters import has_text
from manyheads.data.lines import read_lines
from manyheads.data.locate import Split
from manyheads.data.reading import read_text
from manyheads.errors import DataError, OverflowedError, UsageError
from manyheads.evaluation.scores import Scores, score
from manyheads.interop.bundle import LoadedModel
from manyheads.tasks.classification.classifier import Classifier
from manyheads.tasks.classification.scoring import ClassEvaluation, evaluate_labels
from manyheads.tasks.corpus import available_pairs, cleaning, read_split
from manyheads.tasks.language_modeling.generator import Generator
from manyheads.tasks.language_modeling.scoring import TextEvaluation, score_text
from manyheads.tasks.masked_lm.encoder import Encoder
from manyheads.tasks.masked_lm.scoring import MaskedEvaluation, score_hidden
from manyheads.tasks.translation.scoring import Evaluation, evaluate_texts, evenly
from manyheads.tasks.translation.translator import Translator
from manyheads.training.log import NO_LISTENER, Listener

__all__ = [
    "ClassEvaluation",
    "Evaluation",
    "MaskedEvaluation",
    "TextEvaluation",
    "card_line",
    "card_line_of_translator",
    "evaluate",
    "evaluate_texts",
    "load_classifier",
    "load_translator",
    "scores_line",
    "texts",
    "with_line",
]

_COMPARED_PAIRS = 200_000  # training pairs that are compared with the scored ones; read in seconds
_HELD_OUT: tuple[Split, ...] = ("valid", "test")


def evaluate(
    run: Path,
    *,
    split: Split = "test",
    source: Path | None = None,
    reference: Path | None = None,
    overrides: Sequence[str] = (),
    device: str = "auto",
    listener: Listener = NO_LISTENER,
) -> Evaluation | ClassEvaluation | TextEvaluation | MaskedEvaluation:
    """Score a run on a split or a file: translations, labels, or the perplexity of a language model.

    Args:
        run: run directory.
        split: train, valid or test of the run's own data.
        source: file to use in place of a split.
        reference: file with its translations or labels, line by line.
        overrides: settings such as `search.beam_size=1` or `data.root=DIR`.
        device: "cpu", "cuda", "cuda:1"; "auto" takes a GPU when there is one.
        listener: receives messages.

    Raises:
        RunError, DataError, ConfigError: see the message.
        OverflowedError: the loss is not a number.
    """
    result = _score_run(run, split, source, reference, overrides, device, listener)
    if math.isnan(result.loss):
        raise OverflowedError
    return result


def _score_run(
    run: Path,
    split: Split,
    source: Path | None,
    reference: Path | None,
    overrides: Sequence[str],
    device: str,
    listener: Listener,
) -> Evaluation | ClassEvaluation | TextEvaluation | MaskedEvaluation:
    """Score a run by its task; see `evaluate`."""
    task = RunDirectory.existing(run).config().task
    if task == "classification":
        classifier = load_classifier(run, overrides, device)
        sources, references = texts(classifier.config, split, source, reference)
        return evaluate_labels(classifier, sources, references, listener, str(reference or f"data.{split}"))
    if task == "translation":
        translator = load_translator(run, overrides, device)
        sources, references = texts(translator.config, split, source, reference)
        result = evaluate_texts(translator, sources, references, listener, str(source or f"data.{split}"))
        if split == "train" and source is None:
            return result
        config = RunDirectory.existing(run).config()
        trained = config.data.model_copy(update={"root": translator.config.data.root})
        config = config.model_copy(update={"data": trained})
        return replace(result, overlap=_training_overlap(config, sources, references))
    if reference is not None:
        raise UsageError("a language model is scored on one text and needs no reference. Give --source-file alone.")
    model = Generator.load(run, device=device) if task == "language-modeling" else Encoder.load(run, device=device)
    config = with_overrides(model.config, overrides)
    if isinstance(model, Encoder):
        return score_hidden(model, config, _plain_texts(config, split, source), listener)
    if config.data.max_length > model.config.data.max_length:
        listener.message(
            f"warning: the model has learnt to look at {model.config.data.max_length} tokens, not at "
            f"data.max_length = {config.data.max_length}"
        )
    return score_text(model, config, _plain_texts(config, split, source), listener)


def load_translator(run: Path, overrides: Sequence[str], device: str = "auto") -> Translator:
    """Load a translator with single settings replaced, such as `search.beam_size=1`."""
    loaded = Translator.load(run, device=device)
    return Translator(with_overrides(loaded.config, overrides), loaded.tokenizers, loaded.model)


def load_classifier(run: Path, overrides: Sequence[str], device: str = "auto") -> Classifier:
    """Load a classifier with single settings replaced."""
    classifier = Classifier.load(run, device=device)
    classifier.config = with_overrides(classifier.config, overrides)
    return classifier


def texts(config: Config, split: Split, source: Path | None, reference: Path | None) -> tuple[list[str], list[str]]:
    """Read sources and references of a split, or of two files with the same number of lines.

    References are normalised as in training.
    """
    if (source is None) != (reference is None):
        raise UsageError("a source file and its reference file belong together. Give both, or neither.")
    if source is not None and reference is not None:
        pairs = list(zip_longest(read_lines(source), read_lines(reference)))
        sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        for path, lines in ((source, sources), (reference, references)):
            if None in lines:
                raise DataError(
                    f"{path} has {lines.index(None):,} lines, but the other file {len(pairs):,}. "
                    "The two files must belong together line by line."
                )
    else:
        if split == "test" and config.data.test is None:
            raise UsageError("this run names no test set. Give --split valid, --set data.test=..., or two files.")
        raw = list(read_split(config.data, split, config.task))
        sources, references = [pair.source for pair in raw], [pair.target for pair in raw]
    if not sources:
        raise DataError(f"{source or f'data.{split}'} holds no lines. There is nothing to score.")
    return sources, list(map(cleaning(config), references))


def _training_overlap(config: Config, sources: Sequence[str], references: Sequence[str]) -> tuple[int, int] | None:
    """Count the pairs that are also in the training text, among its first `_COMPARED_PAIRS` pairs.

    Pairs that training drops because they are held out (`data.drop_overlap`) are not searched for.

    Args:
        config: configuration that the run was trained with.
        sources: scored sources.
        references: their references, normalised.

    Returns:
        The number of pairs found, and of training pairs compared; None if there are no training pairs to compare.
    """
    normal = cleaning(config)
    pairs = Counter(zip(map(normal, sources), references, strict=True))
    if config.data.drop_overlap:
        for split in _HELD_OUT if config.data.test is not None else _HELD_OUT[:1]:
            for pair in available_pairs(config, split, _COMPARED_PAIRS):
                pairs.pop((pair.source, pair.target), None)
    train = available_pairs(config, "train", _COMPARED_PAIRS) if pairs else []
    overlapping = {(pair.source, pair.target) for pair in train} & pairs.keys()
    return (sum(pairs[pair] for pair in overlapping), len(train)) if train else None


def _plain_texts(config: Config, split: Split, source: Path | None) -> list[str]:
    """Read the texts of a split or of a file, normalised as in training; empty lines are left out.

    Raises:
        DataError: there is no text.
    """
    raw: Iterable[Pair]
    if source is not None:
        data = config.data.model_copy(update={"root": str(source.parent), "test": source.name})
        raw = read_text(data, "test")
    elif split == "test" and config.data.test is None:
        raise UsageError(
            "this run names no test set. Give --split valid, --set data.test=..., or --source-file FILE."
        )
    else:
        raw = read_split(config.data, split, config.task)
    normal = map(cleaning(config), (pair.target for pair in raw))
    lines = [text for text in normal if config.whole_files or has_text(text)]
    if not any(lines):
        raise DataError(f"{source or f'data.{split}'} holds no text. There is nothing to score.")
    return lines


# --- the line of scores in a model card ---

_MOST = 1_000  # sentences or texts
_EVERY = 1_000_000  # examples: all of any test set
_MOST_BYTES = 500_000  # bytes of a text that a language model reads
_LINE = re.compile(r"^- Scores\b.*\n", re.MULTILINE)
_VALIDATION_SET = "its validation set (by which its weights were chosen)"


def card_line_of_translator(opened: LoadedModel) -> str | None:
    """Return a line for a card: BLEU and chrF with signatures, by the search of the run; None without the text."""
    config = opened.config
    pairs = [
        pair for pair in available_pairs(config, "test", _MOST) if has_text(pair.source) and has_text(pair.target)
    ]
    if not pairs:
        return None
    results = Translator(config, opened.tokenizers, opened.model).translate([pair.source for pair in pairs])
    outputs, references = [result.translation for result in results], [pair.target for pair in pairs]
    scores = score(outputs, references, language=config.data.target, protocol=config.evaluation.protocol)
    return scores_line(config, len(pairs), scores)


def scores_line(config: Config, sentences: int, scores: Scores) -> str:
    """Return a line for a card: BLEU and chrF of a translator on the first sentences of its test set."""
    first = "the first " if sentences == _MOST else ""
    return (
        f"- Scores on {first}{sentences:,} sentences of its test set, {config.search.method}: "
        f"BLEU {scores.bleu:.2f} ({scores.signature['bleu']}), chrF {scores.chrf:.2f} ({scores.signature['chrf']})"
    )


def card_line(path: Path, listener: Listener = NO_LISTENER) -> str | None:
    """Return a line for the card of a run of a task other than translation; None without its text.

    The text is the test set, or the validation set if the run names no test set.

    Raises:
        RunError: the run cannot be read.
        DataError: the text has labels that the run does not know.
    """
    run = RunDirectory.existing(path)
    match run.config().task:
        case "classification":
            return _line_of_classifier(run, Classifier.load(path), listener)
        case "masked-lm":
            return _line_of_encoder(run, Encoder.load(path), listener)
        case _:
            return _line_of_generator(run, Generator.load(path), listener)


def _line_of_classifier(run: RunDirectory, classifier: Classifier, listener: Listener) -> str | None:
    """Return accuracy and F1 on texts evenly spaced over the set, because files may be sorted by label."""
    examples, which = _held_out(run, classifier.config, _EVERY)
    pairs = [examples[index] for index in evenly(len(examples), _MOST)]
    sources, labels = [pair.source for pair in pairs], [pair.target for pair in pairs]
    if not any(has_text(text) for text in sources):
        return None
    result = evaluate_labels(classifier, sources, labels, listener, which)
    return (
        f"- Scores on {result.examples:,} texts of {which}: accuracy {result.scores.accuracy:.2%}, macro F1 "
        f"{result.scores.macro_f1:.2%}, calibration error {result.scores.calibration_error:.2%}"
    )


def _line_of_encoder(run: RunDirectory, encoder: Encoder, listener: Listener) -> str | None:
    examples, which = _held_out(run, encoder.config, _MOST)
    filled = [pair.target for pair in examples if has_text(pair.target)]
    if not filled:
        return None
    result = score_hidden(encoder, encoder.config, filled, listener)
    return (
        f"- Scores on {result.texts:,} texts of {which}: perplexity {result.perplexity:.3f} of {result.tokens:,} "
        f"hidden tokens ({encoder.config.training.masked:.0%} of all)"
    )


def _line_of_generator(run: RunDirectory, generator: Generator, listener: Listener) -> str | None:
    examples, which = _held_out(run, generator.config, _MOST_BYTES)
    first = _first_bytes([pair.target for pair in examples], _MOST_BYTES)
    if not any(has_text(text) for text in first):
        return None
    result = score_text(generator, generator.config, first, listener)
    return (
        f"- Scores on {result.bytes:,} bytes of {which}: {result.bits_per_byte:.4f} bits a byte, perplexity "
        f"{result.perplexity:.3f} a token (window {result.window} tokens, stride {result.stride})"
    )


def _held_out(run: RunDirectory, config: Config, most: int) -> tuple[list[Pair], str]:
    """Return the first examples of the test set, else of the validation set, and its name; none if not available.

    The validation set of an imported run is not used, because its training did not use it.
    """
    if config.data.test is not None:
        return available_pairs(config, "test", most), "its test set"
    if run.metrics_path.is_file():
        return available_pairs(config, "valid", most), _VALIDATION_SET
    return [], ""


def _first_bytes(lines: Sequence[str], most: int) -> list[str]:
    """Return the first texts within a number of bytes, and at least one."""
    taken: list[str] = []
    size = 0
    for line in lines:
        size += len(line.encode())
        if taken and size > most:
            break
        taken.append(line)
    return taken


def with_line(card: str, line: str | None) -> str:
    """Return a card with this line of scores: in place of an older one, before the sections to fill in, or last.

    Without a line, the card stays as it is.
    """
    if line is None:
        return card
    bare = _LINE.sub("", card)
    before, mark, after = bare.partition("- Intended use")
    return f"{before}{line}\n{mark}{after}" if mark else f"{bare.rstrip()}\n\n{line}\n"
