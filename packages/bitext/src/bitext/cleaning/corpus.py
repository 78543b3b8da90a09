"""Clean a text: repair its pairs, judge them, and write the kept and the removed ones with a report."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from bitext.cleaning.clean import CleanJob, ModelScore, Phase, judge_corpus
from bitext.cleaning.options import CleanOptions
from bitext.cleaning.report import CleanReport, report_of
from bitext.cleaning.writing import finished_report, write_cleaned
from bitext.errors import DataError
from bitext.executors import open_executor
from bitext.files import refuse_links, sum_of
from bitext.pairs import Pair, TextFiles, read_pairs
from bitext.placing import locked_folder
from bitext.repairs import REPAIRS
from bitext.scripts import frequent_words, scripts_of
from bitext.sources import copy_sources

_WORK = ".clean"  # folder of the results of shards, in the output folder


@dataclass(frozen=True)
class DirtyText:
    """A text to clean.

    Attributes:
        read: returns an iterable over all pairs, from the first.
        languages: languages of source and target.
        key: hash of the text and of all that its cleaning depends on: the same command resumes by it.
        files: its files, whose note of sources is copied.
        name: name of the written files, without language and endings.
    """

    read: Callable[[], Iterable[Pair]]
    languages: tuple[str, str]
    key: str
    files: Sequence[Path] = field(default=())
    name: str = "train"


def text_of_files(text: TextFiles, options: CleanOptions, name: str = "train") -> DirtyText:
    """Return the text of files; bytes that are not UTF-8 become U+FFFD, which a rule removes."""
    sums = "".join(map(sum_of, text.paths))
    languages = text.source, text.target
    key = hashlib.sha256(f"{sums}{languages}{asdict(options)}".encode()).hexdigest()
    return DirtyText(partial(read_pairs, replace(text, invalid_utf8="replace")), languages, key, text.paths, name)


def clean_text(
    text: DirtyText,
    out: Path,
    options: CleanOptions,
    phase: Phase,
    message: Callable[[str], object] = lambda text: None,
    *,
    model_score: ModelScore | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
) -> CleanReport:
    """Write the kept and the removed pairs of a text to `out`, with a report.

    Finished shards are kept in `out`, so that the same call resumes after an interruption.

    Args:
        text: the text.
        out: folder to write into.
        options: rules that are off, and thresholds.
        phase: shows the progress of a step; called with its name, the number of units or None, and the unit.
        message: called with a remark about the text.
        model_score: scores pairs with trained models; None to skip this step.
        workers: number of processes; None computes in this process.
        scheduler: address of a Dask scheduler; see `open_executor`.

    Raises:
        DataError: the text cannot be read, leaves no pairs, or the folder cannot be written.
    """
    for code in text.languages:
        if not frequent_words(code) and not set(scripts_of(code)) - {"latin"}:
            message(f'no words of the language "{code}" are known: other languages are found less often')
    files = f"{text.name}.{text.languages[0]}.gz", f"{text.name}.{text.languages[1]}.gz"
    work = (out / _WORK).absolute()  # workers of a cluster run in other folders
    job = CleanJob(partial(_read_repaired, text, options), text.languages, options, work, text.key, model_score)
    with locked_folder(out, _WORK):
        done = finished_report(out, work, files, text.key)
        if done is not None:
            return done
        refuse_links(out, [_WORK])
        with open_executor(scheduler, workers) as executor:
            judgement = judge_corpus(job, executor, phase)
            report = report_of(judgement, out, files, text.languages, text.key)
            if not report.kept:
                counts = ", ".join(f"{counts['pairs']:,} {reason}" for reason, counts in report.removed.items())
                raise DataError(
                    f"No pair is left: {report.read:,} read; {counts}. Check the languages, "
                    f"{' and '.join(text.languages)}; rules can be turned off."
                )
            copy_sources(text.files, out / files[0])
            with phase("writing", report.read, "pairs"):
                write_cleaned(out, work, _read_repaired(text, options, report), judgement, report)
    return report


def _read_repaired(text: DirtyText, options: CleanOptions, report: CleanReport | None = None) -> Iterator[Pair]:
    """Read the pairs, repaired; `report` counts the repaired pairs."""
    repairs = {name: repair for name, repair in REPAIRS.items() if name not in options.off}
    for pair in text.read():
        texts = pair.source, pair.target
        for name, repair in repairs.items():
            repaired = repair(*texts)
            if report is not None and repaired != texts:
                report.note_repair(name, pair.line, texts, repaired)
            texts = repaired
        yield Pair(*texts, *pair[2:])
