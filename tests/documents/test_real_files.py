"""Files that others made keep their bytes and their structure, and damaged ones are read or refused."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random
from zipfile import BadZipFile

import pytest
from tests.documents.archives import reverse_words
from tests.documents.real_files import damage, downloaded_files, installed_files, structure

from bitext.errors import BitextError
from manyheads.documents.document import Document, ReadOptions
from manyheads.documents.formats import read_document
from manyheads.documents.units import Translated

WEEKLY = [pytest.mark.slow, pytest.mark.weekly]
INSTALLED = ("html", "markdown", "po", "json", "docx", "pptx", "odt")
CASES = [
    *((form, False) for form in INSTALLED),
    *(
        pytest.param(form, True, marks=WEEKLY)
        for form in (*INSTALLED, "srt", "vtt", "ass", "xliff", "fluent", "epub")
    ),
]
HOSTILE = ("commonmark_spec.md", "fatal.md")  # tests of other parsers, with HTML that is never closed


@pytest.fixture(scope="module")
def downloaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    return downloaded_files(tmp_path_factory.mktemp("packages"))


@pytest.fixture
def files(form: str, is_downloaded: bool, request: pytest.FixtureRequest) -> list[Path]:
    found = request.getfixturevalue("downloaded")[form] if is_downloaded else installed_files(form)
    return [path for path in found if path.name not in HOSTILE]


def read(data: bytes, form: str) -> Document:
    return read_document(data, form, ReadOptions("the file", "en", "de"))


def keeps_bytes_and_structure(path: Path, form: str) -> bool:
    """Check a file; return False if it is refused, or the program that judges its structure cannot read it."""
    data = path.read_bytes()
    try:
        document = read(data, form)
        before = structure(data, form)
    except (BitextError, ValueError, OSError, BadZipFile):
        return False
    assert document.write(Translated(unit.text) for unit in document.units) == data, path
    assert structure(document.write(map(reverse_words, document.units)), form) == before, path
    return True


def is_read(data: bytes, form: str) -> bool:
    """Read and write a file; return False if it is refused, in one line."""
    try:
        document = read(data, form)
    except BitextError as error:
        return "\n" in str(error) and pytest.fail(str(error))
    assert document.write(Translated(unit.text) for unit in document.units) == data
    document.write(map(reverse_words, document.units))
    return True


@pytest.mark.parametrize(("form", "is_downloaded"), CASES)
def test_files_of_others_keep_bytes_and_structure(form: str, is_downloaded: bool, files: list[Path]) -> None:
    results = [keeps_bytes_and_structure(path, form) for path in files]
    assert sum(results) >= (max(10, 0.8 * len(files)) if is_downloaded else 1), f"{sum(results)} of {len(files)}"


@pytest.mark.parametrize(("form", "is_downloaded"), CASES)
def test_damaged_files_are_read_or_refused_in_one_line(form: str, is_downloaded: bool, files: list[Path]) -> None:
    random, number_read = Random(form), 0
    for _ in range(400 if is_downloaded else 20):
        data = random.choice(files).read_bytes()
        damaged = damage(data if data.startswith(b"PK") else data[:20_000], random)
        try:
            number_read += is_read(damaged, form)
        except Exception as error:
            error.add_note(f"{form}: {damaged[:6000]!r}")
            raise
    assert number_read


@pytest.mark.slow
@pytest.mark.weekly
def test_epubcheck_finds_in_a_translated_book_what_it_found_before(
    tmp_path: Path, downloaded: dict[str, list[Path]]
) -> None:
    path, translated = downloaded["epub"][0], tmp_path / "translated.epub"
    document = read(path.read_bytes(), "epub")
    translated.write_bytes(document.write(map(reverse_words, document.units)))
    before, after = (
        subprocess.run(["epubcheck", file], capture_output=True, text=True, check=False).stdout.splitlines()[-3:]
        for file in (path, translated)
    )
    assert before
    assert before == after
