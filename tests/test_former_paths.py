"""Import paths of the last version work, and warn; others fail as ever."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest

from manyheads.former_paths import _MOVED, _new_path


@pytest.mark.parametrize(
    ("former", "new"),
    [
        ("manyheads.data.convert", "bitext.convert"),
        ("manyheads.data.formats.text", "bitext.formats.text"),
        ("manyheads.data.cleaning.rules", "bitext.cleaning.rules"),
        ("manyheads.data.cleaning.corrections", "manyheads.data.corrections"),
        ("manyheads.data.languages", "bitext.scripts"),
        ("manyheads.languages", "bitext.languages"),
        ("manyheads.shell", "bitext.shell"),
        ("manyheads.unicode", "bitext.unicode"),
        ("manyheads.build.plan", "manyheads.improve.build.plan"),
        ("manyheads.build.text", "manyheads.improve.build.steps.translate"),
        ("manyheads.data.batch", "manyheads.tensors.pairs"),
        ("manyheads.decoding.native.build", "manyheads.inference.native.build"),
        ("manyheads.inspection.charts", "manyheads.views.charts"),
        ("manyheads.inspection.views", "manyheads.views.picture"),
        ("manyheads.interop.html.pack", "manyheads.web.pack"),
        ("manyheads.tasks.inspecting.changes", "manyheads.inspection.changes"),
        ("manyheads.tasks.translation.translator", "manyheads.inference.translation.translator"),
    ],
)
def test_a_former_path_is_the_module_itself_and_warns_the_one_who_imports_it(
    former: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, former, raising=False)
    with pytest.warns(FutureWarning, match=f"{former} is now {new};"):
        module = importlib.import_module(former)
    assert module is importlib.import_module(new)


def test_the_warning_names_the_line_that_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "manyheads.data.tsv", raising=False)
    with pytest.warns(FutureWarning) as caught:
        from manyheads.data.tsv import split_row
    assert split_row("a\tb") == ["a", "b"]
    assert caught[0].filename == __file__


def test_every_moved_module_is_where_the_table_says() -> None:
    for former in _MOVED:
        assert importlib.util.find_spec(_new_path(f"manyheads.{former}")) is not None, former


@pytest.mark.parametrize("name", ["manyheads.data.nothing", "manyheads.nothing", "manyheads.data.nothing.more"])
def test_a_module_that_never_was_is_not_found(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"manyheads\."):
        importlib.import_module(name)


def test_a_module_that_both_packages_have_is_the_one_that_was_named() -> None:
    assert importlib.import_module("manyheads.data.hub").__name__ == "manyheads.data.hub"
