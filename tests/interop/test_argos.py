"""An Argos package is what Argos Translate expects; where that program is installed, it installs and uses it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from tests.interop.parts import make_parts, sentences

from manyheads.errors import ParityError, RunError
from manyheads.interop.argos import check_argos, write_argos
from manyheads.interop.bundle import LoadedModel
from manyheads.interop.ctranslate2.convert import load_ctranslate2, write_ctranslate2
from manyheads.interop.parity import Samples, reference
from manyheads.search.options import SearchOptions

ctranslate2 = pytest.importorskip("ctranslate2")


def package(folder: Path, numbers: str = "int8", **changes: Any) -> tuple[Path, LoadedModel]:
    opened = LoadedModel(*make_parts(**changes))
    path = folder / "x.argosmodel"
    write_argos(path, opened, numbers, "read me\n")
    return path, opened


def unpacked(path: Path, folder: Path) -> Path:
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    (only,) = folder.iterdir()
    return only


def as_argos_does(folder: Path, texts: list[str]) -> tuple[list[list[str]], list[str]]:
    """Pieces of outputs and their texts, with the calls and the settings that Argos Translate 1.11 has."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    translator = ctranslate2.Translator(str(folder / "model"))
    found = translator.translate_batch(
        processor.encode(texts, out_type=str),
        replace_unknowns=True,
        max_batch_size=32,
        batch_type="tokens",
        beam_size=4,
        num_hypotheses=1,
        length_penalty=0.2,
        return_scores=True,
        max_decoding_length=40,
    )
    pieces = [one.hypotheses[0] for one in found]
    return pieces, [processor.decode_pieces(row).replace("▁", " ").replace("_", " ").strip() for row in pieces]


def test_the_archive_is_one_folder_with_all_that_argos_reads(tmp_path: Path) -> None:
    path, _ = package(tmp_path)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        metadata = json.loads(archive.read("translate-de_en-1_0/metadata.json"))
    assert {name.partition("/")[0] for name in names} == {"translate-de_en-1_0"}
    inside = {name.partition("/")[2] for name in names}
    assert inside >= {"metadata.json", "README.md", "sentencepiece.model", "model/model.bin", "model/config.json"}
    assert metadata["type"] == "translate"
    assert [metadata[f"{side}_{what}"] for side in ("from", "to") for what in ("code", "name")] == [
        "de", "German", "en", "English",
    ]  # fmt: skip
    folder = unpacked(path, tmp_path / "out")
    assert json.loads((folder / "model" / "config.json").read_text(encoding="utf-8"))["add_source_eos"] is True


def test_the_same_model_gives_the_same_archive(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    assert package(tmp_path)[0].read_bytes() == package(tmp_path / "again")[0].read_bytes()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tokenizer": {"joint": False, "vocab_size": 40}},
        {"tokenizer": {"byte_fallback": True, "vocab_size": 310}},
    ],
    ids=["joint", "two vocabularies", "bytes for unknown characters"],
)
def test_the_calls_of_argos_give_our_translations(tmp_path: Path, changes: dict[str, Any]) -> None:
    path, opened = package(tmp_path, "float32", **changes)
    texts = sentences(9, seed=5)
    found, shown = as_argos_does(unpacked(path, tmp_path / "out"), texts)
    (tmp_path / "own").mkdir()
    write_ctranslate2(tmp_path / "own", opened.config, opened.tokenizers, opened.model)
    _, engine = load_ctranslate2(tmp_path / "own")
    options = SearchOptions(
        beam_size=4, length_penalty=0.2, max_length_ratio=0.0, max_length_offset=39, batch_tokens=4_096
    )
    right = []
    for row in opened.tokenizers.source.encode(texts):  # an output has a token at least: Argos says nothing else
        right += engine.search([row], replace(options, min_length_ratio=1.001 / len(row)))
    target = opened.tokenizers.target
    assert [row[:39] for row in found] == [target.pieces(one[0].tokens) for one in right]
    ids = {piece: i for i, piece in enumerate(target.pieces(range(target.size)))}
    assert shown == [target.decode([ids[piece] for piece in row]).strip() for row in found]
    assert len(set(shown)) > 2


def test_the_check_lets_a_package_of_two_vocabularies_pass(tmp_path: Path) -> None:
    path, opened = package(tmp_path, "float32", tokenizer={"joint": False, "vocab_size": 40})
    right = reference(opened.model, Samples(opened.tokenizers.source.encode(sentences(9, seed=5)), "here"))
    known = {opened.tokenizers.source.pieces([i])[0] for i in range(opened.tokenizers.source.size)}
    assert any(set(opened.tokenizers.target.pieces(row)) - known for row in right.outputs)
    assert check_argos(path, opened, right).largest < 2e-5


def test_the_check_sees_other_pieces(tmp_path: Path) -> None:
    path, opened = package(tmp_path, "float32")
    right = reference(opened.model, Samples(opened.tokenizers.source.encode(sentences(9, seed=5)), "here"))
    assert check_argos(path, opened, right).largest < 2e-5
    other = LoadedModel(*make_parts(tokenizer={"vocab_size": 55}))
    folder = unpacked(path, tmp_path / "out")
    (folder / "sentencepiece.model").write_bytes(other.tokenizers.source.to_bytes())
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.rglob("*"):
            archive.write(file, file.relative_to(folder.parent))
    with pytest.raises(ParityError, match="the package splits text in another way"):
        check_argos(path, opened, right)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "characters"}, 'tokenizer.kind = "characters"'),
        ({"lowercase": True}, r"tokenizer\.lowercase = true"),
    ],
)
def test_what_argos_cannot_split_is_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RunError, match=said):
        package(tmp_path, tokenizer=changes)


STOCK = """
import json, sys
import spacy
from pathlib import Path
from argostranslate import package, settings, translate
package.install_from_path(Path(sys.argv[1]))
(folder,) = settings.package_data_dir.iterdir()
spacy.blank("de").to_disk(folder / "spacy")  # its own splitter of sentences would be fetched
print(json.dumps([translate.translate(text, "de", "en") for text in json.loads(sys.argv[2])]))
"""


@pytest.mark.skipif(
    not all(find_spec(name) for name in ("argostranslate", "stanza", "minisbd")),
    reason="argostranslate is not installed, or not with all that it needs",
)
def test_stock_argos_translate_installs_and_uses_it(tmp_path: Path) -> None:
    path, _ = package(tmp_path, end_bias=3.0)
    texts = sentences(9, seed=5)
    result = subprocess.run(
        [sys.executable, "-c", STOCK, str(path), json.dumps(texts)],
        env={**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"),
             "ARGOS_CHUNK_TYPE": "SPACY",
             "ARGOS_PACKAGES_DIR": str(tmp_path / "packages"), "ARGOS_DEVICE_TYPE": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    _, right = as_argos_does(unpacked(path, tmp_path / "out"), texts)
    found = json.loads(result.stdout.splitlines()[-1])
    ended = [i for i, text in enumerate(right) if len(text.split()) < 15]  # Argos has no limit of 40 tokens
    assert [found[i].strip() for i in ended] == [right[i] for i in ended]
    assert len(ended) > 4
