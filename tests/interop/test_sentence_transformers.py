"""Classifiers with mean pooling, exported as folders of sentence-transformers.

These tests do not need that library: they compute the modules of a folder with transformers and torch. Where the
library is installed, its results are compared too.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.interop.pretrained import ENCODERS, write_folder
from tests.runs.labelled import examples, labelled_config, write_labelled
from tests.tolerances import approx
from tests.training.parts import CollectingListener
from torch import Tensor, nn

from manyheads import Classifier
from manyheads.cli.main import run as program
from manyheads.errors import ParityError, RunError, UsageError
from manyheads.interop import sentence_transformers as module
from manyheads.runs.export import export
from manyheads.runs.import_model import import_model
from manyheads.runs.train import train

transformers = pytest.importorskip("transformers")
TEXTS = ["a great film", "the plot was awful, hund!", "안녕하세요", "film " * 100]
LABELS = ["mäßig", "sehr gut", "안녕"]


@pytest.fixture(scope="module")
def trained_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Train a run of each family for two steps: mean pooling and three classes."""
    found = {}
    text = tmp_path_factory.mktemp("text")
    rows = [f"{LABELS[index % 3]}\t{example}\n" for index, (_, example) in enumerate(examples(40))]
    (text / "train.tsv").write_text("".join(rows), encoding="utf-8")
    for family in ENCODERS:
        folder = tmp_path_factory.mktemp(family)
        write_folder(folder / "theirs", family, "masked-lm")  # without a pooler
        relu = "relu" if family == "distilbert" else "tanh"
        model = {"init_from": str(folder / "theirs"), "pooling": "mean", "pooler": relu, "dropout": 0.0}
        config = labelled_config(text, data={"valid": 0.2, "test": None}, model=model, training={"steps": 2})
        train(config, folder / "run", listener=CollectingListener())
        found[family] = folder / "run"
    return found


