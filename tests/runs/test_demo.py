"""The demo writes a page, and starts no more threads than are useful."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.docs.page_files import SMALL

from manyheads.config.load import load_config
from manyheads.errors import SaveError
from manyheads.reports import NO_LISTENER
from manyheads.runs import demo as demo_module
from manyheads.runs.demo import _useful_threads, demo
from manyheads.web import html_export


@pytest.fixture
def small_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the demo train a tiny model for a few steps."""
    small = [*SMALL, "data.limit=200", "tokenizer.vocab_size=700"]
    monkeypatch.setattr(demo_module, "load_config", lambda path, overrides: load_config(path, [*overrides, *small]))


def printed_by_demo(out: Path) -> list[str]:
    lines: list[str] = []
    demo("de-en", out, device="cpu", listener=NO_LISTENER, write=lines.append)
    return lines


@pytest.mark.usefixtures("small_recipe")
def test_the_demo_writes_a_page_with_the_model_and_writes_it_again_for_a_finished_run(tmp_path: Path) -> None:
    page = tmp_path / "run" / "page.html"
    lines = printed_by_demo(tmp_path / "run")
    assert lines[-1].endswith(f"open it in a browser: {page}")
    text = page.read_text(encoding="utf-8")
    assert '<script type="text/plain" class="manyheads-tensors">' in text
    assert '"precision": "int8"' in text
    page.unlink()
    weights = (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns
    assert printed_by_demo(tmp_path / "run")[-1] == lines[-1]
    assert page.read_text(encoding="utf-8") == text
    assert (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns == weights


@pytest.mark.usefixtures("small_recipe")
def test_a_full_disk_leaves_no_page_and_raises_an_error_with_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(html_export, "write_atomically", fail)
    with pytest.raises(
        SaveError, match=r"page\.html: No space left on device\. The run is intact\. Free some space"
    ):
        printed_by_demo(tmp_path / "run")
    assert not list((tmp_path / "run").glob("*page*"))
    assert (tmp_path / "run" / "model.safetensors").is_file()


@pytest.mark.parametrize(("share", "useful"), [(1.0, 8), (0.8, 8), (0.7, 5), (0.3, 2), (0.05, 1)])
def test_the_demo_starts_fewer_threads_beside_busy_programs(
    monkeypatch: pytest.MonkeyPatch, share: float, useful: int
) -> None:
    """`share` is the part of its time for which each of 8 threads has a core."""
    wall = 0.0

    def perf_counter() -> float:
        nonlocal wall
        wall += 0.01
        return wall

    clock = SimpleNamespace(perf_counter=perf_counter, process_time=lambda: 8 * share * wall)
    monkeypatch.setattr(demo_module, "time", clock)
    assert _useful_threads(8) == useful


def test_the_demo_never_starts_more_threads_than_allowed() -> None:
    assert _useful_threads(1, seconds=0.01) == 1
