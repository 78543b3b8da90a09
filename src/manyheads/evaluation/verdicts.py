"""Verdicts on scores in words: what a number means, whether to worry, and what to do.

Each function takes numbers and returns sentences; a sentence that asks for no action is a `Note`. The rules are
explained in docs/evaluating.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from bitext.languages import bleu_language, has_blanks_between_words
from bitext.letters import has_text
from manyheads.config.schema import Config
from manyheads.evaluation.advice import with_settings
from manyheads.evaluation.classes import ClassScores
from manyheads.evaluation.outputs import (
    MAX_LENGTH_RATIO,
    MIN_LENGTH_RATIO,
    WORRY,
    Output,
    find_defects,
    length_ratio,
)
from manyheads.evaluation.significance import BootstrapResult
from manyheads.results import Note

UNUSABLE = 10.0  # BLEU
_NOTHING_COMMON = (2.0, 20.0)  # BLEU and chrF of outputs that share next to nothing with the references
_FEW_UPDATES = 1_000  # updates that most translators need before they translate
_OTHER_TEXT = 1.0  # nats a token above the validation loss; outputs of a text of other languages, or misaligned
# BLEU of words up to which a description holds, after "Evaluate models" of Google's AutoML Translation.
_BANDS = (
    (UNUSABLE, "the outputs share few word sequences with the references: not yet a usable translator. More text "
               "or more training is needed"),
    (20.0, "the gist is hard to get. More text or more training is needed"),
    (30.0, "the gist is clear, with serious mistakes of grammar. More text or more training helps"),
    (40.0, "understandable to good translations"),
    (50.0, "translations of high quality"),
    (60.0, "translations of very high quality"),
    (math.inf, "the outputs are nearly the references. That is usual for easy, repetitive text only: on other "
               "text, make sure that the test text is not in the training text"),
)  # fmt: skip
_GOOD_BLEU = 30.0  # from here on the description asks for nothing
FEWEST_LINES = 100  # lines that a meaningful BLEU needs
_NO_WORDS = {"char", "zh"}  # tokenizers of sacreBLEU whose units are characters
_UNCALIBRATED = 0.1  # expected calibration error
_RARE_CLASSES = 0.1  # distance of macro F1 below accuracy
_HOPELESS = 100  # multiple of the compared lines
METRIC_NAMES = {"bleu": "BLEU", "chrf": "chrF", "accuracy": "accuracy", "macro_f1": "macro F1"}

_CLEAN = "`manyheads doctor CONFIG` counts them, and `manyheads data clean CONFIG -o DIR` removes them"
# Name in `outputs.DEFECTS` -> (description of the outputs, advice if there are many of them).
_DEFECT_TEXTS = {
    "never-ends": ("are cut at the longest length of model or search", "Train longer, or give shorter lines"),
    "nothing-said": ("are empty", f"Train longer. Misaligned pairs in the training text are a cause: {_CLEAN}"),
    "repeats-itself": ("repeat themselves", "That is usual with too little training: train longer"),
    "copies-its-source": ("copy their source", f"Look for untranslated pairs in the training text: {_CLEAN}"),
    "in-another-language": ("are in another language", "Read some of them with --output, and train longer"),
    "far-too-long": ("are more than twice as long as their reference", "Read some of them with --output"),
    "far-too-short": ("are less than half as long as their reference", "Read some of them with --output"),
}  # fmt: skip


def judge_bleu(bleu: float, interval: tuple[float, float], sentences: int, signature: str, language: str) -> str:
    """Return the verdict on a BLEU score in words.

    Args:
        bleu: score, 0 to 100.
        interval: its 95 % confidence interval.
        sentences: number of sentences.
        signature: sacreBLEU's signature.
        language: language of the outputs.
    """
    low, high = interval
    known = f"BLEU is {low:.1f} to {high:.1f} with 95 % confidence on these {sentences:,} sentences"
    tokenizer = next((part[4:] for part in signature.split("|") if part.startswith("tok:")), "")
    if tokenizer in _NO_WORDS:
        return f"{known}. It counts characters here: compare it with another system on the same text"
    # tok:13a does not separate words as the bands assume: not at all, or in Korean with their particles
    if tokenizer == "13a" and (bleu_language(language) == "ko" or not has_blanks_between_words(language)):
        return f"{known}. It counts whole words between blanks here and is low even for good translations: see chrF"
    if sentences < FEWEST_LINES:
        return f"{known}: too few for a verdict. Use at least {FEWEST_LINES} sentences"
    text = f"{known}. As a rough rule: {next(text for limit, text in _BANDS if bleu < limit)}"
    return Note(text) if _GOOD_BLEU <= bleu < _BANDS[-2][0] else text


def shares_nothing(bleu: float, chrf: float) -> bool:
    """Return whether outputs share next to nothing with their references, by BLEU and by chrF, 0 to 100."""
    return bleu < _NOTHING_COMMON[0] and chrf < _NOTHING_COMMON[1]


def judge_untrained(bleu: float, loss: float, validation_loss: float | None, updates: int) -> str:
    """Return the verdict on outputs that share next to nothing with their references: the likeliest cause.

    Args:
        bleu: score, 0 to 100.
        loss: nats a token of the references.
        validation_loss: best loss in the log of the training; None without a log.
        updates: number of updates in the log.
    """
    found = f"BLEU is {bleu:.1f}: the outputs share next to nothing with the references"
    if validation_loss is not None and loss > validation_loss + _OTHER_TEXT:
        return (
            f"{found}. The references cost {loss:.2f} nats a token, the validation text {validation_loss:.2f}: "
            "this text is unlike that of the training. Are both files in the languages of the translator, and "
            "translations of each other, line by line?"
        )
    if 0 < updates < _FEW_UPDATES:
        return f"{found}. The training had {updates:,} updates; most need {_FEW_UPDATES:,} or more. Train longer"
    return f"{found}. manyheads doctor RUN looks for the reason"


def judge_empty(texts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield how many lines have no text, and where, for each of some texts by their name."""
    for name, lines in texts.items():
        empty = [number for number, text in enumerate(lines, start=1) if not has_text(text)]
        if empty:
            yield (
                f"{len(empty):,} of {len(lines):,} {name} have no text, the first in line {empty[0]:,}: no output "
                "is right there, and the scores are too low. Fill these lines, or remove them from both sides"
            )


