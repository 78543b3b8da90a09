"""The program of the package, in a process of its own; it needs numpy, and no package of an extra but click."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from dirty_pairs import pairs_with_defects

OPTIONAL = "defusedxml pyarrow zstandard datasets distributed torch manyheads transformer_doctor"
PROGRAM = "from bitext.__main__ import main; main()"


def run(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)


def test_without_click_the_program_names_its_extra() -> None:
    done = run(f"import sys; sys.modules['click'] = None; {PROGRAM}")
    assert done.returncode == 1
    assert 'pip install "bitext[cli]"' in done.stderr


def test_without_any_other_extra_text_is_cleaned_and_a_reader_names_its_own(tmp_path: Path) -> None:
    pairs, _ = pairs_with_defects(300)
    for side, language in enumerate(("de", "en")):
        (tmp_path / f"x.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    (tmp_path / "x.tmx").write_text("<tmx/>")
    without = f"import sys; sys.modules |= dict.fromkeys({OPTIONAL.split()}); {PROGRAM}"
    done = run(without, "clean", str(tmp_path / "x.de"), str(tmp_path / "x.en"), "-o", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert f"{len(pairs)} pairs read" in done.stdout
    done = run(without, "convert", str(tmp_path / "x.tmx"), "-o", str(tmp_path / "out"))
    assert done.returncode == 4
    assert "x.tmx needs the package defusedxml, which is not installed" in done.stderr
    assert done.stderr.endswith('pip install "bitext[readers]"\n')
