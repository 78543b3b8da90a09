"""The engine in C: the outputs of the engine with torch to the bit; a plain translation imports no torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.decoding.native.test_model import VARIANTS_IN_A_PRECISION
from tests.tasks.translation.test_translator import lines, make_translator, save_run
from tests.tolerances import assert_close

from manyheads.checkpoint import RunDirectory
from manyheads.decoding import native_engine as module
from manyheads.decoding.engine import TorchEngine
from manyheads.decoding.native.build import library
from manyheads.decoding.native_engine import NativeEngine, is_cpu
from manyheads.errors import RunError
from manyheads.search.interface import never_cancelled
from manyheads.search.options import UNCONSTRAINED, Constraints, Sampling, SearchOptions
from manyheads.tasks.translation.translator import Translator
from manyheads.text.interface import BOS, EOS

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler here")

OPTIONS = SearchOptions(beam_size=4, length_penalty=0.7, max_length_ratio=1.5, max_length_offset=3, batch_tokens=90)
PROGRAM = """
import json, resource, sys
from manyheads.tasks.translation.translator import Translator
from manyheads.search.options import UNCONSTRAINED, Constraints, Sampling, SearchOptions
translator = Translator.load(sys.argv[1])
texts = json.loads(sys.argv[2])
found = [one.to_json() for beam in (1, 4) for one in translator.translate(texts, beam_size=beam, n_best=beam)]
found.append("".join(translator.stream(texts[0])))
print(json.dumps([found, "torch" in sys.modules]))
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return save_run(make_translator(), tmp_path / "run")


def native_engine(run: Path, **options: object) -> tuple[NativeEngine, list[list[int]]]:
    """Return the native engine of a run, and encoded source sentences."""
    translator = Translator.load(run, device="cpu", **options)
    assert isinstance(translator.engine, NativeEngine)
    return translator.engine, translator.tokenizers.source.encode(lines(40))


@pytest.mark.parametrize(("variant", "precision"), VARIANTS_IN_A_PRECISION, ids=str)
def test_every_model_has_the_outputs_of_the_engine_with_torch_to_the_bit(tmp_path, variant, precision) -> None:
    run = save_run(make_translator(**variant), tmp_path / "run")
    engine, rows = native_engine(run, precision=precision)
    for options in (OPTIONS, replace(OPTIONS, beam_size=1), replace(OPTIONS, n_best=3)):
        found = engine.search(rows, options)
        with_torch = TorchEngine(engine.load_torch_engine().models, precision=engine.model.precision)
        assert found == with_torch.search(rows, options)
    assert engine.loaded is None


def test_a_source_without_its_end_mark_is_read_alike_by_both_engines_and_the_model(tmp_path: Path) -> None:
    translator = make_translator(source_end_mark=False)
    engine, rows = native_engine(save_run(translator, tmp_path / "run"))
    found, with_torch = engine.search(rows, OPTIONS), TorchEngine(engine.load_torch_engine().models)
    assert found == with_torch.search(rows, OPTIONS)
    options = replace(OPTIONS, alignment=True)
    for native, torch_ in zip(engine.search(rows, options), with_torch.search(rows, options), strict=True):
        assert_close(torch.tensor(native[0].attention), torch.tensor(torch_[0].attention))
    model, target = translator.model.eval(), torch.tensor([[BOS, 5, 6, 7]])
    with torch.inference_mode():
        for row in rows[:5]:
            assert_close(model(torch.tensor([[*row, EOS]]), target), model(torch.tensor([row]), target))


def test_a_plain_translation_never_imports_torch_and_is_that_of_a_process_with_torch(run) -> None:
    texts = lines(20)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, run, json.dumps(texts)], capture_output=True, text=True, check=True
    )
    found, torch_loaded = json.loads(done.stdout)
    assert not torch_loaded
    translator = Translator.load(run, device="cpu")
    assert translator.model is not None  # loads the engine with torch
    right = [one.to_json() for beam in (1, 4) for one in translator.translate(texts, beam_size=beam, n_best=beam)]
    assert found == [*right, "".join(translator.stream(texts[0]))]


