"""Fetching corpora from mirrors that fail in different ways, on a local server."""

from __future__ import annotations

import gzip
import hashlib
import io
import socket
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bitext import download
from bitext.catalogue import CORPORA, Corpus, RemoteFile
from bitext.download import _fetch_corpus, fetch
from bitext.errors import DataError, UsageError
from bitext.pairs import TextFiles, read_pairs
from bitext.sources import read_sources
from bitext.tatoeba import _split_sentences, unpack_sentences

SHARED = Path(__file__).parents[3] / "shared" / "data"
GOOD = b"the right content\n" * 10_000
WRONG = b"<html>not found, says a page with status 200</html>"


class Mirror(BaseHTTPRequestHandler):
    """Answer by path, and record the requested paths."""

    requested: list[str]

    def do_GET(self) -> None:
        self.requested.append(self.path)
        if self.path == "/hangs-up":
            return
        if self.path == "/garbage":
            self.wfile.write(b"this is no HTTP\r\n\r\n")
            return
        if self.path == "/gone":
            self.send_error(404)
            return
        body = WRONG if self.path == "/wrong" else GOOD
        self.send_response(200)
        if self.path != "/endless":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body[:1000] if self.path == "/cut" else body)
            if self.path == "/endless":
                for _ in range(100):
                    self.wfile.write(body)
        except ConnectionError:
            pass  # the client closed the connection

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    Mirror.requested = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def corpus(*mirrors: str, checksum_of: bytes | None = GOOD, size: int | None = len(GOOD)) -> Corpus:
    file = RemoteFile("a.txt", sha256(checksum_of) if checksum_of is not None else None, size)
    return Corpus("set", "a set", "none", mirrors, (file,))


def ignore_messages(text: str) -> None:
    """Ignore a progress message."""


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_comes_from_the_first_mirror_with_the_right_content(host: str, tmp_path: Path) -> None:
    messages: list[str] = []
    mirrors = [f"{host}/{name}" for name in ("gone", "hangs-up", "garbage", "cut", "wrong", "{name}", "never")]
    folder = _fetch_corpus(corpus("http://127.0.0.1:9/refused", *mirrors), tmp_path, listener=messages.append)
    assert folder == tmp_path / "set"
    assert (folder / "a.txt").read_bytes() == GOOD
    assert files(folder) == ["a.sources.json", "a.txt"]
    assert Mirror.requested == ["/gone", "/hangs-up", "/garbage", "/cut", "/wrong", "/a.txt"]
    assert any("/gone: HTTP 404" in line for line in messages)
    assert any(sha256(WRONG) in line and sha256(GOOD) in line and "/wrong" in line for line in messages)
    assert (folder / "a.txt").stat().st_mode & 0o077 == 0o044


def test_when_all_mirrors_fail_one_error_lists_them_and_says_where_to_put_the_file(
    host: str, tmp_path: Path
) -> None:
    mirrors = ["http://127.0.0.1:9/x", *(f"{host}/{name}" for name in ("gone", "hangs-up", "cut", "wrong"))]
    with pytest.raises(DataError) as caught:
        _fetch_corpus(corpus(*mirrors), tmp_path, listener=ignore_messages)
    head, *reasons = str(caught.value).split("\n")
    assert str(tmp_path / "set" / "a.txt") in head
    assert [reason.split(": ")[0].strip() for reason in reasons] == mirrors
    for reason, expected in zip(
        reasons, ("refused", "404", "", "ended after 1,000 of 180,000 bytes", "deleted"), strict=True
    ):
        assert expected in reason
        assert len(reason.split(": ", 1)[1]) > 5
    assert sha256(WRONG) in reasons[-1]
    assert sha256(GOOD) in reasons[-1]
    assert files(tmp_path / "set") == []


def test_a_mirror_that_sends_without_end_is_given_up(host: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="more than the 180,000 bytes expected"):
        _fetch_corpus(corpus(f"{host}/endless"), tmp_path, listener=ignore_messages)
    assert files(tmp_path / "set") == []


def test_a_mirror_that_sends_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        with pytest.raises(DataError, match="timed out"):
            _fetch_corpus(corpus(url), tmp_path, listener=ignore_messages)


