"""The names of files tell split, language and compression; missing files are named with near ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitext.errors import UsageError
from bitext.file_names import best_match, check_language, existing, languages_of_files, near_names, splits_of


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).touch()


@pytest.mark.parametrize(
    ("names", "languages"),
    [
        (("corpus.de", "corpus.en"), ("de", "en")),
        (("corpus.en.gz", "corpus.de.xz"), ("en", "de")),
        (("de.txt", "en.txt"), ("de", "en")),
        (("europarl-v7.de-en.de", "europarl-v7.de-en.en"), ("de", "en")),
        (("corpus.de.txt", "corpus.en.txt"), ("de", "en")),
        (("코퍼스.ko", "코퍼스.en"), ("ko", "en")),
        (("a.pt-BR", "a.zh_Hans"), ("pt-BR", "zh_Hans")),
        (("corpus.de-en.tsv",), ("de", "en")),
        (("corpus.zh-Hant-TW", "corpus.deu_Latn"), ("zh-Hant-TW", "deu_Latn")),
        (("corpus.eng_Latn-zho_Hans.tsv",), ("eng_Latn", "zho_Hans")),
        (("corpus_zh_CN-en.tsv",), ("zh_CN", "en")),
        (("en-es-419.jsonl",), ("en", "es-419")),
        (("zh_cn-en.tsv",), None),
        (("source.txt", "target.txt"), None),
        (("train.src", "train.tgt"), None),
        (("one.de", "two.en"), None),
        (("corpus.tsv",), None),
        (("a.de", "a.en", "a.fr"), None),
    ],
)
def test_the_languages_are_where_two_names_differ_or_in_one_name(
    names: tuple[str, ...], languages: tuple[str, str] | None
) -> None:
    assert languages_of_files([Path("my text") / name for name in names]) == languages


@pytest.mark.parametrize("name", ["de", "pt-BR", "zho_Hans", "es-419"])
def test_codes_of_languages_are_accepted(name: str) -> None:
    assert check_language(name) == name


@pytest.mark.parametrize("name", ["", "d", "de/en", "German text", "../de", "de\n", "a-" * 60])
def test_other_names_are_refused_before_they_name_a_file(name: str) -> None:
    with pytest.raises(UsageError, match="is no language"):
        check_language(name)


def test_a_split_is_found_in_both_languages_and_by_its_usual_names(tmp_path: Path) -> None:
    touch(tmp_path, "dev.de", "dev.en.gz", "train.de", "train.en", "other.de", ".hidden.de")
    assert splits_of(tmp_path, "de", "en") == {"dev", "train"}
    assert best_match("valid", {"dev", "train"}) == "dev"
    assert best_match("test", {"dev", "train"}) is None


def test_a_file_may_be_packed_and_near_names_are_suggested(tmp_path: Path) -> None:
    touch(tmp_path, "corpus.de.gz")
    assert existing(tmp_path / "corpus.de") == tmp_path / "corpus.de.gz"
    assert existing(tmp_path / "corpus.en") is None
    assert near_names(tmp_path / "corpsu.de.gz") == "Near names there: corpus.de.gz"
    assert near_names(tmp_path / "zzz" / "a").endswith("does not exist")
