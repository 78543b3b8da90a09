"""The engines by name; C and torch operators share the searches of a model, which may change."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.inference.test_native_engine import OPTIONS, SEARCHES
from tests.inference.translation.test_translator import lines, make_translator, save_run
from tests.tolerances import approx

from manyheads.decoding import prepare
from manyheads.decoding.engine import TorchEngine
from manyheads.errors import UsageError
from manyheads.inference import engines as auto_engine_module
from manyheads.inference import native_engine
from manyheads.inference.engines import ENGINES, AutoEngine, engine_of
from manyheads.inference.native.build import library
from manyheads.inference.native_engine import NativeEngine
from manyheads.inference.translation.translator import Translator
from manyheads.search.options import UNCONSTRAINED, Constraints, SearchOptions

needs_compiler = pytest.mark.skipif(library() is None, reason="no C compiler here")

REQUIRED = Constraints(required=((5,),))
PROGRAM = """
import json, sys
from manyheads.inference.translation.translator import Translator
translator = Translator.load(sys.argv[1])
texts = json.loads(sys.argv[2])
found = [line.to_json() for beam in (1, 4) for line in translator.translate(texts, beam_size=beam, n_best=beam)]
found.append("".join(translator.stream(texts[0])))
print(json.dumps([found, "torch" in sys.modules]))
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return save_run(make_translator(), tmp_path / "run")


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the library of the C code unavailable."""
    for module in (native_engine, prepare):
        monkeypatch.setattr(module, "library", lambda: None)
    for module in (native_engine, auto_engine_module):
        monkeypatch.setattr(module, "why_none", lambda: "no C compiler was found")


def auto_engine(run: Path) -> tuple[AutoEngine, list[list[int]]]:
    """Return the engine that is the default for a run, and encoded source sentences."""
    translator = Translator.load(run, device="cpu")
    assert isinstance(translator.engine, AutoEngine)
    return translator.engine, translator.tokenizers.source.encode(lines(40))


@needs_compiler
def test_each_engine_is_opened_by_its_name_and_finds_the_same_outputs(run) -> None:
    kinds = dict(zip(ENGINES, (AutoEngine, NativeEngine, TorchEngine), strict=True))
    expected = make_translator().translate(lines())
    for name, kind in kinds.items():
        translator = Translator.load(run, device="cpu", engine=name)
        assert type(translator.engine) is kind
        for found, right in zip(translator.translate(lines()), expected, strict=True):
            assert found.translation == right.translation
            assert found.hypotheses[0].token_scores == approx(right.hypotheses[0].token_scores)


@needs_compiler
def test_a_plain_translation_never_imports_torch_and_is_that_of_a_process_with_torch(run) -> None:
    texts = lines(20)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, run, json.dumps(texts)], capture_output=True, text=True, check=True
    )
    found, torch_loaded = json.loads(done.stdout)
    assert not torch_loaded
    translator = Translator.load(run, device="cpu")
    assert translator.model is not None  # loads the model with torch
    right = [
        translation.to_json()
        for beam in (1, 4)
        for translation in translator.translate(texts, beam_size=beam, n_best=beam)
    ]
    assert found == [*right, "".join(translator.stream(texts[0]))]


@needs_compiler
@pytest.mark.parametrize(
    ("changes", "constraints"), [*SEARCHES.values(), ({"alternatives": 2, "alignment": True}, UNCONSTRAINED)]
)
def test_all_but_required_words_is_left_to_c(run, changes, constraints) -> None:
    engine, rows = auto_engine(run)
    options, constrained = replace(OPTIONS, **changes), [constraints] * len(rows)
    found = engine.search(rows, options, constrained)
    assert engine.loaded is None
    assert engine.native is not None
    assert found == engine.native.search(rows, options, constrained)


@needs_compiler
def test_rows_with_required_words_are_searched_by_torch_and_the_others_in_c(run) -> None:
    engine, rows = auto_engine(run)
    constraints = [REQUIRED if number % 3 else UNCONSTRAINED for number in range(len(rows))]
    found, native = engine.search(rows, OPTIONS, constraints), engine.native
    assert native is not None
    assert engine.native_engine is native, "weights that did not change are not packed again"
    assert found[::3] == native.search(rows[::3], OPTIONS)
    required = [row for number, row in enumerate(rows) if number % 3]
    expected = engine.torch_engine.search(required, OPTIONS, [REQUIRED] * len(required))
    assert [outputs for number, outputs in enumerate(found) if number % 3] == expected
    assert all(5 in outputs[0].tokens for outputs in expected)


@needs_compiler
def test_a_cancelled_row_is_that_of_the_whole_search(run) -> None:
    engine, rows = auto_engine(run)
    constraints = [REQUIRED, UNCONSTRAINED, REQUIRED, UNCONSTRAINED]
    found = engine.search(rows[:4], OPTIONS, constraints, cancelled=lambda: [1, 2])
    full = engine.search(rows[:4], OPTIONS, constraints)
    assert [outputs == other for outputs, other in zip(found, full, strict=True)] == [True, False, False, True]


def test_a_change_of_the_model_changes_the_next_translation(run) -> None:
    translator = Translator.load(run, device="cpu")
    text = lines(1)
    before = translator.translate(text)[0].score
    with torch.no_grad():
        translator.model.output.bias += torch.arange(len(translator.model.output.bias)) / 3
    assert translator.translate(text)[0].score != before


def test_a_model_in_training_mode_is_packed_for_every_search_and_stays_in_its_mode() -> None:
    """Not every optimiser updates the counters by which torch tells that a tensor changed."""
    translator = make_translator()
    model = translator.model.train()
    before = translator.translate(lines(1))[0].score
    model.output.bias.data.numpy()[:] = range(len(model.output.bias))
    assert translator.translate(lines(1))[0].score != before
    assert model.training


def test_without_a_compiler_torch_serves_alone_and_does_not_batch_continuously(run, no_compiler) -> None:
    engine, rows = auto_engine(run)
    assert engine.native_engine is None
    assert not engine.can_batch_continuously(OPTIONS)
    assert engine.search(rows, OPTIONS) == engine.torch_engine.search(rows, OPTIONS)
    assert list(engine.stream(rows[0], OPTIONS)) == list(engine.torch_engine.stream(rows[0], OPTIONS))
    translator = Translator.load(run, device="cpu")
    assert translator.translate(["abc"], options=SearchOptions(alignment=True))[0].alignment is not None


@needs_compiler
def test_the_engine_native_is_opened_on_a_machine_with_a_gpu(run, monkeypatch) -> None:
    monkeypatch.setattr(native_engine, "_GPU_DEVICES", ("null",))
    assert isinstance(Translator.load(run, engine="native").engine, NativeEngine)


def test_the_engine_native_says_why_it_cannot_compute(run, no_compiler) -> None:
    with pytest.raises(UsageError, match=r"without the C decoder \(no C compiler was found\) needs the engine"):
        Translator.load(run, engine="native")
    with pytest.raises(UsageError, match="on the device cuda:0 needs the engine auto or torch, not native"):
        Translator.load(run, engine="native", device="cuda:0")
    with pytest.raises(UsageError, match="an ensemble is searched with torch operators"):
        Translator.load(run, engine="native", ensemble=[run])


@needs_compiler
def test_a_model_in_memory_has_each_engine_too() -> None:
    model = make_translator().model
    assert [type(engine_of(model, name)) for name in ENGINES] == [AutoEngine, NativeEngine, TorchEngine]
    with pytest.raises(UsageError, match="cannot compute this model: the device is meta"):
        engine_of(model.to("meta"), "native")


def test_a_model_in_memory_says_why_the_engine_native_cannot_compute_it(no_compiler) -> None:
    with pytest.raises(UsageError, match=r"there is no C code \(no C compiler was found\)\. Use auto"):
        engine_of(make_translator().model, "native")


def test_an_ensemble_is_searched_by_torch(run) -> None:
    for name in ("auto", "torch"):
        engine = Translator.load(run, device="cpu", engine=name, ensemble=[run]).engine
        assert isinstance(engine, TorchEngine)
        assert len(engine.models) == 2


@needs_compiler
def test_int8_is_computed_in_c_and_float32_where_torch_searches_for_required_words(run) -> None:
    engine, rows = Translator.load(run, device="cpu", precision="int8").engine, auto_engine(run)[1]
    assert isinstance(engine, AutoEngine)
    assert engine.native is not None
    assert engine.native.model.precision == "int8"
    assert engine.search(rows, OPTIONS) != auto_engine(run)[0].search(rows, OPTIONS), "the weights are rounded"
    required = [REQUIRED] * len(rows)
    assert engine.search(rows, OPTIONS, required) == auto_engine(run)[0].search(rows, OPTIONS, required)
    with torch.no_grad():
        engine.torch_engine.models[0].output.bias += 1
    assert engine.native_engine is not None
    assert engine.native_engine.model.precision == "int8", "a changed model is rounded again"


def test_int8_is_refused_where_torch_searches_with_the_reason(run, no_compiler, monkeypatch) -> None:
    for options, reason in (
        ({"engine": "torch"}, "the engine is torch"),
        ({"ensemble": [run]}, "an ensemble is searched by torch operators"),
        ({}, r"there is no C code \(no C compiler was found\)"),
    ):
        with pytest.raises(
            UsageError, match=rf'"int8" is computed in C alone, and {reason}\. Use "bf16" or "fp32"'
        ):
            Translator.load(run, device="cpu", precision="int8", **options)
