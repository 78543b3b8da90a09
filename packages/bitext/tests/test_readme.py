"""The code of the README runs, and its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bitext.cli import program

TEXT = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
UNIT = "<tu><tuv xml:lang='de'><seg>Satz {}</seg></tuv><tuv xml:lang='en'><seg>sentence {}</seg></tuv></tu>"


def test_the_python_code_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("defusedxml")
    monkeypatch.chdir(tmp_path)
    words = [f"{chr(97 + n // 26)}{chr(97 + n % 26)}" * 4 for n in range(400)]
    units = "".join(UNIT.format(word, word) for word in words)
    Path("memory.tmx").write_text(f"<tmx><body>{units}</body></tmx>", encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 300


def test_each_command_exists_with_its_options() -> None:
    for words in re.findall(r"^bitext (.*?)(?:  +#.*)?$", TEXT, re.MULTILINE):
        name, *rest = words.split()
        options = {option for parameter in program.commands[name].params for option in parameter.opts}
        assert {word for word in rest if word.startswith("-")} <= options, words


def test_the_files_that_it_names_exist() -> None:
    (tree,) = re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)
    names = re.findall(r"\w+(?:\.py|/)", tree)
    package = Path(__file__).parent.parent / "src" / "bitext"
    assert len(names) > 10
    assert [name for name in names if not (package / name).exists()] == []
