"""An export names the settings of the run that its format does not hold, and applies the others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.runs.parts import configure, make_config, write_corpus
from tests.web.text.browser import node

from manyheads.config.schema import Config
from manyheads.errors import ParityError
from manyheads.inference.export_settings import _lost_settings, compare_texts, described_losses, setting_lines
from manyheads.runs.export import export
from manyheads.runs.train import train
from manyheads.tensors.models import load_run

DATA = {"source": "de", "target": "en", "train": ["a", "b"], "valid": ["c", "d"]}
COPYING = {"copy_literals": True, "lower_capitals": True}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("settings")
    config = make_config(write_corpus(folder / "corpus"), model={"norm": "post"}, training={"steps": 30})
    train(config, folder / "run")
    return folder / "run"


@pytest.mark.parametrize(("to", "lost"), [("argos", 1), ("huggingface", 1), ("ctranslate2", 1), ("html", 0)])
def test_programs_that_lack_the_normal_form_of_sources_are_told_apart(to: str, lost: int) -> None:
    named = []
    for form in (0, 1):
        config = Config.model_validate({"data": DATA, "tokenizer": {"normal_form": form}})
        named.append([text for text in described_losses(config, to) if "normal form of sources" in text])
    assert list(map(len, named)) == [0, lost]


@pytest.fixture
def copying(run: Path, tmp_path: Path) -> Path:
    """Return the run with the settings that `init` switches on."""
    return configure(Path(shutil.copytree(run, tmp_path / "run")), "search", **COPYING)


@pytest.mark.parametrize(
    ("to", "search", "lost"),
    [
        ("argos", {**COPYING, "beam_size": 4, "length_penalty": 0.2},
         {"copy_literals": False, "lower_capitals": False}),
        ("argos", {"no_repeat_ngram": 3}, {"no_repeat_ngram": 0, "beam_size": 4, "length_penalty": 0.2}),
        ("huggingface", COPYING, {"copy_literals": False, "lower_capitals": False}),
        ("huggingface", {"no_repeat_ngram": 3, "max_length_offset": 7}, {"max_length_offset": 20}),
        ("ctranslate2", {**COPYING, "no_repeat_ngram": 3}, {"copy_literals": False, "lower_capitals": False}),
        ("html", COPYING, {}),
        ("javascript", COPYING, {}),
    ],
)  # fmt: skip
def test_each_format_loses_the_settings_that_its_programs_do_not_take_from_it(to, search, lost) -> None:
    assert _lost_settings(Config.model_validate({"data": DATA, "search": search}), to) == lost


@pytest.mark.parametrize("to", ["argos", "ctranslate2", "huggingface"])
def test_lost_settings_are_named_in_the_verdict_and_in_the_card(copying: Path, tmp_path: Path, to: str) -> None:
    pytest.importorskip("transformers" if to == "huggingface" else "ctranslate2")
    done = export(copying, tmp_path / "out", to, quantization="float32")
    assert done.texts.same < done.texts.lines
    verdict = ". ".join(done.verdict())
    assert done.verdict()[0].startswith("for the same tokens, both give the same results")
    assert "does not hold search.copy_literals = true, search.lower_capitals = true" in verdict
    assert f"{done.texts.lines - done.texts.same} of {done.texts.lines} such lines come out otherwise" in verdict
    if to != "argos":
        card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
        assert "- Not in this format: search.copy_literals = true\n" in card
        assert f"data.max_length = {load_run(copying).config.data.max_length} tokens\n" in card


@pytest.mark.parametrize("to", ["html", "javascript"])
def test_pages_and_modules_apply_all_settings(copying: Path, tmp_path: Path, to: str) -> None:
    node()
    done = export(copying, tmp_path / "out", to, quantization="float32")
    assert (done.texts.same, done.texts.lost) == (done.texts.lines, ())
    assert done.texts.line() in done.lines()
    assert done.verdict() == [done.parity.verdict()]


def test_an_export_that_drops_a_setting_is_not_kept(copying: Path) -> None:
    opened = load_run(copying)
    lines = setting_lines(opened)
    assert {"", "17:45"} <= set(lines)
    assert any(line.isupper() for line in lines)
    assert any(len(opened.tokenizers.source.encode([line])[0]) > opened.config.data.max_length for line in lines)
    with pytest.raises(ParityError, match=f"translates .* of {len(lines)} lines otherwise than the run"):
        compare_texts(opened, "html", lines, [line.lower() for line in lines], exact=True)
    assert compare_texts(opened, "html", lines, [""] * len(lines), exact=False).same < len(lines)


def test_losses_are_described_with_the_value_that_is_used_instead() -> None:
    config = Config.model_validate({"data": DATA, "search": {**COPYING, "beam_size": 5, "length_penalty": 0.2}})
    assert described_losses(config, "argos") == [
        "search.copy_literals = true", "search.lower_capitals = true", "search.beam_size = 5 (4 instead)",
    ]  # fmt: skip
