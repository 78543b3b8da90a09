"""Score a run on a split or on files."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from manyheads.checkpoint import RunDirectory
from manyheads.config.load import with_overrides
from manyheads.config.schema import Config
from manyheads.data.lines import read_lines
from manyheads.data.locate import Split
from manyheads.errors import DataError, UsageError
from manyheads.evaluation import Scores, exact_match, score
from manyheads.runs.corpus import cleaning, read_split
from manyheads.runs.scoring.classes import ClassEvaluation, evaluate_labels
from manyheads.runs.scoring.masked import MaskedEvaluation, evaluate_masked
from manyheads.runs.scoring.perplexity import TextEvaluation, evaluate_text
from manyheads.tasks.classification import Classifier
from manyheads.tasks.translation import Translator
from manyheads.text.tokenizer import BOS, EOS
from manyheads.training.log import Listener, SilentListener
from manyheads.training.validation import corpus_nll

__all__ = ["Evaluation", "evaluate", "texts"]

SILENT = SilentListener()


@dataclass(frozen=True)
class Evaluation:
    """What a run scores on some text.

    Attributes:
        loss: nats per target token, end marks counted, without label smoothing, over all of the text.
        tokens: target tokens that is the mean of.
        scores: BLEU, chrF and TER with their signatures.
        exact: share of outputs equal to their reference, 0 to 1.
        outputs: the translations, line by line.
        seconds: time of the search.
    """

    task: str
    loss: float
    tokens: int
    scores: Scores
    exact: float
    outputs: list[str]
    seconds: float

    @property
    def perplexity(self) -> float:
        """exp(loss)."""
        return math.exp(min(self.loss, 700))

    def to_json(self) -> dict[str, Any]:
        """The shape that `evaluate --json` prints."""
        return {
            "task": self.task,
            "loss": self.loss,
            "perplexity": self.perplexity,
            "tokens": self.tokens,
            "bleu": self.scores.bleu,
            "chrf": self.scores.chrf,
            "ter": self.scores.ter,
            "signature": self.scores.signature,
            "exact": self.exact,
            "sentences": len(self.outputs),
            "seconds": self.seconds,
        }

    def lines(self) -> list[str]:
        """For people."""
        scores, count = self.scores, len(self.outputs)
        speed = count / max(self.seconds, 1e-9)
        return [
            f"BLEU {scores.bleu:.2f}   {scores.signature['bleu']}",
            f"chrF {scores.chrf:.2f}   {scores.signature['chrf']}",
            f"TER  {scores.ter:.2f}   {scores.signature['ter']}",
            f"perplexity {self.perplexity:.3f} over {self.tokens:,} target tokens; "
            f"{100 * self.exact:.1f} % of {count:,} sentences exact; {speed:.1f} sentences/s",
            *(f"warning: {warning}" for warning in scores.warnings),
        ]


def evaluate(
    run: Path,
    *,
    split: Split = "test",
    source: Path | None = None,
    reference: Path | None = None,
    overrides: Sequence[str] = (),
    listener: Listener = SILENT,
) -> Evaluation | ClassEvaluation | TextEvaluation | MaskedEvaluation:
    """Translate or classify a split, or a file, and score it; or score how well a language model guesses it.

    Args:
        run: a run directory.
        split: train, valid or test of the run's own data.
        source: a file to translate or classify instead.
        reference: its translation, or the labels, line by line.
        overrides: settings such as `search.beam_size=1` or `data.root=DIR`.
        listener: who is told.

    Raises:
        RunError, DataError, ConfigError: see the message.
    """
    task = RunDirectory.existing(run).config().task
    if task == "classification":
        classifier = Classifier.load(run)
        classifier.config = with_overrides(classifier.config, overrides)
        sources, references = texts(classifier.config, split, source, reference)
        return evaluate_labels(classifier, sources, references, listener, str(reference or f"data.{split}"))
    if task in ("language-modeling", "masked-lm"):
        if reference is not None:
            raise UsageError("a language model foresees one text, and needs no reference. Give --source alone.")
        evaluate_plain = evaluate_text if task == "language-modeling" else evaluate_masked
        return evaluate_plain(run, split=split, source=source, overrides=overrides, listener=listener)
    translator = Translator.load(run)
    config = with_overrides(translator.config, overrides)
    translator = Translator(config, translator.tokenizers, translator.model)
    sources, references = texts(config, split, source, reference)
    return evaluate_texts(translator, sources, references, listener)


def evaluate_texts(
    translator: Translator, sources: list[str], references: list[str], listener: Listener
) -> Evaluation:
    """Translate and score texts that are in memory."""
    config, tokenizers = translator.config, translator.tokenizers
    listener.message(f"translating {len(sources):,} sentences, beam {config.search.beam_size}")
    start = time.perf_counter()
    outputs = [one.translation for one in translator.translate(sources)]
    seconds = time.perf_counter() - start
    nats, tokens = corpus_nll(
        translator.model,
        tokenizers.source.encode(sources),
        tokenizers.target.encode(references),
        bos=BOS,
        eos=EOS,
    )
    return Evaluation(
        task=config.task,
        loss=nats / tokens,
        tokens=tokens,
        scores=score(outputs, references, protocol=config.evaluation.protocol, language=config.data.target),
        exact=exact_match(outputs, references),
        outputs=outputs,
        seconds=seconds,
    )


def texts(config: Config, split: Split, source: Path | None, reference: Path | None) -> tuple[list[str], list[str]]:
    """Sources and references of a split, or of two files with the same number of lines."""
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
        return checked(config, sources, references, f"{source}")
    if split == "test" and config.data.test is None:
        raise UsageError("this run names no test set. Give --split valid, --set data.test=..., or two files.")
    found = list(read_split(config.data, split, config.task))
    return checked(config, [pair.source for pair in found], [pair.target for pair in found], f"data.{split}")


def checked(config: Config, sources: list[str], references: list[str], origin: str) -> tuple[list[str], list[str]]:
    """Refuse to score nothing; references are cleaned as the text of training and validation is."""
    if not sources:
        raise DataError(f"{origin} holds no lines. There is nothing to score.")
    return sources, list(map(cleaning(config), references))
