"""`manyheads corrections review`: sort the suggestions of a server by rules and by the scores of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitext.cleaning.report import fill_page
from bitext.languages import normal_form
from bitext.tsv import join_row
from manyheads.data.corrections import (
    CORRECTION_MEANINGS,
    CORRECTIONS_PAGE,
    Correction,
    ModelScores,
    Verdict,
    collect_corrections,
    judge_corrections,
)
from manyheads.data.suggestions import Suggestion, SuggestionFile
from manyheads.errors import DataError, UsageError
from manyheads.inference.translation.directions import require_one_direction
from manyheads.inference.translation.translator import Translator
from manyheads.tasks.translation.scoring import target_nats

_OTHERS = 3  # other sources that the score after the own source is compared with


@dataclass(frozen=True)
class Review:
    """The sorted corrections of a file of suggestions.

    Attributes:
        file: the file of suggestions.
        languages: languages of source and target.
        corrections: the different corrections, each with its reasons.
        suggestions: number of suggestions in these languages; others: number of suggestions in other languages.
        damaged: numbers of the lines of the file that hold no suggestion.
    """

    file: Path
    languages: tuple[str, str]
    corrections: list[Correction]
    suggestions: int
    others: int
    damaged: list[int]

    def of(self, *verdicts: Verdict) -> list[Correction]:
        """Return the corrections with one of the verdicts."""
        return [correction for correction in self.corrections if correction.verdict in verdicts]

    def to_json(self) -> dict[str, Any]:
        """Return the document of `corrections review --json`."""
        return {
            "languages": list(self.languages),
            "suggestions": self.suggestions,
            "other_languages": self.others,
            "damaged_lines": self.damaged,
            "corrections": len(self.corrections),
            **{verdict: len(self.of(verdict)) for verdict in ("accepted", "doubtful", "rejected")},
            "reasons": self.reasons(),
        }

    def reasons(self) -> dict[str, int]:
        """Return the number of corrections that each reason speaks against, the most frequent first."""
        return dict(
            Counter(reason for correction in self.corrections for reason in correction.reasons).most_common()
        )

    def lines(self) -> list[str]:
        """Return the lines for people."""
        counts = ", ".join(f"{len(self.of(name)):,} {name}" for name in ("accepted", "doubtful", "rejected"))
        lines = [
            f"{'-'.join(self.languages)}: {self.suggestions:,} suggestions, {len(self.corrections):,} different",
            counts,
            *(f"  {name:<13}{count:>7,}  {CORRECTION_MEANINGS[name]}" for name, count in self.reasons().items()),
        ]
        if self.others:
            lines.append(f"{self.others:,} suggestions in other languages are left out")
        if self.damaged:
            shown = ", ".join(map(str, self.damaged[:8])) + (" and more" if len(self.damaged) > 8 else "")
            lines.append(f"no suggestion in {len(self.damaged):,} lines of {self.file}: {shown}")
        return lines

    def accepted_rows(self) -> list[str]:
        """Return the accepted corrections as rows of a TSV file: source and correction."""
        return [join_row([correction.source, correction.text]) for correction in self.of("accepted")]

    def other_rows(self) -> list[str]:
        """Return the other corrections as rows of a TSV file, after a row of titles."""
        rows: list[list[object]] = [["verdict", "reasons", "senders", "time", "source", "output", "correction"]]
        rows += [
            [
                correction.verdict,
                ", ".join(correction.reasons),
                len(correction.senders),
                correction.time,
                correction.source,
                correction.output,
                correction.text,
            ]
            for correction in self.of("doubtful", "rejected")
        ]
        return [join_row(row) for row in rows]

    def page(self) -> str:
        """Return a page on which a person ticks the doubtful corrections that are right, and saves these as TSV."""
        rows = [
            {
                "source": correction.source,
                "output": correction.output,
                "text": correction.text,
                "reasons": correction.reasons,
            }
            for correction in self.of("doubtful")
        ]
        return fill_page(CORRECTIONS_PAGE, {"languages": self.languages, "rows": rows})


def review_corrections(file: Path, run: Path | None = None, *, device: str = "auto") -> Review:
    """Sort the suggestions of a file.

    Args:
        file: file of `manyheads serve --suggestions`.
        run: translator whose log-probabilities are used, too; only suggestions in its languages are sorted.
        device: see `Translator.load`.

    Raises:
        DataError: the file cannot be read, or has no suggestion in the languages.
        UsageError: the file has suggestions in several languages, and no run tells which to sort.
    """
    suggestions, damaged = SuggestionFile(file).read()
    translator = None if run is None else Translator.load(run, device=device)
    pairs = Counter(_pair_of(correction) for correction in suggestions)
    if translator is not None:
        require_one_direction(translator.config, "corrections review --run")
        data = translator.config.data
        chosen = normal_form(data.source), normal_form(data.target)
    elif len(pairs) > 1:
        names = ", ".join("-".join(pair) for pair in pairs)
        raise UsageError(f"{file} has suggestions in several languages ({names}). Choose by a run: --run RUN.")
    else:
        chosen = next(iter(pairs), ("", ""))
    if not pairs[chosen]:
        wanted = "" if translator is None else f" {'-'.join(chosen)}"
        raise DataError(
            f"{file} has no suggestion{wanted}; {len(suggestions):,} others, {len(damaged):,} damaged lines."
        )
    own = [correction for correction in suggestions if _pair_of(correction) == chosen]
    corrections = collect_corrections(own)
    judge_corrections(corrections, chosen, None if translator is None else _score(translator, corrections))
    return Review(file, chosen, corrections, len(own), len(suggestions) - len(own), damaged)


def _pair_of(suggestion: Suggestion) -> tuple[str, str]:
    source, target = map(normal_form, suggestion.languages)
    return source, target


def _score(translator: Translator, corrections: Sequence[Correction]) -> ModelScores:
    """Return the log-probabilities of corrections (N,)."""
    sources = translator.tokenizers.source.encode([correction.source for correction in corrections])
    texts, outputs = (
        translator.tokenizers.target.encode([getattr(correction, name) for correction in corrections])
        for name in ("text", "output")
    )
    longest = translator.config.data.max_length
    short = np.array([max(map(len, rows)) < longest for rows in zip(sources, texts, outputs, strict=True)])
    sources, texts, outputs = (
        [row for row, kept in zip(rows, short, strict=True) if kept] for rows in (sources, texts, outputs)
    )
    mean, end = target_means(translator, sources, texts)
    others = [target_means(translator, rows, texts)[0] for rows in _other_sources(sources)]
    scores = ModelScores(*np.full((3, len(corrections)), np.nan))
    scores.loss[short] = mean - target_means(translator, sources, outputs)[0]
    scores.end[short] = -end
    if others:
        scores.gain[short] = np.mean(others, 0) - mean
    return scores


def _other_sources(sources: list[list[int]]) -> list[list[list[int]]]:
    """Return some lists in which each source is replaced by another one; none if all sources are the same."""
    distinct = [list(row) for row in dict.fromkeys(map(tuple, sources))]
    place = {tuple(row): number for number, row in enumerate(distinct)}
    steps = {max(1, len(distinct) * step // (_OTHERS + 1)) for step in range(1, _OTHERS + 1)}
    if len(distinct) < 2:
        return []
    return [[distinct[(place[tuple(row)] + step) % len(distinct)] for row in sources] for step in sorted(steps)]


def target_means(
    translator: Translator, sources: list[list[int]], targets: list[list[int]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the negative log-likelihood of each target (N,): mean of its tokens with the end mark; end mark."""
    mean, end = np.zeros((2, len(targets)))
    for batch, nats, lengths in target_nats(translator.model, sources, targets):
        mean[batch] = (nats.sum(1) / lengths).numpy()
        end[batch] = nats.gather(1, (lengths - 1)[:, None])[:, 0].numpy()
    return mean, end
