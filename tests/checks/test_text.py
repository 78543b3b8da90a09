"""`doctor CONFIG` on text: sound text raises no alarm, and each fault planted in it is named."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.runs.labelled import examples, labelled_config, write_tsv

from bitext.file_names import Split
from manyheads.config.schema import Config
from manyheads.data.builtin import builtin_pairs
from manyheads.runs.examine_config import examine_config_text
from transformer_doctor.texts import Language

Pairs = list[tuple[str, str]]
Splits = dict[str, Pairs]
COUNTS: dict[Split, int] = {"train": 1_200, "valid": 150, "test": 150}


@cache
def builtin_split(pair: str, name: Split) -> tuple[tuple[str, str], ...]:
    """Return the first pairs of a split of the built-in grammar."""
    source, target = pair.split("-")
    pairs = builtin_pairs(pair, name, source=source, target=target)
    return tuple((pair.source, pair.target) for pair in islice(pairs, COUNTS[name]))


def make_splits(pair: str = "de-en") -> Splits:
    """Return all splits as lists, which a test may change."""
    return {name: list(builtin_split(pair, name)) for name in COUNTS}


def write_splits(folder: Path, splits: Splits, source: str = "de", target: str = "en") -> Config:
    for name, pairs in splits.items():
        for index, language in enumerate((source, target)):
            lines = "".join(f"{pair[index]}\n" for pair in pairs)
            (folder / f"{name}.{language}").write_text(lines, encoding="utf-8")
    data = {"root": str(folder), "source": source, "target": target, "test": "test"}
    return Config.model_validate({"data": data})


def findings_by_name(config: Config, **data: Any) -> dict[str, tuple[str, str]]:
    """Return severity and evidence of each finding."""
    changed = config.model_copy(update={"data": config.data.model_copy(update=data)})
    report = examine_config_text(changed, "changed").report
    return {finding.name: (finding.severity, finding.evidence) for finding in report.findings}


@pytest.mark.parametrize("pair", ["de-en", "ko-en"])
def test_sound_text_raises_no_alarm(tmp_path: Path, pair: str) -> None:
    assert findings_by_name(write_splits(tmp_path, make_splits(pair), *pair.split("-"))) == {}


def swap(pairs: Pairs) -> Pairs:
    return [(target, source) for source, target in pairs]


def every_nth(step: int, change: Callable[[str, str], tuple[str, str]]) -> Callable[[Pairs], Pairs]:
    """Return a function that changes every `step`-th pair."""
    return lambda pairs: [change(*pair) if index % step == 0 else pair for index, pair in enumerate(pairs)]


def misread(source: str, target: str) -> tuple[str, str]:
    return source.encode().decode("cp1252", errors="replace"), target


def sorted_target(pairs: Pairs) -> Pairs:
    return list(zip([source for source, _ in pairs], sorted(target for _, target in pairs), strict=True))


def one_line_lost(pairs: Pairs) -> Pairs:
    return list(zip([source for source, _ in pairs[:-1]], [target for _, target in pairs[1:]], strict=True))


def shuffled_from_the_middle(pairs: Pairs) -> Pairs:
    half = len(pairs) // 2
    rest = [target for _, target in pairs[half:]]
    random.Random(1).shuffle(rest)
    return [*pairs[:half], *zip([source for source, _ in pairs[half:]], rest, strict=True)]


PLANTED: dict[str, tuple[Callable[[Pairs], Pairs], str, str, str]] = {
    "swapped": (swap, "languages-swapped", "error", "each side looks like the other's language"),
    "a tenth swapped": (every_nth(10, lambda s, t: (t, s)), "languages-mixed", "warning", "the sides look swapped"),
    "a tenth untranslated": (every_nth(10, lambda s, t: (s, s)), "source-copied", "error", "(9.9 %) are the same"),
    "a fiftieth untranslated": (every_nth(50, lambda s, t: (s, s)), "source-copied", "warning", "line 1: "),
    "in the wrong language": (
        every_nth(10, lambda s, t: (f"{t} the of and", t)), "languages-mixed", "warning",
        "both sides look like the target",
    ),
    "misread": (every_nth(20, misread), "encoding-damaged", "error", "letters read in the wrong encoding"),
    "lost letters": (
        every_nth(20, lambda s, t: (s.encode("latin-1", "replace").decode("ascii", "replace"), t)),
        "encoding-damaged", "error", "have lost letters",
    ),
    "question marks": (
        every_nth(3, lambda s, t: (s.encode("ascii", "replace").decode(), t)),
        "encoding-damaged", "error", "question mark in the place of a letter",
    ),
    "entities": (every_nth(30, lambda s, t: (s, f"{t} &quot;")), "html-entities", "warning", "hold such as &amp;"),
    "few entities": (
        every_nth(300, lambda s, t: (s, f"{t} &amp; so on")), "html-entities", "warning", "4 of 1,200 (0.33 %)",
    ),
    "typography": (
        every_nth(30, lambda s, t: (s.replace("e", "e\u00ad"), f"{t} ﬁ")), "typographic-marks", "note",
        "40 of 1,200 (3.3 %) lines hold soft hyphens",
    ),
    "tokenised": (
        every_nth(1, lambda s, t: (s, re.sub("([.,?!])", r" \1", t))), "tokenised-text", "warning",
        "have punctuation apart from its word; line 1: ",
    ),
    "tokenised, without blanks": (
        every_nth(4, lambda s, t: (s, f"{t[:20]} 。")), "tokenised-text", "warning", "of 1,200 (25 %)",
    ),
    **{
        f"pieces of {kind}": (
            every_nth(50, lambda s, t, pieces=pieces: (s, f"{t} {pieces}")), "subword-pieces", "warning",
            "24 of 1,200 (2 %) lines hold marks of subword pieces",
        )
        for kind, pieces in (("subword-nmt", "Pu@@ der"), ("SentencePiece", "▁Pu der"), ("WordPiece", "Pu ##der"))
    },
    "doubled": (lambda pairs: [*pairs, *pairs[:400]], "much-duplicated", "note", "came before; they are dropped"),
    "sorted": (sorted_target, "misaligned", "error", "do not go together (correlation"),
    "one line lost": (one_line_lost, "misaligned", "error", "moved by one line they do"),
    "shuffled in part": (shuffled_from_the_middle, "misaligned", "error", "line"),
    "empty": (every_nth(20, lambda s, t: (s, "")), "empty-lines", "warning", "60 of 1,200 (5 %)"),
    "odd lengths": (every_nth(10, lambda s, t: (s, t * 12)), "odd-lengths", "warning", "over 9 times as long"),
}  # fmt: skip


@pytest.mark.parametrize("fault", PLANTED)
def test_a_fault_planted_in_train_is_named_with_its_figure(tmp_path: Path, fault: str) -> None:
    plant, name, severity, evidence = PLANTED[fault]
    splits = make_splits()
    splits["train"] = plant(splits["train"])
    report = findings_by_name(write_splits(tmp_path, splits))
    assert name in report, report
    assert report[name][0] == severity, report
    assert report[name][1].startswith("train")
    assert evidence in report[name][1]


def test_plain_text_with_signs_of_other_meaning_has_no_finding(tmp_path: Path) -> None:
    splits = make_splits()
    signs = "@@ -1,3 +1,4 @@ so", "mail ann@@ home", "▁▂▃▄", "## Title", "#one ##two", "A & B", "a , b"
    splits["train"][: len(signs)] = [
        (source, f"{sign} {target}") for (source, target), sign in zip(splits["train"], signs, strict=False)
    ]
    report = findings_by_name(write_splits(tmp_path, splits))
    assert not report.keys() & {"subword-pieces", "tokenised-text", "html-entities"}


def test_a_held_out_split_the_wrong_way_round_is_named(tmp_path: Path) -> None:
    splits = make_splits()
    splits["valid"] = swap(splits["valid"])
    report = findings_by_name(write_splits(tmp_path, splits))
    assert report["languages-swapped"][1].startswith("valid: ")


def test_a_swapped_split_is_named_for_unknown_languages_too(tmp_path: Path) -> None:
    splits = make_splits()
    assert findings_by_name(write_splits(tmp_path, splits, "xx", "yy")) == {}
    splits["test"] = swap(splits["test"])
    report = findings_by_name(write_splits(tmp_path, splits, "xx", "yy"))
    assert report["languages-swapped"][1].startswith("test: ")


def test_overlap_is_a_note_where_training_drops_it_and_else_an_error(tmp_path: Path) -> None:
    splits = make_splits()
    splits["train"] += splits["test"][:30]
    config = write_splits(tmp_path, splits)
    severity, evidence = findings_by_name(config)["held-out-in-train"]
    assert (severity, evidence.split(";")[0]) == ("note", "test: 30 of 150 (20 %) stand in train")
    assert findings_by_name(config, drop_overlap=False)["held-out-in-train"][0] == "error"
    splits["train"] = splits["train"][:-28]
    assert findings_by_name(write_splits(tmp_path, splits), drop_overlap=False)["held-out-in-train"][0] == "warning"


def test_near_copies_of_held_out_pairs_are_named(tmp_path: Path) -> None:
    splits = make_splits()
    splits["train"] += [
        (f"Jener {source.split(maxsplit=1)[1]}", f"{target}!") for source, target in splits["valid"][:30]
    ]
    severity, evidence = findings_by_name(write_splits(tmp_path, splits))["near-copies-in-train"]
    assert severity == "warning"
    assert "30 of 150 (20 %) a near copy" in evidence


def test_a_small_validation_set_is_named(tmp_path: Path) -> None:
    splits = make_splits()
    splits["valid"] = splits["valid"][:20]
    assert findings_by_name(write_splits(tmp_path, splits))["few-validation-texts"][1] == "valid: 20 texts"


def test_faults_of_labelled_texts_are_named(tmp_path: Path) -> None:
    rows: list[tuple[str, ...]] = [*examples(800)]

    def report(train: list[tuple[str, ...]], valid: list[tuple[str, ...]]) -> dict[str, str]:
        write_tsv(tmp_path / "train.tsv", train)
        write_tsv(tmp_path / "valid.tsv", valid)
        config = labelled_config(tmp_path)
        return {name: severity for name, (severity, _) in findings_by_name(config, test=None).items()}

    train, valid = rows[200:], rows[:200]
    sound = report(train, valid)
    assert not sound.keys() - {"near-copies-in-train"}  # texts of eleven words in all have many near copies
    contradicting = [("1" if label == "0" else "0", text) for label, text in train[:20]]
    assert report([*train, *contradicting], valid)["labels-contradict"] == "warning"
    good = [row for row in train if row[0] == "1"]
    assert report([*good, *train[:20]], valid)["labels-unbalanced"] == "note"
    assert report(train, [row for row in valid if row[0] == "1"])["labels-missing"] == "warning"
    assert report([(label, text.replace("film", "fi\ufffdm")) for label, text in train], valid)["encoding-damaged"]
    assert report([*train, *valid], valid)["held-out-in-train"] == "note"


def test_faults_of_text_for_a_language_model_are_named(tmp_path: Path) -> None:
    lines = [f"{source} So steht es in Zeile {index}." for index, (source, _) in enumerate(make_splits()["train"])]

    def report(train: list[str], valid: list[str]) -> dict[str, str]:
        (tmp_path / "train.txt").write_text("\n".join(train), encoding="utf-8")
        (tmp_path / "valid.txt").write_text("\n".join(valid), encoding="utf-8")
        data = {"root": str(tmp_path), "language": "de"}
        config = Config.model_validate({"task": "language-modeling", "data": data})
        return {name: severity for name, (severity, _) in findings_by_name(config).items()}

    assert report(lines[200:], lines[:200]) == {}
    assert report(lines, lines[:200]) == {"held-out-in-train": "error"}
    damaged = [line.encode().decode("latin-1") for line in lines[200:]]
    assert report(damaged, lines[:200]) == {"encoding-damaged": "error"}


def test_damage_of_several_splits_is_told_of_all_and_the_check_does_not_hold(tmp_path: Path) -> None:
    splits = make_splits()
    splits["train"] = every_nth(100, misread)(splits["train"])
    splits["test"] = every_nth(10, misread)(splits["test"])
    report = examine_config_text(write_splits(tmp_path, splits), "text").report
    (finding,) = report.findings
    assert (finding.name, finding.severity) == ("encoding-damaged", "error")
    assert re.search(r"train, source: \d+ of 1,200 .*; test, source: \d+ of 150 ", finding.evidence)
    assert [line for line in report.asked_lines() if "encoding-damaged" in line] == [
        "no letters are damaged: no, see encoding-damaged"
    ]
    assert "manyheads data clean" in finding.cure


@pytest.mark.parametrize("dropped", [True, False])
def test_a_cure_does_not_name_a_setting_that_is_on(tmp_path: Path, *, dropped: bool) -> None:
    splits = make_splits()
    splits["train"] += splits["train"][:200] + splits["test"][:50]
    config = write_splits(tmp_path, splits)
    data = config.data.model_copy(update={"drop_duplicates": dropped, "drop_overlap": dropped})
    report = examine_config_text(config.model_copy(update={"data": data}), "text").report
    assert {*report.names} == {"much-duplicated", "held-out-in-train"}
    headings: dict[Language, str] = {"en": "Settings to try: data.drop_", "ko": "시도해 볼 설정: data.drop_"}
    for language, heading in headings.items():
        cures = [finding.translate(language).cure for finding in report.findings]
        assert [heading in cure for cure in cures] == [not dropped] * 2