def test_files_with_the_right_checksum_are_kept_and_others_are_fetched_again(host: str, tmp_path: Path) -> None:
    path = _fetch_corpus(corpus(f"{host}/good"), tmp_path, listener=ignore_messages) / "a.txt"
    _fetch_corpus(corpus(f"{host}/good"), tmp_path, listener=ignore_messages)
    assert Mirror.requested == ["/good"]
    path.write_bytes(WRONG)
    messages: list[str] = []
    _fetch_corpus(corpus(f"{host}/good"), tmp_path, listener=messages.append)
    assert path.read_bytes() == GOOD
    assert any("is there, but its SHA-256 is" in line for line in messages)


def test_a_file_put_there_by_hand_needs_no_network(tmp_path: Path) -> None:
    for known in (GOOD, None):
        folder = tmp_path / str(known is None) / "set"
        folder.mkdir(parents=True)
        (folder / "a.txt").write_bytes(GOOD)
        _fetch_corpus(corpus("http://127.0.0.1:9/x", checksum_of=known), folder.parent, listener=ignore_messages)


def test_a_file_without_a_known_checksum_has_its_checksum_recorded_and_reported(host: str, tmp_path: Path) -> None:
    messages: list[str] = []
    changing = corpus(f"{host}/good", checksum_of=None, size=None)
    folder = _fetch_corpus(changing, tmp_path, listener=messages.append)
    assert (folder / "SHA256SUMS").read_text() == f"{sha256(GOOD)}  a.txt\n"
    assert any(sha256(GOOD) in line and "recorded" in line for line in messages)
    _fetch_corpus(changing, tmp_path, listener=ignore_messages)
    assert Mirror.requested == ["/good"]
    (folder / "a.txt").write_bytes(GOOD[:-1])
    _fetch_corpus(changing, tmp_path, listener=ignore_messages)
    assert (folder / "a.txt").read_bytes() == GOOD


def test_a_folder_that_cannot_be_written_is_a_data_error(host: str, tmp_path: Path) -> None:
    (tmp_path / "set").write_text("in the way")
    with pytest.raises(DataError, match="set cannot be written: File exists"):
        _fetch_corpus(corpus(f"{host}/good"), tmp_path, listener=ignore_messages)


