"""A model goes up to a hub and comes down again; the hub is a folder here, behind the library's own calls."""

from __future__ import annotations

from pathlib import Path

import huggingface_hub
import pytest
from tests.interop.marian import write_marian_folder
from tests.interop.parts import make_parts, sentences
from tests.interop.pretrained import write_folder
from tests.interop.shelf import stand_in_for_hub

from manyheads import Classifier, Translator, from_pretrained
from manyheads.checkpoint import RunDirectory
from manyheads.cli.main import run as program
from manyheads.errors import RunError, UsageError
from manyheads.interop.hub import is_hub_name
from manyheads.runs.export import push
from manyheads.runs.import_model import import_model


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that stands for the hub."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    stand_in_for_hub(shelf, tmp_path / "cache", monkeypatch)
    return shelf


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A run with a card, a checkpoint, a cache, and the page of a demo."""
    config, tokenizers, model = make_parts()
    run = RunDirectory(tmp_path / "own")
    run.begin(config, tokenizers, {})
    run.publish({name: parameter.detach() for name, parameter in model.named_parameters()})
    run.describe("---\nlicense:  # to be filled in by you\n---\n# de to en\n")
    for name in ("cache/text", "checkpoints/step-1/state.json", "secret.txt", "page.html"):
        (run.path / name).parent.mkdir(parents=True, exist_ok=True)
        (run.path / name).write_text("private")
    return run.path


def test_a_run_goes_up_and_comes_down(shelf: Path, own: Path) -> None:
    card = own / "README.md"
    card.write_text(card.read_text().replace("license:", "license: apache-2.0"), encoding="utf-8")
    assert push(own, "somebody/de-en") == f"{huggingface_hub.constants.ENDPOINT}/somebody/de-en"
    sent = {
        path.relative_to(shelf / "somebody/de-en").as_posix() for path in (shelf / "somebody/de-en").rglob("*.*")
    }
    assert sent == {
        "README.md", "config.json", "environment.json", "model.safetensors", "tokenizer.source.model",
        "tokenizer.target.model",
    }  # fmt: skip
    texts = sentences(5)
    right = [one.translation for one in Translator.load(own).translate(texts)]
    assert [one.translation for one in from_pretrained("somebody/de-en").translate(texts)] == right
    assert [one.translation for one in from_pretrained(str(own)).translate(texts)] == right


def test_a_card_without_a_licence_does_not_go_up(
    shelf: Path, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program(["push", str(own), "somebody/de-en"]) == 3
    assert "README.md names no licence" in capsys.readouterr().err
    assert list(shelf.iterdir()) == []


def test_a_marian_model_comes_down_and_is_imported(shelf: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    write_marian_folder(shelf / "opus" / "de-en")
    done = import_model("opus/de-en", tmp_path / "run")
    assert done.parity is not None
    texts = sentences(5)
    right = [one.translation for one in Translator.load(tmp_path / "run").translate(texts)]
    assert [one.translation for one in from_pretrained("opus/de-en").translate(texts)] == right


def test_a_pickle_on_the_hub_is_refused_with_its_reason(shelf: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    write_marian_folder(shelf / "opus" / "de-en")
    (shelf / "opus" / "de-en" / "model.safetensors").rename(shelf / "opus" / "de-en" / "pytorch_model.bin")
    with pytest.raises(RunError, match="That is a pickle"):
        import_model("opus/de-en", tmp_path / "run")


def test_a_name_that_the_hub_lacks_is_told(shelf: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"nobody/nothing is not a folder here.*not be downloaded.*: 404"):
        from_pretrained("nobody/nothing")


@pytest.mark.parametrize("name", ["one", "a/b/c", "../x", "a/..", "/etc/x", "a/b..c", "~/x"])
def test_what_is_no_name_is_not_asked_for(shelf: Path, own: Path, name: str) -> None:
    assert not is_hub_name(name)
    card = own / "README.md"
    card.write_text(card.read_text().replace("license:", "license: mit"), encoding="utf-8")
    with pytest.raises(UsageError, match="is no name on the hub"):
        push(own, name)


def test_a_pretrained_encoder_comes_down_by_its_name(shelf: Path, tmp_path: Path) -> None:
    write_folder(shelf / "somebody" / "bert", "roberta", "classification", num_labels=3)
    (shelf / "somebody" / "bert" / "code.py").write_text("raise SystemExit", encoding="utf-8")
    done = import_model("somebody/bert", tmp_path / "run")
    assert (done.source, done.task) == ("somebody/bert", "classification")
    assert len(Classifier.load(tmp_path / "run").labels.names) == 3
    (folder,) = (tmp_path / "cache").iterdir()
    assert {path.name for path in folder.glob("*.*")} >= {"config.json", "model.safetensors", "tokenizer.json"}
    assert not (folder / "code.py").exists()
