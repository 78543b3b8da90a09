"""Classifiers, encoders and language models are pushed to a hub with scores on their cards, and loaded from it."""

from __future__ import annotations

import re
import shutil
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.checkpoint.test_hub import local_hub
from tests.interop.pretrained import write_folder
from tests.runs.labelled import examples, labelled_config, write_labelled, write_unlabelled
from tests.runs.language import make_language_config, write_play
from tests.runs.parts import configure, make_config, write_corpus
from tests.tasks.masked_lm.test_scoring import masked_config
from tests.tolerances import approx
from tests.training.parts import CollectingListener

from manyheads import Classifier, Encoder, Generator, Translator, from_pretrained
from manyheads.cli.main import run as program
from manyheads.errors import DataError, RunError, UsageError
from manyheads.inference.generator import GenerateOptions
from manyheads.runs.evaluate import evaluate
from manyheads.runs.export import push
from manyheads.runs.import_model import import_model
from manyheads.runs.train import train
from manyheads.tasks.language_modeling.task import LanguageModelingTask
from manyheads.training.scored_text import first_bytes

huggingface_hub = pytest.importorskip("huggingface_hub")
evaluation = import_module("manyheads.runs.evaluate")  # the package has a function of that name
hub_fixture = local_hub  # keeps the import of the fixture of test_hub
TEXTS = ["a great film", "the plot was awful", "", "film " * 200]
GREEDY = GenerateOptions(sampling=None, max_tokens=12)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_unlabelled(write_play(write_labelled(tmp_path_factory.mktemp("text"))))


