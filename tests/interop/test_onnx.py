"""ONNX models give the results of manyheads in onnxruntime, step by step, for every variant and padded batches."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.interop.parts import Parts, make_parts, sentences
from tests.model.samples import BOS, PAD, VARIANTS, random_ids
from tests.tolerances import assert_close

from manyheads.errors import MissingExtraError, ParityError, RunError
from manyheads.interop.onnx import convert
from manyheads.interop.onnx.convert import Runtime, check_onnx, write_onnx
from manyheads.interop.onnx.network import Graph
from manyheads.interop.parity import random_samples, reference
from manyheads.runs.model_card import exported_card
from manyheads.tasks.translation import Translator

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def write_model(folder: Path, parts: Parts) -> Path:
    """Write a model as ONNX and return its folder."""
    folder.mkdir()
    write_onnx(folder, *parts)
    return folder


@torch.no_grad()
@pytest.mark.parametrize("variant", [
    *VARIANTS.values(),
    {"activation": "gelu-tanh"},
    {"activation": "swish", "norm": "post"},
    {"positions": "learned", "token_types": 2, "embedding_norm": True},
], ids=str)  # fmt: skip
def test_each_step_of_every_variant_gives_the_teacher_forced_probabilities(variant, tmp_path) -> None:
    """Two batches have sources of several lengths, padded at the end and at the beginning."""
    parts = make_parts(**variant)
    model = parts[2]
    runtime = Runtime(write_model(tmp_path / "out", parts))
    for rows, length in ((3, 11), (1, 2)):
        source = random_ids(rows, length, parts[1].source.size)
        if rows == 3:
            source[1, 8:], source[2, :4] = PAD, PAD
        target = random_ids(rows, 7, parts[1].target.size)
        target[:, 0] = BOS
        values = runtime.begin(source.numpy())
        steps = [runtime.step(values, target[:, position].numpy(), position) for position in range(7)]
        expected = model(source, target).log_softmax(-1)
        assert_close(torch.from_numpy(np.stack(steps, 1)), expected)


def test_a_folder_is_compared_and_another_model_is_refused(tmp_path) -> None:
    parts, other = make_parts(norm="post"), make_parts(2, norm="post")
    folder = write_model(tmp_path / "out", parts)
    samples = random_samples(parts[1].source)
    parity = check_onnx(folder, reference(parts[2], samples))
    assert (parity.same_outputs, parity.sentences) == (16, 16)
    assert parity.largest < 1e-4
    with pytest.raises(ParityError, match="the ONNX model does not give what the run gives"):
        check_onnx(folder, reference(other[2], samples))


def test_the_description_has_the_inputs_and_outputs_of_the_graphs(tmp_path) -> None:
    folder = write_model(tmp_path / "out", make_parts(max_positions=41))
    description = json.loads((folder / "onnx.json").read_text(encoding="utf-8"))
    runtime = Runtime(folder)
    for name, session in (("encoder", runtime.encoder), ("decoder", runtime.decoder)):
        for side, ports in (("inputs", session.get_inputs()), ("outputs", session.get_outputs())):
            kinds = {"tensor(int64)": "int64", "tensor(float)": "float32"}
            assert description[name][side] == {port.name: [kinds[port.type], *port.shape] for port in ports}
    assert (description["pad"], description["begin"], description["end"], description["longest"]) == (1, 2, 3, 41)


def test_the_example_program_of_the_card_translates_as_the_run(tmp_path) -> None:
    config, tokenizers, model = parts = make_parts(norm="post", positions="rotary", end_bias=6.0)
    folder = write_model(tmp_path / "out", parts)
    card = exported_card(config, tokenizers, "onnx")
    program = re.search(r"```python\n(.*?)```", card, re.DOTALL).group(1).replace("DIRECTORY", str(folder))
    texts = sentences(7)
    program = program.replace('print(translate("..."))', f"for text in {texts}:\n    print(translate(text))")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    expected = Translator(config, tokenizers, model).translate(texts, beam_size=1)
    assert done.stdout == "".join(f"{result.translation}\n" for result in expected)
    assert not all(result.truncated for result in expected)


def test_a_model_larger_than_an_onnx_file_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(convert, "LARGEST", 1_000)
    with pytest.raises(RunError, match="holds 2 GiB at most"):
        write_onnx(tmp_path, *make_parts())
    assert list(tmp_path.iterdir()) == []


def test_a_tensor_at_a_reused_address_is_a_constant_of_its_own() -> None:
    graph = Graph("constants")
    names = [graph.constant(torch.full((1024, 4), float(number))) for number in range(50)]
    assert len(set(names)) == 50
    tied = torch.zeros(3)
    assert graph.constant(tied) == graph.constant(tied)


def test_an_error_without_the_packages_names_the_extra_to_install(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"manyheads\[onnx\]"):
        write_onnx(tmp_path, *make_parts())
