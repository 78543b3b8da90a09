"""Small searches with compiled steps: what comes out is what comes out without, whatever is asked.

The function that would be compiled is run as it is (`tests/model/test_static.py` compiles it).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.tasks.test_asked import WAYS
from tests.tasks.test_translation import LETTERS, assert_same, lines, make_translator

from manyheads.cli.main import run as run_program
from manyheads.errors import UsageError
from manyheads.model import static_tensors
from manyheads.model.static import StaticModel
from manyheads.model.static_tensors import Size, StaticTensors
from manyheads.search.options import SearchOptions
from manyheads.tasks import small
from manyheads.tasks.engine import TorchEngine
from manyheads.tasks.translation import TranslateOptions, Translator

Sizes = list[Size]


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sizes]:
    """The size of each step that is taken in fixed tensors; there is a compiler, and no code of ours."""
    monkeypatch.setattr(small, "library", lambda: None)
    monkeypatch.setattr(small, "why_nothing_compiles", lambda device: None)
    monkeypatch.setattr(static_tensors, "PLACES", (4, 16, 64))
    monkeypatch.setattr(small, "PLACES", (4, 16, 64))
    taken: Sizes = []
    step = StaticModel.step

    def recorded(self: StaticModel, held: StaticTensors, told: Any) -> None:
        taken.append(held.size)
        step(self, held, told)

    monkeypatch.setattr(StaticModel, "step", recorded)
    with torch.compiler.set_stance("force_eager"):
        yield taken


def compiling(translator: Translator, *others: Translator) -> Translator:
    """The same models with steps that are compiled."""
    engine = TorchEngine([one.model for one in (translator, *others)], compile=True)
    return Translator(translator.config, translator.tokenizers, engine)


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("count", [1, 3, 16])
@pytest.mark.parametrize("kind", ["pre sinusoidal relu", "post learned gelu", "pre rotary swiglu"])
def test_translations_are_those_without_whatever_the_size(sizes, kind, count, beam_size) -> None:
    """Sentences end at different times, and some outgrow their tensors."""
    norm, positions, activation = kind.split()
    usual = make_translator(norm=norm, positions=positions, activation=activation)
    compiled, texts = compiling(usual), lines(count, seed=5)
    for _ in range(2):
        found = compiled.translate(texts, beam_size=beam_size, n_best=beam_size)
        for one, expected in zip(found, usual.translate(texts, beam_size=beam_size, n_best=beam_size), strict=True):
            assert_same(one, expected)
    assert {size.sentences for size in sizes} == {{1: 1, 3: 4, 16: 16}[count]}
    assert {size.width for size in sizes} == {beam_size}
    if count == 16:
        assert len({size.places for size in sizes}) > 1, "some outgrow their tensors"


@pytest.mark.parametrize("name", WAYS)
def test_so_they_are_whatever_is_asked(sizes, name) -> None:
    usual, texts, dice = make_translator(end_bias=1.0), lines(5), np.random.default_rng(4)
    prefixes = ["".join(dice.choice(list(LETTERS), dice.integers(0, 3))) for _ in texts]
    forbidden = [list(dice.choice(list(LETTERS), 2)) for _ in texts]
    asked: dict[str, Any] = {"prefixes": prefixes, "forbidden": forbidden} | WAYS[name]
    for found, expected in zip(
        compiling(usual).translate(texts, **asked), usual.translate(texts, **asked), strict=True
    ):
        assert_same(found, expected)
        assert found.alignment == expected.alignment
    assert bool(sizes) == (name != "diverse")


@pytest.mark.parametrize(
    ("count", "asked"),
    [
        (17, {}),
        (1, {"options": TranslateOptions(diverse_groups=2)}),
        (1, {"required": [["ab"]]}),
        (1, {"options": TranslateOptions(max_length_ratio=90.0)}),
    ],
    ids=["too many lines", "several beams", "required words", "too long"],
)
def test_what_does_not_suit_goes_the_usual_way(sizes, count, asked) -> None:
    usual, texts = make_translator(max_positions=200), lines(count)
    for found, expected in zip(
        compiling(usual).translate(texts, **asked), usual.translate(texts, **asked), strict=True
    ):
        assert_same(found, expected)
    assert not sizes


@pytest.mark.parametrize(("most", "taken"), [(4 * 64 - 1, False), (4 * 64, True)])
def test_the_memory_that_is_kept_is_bounded(sizes, most, taken, monkeypatch) -> None:
    monkeypatch.setattr(small, "MOST_TOKENS", most)
    compiling(make_translator()).translate(["abcde"], beam_size=4)
    assert bool(sizes) == taken


def test_only_so_many_widths_have_code(sizes) -> None:
    compiled = compiling(make_translator())
    for width in (*range(1, small.MOST_WIDTHS + 3), 2):
        compiled.translate(["abc"], beam_size=width)
    assert {size.width for size in sizes} == set(range(1, small.MOST_WIDTHS + 1))
    assert sizes[-1].width == 2


def test_a_stream_has_them_too_and_others_go_the_usual_way_meanwhile(sizes) -> None:
    usual = make_translator()
    compiled, (first, second) = compiling(usual), lines(2, seed=9)
    pieces, written = compiled.stream(first), []
    written.append(next(pieces))
    taken = len(sizes)
    assert taken > 0
    assert_same(compiled.translate([second])[0], usual.translate([second])[0])
    assert len(sizes) == taken
    written += pieces
    assert "".join(written) == usual.translate([first], beam_size=1)[0].translation
    compiled.translate([second])
    assert len(sizes) > taken, "it has given them back"
    unfinished = compiled.stream(first)
    next(unfinished)
    unfinished.close()
    taken = len(sizes)
    compiled.translate([second])
    assert len(sizes) > taken, "so has one that nobody reads to its end"


def test_a_search_that_fails_gives_them_back(sizes) -> None:
    translator = make_translator()
    compiled = compiling(translator)
    bias = translator.model.output.bias
    with torch.no_grad():
        kept = bias.clone()
        bias[7] = float("nan")
    with pytest.raises(FloatingPointError):
        compiled.translate(["abc"])
    with torch.no_grad():
        bias.copy_(kept)
    taken = len(sizes)
    assert_same(compiled.translate(["abc"])[0], translator.translate(["abc"])[0])
    assert len(sizes) > taken


def test_models_decide_together(sizes) -> None:
    one, other = make_translator(), make_translator(seed=8, num_decoder_layers=2)
    usual = Translator(one.config, one.tokenizers, TorchEngine([one.model, other.model]))
    for found, expected in zip(compiling(one, other).translate(lines(4)), usual.translate(lines(4)), strict=True):
        assert_same(found, expected)
    assert sizes


def test_the_abandoned_leave_and_the_others_do_not_notice(sizes) -> None:
    translator = make_translator(end_bias=-1e9)
    options = SearchOptions(
        beam_size=3, length_penalty=1.0, max_length_ratio=2.0, max_length_offset=5, batch_tokens=4_096
    )
    rows, polls = [[5, 6, 7] * 3, [6, 7] * 4, [7, 5, 9]], iter(range(10**6))
    found = compiling(translator).engine.search(rows, options, lambda: [0] if next(polls) > 1 else [])
    expected = translator.engine.search(rows, options)
    assert len(found[0][0].tokens) < 4
    for place in (1, 2):
        assert found[place][0].tokens == expected[place][0].tokens
        assert found[place][0].token_scores == pytest.approx(expected[place][0].token_scores, abs=1e-4)
    assert sizes


def test_weights_that_change_are_those_that_decide(sizes) -> None:
    translator = make_translator()
    engine = TorchEngine([translator.model], compile=True)
    compiled = Translator(translator.config, translator.tokenizers, engine)
    before = compiled.translate(["abcdef"])[0]
    with torch.no_grad():
        translator.model.output.weight.neg_()
    after = compiled.translate(["abcdef"])[0]
    assert before.hypotheses[0].tokens != after.hypotheses[0].tokens
    assert_same(after, make_changed(translator).translate(["abcdef"])[0])


def make_changed(translator: Translator) -> Translator:
    """The model as it is now, in an engine of its own."""
    return Translator(translator.config, translator.tokenizers, translator.model)


# --- what cannot be ---


def test_what_cannot_be_compiled_is_refused(monkeypatch) -> None:
    model = make_translator().model
    monkeypatch.setattr(small, "library", object)
    with pytest.raises(
        UsageError, match="for a GPU: on this CPU all steps are computed by compiled code of our own"
    ):
        TorchEngine([model], compile=True)
    with pytest.raises(UsageError, match='not for "int8"'):
        TorchEngine([model], precision="int8", compile=True)
    with pytest.raises(UsageError, match='on a CPU, not for "bf16"'):
        TorchEngine([model], precision="bf16", compile=True)
    monkeypatch.setattr(small, "library", lambda: None)
    monkeypatch.setattr(small, "why_nothing_compiles", lambda device: "There is no Triton. Install it.")
    expected = (
        "compile = True, but nothing can be compiled on cpu: There is no Triton. Install it. Or leave it out."
    )
    with pytest.raises(UsageError, match=re.escape(expected)):
        TorchEngine([model], compile=True)


def test_another_engine_has_no_such_option(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--compile is for --engine torch"):
        Translator.load(tmp_path, engine="ctranslate2", compile=True)


@pytest.mark.parametrize("verb", [["translate"], ["bench", "decode"]])
def test_the_program_has_it(verb, tmp_path: Path, monkeypatch, capsys) -> None:
    translator = make_translator()
    from tests.tasks.test_asked import saved

    run = saved(translator, tmp_path / "run")
    monkeypatch.setattr(small, "library", object)
    assert run_program([*verb, str(run), "--compile", "--device", "cpu"]) == 2
    assert capsys.readouterr().err.startswith("error: compile = True is for a GPU")