def judge_loss(loss: float, choices: int, unit: str = "token") -> str:
    """Return the verdict on a loss in nats, against a uniform guess among `choices` tokens or labels."""
    perplexity = math.exp(min(loss, 700))
    figure = f"{perplexity:,.2f}" if perplexity < 10 else f"{perplexity:,.0f}"
    if loss >= math.log(choices):
        return (
            f"perplexity {figure} is no better than a blind guess among {choices:,} {unit}s: nothing was "
            "learnt that helps on this text. manyheads doctor RUN looks for the reason"
        )
    return Note(
        f"perplexity {figure}: the model is as uncertain about each {unit} as among {figure} "
        f"equally likely ones; a blind guess is among {choices:,}"
    )


def judge_bits(bits_per_byte: float) -> Iterator[str]:
    """Yield the verdict on the bits per byte, against 8 bits without a model."""
    worse = " That is worse than no model" if bits_per_byte >= 8 else ""
    text = (
        f"text takes {bits_per_byte:.2f} bits a byte, 8 without a model.{worse} Compare this figure between "
        "models with different tokenizers, and perplexity only between models with the same"
    )
    yield text if worse else Note(text)


def judge_outputs(outputs: Sequence[Output], config: Config, bleu: float) -> Iterator[str]:
    """Name the outputs with a defect: how many, the first line, and what to do; else say that there are none.

    Below a usable BLEU no settings of the search are advised: they do not mend a model that needs more training.
    """
    defects, ratio = list(find_defects(outputs)), length_ratio(outputs)

    def advised(text: str, name: str) -> str:
        return text if bleu < UNUSABLE else with_settings(text, name, config)

    for defect in defects:
        does, advice = _DEFECT_TEXTS[defect.name]
        share = defect.count / len(outputs)
        of_all = f"{defect.count:,} of {len(outputs):,} ({share:.1%})"
        found = f"outputs that {does}: {of_all}, the first in line {defect.line:,}"
        if share > WORRY and defect.count > 1:
            yield f"{found}. {advised(advice, defect.name)}"
        else:
            yield Note(f"{found}. So few are no reason to worry")
    if not MIN_LENGTH_RATIO <= ratio <= MAX_LENGTH_RATIO:
        kind = "short" if ratio < MIN_LENGTH_RATIO else "long"
        yield (
            f"all outputs together are {ratio:.2f} times as long as the references: too {kind}. "
            f"{advised('Train longer', f'too-{kind}')}"
        )
    elif not defects and any(output.comparable for output in outputs):
        yield Note("no output is empty, unfinished, a repetition, a copy of its source, or of an odd length")


