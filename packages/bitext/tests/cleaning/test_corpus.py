"""A text is repaired, judged and written; the same call resumes, and another text is not overwritten."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from bitext.cleaning.corpus import clean_text, text_of_files
from bitext.cleaning.options import CleanOptions, RuleName
from bitext.cleaning.report import CleanReport
from bitext.errors import DataError
from bitext.lines import read_lines
from bitext.pairs import TextFiles
from dirty_pairs import pairs_with_defects

Texts = Sequence[tuple[str, str]]


@contextmanager
def unseen(name: str, total: int | None, unit: str) -> Iterator[Callable[[int], object]]:
    """Show no progress."""
    yield lambda count: None


def clean(folder: Path, texts: Texts, off: tuple[RuleName, ...] = (), target: str = "en") -> CleanReport:
    """Clean texts into the folder out."""
    paths = tuple(folder / f"corpus.{language}" for language in ("de", target))
    for path, lines in zip(paths, zip(*texts, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    options = CleanOptions(off)
    text = text_of_files(TextFiles(paths, "de", target), options)
    return clean_text(text, folder / "out", options, unseen)


def kept(folder: Path, target: str = "en") -> list[tuple[str, ...]]:
    sides = [list(read_lines(folder / "out" / f"train.{language}.gz")) for language in ("de", target)]
    return list(zip(*sides, strict=True))


def test_a_dirty_text_loses_its_bad_pairs_and_keeps_the_others_in_order(tmp_path: Path) -> None:
    texts, reasons = pairs_with_defects()
    report = clean(tmp_path, texts)
    good = [pair for index, pair in enumerate(texts) if index not in reasons]
    assert report.read == len(texts)
    assert report.kept == len(kept(tmp_path))
    assert len([pair for pair in good if pair in set(kept(tmp_path))]) > 0.95 * len(good)
    bad = [texts[index] for index, reason in reasons.items() if reason in ("copy", "empty", "language")]
    assert not set(bad) & set(kept(tmp_path))
    document = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert sum(count["pairs"] for count in document["removed"].values()) == report.read - report.kept
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "removed.tsv.gz", "report.html", "report.json", "train.de.gz", "train.en.gz",
    ]  # fmt: skip


def test_the_same_call_returns_the_finished_report_and_another_text_is_not_overwritten(tmp_path: Path) -> None:
    texts = [("Der kleine Hund schläft.", "The small dog is asleep."), ("Ein Haus steht hier.", "A house is here.")]
    report = clean(tmp_path, texts)
    assert clean(tmp_path, texts) == report
    with pytest.raises(DataError, match="nothing is overwritten"):
        clean(tmp_path, texts[:1])


def test_a_text_of_which_nothing_is_left_is_an_error_with_the_counts(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"No pair is left: 2 read; 2 empty\. Check the languages, de and en"):
        clean(tmp_path, [("", "x"), ("y", " ")])
    assert not (tmp_path / "out" / "train.de.gz").exists()


@pytest.mark.parametrize(("off", "count"), [((), 1), (("access-keys",), 0)])
def test_pairs_with_access_keys_are_counted_and_lose_them(
    tmp_path: Path, off: tuple[RuleName, ...], count: int
) -> None:
    report = clean(
        tmp_path,
        [("Datei _öffnen", "_Open a file"), ("Der kleine Hund schläft.", "The small dog is asleep.")],
        off,
    )
    assert report.repaired == ({"access-keys": 1} if count else {})
    assert [line.split() for line in report.lines() if "access keys" in line] == [
        ["access-keys", "1", "50.0", "%", "repaired:", "access", "keys,", "such", "as", "_File", "or", "(&F)"]
    ] * count


@pytest.mark.parametrize("off", [(), ("typography",)])
def test_typographic_marks_are_counted_and_leave_both_sides_but_no_break_blanks_stay(
    tmp_path: Path, off: tuple[RuleName, ...]
) -> None:
    texts = [
        ("Der Donau\u00addampfer ﬁndet\u200b heim.", "Le ba\u00adteau rentre\u00a0!"),
        ("Das Wetter ist heute schön.", "Quel beau temps\u00a0!"),
    ]
    report = clean(tmp_path, texts, off, "fr")
    assert report.repaired == ({} if off else {"typography": 1})
    plain = [("Der Donaudampfer findet heim.", "Le bateau rentre\u00a0!"), texts[1]]
    assert kept(tmp_path, "fr") == (texts if off else plain)