@pytest.fixture(scope="module")
def exported(trained_runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("out")
    for family, run in trained_runs.items():
        assert export(run, out / family, "sentence-transformers").parity.largest < 1e-4
    return {family: out / family for family in trained_runs}


def import_class(name: str) -> Any:
    """Import a class of torch by its qualified name."""
    module, _, kind = name.rpartition(".")
    return getattr(__import__(module, fromlist=[kind]), kind)


@torch.no_grad()
def logits_of_modules(folder: Path, texts: list[str]) -> np.ndarray:
    """Compute the logits module by module, as the library would."""
    listed = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    kinds = [(entry["type"].rpartition(".")[2], folder / entry["path"]) for entry in listed]
    assert [entry["idx"] for entry in listed] == [0, 1, 2, 3]
    assert [kind for kind, _ in kinds] == ["Transformer", "Pooling", "Dense", "Dense"]
    longest = json.loads((folder / "sentence_bert_config.json").read_text(encoding="utf-8"))["max_seq_length"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors="pt")
    x: Tensor = transformers.AutoModel.from_pretrained(folder).eval()(**batch).last_hidden_state
    modes = {name for name, on in json.loads((kinds[1][1] / "config.json").read_text()).items() if on is True}
    assert len(modes) == 1
    real = batch["attention_mask"][..., None]
    x = (x * real).sum(1) / real.sum(1) if modes == {"pooling_mode_mean_tokens"} else x[:, 0]
    for _, dense in kinds[2:]:
        settings = json.loads((dense / "config.json").read_text(encoding="utf-8"))
        layer = nn.Linear(settings["in_features"], settings["out_features"], bias=settings["bias"])
        tensors = load_file(dense / "model.safetensors")
        layer.load_state_dict({name.removeprefix("linear."): tensor for name, tensor in tensors.items()})
        x = import_class(settings["activation_function"])()(layer(x))
    return x.numpy()  # type: ignore[no-any-return]


def probabilities(classifier: Classifier, texts: list[Any]) -> np.ndarray:
    return np.array([list(result.probabilities.values()) for result in classifier.classify(texts)])


@pytest.mark.parametrize("family", ENCODERS)
def test_the_modules_give_the_probabilities_of_the_classifier(
    family: str, trained_runs: dict[str, Path], exported: dict[str, Path]
) -> None:
    classifier = Classifier.load(trained_runs[family], device="cpu")
    assert classifier.config.model.pooling == "mean"
    expected = probabilities(classifier, TEXTS)
    logits = torch.from_numpy(logits_of_modules(exported[family], TEXTS))
    assert logits.softmax(-1).numpy() == approx(expected)
    names = transformers.AutoConfig.from_pretrained(exported[family]).id2label
    assert list(names.values()) == LABELS
    card = (exported[family] / "README.md").read_text(encoding="utf-8")
    assert "library_name: sentence-transformers" in card
    assert "license:  # to be filled in by you" in card


@pytest.mark.parametrize("family", ENCODERS)
def test_the_library_itself_gives_the_probabilities_of_the_classifier(
    family: str, trained_runs: dict[str, Path], exported: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    library = pytest.importorskip("sentence_transformers")
    classifier = Classifier.load(trained_runs[family], device="cpu")
    opened = library.SentenceTransformer(str(exported[family]), device="cpu")
    found = opened.encode(TEXTS, convert_to_tensor=True).softmax(-1).numpy()
    assert found == approx(probabilities(classifier, TEXTS))
    (code,) = re.findall(r"```python\n(.*?)```", (exported[family] / "README.md").read_text(encoding="utf-8"), re.S)
    capsys.readouterr()
    exec(code.replace("DIRECTORY", str(exported[family])).replace('"..."', '"a great film"'), {})
    (expected,) = classifier.classify(["a great film"])
    label, _, probability = capsys.readouterr().out.strip().rpartition(" ")
    assert (label, float(probability)) == (expected.label, approx(expected.probability))


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_trained_classifier_is_exported_by_the_command_line(pooling: str, tmp_path: Path) -> None:
    write_folder(tmp_path / "theirs", "bert")
    model = {"init_from": str(tmp_path / "theirs"), "pooling": pooling, "dropout": 0.0}
    text = write_labelled(tmp_path / "text")
    train(
        labelled_config(text, model=model, training={"steps": 4}), tmp_path / "run", listener=CollectingListener()
    )
    run, out = str(tmp_path / "run"), str(tmp_path / "out")
    assert program(["export", run, "-o", out, "--to", "sentence-transformers"]) == 0
    expected = probabilities(Classifier.load(run, device="cpu"), TEXTS)
    found = torch.from_numpy(logits_of_modules(tmp_path / "out", TEXTS)).softmax(-1).numpy()
    assert found == approx(expected)
    assert "- Scores on 14 texts of its test set: accuracy" in (tmp_path / "out" / "README.md").read_text()
    if pooling == "mean":
        with pytest.raises(RunError, match=r'model\.pooling = "mean" \(it has "cls"; --to sentence-transformers'):
            export(tmp_path / "run", tmp_path / "no", "huggingface")


def test_an_export_with_other_results_is_not_kept(
    trained_runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = module.write_sentence_transformer

    def write_wrong_bias(folder: Path, *others: Any) -> None:
        original(folder, *others)
        tensors = load_file(folder / "2_Dense" / "model.safetensors")
        tensors["linear.bias"] += 0.5
        save_file(tensors, folder / "2_Dense" / "model.safetensors")

    monkeypatch.setattr("manyheads.runs.export.write_sentence_transformer", write_wrong_bias)
    with pytest.raises(ParityError, match="nothing was kept"):
        export(trained_runs["bert"], tmp_path / "out", "sentence-transformers")
    assert list(tmp_path.iterdir()) == []


def test_unsupported_models_are_refused_by_name(tmp_path: Path) -> None:
    train(
        labelled_config(write_labelled(tmp_path / "text"), training={"steps": 1}),
        tmp_path / "own",
        listener=CollectingListener(),
    )
    message = (
        r'tokenizer\.kind = "bpe" \(its vocabulary must .*model\.norm = "pre".*model\.positions = "sinusoidal"'
    )
    with pytest.raises(RunError, match=message):
        export(tmp_path / "own", tmp_path / "out", "sentence-transformers")
    with pytest.raises(UsageError, match="Use --to huggingface or sentence-transformers or html"):
        export(tmp_path / "own", tmp_path / "out", "ctranslate2")
    write_folder(tmp_path / "theirs", "bert", "masked-lm")
    import_model(str(tmp_path / "theirs"), tmp_path / "run")
    import_model(str(tmp_path / "theirs"), tmp_path / "untrained", labels=LABELS)
    for to in ("sentence-transformers", "huggingface"):
        with pytest.raises(RunError, match="untrained was never trained: its labels mean nothing"):
            export(tmp_path / "untrained", tmp_path / "out", to)
    with pytest.raises(
        UsageError, match=r"is not for runs of task = \"masked-lm\", such as .*\. Use --to huggingface\."
    ):
        export(tmp_path / "run", tmp_path / "out", "sentence-transformers")
    assert not (tmp_path / "out").exists()
