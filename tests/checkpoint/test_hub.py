"""Models are pushed to a hub and loaded from it; a local folder replaces the hub behind the library's functions."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.interop.local_hub import use_local_hub
from tests.interop.marian import write_marian_folder
from tests.interop.parts import make_parts, sentences
from tests.interop.pretrained import write_folder

from manyheads import Classifier, Translator, from_pretrained
from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.hub import is_hub_name
from manyheads.cli.main import run as program
from manyheads.errors import RunError, UsageError
from manyheads.runs.export import push
from manyheads.runs.import_model import import_model


@pytest.fixture
def local_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that replaces the hub."""
    local_hub = tmp_path / "hub"
    local_hub.mkdir()
    use_local_hub(local_hub, tmp_path / "cache", monkeypatch)
    return local_hub


@pytest.fixture
def own_run(tmp_path: Path) -> Path:
    """Create a run with a model card, a checkpoint, a cache, and a demo page."""
    config, tokenizers, model = make_parts()
    run = RunDirectory(tmp_path / "own")
    run.begin(config, tokenizers, {})
    run.publish({name: parameter.detach() for name, parameter in model.named_parameters()})
    run.describe("---\nlicense:  # to be filled in by you\n---\n# de to en\n")
    for name in ("cache/text", "checkpoints/step-1/state.json", "secret.txt", "page.html"):
        (run.path / name).parent.mkdir(parents=True, exist_ok=True)
        (run.path / name).write_text("private")
    return run.path


def test_a_run_whose_card_has_no_licence_is_not_pushed(
    local_hub: Path, own_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program(["push", str(own_run), "somebody/de-en"]) == 3
    assert "README.md names no licence" in capsys.readouterr().err
    assert list(local_hub.iterdir()) == []


def test_a_marian_model_of_the_hub_is_imported(local_hub: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    write_marian_folder(local_hub / "opus" / "de-en")
    done = import_model("opus/de-en", tmp_path / "run")
    assert done.parity is not None
    texts = sentences(5)
    expected = [result.translation for result in Translator.load(tmp_path / "run").translate(texts)]
    assert [result.translation for result in from_pretrained("opus/de-en").translate(texts)] == expected


def test_a_pickle_on_the_hub_is_refused_with_its_reason(local_hub: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    write_marian_folder(local_hub / "opus" / "de-en")
    (local_hub / "opus" / "de-en" / "model.safetensors").rename(local_hub / "opus" / "de-en" / "pytorch_model.bin")
    with pytest.raises(RunError, match="That is a pickle"):
        import_model("opus/de-en", tmp_path / "run")


def test_a_name_that_the_hub_does_not_have_is_an_error(local_hub: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"nobody/nothing is not a folder here.*not be downloaded.*: 404"):
        from_pretrained("nobody/nothing")


@pytest.mark.parametrize("name", ["one", "a/b/c", "../x", "a/..", "/etc/x", "a/b..c", "~/x"])
def test_an_invalid_name_is_refused_before_any_request(local_hub: Path, own_run: Path, name: str) -> None:
    assert not is_hub_name(name)
    card = own_run / "README.md"
    card.write_text(card.read_text().replace("license:", "license: mit"), encoding="utf-8")
    with pytest.raises(UsageError, match="is no name on the hub"):
        push(own_run, name)


def test_a_pretrained_encoder_of_the_hub_is_imported_without_its_code(local_hub: Path, tmp_path: Path) -> None:
    write_folder(local_hub / "somebody" / "bert", "roberta", "classification", num_labels=3)
    (local_hub / "somebody" / "bert" / "code.py").write_text("raise SystemExit", encoding="utf-8")
    done = import_model("somebody/bert", tmp_path / "run")
    assert (done.source, done.task) == ("somebody/bert", "classification")
    assert len(Classifier.load(tmp_path / "run").labels.names) == 3
    (folder,) = (tmp_path / "cache").iterdir()
    assert {path.name for path in folder.glob("*.*")} >= {"config.json", "model.safetensors", "tokenizer.json"}
    assert not (folder / "code.py").exists()
