"""Classifiers, encoders and language models go up to a hub and come down, with their scores on their cards."""

from __future__ import annotations

import re
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.interop.pretrained import write_folder
from tests.interop.test_hub import shelf
from tests.runs.labelled import examples, labelled_config, write_labelled
from tests.runs.language import make_language_config, write_play
from tests.runs.test_masked import masked_config
from tests.training.parts import CollectingListener

from manyheads import Classifier, Encoder, Generator, Translator, from_pretrained
from manyheads.cli.main import run as program
from manyheads.errors import DataError, RunError, UsageError
from manyheads.runs.evaluate import evaluate
from manyheads.runs.export import push
from manyheads.runs.import_model import import_model
from manyheads.runs.train import train
from manyheads.tasks.language_modeling import GenerateOptions

pytest.importorskip("huggingface_hub")
evaluation = import_module("manyheads.runs.evaluate")  # the package has a function of that name
hub_shelf = shelf  # a fixture of the neighbour
TEXTS = ["a great film", "the plot was awful", "", "film " * 200]
GREEDY = GenerateOptions(sampling=None, max_tokens=12)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_play(write_labelled(tmp_path_factory.mktemp("text")))
    lines = [text for _, text in examples(60, seed=9)]
    (folder / "plain.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def trained(text: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each task; look, do not touch."""
    out = tmp_path_factory.mktemp("runs")
    train(labelled_config(text), out / "classification", listener=CollectingListener())
    train(masked_config(text), out / "masked-lm", listener=CollectingListener())
    train(make_language_config(text), out / "language-modeling", listener=CollectingListener())
    return {path.name: path for path in out.iterdir()}


def with_licence(run: Path, out: Path) -> Path:
    """A copy of a run that may go up."""
    shutil.copytree(run, out)
    card = out / "README.md"
    filled = card.read_text(encoding="utf-8").replace("license:  # to be filled in by you", "license: mit")
    card.write_text(filled, encoding="utf-8")
    return out


def said(model: Any) -> Any:
    """What comes out of a model."""
    if isinstance(model, Classifier):
        return model.classify(TEXTS)
    if isinstance(model, Generator):
        return model.generate(["ANNA", "", "\t"], GREEDY)
    assert isinstance(model, Encoder)
    return [one.to_json() for one in model.encode(TEXTS)]


KINDS: dict[str, Any] = {"classification": Classifier, "masked-lm": Encoder, "language-modeling": Generator}


@pytest.mark.parametrize("task", KINDS)
def test_a_run_of_any_task_goes_up_with_its_scores_and_comes_down(
    task: str, shelf: Path, trained: dict[str, Path], tmp_path: Path
) -> None:
    own = with_licence(trained[task], tmp_path / "own")
    (own / "secret.txt").write_text("private", encoding="utf-8")
    assert program(["push", str(own), "somebody/one"]) == 0
    sent = {path.relative_to(shelf / "somebody/one").as_posix() for path in (shelf / "somebody/one").rglob("*.*")}
    labels = {"labels.json"} if task == "classification" else set()
    assert {re.sub(r"^tokenizer\.(\w+)\..*", r"\1", name) for name in sent} == labels | {
        "README.md", "config.json", "environment.json", "metrics.jsonl", "model.safetensors", "source", "target",
    }  # fmt: skip
    right = said(KINDS[task].load(own))
    for opened in (
        from_pretrained("somebody/one"),
        KINDS[task].from_pretrained("somebody/one"),
        from_pretrained(str(own)),
    ):
        assert type(opened) is KINDS[task]
        assert said(opened) == right
    others = [kind for name, kind in KINDS.items() if name != task]
    for other in (*others, Translator):
        with pytest.raises(RunError, match=f'was trained for task = "{task}", not for'):
            other.from_pretrained("somebody/one")
    card = (own / "README.md").read_text(encoding="utf-8")
    push(own, "somebody/one")
    assert (own / "README.md").read_text(encoding="utf-8") == card, "scores are not added twice"
    assert "license: mit" in card
    assert card.count("- Scores on ") == 1
    assert card.index("- Scores on ") < card.index("- Intended use and limits: to be filled in by you")


def score_line(card: Path) -> str:
    (line,) = [line for line in card.read_text(encoding="utf-8").splitlines() if line.startswith("- Scores")]
    return line


def test_the_card_of_a_classifier_tells_what_evaluate_tells(
    shelf: Path, trained: dict[str, Path], tmp_path: Path
) -> None:
    own = with_licence(trained["classification"], tmp_path / "own")
    push(own, "somebody/one")
    one = evaluate(own, split="test").to_json()
    assert score_line(own / "README.md") == (
        f"- Scores on 14 texts of its test set: accuracy {one['accuracy']:.2%}, macro F1 {one['macro_f1']:.2%}, "
        f"calibration error {one['calibration_error']:.2%}"
    )


def test_the_cards_of_the_others_tell_what_evaluate_tells(
    shelf: Path, trained: dict[str, Path], tmp_path: Path
) -> None:
    which = "its validation set (by which its weights were chosen)"
    own = with_licence(trained["masked-lm"], tmp_path / "masked")
    push(own, "somebody/one")
    one = evaluate(own, split="valid").to_json()
    assert score_line(own / "README.md") == (
        f"- Scores on {one['texts']} texts of {which}: perplexity {one['perplexity']:.3f} of {one['tokens']} "
        "hidden tokens (15% of all)"
    )
    own = with_licence(trained["language-modeling"], tmp_path / "play")
    push(own, "somebody/two")
    one = evaluate(own, split="valid").to_json()
    assert score_line(own / "README.md") == (
        f"- Scores on {one['bytes']} bytes of {which}: {one['bits_per_byte']:.4f} bits a byte, perplexity "
        f"{one['perplexity']:.3f} a token (window 16 tokens, stride 8)"
    )


def test_without_its_text_a_run_goes_up_without_scores_and_a_broken_one_not_at_all(
    shelf: Path, trained: dict[str, Path], tmp_path: Path
) -> None:
    for task in KINDS:
        own = with_licence(trained[task], tmp_path / task)
        rooted(own, tmp_path / "nowhere")
        push(own, f"somebody/{task}")
        assert "- Scores" not in (shelf / "somebody" / task / "README.md").read_text(encoding="utf-8")
        (own / "model.safetensors").write_bytes((own / "model.safetensors").read_bytes()[:-4])
        with pytest.raises(RunError):
            push(own, "somebody/broken")
    assert not (shelf / "somebody" / "broken").exists()


def test_a_test_set_with_other_labels_does_not_pass_for_one_without(
    shelf: Path, text: Path, trained: dict[str, Path], tmp_path: Path
) -> None:
    own = with_licence(trained["classification"], tmp_path / "own")
    shutil.copytree(text, tmp_path / "text")
    (tmp_path / "text" / "test.tsv").write_text("1\ta great film\nmeh\tso so\n", encoding="utf-8")
    rooted(own, tmp_path / "text")
    with pytest.raises(DataError, match=r'labels that training has not seen: "meh"'):
        push(own, "somebody/one")
    assert list(shelf.iterdir()) == []


def rooted(run: Path, root: Path) -> None:
    """Let the text of a run be in another folder."""
    config = run / "config.json"
    plain = re.sub(r'"root": "[^"]*"', f'"root": "{root}"', config.read_text(encoding="utf-8"))
    config.write_text(plain, encoding="utf-8")


def test_a_test_set_that_is_sorted_by_label_is_scored_all_along(
    trained: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = with_licence(trained["classification"], tmp_path / "own")
    rows = sorted(examples(40, seed=5))
    (tmp_path / "test.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in rows), encoding="utf-8")
    rooted(own, tmp_path)
    monkeypatch.setattr(evaluation, "MOST", 4)
    some = [rows[place] for place in (0, 10, 20, 30)]
    found = Classifier.load(own).classify([text for _, text in some])
    right = sum(one.label == label for one, (label, _) in zip(found, some, strict=True))
    line = evaluation.card_line(own)
    assert line is not None
    assert line.startswith(f"- Scores on 4 texts of its test set: accuracy {right / 4:.2%}, ")


def test_of_a_long_text_the_beginning_is_scored(trained: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluation.card_line(trained["language-modeling"])
    monkeypatch.setattr(evaluation, "MOST_BYTES", 30)
    line = evaluation.card_line(trained["language-modeling"])
    assert whole is not None
    assert line is not None
    sizes = [int(found.split()[3].replace(",", "")) for found in (line, whole)]
    assert 10 < sizes[0] <= 30 < sizes[1]


def test_what_was_imported_is_not_scored_on_files_that_happen_to_be_here(
    shelf: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "theirs", "bert", "classification", num_labels=2)
    import_model(str(tmp_path / "theirs"), tmp_path / "run")
    own = with_licence(tmp_path / "run", tmp_path / "own")
    monkeypatch.chdir(text)
    assert (text / "valid.tsv").is_file()
    push(own, "somebody/one")
    assert "- Scores" not in (own / "README.md").read_text(encoding="utf-8")


# --- straight from folders of transformers ---


def test_a_classifier_of_transformers_opens_by_its_name(shelf: Path) -> None:
    theirs, fast = write_folder(shelf / "somebody" / "bert", "bert", "classification", num_labels=3)
    opened = from_pretrained("somebody/bert")
    assert isinstance(opened, Classifier)
    batch = fast(TEXTS[:2], padding=True, return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        right = theirs(**batch).logits.softmax(-1).numpy()
    found = [list(one.probabilities.values()) for one in opened.classify(TEXTS[:2])]
    assert found == pytest.approx(right, abs=1e-5)
    with pytest.raises(RunError, match="of the type bert for classification, not for language-modeling"):
        Generator.from_pretrained("somebody/bert")
    with pytest.raises(UsageError, match='engine = "ctranslate2" is for translators'):
        from_pretrained("somebody/bert", engine="ctranslate2")


def test_a_gpt2_opens_by_its_name(shelf: Path) -> None:
    theirs, fast = write_folder(shelf / "somebody" / "gpt2", "gpt2", "language-modeling")
    opened = from_pretrained("somebody/gpt2")
    assert isinstance(opened, Generator)
    (found,) = opened.generate(["hund katze"], GREEDY)[0].samples
    ids = fast("hund katze", return_tensors="pt")["input_ids"]
    right = theirs.generate(ids, max_new_tokens=12, do_sample=False, pad_token_id=fast.eos_token_id)
    assert found.text == fast.decode(right[0][ids.size(1) :], skip_special_tokens=True)
    for kind in (Classifier, Encoder):
        with pytest.raises(RunError, match="of the type gpt2 for language-modeling, not for"):
            kind.from_pretrained("somebody/gpt2")  # type: ignore[attr-defined]


@pytest.mark.parametrize(("family", "head"), [("bert", ""), ("roberta", "masked-lm"), ("distilbert", "")])
def test_an_encoder_gives_the_mean_of_the_hidden_states_of_transformers(
    family: str, head: str, shelf: Path
) -> None:
    theirs, fast = write_folder(shelf / "somebody" / "one", family, head)
    opened = from_pretrained("somebody/one")
    assert isinstance(opened, Encoder)
    batch = fast(TEXTS[:3], padding=True, return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        hidden = getattr(theirs, theirs.base_model_prefix, theirs)(**batch).last_hidden_state
    real = batch["attention_mask"][..., None]
    right = ((hidden * real).sum(1) / real.sum(1)).numpy()
    found = opened.encode(TEXTS)
    assert np.stack([one.vector for one in found[:3]]) == pytest.approx(right, abs=1e-5)
    assert [one.truncated for one in found] == [False, False, False, True]
    alone = [opened.encode([text])[0].vector for text in TEXTS]
    assert np.stack([one.vector for one in found]) == pytest.approx(np.stack(alone), abs=1e-5)
    with pytest.raises(UsageError, match="takes a list of texts"):
        opened.encode("one")
    if not head:
        with pytest.raises(RunError, match="an encoder without a head: it classifies nothing"):
            Classifier.from_pretrained("somebody/one")