def judge_overlap(overlap: int, pairs: int, compared: int) -> str:
    """Return the verdict on the test pairs found among the first `compared` training pairs."""
    if not overlap:
        return Note(f"none of the {pairs:,} pairs is among the {compared:,} training pairs that were compared")
    return (
        f"{overlap:,} of {pairs:,} pairs ({overlap / pairs:.1%}) are among the {compared:,} training pairs that "
        "were compared: the model has seen them, and the scores are too high. Score on other text"
    )


def judge_classes(scores: ClassScores) -> Iterator[str]:
    """Judge a classifier: against the most frequent label, class by class, and by its calibration."""
    largest = max(scores.classes, key=lambda score: score.support)
    texts = sum(score.support for score in scores.classes)
    share, accuracy = largest.support / texts, scores.accuracy
    middle = (accuracy * texts + 2) / (texts + 4)  # Agresti and Coull (1998): 95 % interval of a share
    error = 1.96 * math.sqrt(middle * (1 - middle) / (texts + 4))
    low, high = max(0.0, middle - error), min(1.0, middle + error)
    always = f'always answering "{largest.label}" gives {share:.1%}'
    precision = f"accuracy is {low:.1%} to {high:.1%} with 95 % confidence on these {texts:,} texts"
    if low > share:
        yield Note(f"{precision}; {always}: the classifier is better than that")
    elif high < share:
        yield (
            f"{precision}; {always}: the classifier is worse than that. Do the labels mean what they meant in "
            "training? manyheads doctor RUN looks for the reason"
        )
    else:
        yield (f"{precision}; {always}: the classifier is not clearly better. More training or more text may help")
    missed = [score.label for score in scores.classes if score.support and not score.recall]
    if missed:
        named = ", ".join(f'"{label}"' for label in missed[:5])
        yield f"never recognised: {named}{', ...' if missed[5:] else ''}. More examples of these labels are needed"
    elif accuracy - scores.macro_f1 > _RARE_CLASSES:
        yield "macro F1 is far below accuracy: rare labels are recognised worse. The table says which"
    if scores.calibration_error > _UNCALIBRATED:
        yield (
            f"its probabilities are off by {scores.calibration_error:.0%} on average: do not read them as "
            "confidence"
        )


def judge_comparison(name: str, other: str, results: Sequence[BootstrapResult]) -> Iterator[str]:
    """Yield which of two systems is better by each metric, or the number of lines that would decide it."""
    decided = [result for result in results if result.significant]
    winners = {name if result.difference > 0 else other for result in decided}
    for result in decided:
        better = name if result.difference > 0 else other
        yield (
            f"{better} is better by {METRIC_NAMES[result.metric]}: a difference of {abs(result.difference):.2f} is "
            "more than chance explains on this text. Whether readers notice it, only readers can tell"
        )
    if len(winners) > 1:
        yield "the metrics disagree: read the outputs of both"
    for result in results:
        if not result.significant:
            yield _judge_undecided(name, other, result)


def _judge_undecided(name: str, other: str, result: BootstrapResult) -> str:
    """Return the verdict on an undecided comparison, with the number of lines that would decide it."""
    metric, needed = METRIC_NAMES[result.metric], result.lines_needed
    if not result.difference:
        return f"{metric} is the same for {name} and {other}"
    difference, lines = abs(result.difference), result.lines
    known = f"undecided by {metric}: a difference of {difference:.2f} can be chance on {lines:,} lines"
    if needed > _HOPELESS * lines:
        return f"{known}, and more than {_HOPELESS} times as many would be needed: treat both as equal"
    return f"{known}. If it is real, about {_round_count(max(needed, lines + 1)):,} lines would show it"


def _round_count(count: float) -> int:
    """Return a count rounded up to two significant digits."""
    unit = 10 ** max(0, math.floor(math.log10(count)) - 1)
    return math.ceil(count / unit) * unit
