"""CTranslate2 folders become models that give the same results; what does not fit is refused."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from tests.interop.marian import write_marian_folder
from tests.interop.parts import change_settings, make_parts, variant_parts
from tests.model.samples import VARIANTS

from manyheads.errors import ParityError, RunError
from manyheads.inference.parity import Parity, Samples, random_rows
from manyheads.interop.argos import opened_package
from manyheads.interop.ctranslate2.convert import write_ctranslate2
from manyheads.interop.ctranslate2.reader import ImportedModel, check_imported, read_ctranslate2
from manyheads.interop.reference import reference

ctranslate2 = pytest.importorskip("ctranslate2")
from tests.interop.converted import (  # noqa: E402
    rewrite,
    write_fairseq,
    write_opennmt_py,
    write_opus_mt,
    write_transformers,
)


def check(folder: Path, imported: ImportedModel) -> Parity:
    """Compare an imported model with CTranslate2, and expect equal greedy outputs."""
    samples = Samples(random_rows(imported.loaded.tokenizers.source, 20, 3, 19), "")
    expected = reference(imported.loaded.model, samples)
    parity = check_imported(folder, imported, expected)
    assert parity.same_outputs == parity.sentences == 20
    return parity


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_export_in_float32_comes_back_bit_for_bit(tmp_path: Path, variant: str) -> None:
    config, pair, model = variant_parts(variant)
    write_ctranslate2(tmp_path, config, pair, model)
    imported = read_ctranslate2(tmp_path)
    assert imported.loaded.config == config
    assert [imported.loaded.tokenizers.source.sha256, imported.loaded.tokenizers.target.sha256] == [
        pair.source.sha256, pair.target.sha256,
    ]  # fmt: skip
    state, found = model.state_dict(), imported.loaded.model.state_dict()
    assert state.keys() == found.keys()
    assert all(torch.equal(state[name], found[name]) for name in state)
    check(tmp_path, imported)


@pytest.mark.parametrize("numbers", ["int8", "int16", "float16", "bfloat16", "int8_float16"])
def test_a_rounded_export_gives_what_ctranslate2_gives(tmp_path: Path, numbers: str) -> None:
    parts = make_parts(norm="post", activation="gelu", tied_embeddings="all")
    write_ctranslate2(tmp_path, *parts, numbers)
    check(tmp_path, read_ctranslate2(tmp_path))


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
    check(tmp_path / "ct2", imported)


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
    "OpenNMT-py, merges": (partial(write_opennmt_py, joint="@@"), {"source_end_mark": False}),
    "fairseq, merges": (partial(write_fairseq, joint="@@"), {"positions": "learned"}),
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
    assert check(folder, imported).largest < 1e-4


def test_a_model_that_does_not_read_the_end_mark_is_exported_and_comes_back(tmp_path: Path) -> None:
    parts = make_parts(source_end_mark=False)
    write_ctranslate2(tmp_path, *parts)
    check(tmp_path, read_ctranslate2(tmp_path))


@pytest.mark.parametrize("version", [3, 4, 5])
def test_older_files_have_text_vocabularies_and_no_config(tmp_path: Path, version: int) -> None:
    folder = write_opennmt_py(tmp_path / "package")
    rewrite(folder / "model.bin", version=version)
    (folder / "config.json").unlink()
    vocabulary = folder / "shared_vocabulary.json"
    symbols = json.loads(vocabulary.read_text(encoding="utf-8"))
    vocabulary.with_suffix(".txt").write_text("\n".join(symbols) + "\n", encoding="utf-8")
    vocabulary.unlink()
    check(folder, read_ctranslate2(folder, source="de", target="en"))


def test_positions_that_ctranslate2_computes_are_imported(tmp_path: Path) -> None:
    folder = write_opus_mt(tmp_path / "package")
    rewrite(folder / "model.bin", without="encodings")
    check(folder, read_ctranslate2(folder, source="de", target="en"))


def test_another_model_is_not_taken_for_the_imported_one(tmp_path: Path) -> None:
    folder = write_opus_mt(tmp_path / "package")
    imported = read_ctranslate2(folder, source="de", target="en")
    with torch.no_grad():
        imported.loaded.model.decoder_layers[0].feed_forward.expand.weight *= 1.5
    with pytest.raises(ParityError, match="the imported model does not give what the run gives"):
        check(folder, imported)


def set_json(name: str, **changes: Any) -> Callable[[Path], None]:
    return lambda folder: change_settings(folder, name, **changes)


def set_symbols(change: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        path = folder / "shared_vocabulary.json"
        path.write_text(json.dumps(change(json.loads(path.read_text(encoding="utf-8")))), encoding="utf-8")

    return write


def use_damaged_merges(folder: Path) -> None:
    (folder.parent / "sentencepiece.model").unlink()
    (folder.parent / "bpe.model").write_text("a b\nabc\n", encoding="utf-8")


BROKEN: dict[str, Callable[[Path], object]] = {
    "symbols, and the model 61. They do not belong together": set_symbols(lambda symbols: symbols[:-1]),
    "a symbol stands in it twice": set_symbols(lambda symbols: [*symbols[:-1], symbols[5]]),
    "lacks '</s>'": set_symbols(lambda symbols: ["x" if symbol == "</s>" else symbol for symbol in symbols]),
    "it is no list of symbols": set_symbols(lambda symbols: [*symbols[:-1], 5]),  # type: ignore[list-item]
    "has no vocabulary of the source": lambda folder: (folder / "shared_vocabulary.json").unlink(),
    "a begin mark at the source": set_json("config.json", add_source_bos=True),
    "a first target token that the user gives": set_json("config.json", decoder_start_token=None),
    "its tokens are no texts": set_json("config.json", eos_token=3),
    "norm_epsilon": set_json("config.json", layer_norm_epsilon="small"),
    "config.json cannot be read": lambda folder: (folder / "config.json").unlink(),
    "has no SentencePiece models": lambda folder: (folder.parent / "sentencepiece.model").unlink(),
    "'abc' is no merge of two pieces": use_damaged_merges,
    "it holds no SentencePiece model": lambda folder: (folder.parent / "sentencepiece.model").write_bytes(b"x"),
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_broken_folder_is_refused_with_its_reason(tmp_path: Path, message: str) -> None:
    folder = write_opennmt_py(tmp_path / "package")
    BROKEN[message](folder)
    with pytest.raises(RunError) as error:
        read_ctranslate2(folder, source="de", target="en")
    assert message in str(error.value)


def test_languages_must_be_known(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="Give --source and --target"):
        read_ctranslate2(write_opennmt_py(tmp_path / "package"), source="de")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files of a package, and the package itself."""
    folder = write_opennmt_py(tmp_path_factory.mktemp("mutations") / "package", numbers="int8").parent
    names = ["sentencepiece.model", "model/model.bin", "model/config.json", "model/shared_vocabulary.json"]
    files = {name: (folder / name).read_bytes() for name in names}
    with zipfile.ZipFile(folder / "x.argosmodel", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(f"translate-de_en/{name}", content)
    return {**files, "x.argosmodel": (folder / "x.argosmodel").read_bytes()}


MESSAGE = 2**17  # bytes that an error, its traceback and caches of the interpreter may take


def read_peak(folder: Path, files: dict[str, bytes], name: str) -> tuple[int, str]:
    """Read a folder or package of these files; return the peak of memory in bytes, and why it was refused."""
    for other, content in files.items():
        (folder / other).write_bytes(content)
    message = ""
    tracemalloc.start()
    try:
        with opened_package(folder / (name if name.endswith(".argosmodel") else "model")) as (model, _):
            read_ctranslate2(model, source="de", target="en")
    except RunError as error:
        message = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak, message


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.weekly])])
def test_mutated_folders_and_packages_are_read_or_refused_in_one_line(
    package: dict[str, bytes], tmp_path: Path, count: int
) -> None:
    """Peak memory is at most that of reading the whole files, twice the size of the mutated one, and a message."""
    (tmp_path / "model").mkdir()
    intact = max(read_peak(tmp_path, package, name)[0] for name in ("x.argosmodel", "model", "model"))
    refused = 0
    for seed in range(count):
        rng = Random(seed)
        name = rng.choice(["model/model.bin"] * 4 + ["x.argosmodel"] * 2 + [*package])
        data = bytearray(package[name])
        near = rng.randrange(min(400, len(data)))
        at = rng.choice([rng.randrange(len(data)), near, len(data) - 1 - near])
        match rng.choice(["cut", "flip", "count", "insert"]):
            case "cut":
                del data[at:]
            case "flip":
                data[at] ^= 1 << rng.randrange(8)
            case "count":
                data[at : at + 4] = rng.randbytes(4)
            case _:
                data[at:at] = rng.randbytes(4)
        peak, message = read_peak(tmp_path, {**package, name: bytes(data)}, name)
        assert "\n" not in message, (seed, name, message)
        assert peak <= intact + 2 * len(data) + MESSAGE, (seed, name)
        refused += bool(message)
    assert count / 3 < refused < count
