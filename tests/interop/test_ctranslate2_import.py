"""CTranslate2 folders and Argos packages become runs that give the same results; what does not fit is refused."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.interop.converted import write_fairseq, write_opennmt_py, write_opus_mt, write_transformers
from tests.interop.marian import write_marian_folder
from tests.interop.parts import make_parts
from tests.model.samples import VARIANTS

from manyheads.interop.ctranslate2.convert import write_ctranslate2
from manyheads.interop.ctranslate2.reader import ImportedModel, check_imported, read_ctranslate2
from manyheads.interop.parity import Parity, Samples, random_rows
from manyheads.interop.reference import reference

ctranslate2 = pytest.importorskip("ctranslate2")


def check(folder: Path, imported: ImportedModel) -> Parity:
    samples = Samples(random_rows(imported.loaded.tokenizers.source, 20, 3, 19), "")
    expected = reference(imported.loaded.model, samples)
    return check_imported(folder, imported, expected)


def tokenizer_of(variant: str) -> dict[str, Any]:
    return {} if VARIANTS[variant]["tied_embeddings"] == "all" else {"joint": False, "vocab_size": 40}


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_export_in_float32_comes_back_bit_for_bit(tmp_path: Path, variant: str) -> None:
    config, pair, model = make_parts(tokenizer=tokenizer_of(variant), **VARIANTS[variant])
    write_ctranslate2(tmp_path, config, pair, model)
    imported = read_ctranslate2(tmp_path)
    assert imported.loaded.config == config
    assert [imported.loaded.tokenizers.source.sha256, imported.loaded.tokenizers.target.sha256] == [
        pair.source.sha256, pair.target.sha256,
    ]  # fmt: skip
    state, found = model.state_dict(), imported.loaded.model.state_dict()
    assert state.keys() == found.keys()
    assert all(torch.equal(state[name], found[name]) for name in state)
    parity = check(tmp_path, imported)
    assert parity.same_outputs == parity.sentences


@pytest.mark.parametrize("numbers", ["int8", "int16", "float16", "bfloat16", "int8_float16"])
def test_a_rounded_export_gives_what_ctranslate2_gives(tmp_path: Path, numbers: str) -> None:
    parts = make_parts(norm="post", activation="gelu", tied_embeddings="all")
    write_ctranslate2(tmp_path, *parts, numbers)
    parity = check(tmp_path, read_ctranslate2(tmp_path))
    assert parity.same_outputs == parity.sentences


@pytest.mark.parametrize("numbers", [None, "int8", "float16"])
@pytest.mark.parametrize("shared", [True, False])
def test_a_marianmt_model_converted_from_transformers(tmp_path: Path, numbers: str | None, shared: bool) -> None:
    pytest.importorskip("transformers")
    theirs = tmp_path / "theirs"
    write_marian_folder(theirs, shared=shared)
    converter = ctranslate2.converters.TransformersConverter(str(theirs), copy_files=["source.spm", "target.spm"])
    converter.convert(str(tmp_path / "ct2"), quantization=numbers)
    imported = read_ctranslate2(tmp_path / "ct2", source="de", target="en")
    assert imported.loaded.config.model.positions == "sinusoidal"
    parity = check(tmp_path / "ct2", imported)
    assert parity.same_outputs == parity.sentences


LAYOUTS = {
    "OpenNMT-py": (write_opennmt_py, {"norm": "pre", "positions": "sinusoidal", "source_end_mark": False}),
    "OPUS-MT": (write_opus_mt, {"norm": "post", "positions": "sinusoidal", "source_end_mark": True}),
    "Marian pre-norm": (partial(write_opus_mt, pre=True), {"norm": "pre", "positions": "sinusoidal"}),
    "Marian relu": (
        partial(write_opus_mt, **{"transformer-ffn-activation": "relu"}), {"activation": "relu"},
    ),
    "fairseq": (write_fairseq, {"norm": "pre", "positions": "learned", "source_end_mark": True}),
    "BART": (partial(write_transformers, kind="Bart"), {"positions": "learned", "embedding_norm": True}),
    "M2M100": (partial(write_transformers, kind="M2M100"), {"norm": "pre", "positions": "learned"}),
    "OpenNMT-py, two vocabularies": (partial(write_opennmt_py, joint=False), {"tied_embeddings": "decoder"}),
    "OPUS-MT, two vocabularies": (partial(write_opus_mt, joint=False), {"tied_embeddings": "decoder"}),
}  # fmt: skip


@pytest.mark.parametrize("numbers", [None, "int8", "float16"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_models_of_each_converter_give_what_ctranslate2_gives(
    tmp_path: Path, layout: str, numbers: str | None
) -> None:
    write, expected = LAYOUTS[layout]
    folder = write(tmp_path / "package", numbers=numbers)
    imported = read_ctranslate2(folder, source="de", target="en")
    model = imported.loaded.config.model
    assert {name: getattr(model, name) for name in expected} == expected
    parity = check(folder, imported)
    assert parity.same_outputs == parity.sentences == 20
    assert parity.largest < 1e-4
