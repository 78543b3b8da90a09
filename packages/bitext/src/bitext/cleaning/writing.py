"""Write a cleaned text and its report under temporary names, then rename all files, the report last."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from bitext.cleaning.clean import Judgement, tsv_field
from bitext.cleaning.report import SCORES, CleanReport, chosen_examples, page_of, score_texts
from bitext.cleaning.rules import REASONS
from bitext.errors import DataError
from bitext.files import discard, drafting, put, writing
from bitext.pairs import Pair
from bitext.placing import open_packed
from bitext.tsv import join_row

_REPORT = "report.json"
_REMOVED = "removed.tsv.gz"
_BUFFER = 1 << 16  # bytes


def write_cleaned(out: Path, work: Path, pairs: Iterable[Pair], judgement: Judgement, report: CleanReport) -> None:
    """Write the files of a cleaning to `out`, and remove the folder `work` of the results of shards.

    The examples of the report are added to it.
    """
    with writing(out), drafting(work) as draft:  # beside `work`, by the name that is locked
        _write_text(draft, pairs, judgement, report)
        document = json.dumps(report.to_json(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        (draft / "report.html").write_text(page_of(report), encoding="utf-8", newline="\n")
        (draft / _REPORT).write_text(document, encoding="utf-8", newline="\n")
        for name in (*report.files, _REMOVED, "report.html", _REPORT):
            put(draft / name, out / name)
        discard(work)


def _write_text(draft: Path, pairs: Iterable[Pair], judgement: Judgement, report: CleanReport) -> None:
    """Write the kept and the removed pairs to a folder; collect the examples of the report."""
    examples = chosen_examples(judgement)
    report.examples = {reason: [] for reason in report.removed}
    with ExitStack() as stack:
        source, target, removed = (
            stack.enter_context(io.BufferedWriter(open_packed(draft / name), _BUFFER))
            for name in (*report.files, _REMOVED)
        )
        removed.write(f"{join_row(['reason', *SCORES, 'line', 'source', 'target'])}\n".encode())
        number, reasons = -1, judgement.reasons.tobytes()
        for number, pair in enumerate(pairs):
            texts = tsv_field(pair.source), tsv_field(pair.target)
            if number >= len(reasons):
                break
            reason = REASONS[reasons[number]]
            if reason == "kept":
                source.write(f"{texts[0]}\n".encode())
                target.write(f"{texts[1]}\n".encode())
                continue
            scores = score_texts(judgement.scores[number].tolist())
            removed.write(f"{join_row([reason, *scores, pair.line, *texts])}\n".encode())
            if number in examples:
                scored = dict(zip(SCORES, scores, strict=True))
                report.examples[reason].append(
                    {"line": pair.line, "source": texts[0], "target": texts[1], "scores": scored}
                )
    if number + 1 != len(judgement.reasons):
        raise DataError("The text has changed while it was read. Run the command again.")


def finished_report(out: Path, work: Path, files: tuple[str, str], key: str) -> CleanReport | None:
    """Return the report of a finished cleaning of the same text with the same settings, or None.

    Raises:
        DataError: the folder holds files of another cleaning, or other files with these names.
    """
    try:
        report = CleanReport.from_json(json.loads((out / _REPORT).read_text(encoding="utf-8")), out)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        report = None
    if report is not None and report.key == key:
        discard(work)
        return report
    present = [name for name in (*files, _REMOVED, "report.html", _REPORT) if (out / name).exists()]
    if present and not work.is_dir():
        raise DataError(
            f"{out} holds {', '.join(present)} already; nothing is overwritten. Name another folder: -o DIR."
        )
    return None
