"""The engine in C: the outputs of a model in memory, from a file and without torch."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.inference.native.test_model import VARIANTS_IN_A_PRECISION
from tests.inference.translation.test_translator import lines, make_translator, save_run
from tests.tolerances import assert_close

from manyheads.checkpoint import RunDirectory
from manyheads.decoding.engine import TorchEngine
from manyheads.decoding.prepare import pack_native
from manyheads.errors import RunError, UsageError
from manyheads.inference import native_engine as module
from manyheads.inference.native.build import library
from manyheads.inference.native_engine import NativeEngine, is_cpu
from manyheads.inference.translation.translator import Translator
from manyheads.search.interface import never_cancelled
from manyheads.search.options import UNCONSTRAINED, Constraints, Sampling, SearchOptions
from manyheads.tensors.models import load_model
from manyheads.text.interface import BOS, EOS

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler here")

OPTIONS = SearchOptions(beam_size=4, length_penalty=0.7, max_length_ratio=1.5, max_length_offset=3, batch_tokens=90)
SEARCHES: dict[str, tuple[dict[str, Any], Constraints]] = {
    "constraints": ({}, Constraints((5,), ((6,), (7, 8)))),
    "rules": ({"no_repeat_ngram": 2, "min_length_ratio": 0.5}, UNCONSTRAINED),
    "sampling": ({"sampling": Sampling(top_k=5), "n_best": 2}, UNCONSTRAINED),
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return save_run(make_translator(), tmp_path / "run")


def native_engine(run: Path, **options: object) -> tuple[NativeEngine, list[list[int]]]:
    """Return the native engine of a run, and encoded source sentences."""
    translator = Translator.load(run, engine="native", **options)
    assert isinstance(translator.engine, NativeEngine)
    return translator.engine, translator.tokenizers.source.encode(lines(40))


@pytest.mark.parametrize(("variant", "precision"), VARIANTS_IN_A_PRECISION, ids=str)
def test_weights_packed_from_a_file_are_those_packed_from_the_model(tmp_path, variant, precision) -> None:
    translator = make_translator(**variant)
    engine, rows = native_engine(save_run(translator, tmp_path / "run"), precision=precision)
    packed = pack_native(translator.model, precision)
    assert packed is not None
    for options in (OPTIONS, replace(OPTIONS, beam_size=1), replace(OPTIONS, n_best=3)):
        assert engine.search(rows, options) == NativeEngine(packed).search(rows, options)


def test_a_source_without_its_end_mark_is_read_alike_by_both_engines_and_the_model(tmp_path: Path) -> None:
    translator = make_translator(source_end_mark=False)
    engine, rows = native_engine(save_run(translator, tmp_path / "run"))
    options = replace(OPTIONS, alignment=True)
    with_torch = TorchEngine([translator.model]).search(rows, options)
    for (native, *_), (torch_, *_) in zip(engine.search(rows, options), with_torch, strict=True):
        assert native.tokens == torch_.tokens
        assert_close(torch.tensor(native.attention), torch.tensor(torch_.attention))
    model, target = translator.model.eval(), torch.tensor([[BOS, 5, 6, 7]])
    with torch.inference_mode():
        for row in rows[:5]:
            assert_close(model(torch.tensor([[*row, EOS]]), target), model(torch.tensor([row]), target))


@pytest.mark.parametrize(("changes", "constraints"), SEARCHES.values(), ids=SEARCHES)
def test_a_row_with_rules_constraints_or_samples_does_not_depend_on_the_others(run, changes, constraints) -> None:
    engine, rows = native_engine(run)
    options, constrained = replace(OPTIONS, **changes), [constraints] * len(rows)
    found = engine.search(rows, options, constrained)
    assert engine.can_batch_continuously(options, constrained) is False
    if not options.sampling:  # the numbers of a row are drawn by its place
        assert found[7:9] == engine.search(rows[7:9], options, constrained[7:9])


def test_what_c_does_not_search_for_is_refused_with_the_engine_that_does(run) -> None:
    engine, rows = native_engine(run)
    for options, constraints in (
        (OPTIONS, [UNCONSTRAINED, Constraints(required=((5,),))]),
        (replace(OPTIONS, beam_size=engine.model.vocabulary), ()),
    ):
        with pytest.raises(UsageError, match=r"the engine native has no required words.* Use the engine auto\."):
            engine.search(rows[:2], options, constraints)
    with pytest.raises(UsageError, match="a stream is a greedy output"):
        next(engine.stream(rows[0], replace(OPTIONS, sampling=Sampling())))


def test_a_stream_has_the_tokens_of_the_greedy_output_and_ends_with_its_end_mark(run) -> None:
    engine, rows = native_engine(run)
    greedy = engine.search(rows, replace(OPTIONS, beam_size=1))
    for row, (output,) in zip(rows, greedy, strict=True):
        found = list(engine.stream(row, OPTIONS))
        assert tuple(found) == (*output.tokens, *[3] * output.ended)
    assert {output.ended for (output,) in greedy} == {True, False}


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
        load_model(directory, directory.config(), directory.tokenizers(directory.config()))
    for engine in ("auto", "native"):
        with pytest.raises(RunError) as found:
            Translator.load(run, device="cpu", engine=engine)
        assert engine == "native" or str(found.value) == str(with_torch.value)


def test_auto_is_the_cpu_without_a_gpu_driver(monkeypatch) -> None:
    assert is_cpu("cpu")
    assert not is_cpu("cuda:0")
    monkeypatch.setattr(module, "_GPU_DEVICES", ("null",))
    assert not is_cpu("auto")
    assert is_cpu("cpu")
    monkeypatch.setattr(module, "_GPU_DEVICES", ("no-such-device*",))
    assert is_cpu("auto") == (os.name == "posix")
