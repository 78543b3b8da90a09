"""CTranslate2 folders and Argos packages become runs that give the same results; what does not fit is refused."""

from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.interop.marian import TARGETS, TEXTS, train_pieces, write_marian_folder
from tests.interop.parts import make_parts
from tests.model.samples import VARIANTS

from manyheads.errors import RunError
from manyheads.interop.argos import opened_package, write_argos
from manyheads.interop.bundle import LoadedModel
from manyheads.interop.ctranslate2.convert import write_ctranslate2
from manyheads.interop.ctranslate2.reader import ImportedModel, check_imported, read_ctranslate2
from manyheads.interop.parity import Parity, random_samples
from manyheads.interop.reference import reference

ctranslate2 = pytest.importorskip("ctranslate2")


def check(folder: Path, imported: ImportedModel) -> Parity:
    expected = reference(imported.loaded.model, random_samples(imported.loaded.tokenizers.source))
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