@pytest.fixture(scope="module")
def trained(text: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Train a run of each task; tests must not modify it."""
    out = tmp_path_factory.mktemp("runs")
    train(labelled_config(text), out / "classification", listener=CollectingListener())
    train(masked_config(text), out / "masked-lm", listener=CollectingListener())
    train(make_language_config(text), out / "language-modeling", listener=CollectingListener())
    train(make_config(write_corpus(text / "pairs")), out / "translation", listener=CollectingListener())
    return {path.name: path for path in out.iterdir()}


def with_licence(run: Path, out: Path) -> Path:
    """Return a copy of a run with a licence, which may be pushed."""
    shutil.copytree(run, out)
    card = out / "README.md"
    filled = card.read_text(encoding="utf-8").replace("license:  # to be filled in by you", "license: mit")
    card.write_text(filled, encoding="utf-8")
    return out


def outputs_of(model: Any) -> Any:
    """Return the outputs of a model for fixed inputs."""
    if isinstance(model, Classifier):
        return model.classify(TEXTS)
    if isinstance(model, Generator):
        return model.generate(["ANNA", "", "\t"], GREEDY)
    if isinstance(model, Translator):
        return model.translate(TEXTS[:3])
    assert isinstance(model, Encoder)
    return [encoding.to_json() for encoding in model.encode(TEXTS)]


KINDS: dict[str, Any] = {
    "classification": Classifier, "masked-lm": Encoder, "language-modeling": Generator, "translation": Translator,
}  # fmt: skip
OWN_FILES = {"classification": {"labels.json"}, "translation": {"languages.json", "source_model.json"}}


@pytest.mark.parametrize("task", KINDS)
def test_a_run_of_any_task_is_pushed_with_its_scores_and_loaded_by_its_name(
    task: str, local_hub: Path, trained: dict[str, Path], tmp_path: Path
) -> None:
    own_run = with_licence(trained[task], tmp_path / "own")
    (own_run / "secret.txt").write_text("private", encoding="utf-8")
    assert program(["push", str(own_run), "somebody/one"]) == 0
    sent = {
        path.relative_to(local_hub / "somebody/one").as_posix()
        for path in (local_hub / "somebody/one").rglob("*.*")
    }
    assert {re.sub(r"^tokenizer\.(\w+)\..*", r"\1", name) for name in sent} == OWN_FILES.get(task, set()) | {
        "README.md", "config.json", "environment.json", "metrics.jsonl", "model.safetensors", "source", "target",
    }  # fmt: skip
    expected = outputs_of(KINDS[task].load(own_run))
    for opened in (
        from_pretrained("somebody/one"),
        KINDS[task].from_pretrained("somebody/one"),
        from_pretrained(str(own_run)),
    ):
        assert type(opened) is KINDS[task]
        assert outputs_of(opened) == expected
    for other in {*KINDS.values()} - {KINDS[task]}:
        with pytest.raises(RunError, match=f'was trained for task = "{task}", not for'):
            other.from_pretrained("somebody/one")
    card = (own_run / "README.md").read_text(encoding="utf-8")
    assert push(own_run, "somebody/one") == f"{huggingface_hub.constants.ENDPOINT}/somebody/one"
    assert (own_run / "README.md").read_text(encoding="utf-8") == card, "scores are not added twice"
    assert "license: mit" in card
    assert card.count("- Scores on ") == 1
    assert card.index("- Scores on ") < card.index("- Intended use and limits: to be filled in by you")


def score_line(card: Path) -> str:
    (line,) = [line for line in card.read_text(encoding="utf-8").splitlines() if line.startswith("- Scores")]
    return line


def test_the_card_of_a_classifier_has_the_scores_of_evaluate(
    local_hub: Path, trained: dict[str, Path], tmp_path: Path
) -> None:
    own_run = with_licence(trained["classification"], tmp_path / "own")
    push(own_run, "somebody/one")
    scores = evaluate(own_run, split="test").to_json()
    assert score_line(own_run / "README.md") == (
        f"- Scores on 14 texts of its test set: accuracy {scores['accuracy']:.2%}, "
        f"macro F1 {scores['macro_f1']:.2%}, "
        f"calibration error {scores['calibration_error']:.2%}"
    )


def test_the_cards_of_encoders_and_language_models_have_the_scores_of_evaluate(
    local_hub: Path, trained: dict[str, Path], tmp_path: Path
) -> None:
    origin = "its validation set (by which its weights were chosen)"
    own_run = with_licence(trained["masked-lm"], tmp_path / "masked")
    push(own_run, "somebody/one")
    scores = evaluate(own_run, split="valid").to_json()
    assert score_line(own_run / "README.md") == (
        f"- Scores on {scores['texts']} texts of {origin}: perplexity {scores['perplexity']:.3f} "
        f"of {scores['tokens']} "
        "hidden tokens (15% of all)"
    )
    own_run = with_licence(trained["language-modeling"], tmp_path / "play")
    push(own_run, "somebody/two")
    scores = evaluate(own_run, split="valid").to_json()
    assert score_line(own_run / "README.md") == (
        f"- Scores on {scores['bytes']} bytes of {origin}: {scores['bits_per_byte']:.4f} bits a byte, perplexity "
        f"{scores['perplexity']:.3f} a token (window 16 tokens, stride 8)"
    )


def test_a_run_without_its_data_is_pushed_without_scores_and_a_damaged_run_is_refused(
    local_hub: Path, trained: dict[str, Path], tmp_path: Path
) -> None:
    for task in KINDS:
        own_run = with_licence(trained[task], tmp_path / task)
        configure(own_run, "data", root=str(tmp_path / "nowhere"))
        push(own_run, f"somebody/{task}")
        assert "- Scores" not in (local_hub / "somebody" / task / "README.md").read_text(encoding="utf-8")
        (own_run / "model.safetensors").write_bytes((own_run / "model.safetensors").read_bytes()[:-4])
        with pytest.raises(RunError):
            push(own_run, "somebody/broken")
    assert not (local_hub / "somebody" / "broken").exists()


def test_a_test_set_with_unknown_labels_is_an_error_on_pushing(
    local_hub: Path, text: Path, trained: dict[str, Path], tmp_path: Path
) -> None:
    own_run = with_licence(trained["classification"], tmp_path / "own")
    shutil.copytree(text, tmp_path / "text")
    (tmp_path / "text" / "test.tsv").write_text("1\ta great film\nmeh\tso so\n", encoding="utf-8")
    configure(own_run, "data", root=str(tmp_path / "text"))
    with pytest.raises(DataError, match=r'labels that training has not seen: "meh"'):
        push(own_run, "somebody/one")
    assert list(local_hub.iterdir()) == []


def test_a_sorted_test_set_is_sampled_evenly(
    trained: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_run = with_licence(trained["classification"], tmp_path / "own")
    rows = sorted(examples(40, seed=5))
    (tmp_path / "test.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in rows), encoding="utf-8")
    configure(own_run, "data", root=str(tmp_path))
    monkeypatch.setattr("manyheads.tasks.classification.task._CARD_TEXTS", 4)
    sample = [rows[index] for index in (0, 10, 20, 30)]
    found = Classifier.load(own_run).classify([text for _, text in sample])
    expected = sum(result.label == label for result, (label, _) in zip(found, sample, strict=True))
    line = evaluation.card_line(own_run)
    assert line is not None
    assert line.startswith(f"- Scores on 4 texts of its test set: accuracy {expected / 4:.2%}, ")


def test_the_beginning_of_a_long_text_is_scored(trained: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluation.card_line(trained["language-modeling"])
    monkeypatch.setattr(LanguageModelingTask, "card_texts", staticmethod(partial(first_bytes, most=30)))
    line = evaluation.card_line(trained["language-modeling"])
    assert whole is not None
    assert line is not None
    sizes = [int(found.split()[3].replace(",", "")) for found in (line, whole)]
    assert 10 < sizes[0] <= 30 < sizes[1]


def test_an_imported_model_is_not_scored_on_files_of_the_current_folder(
    local_hub: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "theirs", "bert", "classification", num_labels=2)
    import_model(str(tmp_path / "theirs"), tmp_path / "run")
    own_run = with_licence(tmp_path / "run", tmp_path / "own")
    monkeypatch.chdir(text)
    assert (text / "valid.tsv").is_file()
    push(own_run, "somebody/one")
    assert "- Scores" not in (own_run / "README.md").read_text(encoding="utf-8")


# --- models of transformers ---


@pytest.mark.parametrize(
    ("family", "head", "kind", "others"),
    [
        ("bert", "classification", Classifier, [Generator]),
        ("gpt2", "language-modeling", Generator, [Classifier, Encoder]),
    ],
)
def test_a_model_of_transformers_is_loaded_by_its_name_and_not_for_another_task(
    family: str, head: str, kind: Any, others: list[Any], local_hub: Path
) -> None:
    write_folder(local_hub / "somebody" / "one", family, head)
    assert isinstance(from_pretrained("somebody/one"), kind)
    for other in others:
        with pytest.raises(RunError, match=f"of the type {family} for {head}, not for"):
            other.from_pretrained("somebody/one")
    with pytest.raises(UsageError, match='engine = "torch" is for translators'):
        from_pretrained("somebody/one", engine="torch")


@pytest.mark.parametrize(("family", "head"), [("bert", ""), ("roberta", "masked-lm"), ("distilbert", "")])
def test_an_encoder_gives_the_mean_of_the_hidden_states_of_transformers(
    family: str, head: str, local_hub: Path
) -> None:
    hf_model, fast = write_folder(local_hub / "somebody" / "one", family, head)
    opened = from_pretrained("somebody/one")
    assert isinstance(opened, Encoder)
    batch = fast(TEXTS[:3], padding=True, return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        hidden = getattr(hf_model, hf_model.base_model_prefix, hf_model)(**batch).last_hidden_state
    real = batch["attention_mask"][..., None]
    expected = ((hidden * real).sum(1) / real.sum(1)).numpy()
    found = opened.encode(TEXTS)
    assert np.stack([result.vector for result in found[:3]]) == approx(expected)
    assert [result.truncated for result in found] == [False, False, False, True]
    alone = [opened.encode([text])[0].vector for text in TEXTS]
    assert np.stack([result.vector for result in found]) == approx(np.stack(alone))
    with pytest.raises(UsageError, match="takes a list of texts"):
        opened.encode("one")
    if not head:
        with pytest.raises(RunError, match="an encoder without a head: it classifies nothing"):
            Classifier.from_pretrained("somebody/one")