def test_an_interrupted_fetch_leaves_no_partial_file(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Iterator[bytes]:
        yield GOOD[:5]
        raise KeyboardInterrupt

    monkeypatch.setattr(download, "_receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _fetch_corpus(corpus(f"{host}/good"), tmp_path, listener=ignore_messages)
    assert files(tmp_path / "set") == []


def test_an_error_on_an_unknown_corpus_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'no corpus "multi30".*multi30k, tatoeba-de-en'):
        fetch("multi30", tmp_path, listener=ignore_messages)


# --- the catalogue ---


@pytest.mark.parametrize("name", CORPORA)
def test_each_corpus_has_terms_and_https_mirrors(name: str) -> None:
    assert CORPORA[name].name == name
    assert CORPORA[name].terms
    mirrors = CORPORA[name].mirrors
    assert mirrors
    assert {urlsplit(url).scheme for url in mirrors} == {"https"}
    assert len({urlsplit(url).hostname for url in mirrors}) == len(mirrors)
    assert all(url.endswith("/{name}") for url in mirrors)
    for file in CORPORA[name].files:
        assert Path(file.name).name == file.name


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data")
def test_the_checksums_of_the_catalogue_match_reference_files() -> None:
    for file in CORPORA["multi30k"].files:
        content = (SHARED / "multi30k" / file.name).read_bytes()
        assert (sha256(content), len(content)) == (file.sha256, file.size)
    content = gzip.decompress((SHARED / "tinyshakespeare" / "input.txt.gz").read_bytes())
    (file,) = CORPORA["tinyshakespeare"].files
    assert (sha256(content), len(content)) == (file.sha256, file.size)


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data")
def test_fetching_by_name_keeps_existing_files(tmp_path: Path) -> None:
    (tmp_path / "multi30k").symlink_to(SHARED / "multi30k")
    messages: list[str] = []
    assert fetch("multi30k", tmp_path, listener=messages.append) == tmp_path / "multi30k"
    assert sum("is there already" in line for line in messages) == 12


# --- Tatoeba's zip files ---


def make_zip(**members: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def damaged_zip() -> bytes:
    content = bytearray(make_zip(**{"kor.txt": "".join(f"{n**3}\t{n**5}\n" for n in range(999))}))
    content[400:420] = b"\x00" * 20
    return bytes(content)


def unpack(folder: Path, content: bytes) -> str:
    (folder / "kor-eng.zip").write_bytes(content)
    return unpack_sentences(folder, archive="kor-eng.zip", member="kor.txt", language="ko", one_in=4)


def sentences(count: int) -> list[tuple[str, str]]:
    return [(f"Sentence {number // 2}.", f"문장 {number}번.") for number in range(count)]


def test_an_archive_becomes_splits_that_can_be_read(tmp_path: Path) -> None:
    rows = sentences(400)
    text = "".join(f"{english}\t{korean}\tCC-BY 2.0 (France) #1\n" for english, korean in rows)
    message = unpack(tmp_path, make_zip(**{"kor.txt": "\ufeff" + text, "_about.txt": "terms"}))
    assert "400 pairs" in message
    texts = [
        TextFiles((tmp_path / f"{split}.ko", tmp_path / f"{split}.en"), "ko", "en")
        for split in ("train", "valid", "test")
    ]
    found = [[(pair.target, pair.source) for pair in read_pairs(text)] for text in texts]
    assert sorted(chain.from_iterable(found)) == sorted(rows)
    assert all(len(part) > 50 for part in found)
    assert (tmp_path / "_about.txt").read_text() == "terms"


def test_the_terms_of_a_corpus_are_recorded_for_model_cards(host: str, tmp_path: Path) -> None:
    file = RemoteFile("train.de", hashlib.sha256(GOOD).hexdigest())
    corpus = Corpus("one", "a corpus", "CC BY 4.0", (f"{host}/good",), (file,))
    (source,) = read_sources([_fetch_corpus(corpus, tmp_path, listener=lambda line: None) / "train.de"])
    assert source.line() == "one (bitext fetch one): licence: CC BY 4.0"


def test_only_known_members_of_an_archive_are_written(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    text = "".join(f"{english}\t{korean}\n" for english, korean in sentences(50))
    unpack(inner, make_zip(**{"../evil.txt": "x", "/tmp/evil.txt": "x", "other.txt": "x", "kor.txt": text}))
    expected = {f"{part}.{language}" for part in ("train", "valid", "test") for language in ("ko", "en")}
    assert set(files(inner)) == expected | {"kor-eng.zip"}
    assert files(tmp_path) == ["inner"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no zip at all", r"kor-eng\.zip is no zip file"),
        (make_zip(**{"kor.txt": "a\tb\n" * 999})[:60], r"kor-eng\.zip is no zip file"),
        (damaged_zip(), r"kor-eng\.zip is no zip file that can be read"),
        (make_zip(**{"deu.txt": "a\tb"}), r"holds no kor\.txt; it holds deu\.txt"),
        (make_zip(**{"kor.txt": "a\tb\nno tab\n"}), r"kor\.txt, line 2: no tab"),
    ],
    ids=["no zip", "cut", "damaged", "another text", "no tab"],
)
def test_an_archive_without_the_expected_text_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        unpack(tmp_path, content)


def test_no_sentence_is_in_two_splits() -> None:
    pairs = [(f"e{n // 2}", f"k{(n + 1) // 2 % 150}") for n in range(400)]
    parts = _split_sentences(pairs, 4)
    assert all(parts.values())
    for side in (0, 1):
        known = [{pair[side] for pair in parts[part]} for part in ("train", "valid", "test")]
        assert not known[0] & known[1]
        assert not known[0] & known[2]
        assert not known[1] & known[2]


def test_pairs_that_differ_only_in_case_and_punctuation_are_kept_once() -> None:
    parts = _split_sentences(
        [("Hi!", "안녕."), ("hi", "안녕"), ("Ｈｉ", "안녕?"), ("Hi!", "!?"), ("Hi.", "반가워.")], 1
    )
    assert parts["valid"] == [("Hi!", "안녕."), ("Hi.", "반가워.")]
    assert parts["train"] == parts["test"] == []
