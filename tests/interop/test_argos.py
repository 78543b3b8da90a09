"""An Argos package has the format of Argos Translate; where that program is installed, it uses the package."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from tests.interop.parts import make_parts, sentences

from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.bundle import LoadedModel
from manyheads.errors import ParityError, RunError, UsageError
from manyheads.inference.parity import Samples
from manyheads.inference.translation.translator import Translator
from manyheads.interop.argos import PACKAGE_VERSION, check_argos, opened_package, write_argos
from manyheads.interop.ctranslate2.convert import load_ctranslate2, write_ctranslate2
from manyheads.interop.reference import reference
from manyheads.runs.export import export
from manyheads.runs.import_model import import_model
from manyheads.search.options import SearchOptions

ctranslate2 = pytest.importorskip("ctranslate2")
moses, subword_nmt = map(pytest.importorskip, ("sacremoses", "subword_nmt.apply_bpe"))
from tests.interop.converted import write_opennmt_py  # noqa: E402


def write_package(folder: Path, numbers: str = "int8", **changes: Any) -> tuple[Path, LoadedModel]:
    opened = LoadedModel(*make_parts(**changes))
    path = folder / "x.argosmodel"
    write_argos(path, opened, numbers, "read me\n")
    return path, opened


def unpack(path: Path, folder: Path) -> Path:
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    (only,) = folder.iterdir()
    return only


def translate_like_argos(folder: Path, texts: list[str]) -> tuple[list[list[str]], list[str]]:
    """Return pieces and texts of outputs, computed with the calls and settings of Argos Translate 1.11."""
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
    pieces = [result.hypotheses[0] for result in found]
    return pieces, [processor.decode_pieces(row).replace("▁", " ").replace("_", " ").strip() for row in pieces]


def test_the_archive_is_one_folder_with_all_files_of_argos(tmp_path: Path) -> None:
    path, _ = write_package(tmp_path)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        metadata = json.loads(archive.read("translate-de_en-100_0/metadata.json"))
    assert {name.partition("/")[0] for name in names} == {"translate-de_en-100_0"}
    inside = {name.partition("/")[2] for name in names}
    assert inside >= {"metadata.json", "README.md", "sentencepiece.model", "model/model.bin", "model/config.json"}
    assert metadata["type"] == "translate"
    assert [metadata[f"{side}_{what}"] for side in ("from", "to") for what in ("code", "name")] == [
        "de", "German", "en", "English",
    ]  # fmt: skip
    folder = unpack(path, tmp_path / "out")
    assert json.loads((folder / "model" / "config.json").read_text(encoding="utf-8"))["add_source_eos"] is True


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (("zh_TW", "por-BR"), ["zt", "Chinese (Traditional)", "pb", "Portuguese (Brazil)"]),
        (("no", "cmn_Hans"), ["nb", "Norwegian", "zh", "Chinese (Simplified)"]),
    ],
)
def test_a_package_has_the_codes_of_argos(tmp_path: Path, codes: tuple[str, str], expected: list[str]) -> None:
    config, *parts = make_parts()
    data = config.data.model_copy(update={"source": codes[0], "target": codes[1]})
    write_argos(
        tmp_path / "x.argosmodel", LoadedModel(config.model_copy(update={"data": data}), *parts), "int8", ""
    )
    folder = unpack(tmp_path / "x.argosmodel", tmp_path / "out")
    metadata = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
    assert [metadata[f"{side}_{what}"] for side in ("from", "to") for what in ("code", "name")] == expected
    assert folder.name == f"translate-{expected[0]}_{expected[2]}-100_0"


def test_the_same_model_gives_the_same_archive(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    assert write_package(tmp_path)[0].read_bytes() == write_package(tmp_path / "again")[0].read_bytes()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tokenizer": {"joint": False, "vocab_size": 40}},
        {"tokenizer": {"vocab_size": 310}},
    ],
    ids=["joint", "two vocabularies", "bytes for unknown characters"],
)
def test_the_calls_of_argos_give_the_translations_of_the_run(tmp_path: Path, changes: dict[str, Any]) -> None:
    path, opened = write_package(tmp_path, "float32", **changes)
    texts = sentences(9, seed=5)
    found, shown = translate_like_argos(unpack(path, tmp_path / "out"), texts)
    (tmp_path / "own").mkdir()
    write_ctranslate2(tmp_path / "own", opened.config, opened.tokenizers, opened.model)
    _, engine = load_ctranslate2(tmp_path / "own")
    options = SearchOptions(
        beam_size=4, length_penalty=0.2, max_length_ratio=0.0, max_length_offset=39, batch_tokens=4_096
    )
    expected = []
    for row in opened.tokenizers.source.encode(texts):  # outputs have at least one token, which Argos requires
        expected += engine.search([row], replace(options, min_length_ratio=1.001 / len(row)))
    target = opened.tokenizers.target
    assert [row[:39] for row in found] == [target.pieces(outputs[0].tokens) for outputs in expected]
    ids = {piece: i for i, piece in enumerate(target.pieces(range(target.size)))}
    plain = [text.replace("\ufffd", "").strip() for text in shown]  # Argos shows bytes that form no character
    assert plain == [target.decode([ids[piece] for piece in row]).strip() for row in found]
    assert len(set(shown)) > 2


def test_a_package_of_two_vocabularies_passes_the_check(tmp_path: Path) -> None:
    path, opened = write_package(tmp_path, "float32", tokenizer={"joint": False, "vocab_size": 40})
    expected = reference(opened.model, Samples(opened.tokenizers.source.encode(sentences(9, seed=5)), "here"))
    known = {opened.tokenizers.source.pieces([i])[0] for i in range(opened.tokenizers.source.size)}
    assert any(set(opened.tokenizers.target.pieces(row)) - known for row in expected.outputs)
    assert check_argos(path, opened, expected).largest < 2e-5


def test_the_check_detects_another_segmentation(tmp_path: Path) -> None:
    path, opened = write_package(tmp_path, "float32")
    expected = reference(opened.model, Samples(opened.tokenizers.source.encode(sentences(9, seed=5)), "here"))
    assert check_argos(path, opened, expected).largest < 2e-5
    other = LoadedModel(*make_parts(tokenizer={"vocab_size": 55}))
    folder = unpack(path, tmp_path / "out")
    (folder / "sentencepiece.model").write_bytes(other.tokenizers.source.to_bytes())
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.rglob("*"):
            archive.write(file, file.relative_to(folder.parent))
    with pytest.raises(ParityError, match="the package splits text in another way"):
        check_argos(path, opened, expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "characters"}, 'tokenizer.kind = "characters"'),
        ({"lowercase": True}, r"tokenizer\.lowercase = true"),
    ],
)
def test_tokenizers_that_argos_does_not_support_are_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(RunError, match=message):
        write_package(tmp_path, tokenizer=changes)


PAGE = Path(__file__).parents[2] / "docs" / "serving.md"


@pytest.mark.skipif(
    not all(find_spec(name) for name in ("argostranslate", "stanza", "minisbd", "spacy")),
    reason="argostranslate is not installed, or not with all that it needs",
)
def test_the_commands_of_the_page_install_and_use_a_package(tmp_path: Path) -> None:
    import spacy

    path, _ = write_package(tmp_path, end_bias=3.0)
    path = path.rename(tmp_path / "de-en.argosmodel")
    page = PAGE.read_text(encoding="utf-8")
    (install,) = re.findall(r"^python -c .*install_from_path.*$", page, re.MULTILINE)
    (translate,) = re.findall(r"^argos-translate .*$", page, re.MULTILINE)
    packages = tmp_path / "packages"
    environment = {
        **os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "ARGOS_CHUNK_TYPE": "SPACY",
        "ARGOS_PACKAGES_DIR": str(packages), "ARGOS_DEVICE_TYPE": "cpu",
    }  # fmt: skip

    def run_command(command: str) -> str:
        return subprocess.run(
            shlex.split(command), env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    run_command(install)
    (folder,) = packages.iterdir()
    spacy.blank("de").to_disk(folder / "spacy")  # else Argos would download a sentence splitter
    texts = sentences(9, seed=5)
    _, expected = translate_like_argos(folder, texts)
    ended = [i for i, text in enumerate(expected) if len(text.split()) < 15]  # Argos has no limit of 40 tokens
    assert len(ended) > 4
    *options, _ = shlex.split(translate)
    found = run_command(shlex.join([*options, "\n".join(texts[i] for i in ended)]))
    assert [line.strip() for line in found.splitlines()] == [expected[i] for i in ended]


@pytest.mark.parametrize("version", ["", "1.0-beta", "../1", "one", "1..2", "9" * 10, "²"])
def test_a_version_is_made_of_numbers(tmp_path: Path, version: str) -> None:
    with pytest.raises(UsageError, match="is no version"):
        write_argos(tmp_path / "x.argosmodel", LoadedModel(*make_parts()), "int8", "", version)


def test_the_version_is_above_those_of_the_public_index_or_as_asked(tmp_path: Path) -> None:
    assert float(PACKAGE_VERSION) >= 100
    write_argos(tmp_path / "x.argosmodel", LoadedModel(*make_parts()), "int8", "", "101.2")
    folder = unpack(tmp_path / "x.argosmodel", tmp_path / "out")
    assert folder.name == "translate-de_en-101_2"
    assert json.loads((folder / "metadata.json").read_text(encoding="utf-8"))["package_version"] == "101.2"


# --- packages of others ---


def published(folder: Path, pieces: str = "sentencepiece.model", **metadata: str) -> dict[str, bytes]:
    """Return the members of a package as the public index has them: a model of OpenNMT-py without an end mark."""
    joint = "@@" if pieces == "bpe.model" else True
    model = write_opennmt_py(folder / "package", joint=joint, numbers="int8")
    names = [pieces, "model/model.bin", "model/config.json", "model/shared_vocabulary.json"]
    facts = {"from_code": "de", "to_code": "en", "package_version": "1.0"} | metadata
    return {
        **{f"translate-de_en/{name}": (model.parent / name).read_bytes() for name in names},
        "translate-de_en/metadata.json": json.dumps(facts).encode(),
        "translate-de_en/stanza/de/tokenize/gsd.pt": b"x" * 100,
    }


def write_archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("unpacked", [False, True])
def test_a_published_package_becomes_a_run_that_translates_like_it(tmp_path: Path, unpacked: bool) -> None:
    package = write_archive(tmp_path / "de_en.argosmodel", published(tmp_path))
    where = unpack(package, tmp_path / "unpacked") if unpacked else package
    imported = import_model(str(where), tmp_path / "run")
    assert imported.parity is not None
    assert imported.parity.sentences == imported.parity.same_outputs == 200
    assert imported.parity.largest < 1e-4
    assert "Use the run in place of the original" in imported.verdict()[0]
    config = RunDirectory.existing(tmp_path / "run").config()
    assert [config.data.source, config.data.target] == ["de", "en"]
    texts = sentences(20, seed=9)
    folder = unpack(package, tmp_path / "again")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    theirs = ctranslate2.Translator(str(folder / "model"), compute_type="float32").translate_batch(
        processor.encode(texts, out_type=str), beam_size=1, max_decoding_length=20
    )
    expected = [processor.decode_pieces(result.hypotheses[0]) for result in theirs]
    options = SearchOptions(beam_size=1, max_length_ratio=0.001, max_length_offset=20)
    found = Translator.load(tmp_path / "run", device="cpu").translate(texts, options=options, beam_size=1)
    assert [translation.translation for translation in found] == expected


class BpeOfArgos:
    """The calls of Argos Translate 1.9, which an old package is made for."""

    def __init__(self, folder: Path) -> None:
        self.bpe = subword_nmt.BPE(io.StringIO((folder / "bpe.model").read_text(encoding="utf-8")))

    def encode(self, text: str) -> list[str]:
        words = moses.MosesTokenizer("de").tokenize(moses.MosesPunctNormalizer("de").normalize(text))
        return list(self.bpe.segment_tokens(words))

    def decode(self, pieces: list[str]) -> str:
        return str(moses.MosesDetokenizer("en").detokenize(" ".join(pieces).replace("@@ ", "").split(" ")))


def test_a_package_with_merges_translates_like_argos_as_a_run_and_exported_again(tmp_path: Path) -> None:
    package = write_archive(tmp_path / "de_en.argosmodel", published(tmp_path, "bpe.model"))
    imported = import_model(str(package), tmp_path / "run")
    assert imported.parity is not None
    assert imported.parity.sentences == imported.parity.same_outputs == 200
    options = SearchOptions(beam_size=1, max_length_ratio=0.001, max_length_offset=20)
    texts = [*sentences(20, seed=9), '"Hund" & „katze“, STERN']
    translator = Translator.load(tmp_path / "run", device="cpu")
    found = [translation.translation for translation in translator.translate(texts, options=options)]
    assert len(set(found)) > 5
    export(tmp_path / "run", tmp_path / "ct2", "ctranslate2")
    import_model(str(tmp_path / "ct2"), tmp_path / "again")
    again = Translator.load(tmp_path / "again", device="cpu")
    assert [translation.translation for translation in again.translate(texts, options=options)] == found
    export(tmp_path / "run", tmp_path / "x.argosmodel", "argos", quantization="float32")
    for number, path in enumerate((package, tmp_path / "x.argosmodel")):
        folder = unpack(path, tmp_path / f"unpacked{number}")
        argos = BpeOfArgos(folder)
        theirs = ctranslate2.Translator(str(folder / "model"), compute_type="float32").translate_batch(
            [argos.encode(text) for text in texts], beam_size=1, max_decoding_length=20
        )
        shown = [argos.decode(result.hypotheses[0]).removesuffix("@@") for result in theirs]  # outputs are cut
        assert shown == found


def test_an_own_package_comes_back_with_its_configuration(tmp_path: Path) -> None:
    path, opened = write_package(tmp_path)
    imported = import_model(str(path), tmp_path / "run")
    assert imported.parity is not None
    assert imported.parity.same_outputs == 200
    assert RunDirectory.existing(tmp_path / "run").config() == opened.config


def link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = 0o120777 << 16
    return info


MODEL = "translate-de_en/model/model.bin"


@pytest.mark.parametrize(
    ("members", "facts", "change", "message"),
    [
        ({"../model.bin": b"x"}, {}, bytes, "a path out of its folder"),
        ({"/etc/model.bin": b"x"}, {}, bytes, "'/etc/model.bin', a path"),
        ({link("translate-de_en/model/model.json"): b"/etc/passwd"}, {}, bytes, "a link or a device"),
        ({"translate-de_en/zeros.bin": bytes(70 * 2**20)}, {}, bytes, "would unpack to more than"),
        (
            {"pivot/model/model.bin": b"x"}, {}, bytes,
            "holds several models: pivot/model, translate-de_en/model. Unpack it",
        ),
        ({}, {"target_prefix": "__ja__"}, bytes, "given prefix"),
        ({MODEL: None}, {}, bytes, "holds no model.bin"),
        ({}, {}, lambda data: data[: len(data) // 2], "no Argos package, or is damaged"),
        ({}, {}, lambda data: b"", "no Argos package, or is damaged"),
        ({}, {}, lambda data: data.replace(b"PK\1\2\x14\3\x14\0\0", b"PK\1\2\x14\3\x14\0\1"), "is encrypted"),
        ({}, {}, lambda data: data[:5_000] + bytes(9) + data[5_009:], "no Argos package, or is damaged"),
    ],
    ids=["out", "absolute", "link", "bomb", "several", "prefix", "no model", "cut", "empty", "encrypted", "bytes"],
)  # fmt: skip
def test_a_hostile_or_damaged_package_is_refused_before_it_is_unpacked(
    tmp_path: Path, members: dict[Any, Any], facts: dict[str, str], change: Callable[[bytes], bytes], message: str
) -> None:
    contents = published(tmp_path, **facts) | members
    path = tmp_path / "x.argosmodel"
    write_archive(path, {name: content for name, content in contents.items() if content is not None})
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(RunError, match=re.escape(message)), opened_package(path):
        pass


def test_options_of_other_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a CTranslate2 model"):
        import_model(str(tmp_path / "x.argosmodel"), tmp_path / "run", language="de")
