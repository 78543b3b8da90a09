"""A fake of the program mtdata, which prints and writes in the format of mtdata 0.5.1."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

NAME = "OPUS-tatoeba-v1-eng-kor"
URL = "https://example.org/OPUS-Tatoeba/v1/moses/en-ko.txt.zip"
FAKE_MTDATA = f'''#!{sys.executable}
import pathlib, sys
words = sys.argv[2:]
if words[0] == "list":
    pair = words[words.index("-l") + 1]
    if "xx" in pair:
        sys.exit("mtdata list: error: argument -l/--langs: invalid Langs value: '" + pair + "'")
    if "--strict" not in words or pair == "en-ko":
        print("{NAME}\\t{URL}\\t*.en,*.ko")
        print("OPUS-gnome-v1-eng-kor\\thttps://example.org/gnome.zip")
elif "{NAME}" in words:
    folder = pathlib.Path(words[words.index("-o") + 1]) / "train-parts"
    folder.mkdir()
    (folder / "{NAME}.eng").write_text("one\\ntwo\\n")
    (folder / "{NAME}.kor").write_text("하나\\n둘\\n", encoding="utf-8")
else:
    sys.exit("requests.exceptions.ConnectionError: no route")
'''


@pytest.fixture
def fake_mtdata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the fake as the only program on the PATH."""
    program = tmp_path / "bin" / "mtdata"
    program.parent.mkdir()
    program.write_text(FAKE_MTDATA, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere" / "python"))
    monkeypatch.setenv("MTDATA", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return program
