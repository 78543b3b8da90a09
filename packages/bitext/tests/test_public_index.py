"""Corpora of the public indexes are listed and fetched by the program mtdata; its failures are one-line errors.

Most tests run a fake of mtdata, which prints and writes in the format of mtdata 0.5.1.
"""

from __future__ import annotations

import gzip
import hashlib
import http.server
import os
import shutil
import threading
from pathlib import Path

import pytest

from bitext.errors import BitextError, DataError, MissingExtraError, UsageError
from bitext.public_index import IndexEntry, fetch_entry, find_entries, is_entry_name
from fake_mtdata import NAME, URL, fake_mtdata
from formats.test_moses import README, TEXT, make_archive

__all__ = ["fake_mtdata"]


@pytest.mark.usefixtures("fake_mtdata")
def test_the_corpora_of_two_languages_are_listed_and_chosen_by_words() -> None:
    assert [entry.name for entry in find_entries("ko", "en")] == [NAME, "OPUS-gnome-v1-eng-kor"]
    assert find_entries("ko", "en", "TATOEBA v1") == [IndexEntry(NAME, URL)]
    assert find_entries("ko", "en", "zzz") == []


@pytest.mark.usefixtures("fake_mtdata")
def test_a_corpus_is_fetched_into_files_of_its_languages_with_its_licence(tmp_path: Path) -> None:
    key = hashlib.md5(URL.encode()).hexdigest()
    cached = tmp_path / "cache" / "example.org" / key[:4] / key[4:] / "tatoeba.txt.zip"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(make_archive({**TEXT, "README": README}).read())
    result = fetch_entry(NAME, Path("data"), ("ko", "en"))
    assert f"  licence: CC-BY 2.0 FR; origin: {URL}" in result.lines()
    folder = tmp_path / "data" / NAME
    assert [path.resolve() for path in result.files] == [folder / f"{NAME}.ko.gz", folder / f"{NAME}.en.gz"]
    assert gzip.decompress((folder / f"{NAME}.ko.gz").read_bytes()).decode() == "하나\n둘\n"
    assert gzip.decompress((folder / f"{NAME}.en.gz").read_bytes()).decode() == "one\ntwo\n"
    fetch_entry(NAME, Path("other"))
    assert (tmp_path / "other" / NAME / f"{NAME}.kor.gz").is_file()


@pytest.mark.usefixtures("fake_mtdata")
@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("OPUS-gnome-v1-eng-kor", DataError, r"ConnectionError: no route\. Is there a network\?"),
        ("OPUS-other-v1-eng-kor", UsageError, "OPUS-other-v1-eng-kor is not in the index for eng and kor"),
    ],
)
def test_a_corpus_that_cannot_be_fetched_is_an_error_with_its_reason(
    name: str, error: type[BitextError], message: str
) -> None:
    with pytest.raises(error, match=message):
        fetch_entry(name, Path("data"))
    assert not Path("data").exists()


@pytest.mark.usefixtures("fake_mtdata")
def test_the_message_of_mtdata_is_kept() -> None:
    with pytest.raises(DataError, match="mtdata list fails: mtdata list: error: argument -l/--langs"):
        find_entries("xx", "en")


def test_without_mtdata_the_message_says_how_to_install_it(fake_mtdata: Path) -> None:
    fake_mtdata.unlink()
    with pytest.raises(MissingExtraError, match="pipx install mtdata"):
        find_entries("ko", "en")


@pytest.mark.parametrize(("name", "fits"), [(NAME, True), ("tatoeba-ko-en", False), ("a-b-c-eng_GB-kor", True)])
def test_names_of_the_index_are_recognised(name: str, fits: bool) -> None:
    assert is_entry_name(name) is fits


class Mirror(http.server.BaseHTTPRequestHandler):
    """Answer each request with 50 pairs, also as a proxy."""

    def do_GET(self) -> None:
        body = gzip.compress("".join(f"Hallo {n}\tHello {n}\n" for n in range(50)).encode())
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *values: object) -> None:
        """Print nothing."""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mtdata") is None, reason="mtdata is not on the PATH")
def test_the_real_mtdata_lists_its_index_and_fetches_from_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("MTDATA", os.environ.get("MTDATA", str(tmp_path / "cache")))
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_port}")
    try:
        names = [entry.name for entry in find_entries("ko", "en", "opus tatoeba")]
        assert len(names) > 5
        assert all(name.endswith("-eng-kor") for name in names)
        name = "Statmt-europarl-9-deu-eng"
        fetch_entry(name, tmp_path, ("en", "de"))
    finally:
        server.shutdown()
        server.server_close()
    text = gzip.decompress((tmp_path / name / f"{name}.en.gz").read_bytes()).decode()
    assert text.startswith("Hello 0\nHello 1\n")
