"""Judge outputs for made-up inputs: repeated, too long, copied, invented, or without the text that must be kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bitext.defects import letters_of, repeats
from manyheads.evaluation.outputs import far_longer
from manyheads.evaluation.scores import metrics

_SHORT_WORDS = 3  # words of the longest good output for a single word
_LONGEST_QUOTE = 60  # characters of an input or output in a report
_EXAMPLES = 3  # outputs that a report quotes for each figure
_PHRASE_TWICE = re.compile(r"\b(\w+(?:\W+\w+){0,2})\W+\1\b", re.IGNORECASE)
_LETTERS_AGAIN = re.compile(r"([^\W\d_]{1,6}?)\1{3,}", re.IGNORECASE)  # four times in a row
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Case:
    """One made-up input.

    Attributes:
        source: the input.
        kept: texts that the output must hold, in this order.
        reference: expected translation, empty where none is known.
        usual: the input in its usual form, whose output it is compared with; empty where there is none.
        kind: kind of the texts inside of a sentence, which the output may hold in another order; empty elsewhere.
    """

    source: str
    kept: tuple[str, ...] = ()
    reference: str = ""
    usual: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Limit:
    """The bound of a figure: at most, or at least, a share."""

    share: float
    least: bool = False

    def holds(self, value: float) -> bool:
        """Return whether a share is within the limit."""
        return value >= self.share if self.least else value <= self.share


@dataclass(frozen=True)
class Figure:
    """One measured share of a group of inputs.

    Attributes:
        name: description of the counted outputs.
        value: the share, 0 to 1 (a ratio of chrF may be above).
        limit: bound of a good value; None where the figure is for information.
        examples: pairs of input and output that count against the model.
    """

    name: str
    value: float
    limit: Limit | None = None
    examples: tuple[tuple[str, str], ...] = ()

    @property
    def good(self) -> bool:
        """Return whether the value is within its limit."""
        return self.limit is None or self.limit.holds(self.value)

    @property
    def verdict(self) -> str:
        """Return the judgement in words."""
        if self.limit is None:
            return "for information"
        bound = f"{'at least' if self.limit.least else 'at most'} {self.limit.share:.0%}"
        if self.good:
            return f"good: {bound}"
        return f"{'too low' if self.limit.least else 'too high'}: {bound} is good"

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        examples = [{"source": source, "translation": output} for source, output in self.examples]
        limit = self.limit.share if self.limit else None
        return {
            "name": self.name,
            "value": round(self.value, 4),
            "limit": limit,
            "good": self.good,
            "verdict": self.verdict,
            "examples": examples,
        }


@dataclass(frozen=True)
class Group:
    """Inputs of one kind.

    Attributes:
        name: the kind.
        cases: the inputs; none where the group was left out.
        note: where the inputs come from, or why the group was left out.
    """

    name: str
    cases: Sequence[Case]
    note: str = ""


def _is_repeated(output: str, source: str, *, single: bool = False) -> bool:
    """Return whether an output repeats letters, a word or a phrase that its source does not repeat.

    Args:
        output: the translation.
        source: its source.
        single: the source is a single word, so that any word that comes twice is a repetition.
    """
    if single:
        words = [word.casefold() for word in _WORD.findall(output)]
        if len(words) != len(set(words)):
            return True
    checks = (_PHRASE_TWICE.search, _LETTERS_AGAIN.search, repeats)
    return any(check(output) and not check(source) for check in checks)


def _share_of(
    name: str, cases: Sequence[Case], outputs: Sequence[str], bad: Callable[[Case, str], bool], most: float | None
) -> Figure:
    wrong = [(case.source, output) for case, output in zip(cases, outputs, strict=True) if bad(case, output)]
    limit = None if most is None else Limit(most)
    return Figure(name, len(wrong) / len(cases), limit, tuple(wrong[:_EXAMPLES]))


def _chrf_ratio(name: str, cases: Sequence[Case], outputs: Sequence[str], usual: Sequence[str]) -> Figure:
    """Compare the chrF of outputs with that of the outputs for the usual inputs, both lower-cased."""
    chrf = metrics("none", lowercase=True)["chrf"]
    references = [case.reference for case in cases]
    scores = [chrf.corpus_score(list(texts), [references]).score for texts in (outputs, usual)]
    ratio = scores[0] / scores[1] if scores[1] else 1.0
    least_similar = sorted(
        (chrf.sentence_score(output, [usual_output]).score, case.source, output)
        for case, output, usual_output in zip(cases, outputs, usual, strict=True)
    )
    return Figure(
        name,
        ratio,
        Limit(0.9, least=True),
        tuple((source, output) for _, source, output in least_similar[:_EXAMPLES]),
    )


def _is_kept(case: Case, output: str) -> bool:
    """Return whether an output holds all texts that it must hold, in order."""
    position = 0
    for text in case.kept:
        position = output.find(text, position)
        if position < 0:
            return False
        position += len(text)
    return True


def _count(text: str, line: str) -> int:
    """Return how often a text occurs in a line, but not as part of a longer word or number."""
    before, after = r"(?<!\w)" if text[0].isalnum() else "", r"(?!\w)" if text[-1].isalnum() else ""
    return len(re.findall(f"{before}{re.escape(text)}{after}", line))


def judge(
    group: Group, outputs: Sequence[str], usual: Mapping[str, str], parts: Sequence[int] = ()
) -> list[Figure]:
    """Measure the outputs of a group.

    Args:
        group: the inputs.
        outputs: their translations.
        usual: translation of each `Case.usual`.
        parts: number of parts in which each input was translated, for texts inside of sentences.
    """
    cases, single = group.cases, group.name == "single words"

    def odd(case: Case, output: str) -> bool:
        return _is_repeated(output, case.source, single=single) or len(_WORD.findall(output)) > _SHORT_WORDS

    figures = []
    if single:
        figures.append(_share_of(f"repeated or longer than {_SHORT_WORDS} words", cases, outputs, odd, 0.01))
    if group.name == "empty-looking lines":
        figures.append(_share_of("words made up", cases, outputs, lambda _, output: bool(letters_of(output)), 0.0))
        return figures
    if cases[0].kind:
        figures += _inside_figures(cases, outputs, parts)
    elif cases[0].kept:
        lost = _share_of("kept", cases, outputs, lambda case, output: not _is_kept(case, output), None)
        figures.append(Figure("kept", 1 - lost.value, Limit(0.98, least=True), lost.examples))
    if cases[0].usual:
        usual_outputs = [usual[case.usual] for case in cases]
        figures.append(_chrf_ratio("chrF, compared with the usual form", cases, outputs, usual_outputs))
    figures.append(_share_of(
        "repeated", cases, outputs,
        lambda case, output: _is_repeated(output, case.source, single=single), 0.01 if single else 0.03,
    ))  # fmt: skip
    figures.append(
        _share_of("far too long", cases, outputs, lambda case, output: far_longer(output, case.source), 0.03)
    )
    figures.append(_share_of("source copied", cases, outputs, _copied, None))
    return figures


def _inside_figures(cases: Sequence[Case], outputs: Sequence[str], parts: Sequence[int]) -> list[Figure]:
    """Return the shares of outputs that keep the texts of their sentence: of whole sentences, of all, by kind."""
    cut = {case.source for case, number in zip(cases, parts, strict=True) if number > 1}

    def kept(name: str, kind: str, lost: Callable[[Case, str], bool], least: float | None) -> Figure:
        rows = [row for row in zip(cases, outputs, strict=True) if kind in ("", row[0].kind)]
        found = _share_of(name, [case for case, _ in rows], [output for _, output in rows], lost, None)
        return Figure(name, 1 - found.value, Limit(least, least=True) if least else None, found.examples)

    def lost(case: Case, output: str) -> bool:
        return any(_count(text, output) != _count(text, case.source) for text in case.kept)

    def lost_or_cut(case: Case, output: str) -> bool:
        return case.source in cut or lost(case, output)

    return [
        kept("kept once each, sentence not cut", "", lost_or_cut, 0.98),
        kept("kept once each", "", lost, 0.98),
        *(kept(f"of these: {kind}", kind, lost, None) for kind in dict.fromkeys(case.kind for case in cases)),
    ]


def _copied(case: Case, output: str) -> bool:
    """Return whether an output is its source, apart from texts that must be kept."""
    source = case.source
    for text in case.kept:
        source, output = source.replace(text, " "), output.replace(text, " ")
    return bool(letters_of(source)) and letters_of(source) == letters_of(output)


def lines_of(group: Group, figures: Sequence[Figure]) -> Iterator[str]:
    """Yield the figures of a group for people: examples only where a figure is bad."""
    if not group.cases:
        yield f"{group.name}: not measured, {group.note}"
        return
    yield f"{group.name}: {len(group.cases)} lines{f', {group.note}' if group.note else ''}"
    for figure in figures:
        yield f"  {figure.name:<36} {figure.value:>7.1%}  {figure.verdict}"
        if not figure.good:
            yield from (
                f"      {_shorten(source)} -> {_shorten(output) or '(nothing)'}"
                for source, output in figure.examples
            )


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTE else f"{text[: _LONGEST_QUOTE - 1]}…"