@pytest.mark.parametrize(
    ("changes", "constraints"),
    [
        ({}, Constraints((5,), ((6,), (7, 8)))),
        ({"no_repeat_ngram": 2, "min_length_ratio": 0.5}, UNCONSTRAINED),
        ({"sampling": Sampling(top_k=5), "n_best": 2}, UNCONSTRAINED),
    ],
    ids=["constraints", "rules", "sampling"],
)
def test_rules_constraints_and_sampling_need_no_torch(run, changes, constraints) -> None:
    engine, rows = native_engine(run)
    options, constrained = replace(OPTIONS, **changes), [constraints] * len(rows)
    found = engine.search(rows, options, constrained)
    assert engine.loaded is None
    assert found == TorchEngine(engine.load_torch_engine().models).search(rows, options, constrained)
    assert engine.can_batch_continuously(options, constrained) is False


def test_required_words_are_searched_for_by_torch_with_the_same_packed_weights(run) -> None:
    engine, rows = native_engine(run)
    constrained = [Constraints(required=((5,),))] * len(rows)
    expected = TorchEngine(engine.torch_engine.models).search(rows, OPTIONS, constrained)
    assert engine.search(rows, OPTIONS, constrained) == expected
    assert engine.torch_engine.native is engine.model


def test_a_change_of_the_model_changes_the_next_translation(run) -> None:
    translator = Translator.load(run, device="cpu")
    text = lines(1)
    before = translator.translate(text)[0].score
    with torch.no_grad():
        translator.model.output.bias += torch.arange(len(translator.model.output.bias)) / 3
    assert translator.translate(text)[0].score != before


def test_a_stream_has_the_tokens_of_the_greedy_output_and_ends_with_its_end_mark(run) -> None:
    engine, rows = native_engine(run)
    greedy = engine.search(rows, replace(OPTIONS, beam_size=1))
    for row, (output,) in zip(rows, greedy, strict=True):
        found = list(engine.stream(row, OPTIONS))
        assert tuple(found) == (*output.tokens, *[3] * output.ended)
    assert {output.ended for (output,) in greedy} == {True, False}
    assert engine.loaded is None


def test_searches_that_begin_at_different_steps_are_batched(run) -> None:
    engine, rows = native_engine(run)
    search, found = engine.begin(OPTIONS), {}
    for number, row in enumerate(rows[:6]):
        search.add([row], never_cancelled, lambda _, outputs, number=number: found.update({number: outputs}))
        search.step()
    while search.batches:
        search.step()
    assert [found[number] for number in range(6)] == engine.search(rows[:6], OPTIONS)


@pytest.mark.parametrize("fault", ["missing", "shape", "unknown", "nan", "float64", "cut"])
def test_weights_that_do_not_fit_are_refused_as_torch_refuses_them(run, fault) -> None:
    directory = RunDirectory(run)
    tensors = {name: tensor.clone() for name, tensor in directory.weights().items()}
    if fault == "missing":
        del tensors["output.bias"]
    elif fault == "unknown":
        tensors["output.more"] = torch.zeros(2)
    elif fault == "shape":
        tensors["output.bias"] = torch.zeros(2)
    elif fault == "nan":
        tensors["output.bias"][1] = torch.nan
    elif fault == "float64":
        tensors["output.bias"] = tensors["output.bias"].double()
    directory.publish(tensors)
    if fault == "cut":
        path = directory.weights_path
        path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(RunError) as with_torch:
        directory.model(directory.config(), directory.tokenizers(directory.config()))
    with pytest.raises(RunError) as found:
        Translator.load(run, device="cpu")
    assert str(found.value) == str(with_torch.value)


def test_auto_is_the_cpu_without_a_gpu_driver(monkeypatch) -> None:
    assert is_cpu("cpu")
    assert not is_cpu("cuda:0")
    monkeypatch.setattr(module, "_GPU_DEVICES", ("null",))
    assert not is_cpu("auto")
    assert is_cpu("cpu")
    monkeypatch.setattr(module, "_GPU_DEVICES", ("no-such-device*",))
    assert is_cpu("auto") == (os.name == "posix")


def test_an_ensemble_and_a_machine_without_a_compiler_use_the_engine_with_torch(run, monkeypatch) -> None:
    assert isinstance(Translator.load(run, device="cpu", ensemble=[run]).engine, TorchEngine)
    monkeypatch.setattr(module, "library", lambda: None)
    translator = Translator.load(run, device="cpu")
    assert isinstance(translator.engine, TorchEngine)
    assert translator.translate(["abc"], options=SearchOptions(alignment=True))[0].alignment is not None
