"""Evaluation of a run, and comparison of two runs."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import sacrebleu
import torch
from tests.runs.parts import configure, make_config, write_corpus
from tests.tolerances import approx
from tests.training.parts import CollectingListener
from torch.nn import functional

from bitext.lines import read_lines
from manyheads.errors import ConfigError, DataError, UsageError
from manyheads.inference.translation.translator import Translator
from manyheads.runs.compare import compare
from manyheads.runs.evaluate import evaluate
from manyheads.runs.train import train
from manyheads.text.tokenizer import BOS, EOS


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run that was trained for a few updates; tests only read it."""
    folder = tmp_path_factory.mktemp("evaluate")
    training = {"steps": 60, "save_every": 60, "batch_tokens": 150, "learning_rate": 0.02, "warmup_steps": 10}
    config = make_config(write_corpus(folder / "corpus"), training=training)
    train(config, folder / "run")
    return folder / "run"


def corpus_of(run: Path) -> Path:
    return run.parent / "corpus"


def lines(run: Path, name: str) -> list[str]:
    return list(read_lines(corpus_of(run) / name))


def test_figures_signatures_and_verdict_are_in_the_json_document_and_in_the_lines(trained: Path) -> None:
    found = evaluate(trained)
    value = json.loads(json.dumps(found.to_json(), allow_nan=False))
    sentences, text = found.verdict(), "\n".join(found.lines())
    for figure in (
        f"BLEU {found.scores.bleu:.2f}",
        f"perplexity {found.perplexity:.3f}",
        *found.scores.signature.values(),
        *(f"verdict: {each}" for each in sentences),
    ):
        assert figure in text
    assert sentences[0].startswith("BLEU is ")
    assert "too few for a verdict" in sentences[0]
    assert sentences[1].startswith("perplexity ")
    assert value["verdict"] == ". ".join(sentences)
    low, high = value["bleu_interval"]
    assert low <= found.scores.bleu <= high
    assert value.keys() >= {
        "task", "loss", "perplexity", "tokens", "bleu", "chrf", "ter", "signature", "sentences", "seconds",
    }  # fmt: skip
    assert value["task"] == "translation"
    assert value["sentences"] == 6
    assert value["perplexity"] == pytest.approx(math.exp(value["loss"]))
    assert value["signature"].keys() == {"bleu", "chrf", "ter"}
    assert "tok:13a" in value["signature"]["bleu"]
    assert value["seconds"] > 0


def test_the_progress_counts_every_line(trained: Path) -> None:
    listener, other = CollectingListener(), CollectingListener()
    evaluate(trained, listener=listener)
    assert listener.phases == [("translating", 6), ("scoring the references", 6)]
    compare(trained, trained, listener=other)
    assert other.phases == [("translating", 6)] * 2


def test_outputs_with_a_defect_are_counted_with_their_line(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("der Hund läuft\n" * 3, encoding="utf-8")
    (tmp_path / "r").write_text(f"the dog runs\n{'a very long sentence ' * 20}\nthe dog runs\n", encoding="utf-8")
    found = evaluate(trained, source=tmp_path / "s", reference=tmp_path / "r")
    assert found.to_json()["defects"].items() >= {"far-too-short": 1}.items()
    assert len(found.verdict()) == 1, "nothing is shared: one verdict, with its cause"
    assert found.updates == 60
    log = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    assert found.validation_loss == min(line["loss"] for line in log if line["kind"] == "validation")
    better = replace(found, scores=replace(found.scores, bleu=20.0))  # below 2 there is one verdict
    assert any("less than half as long" in each and "the first in line 2" in each for each in better.verdict())


def test_pairs_of_the_training_text_are_found_in_scored_files(trained: Path, tmp_path: Path) -> None:
    for side in ("de", "en"):
        seen, new = lines(trained, f"train.{side}")[:2], lines(trained, f"test.{side}")[:3]
        (tmp_path / side).write_text("".join(f"{line}\n" for line in [*seen, *new]), encoding="utf-8")
    found = evaluate(trained, source=tmp_path / "de", reference=tmp_path / "en")
    assert found.overlap == (2, 36)
    assert found.verdict()[0].startswith("2 of 5 pairs (40.0%) are among the 36 training pairs")


def test_pairs_that_training_has_dropped_are_not_searched_for(trained: Path, tmp_path: Path) -> None:
    """The test set of the run is compared with the training text only without `drop_overlap`."""
    assert evaluate(trained).overlap is None
    assert evaluate(trained, split="train").overlap is None
    copy = configure(Path(shutil.copytree(trained, tmp_path / "run")), "data", drop_overlap=False)
    assert evaluate(copy).overlap == (0, 36)


def test_pairs_are_not_searched_for_without_the_training_text(trained: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(corpus_of(trained), tmp_path / "moved"))
    for side in ("de", "en"):
        (moved / f"train.{side}").unlink()
        (moved / f"new.{side}").write_text("x y z\n", encoding="utf-8")
    found = evaluate(
        trained, source=moved / "new.de", reference=moved / "new.en", overrides=[f"data.root={moved}"],
    )  # fmt: skip
    assert found.overlap is None


def test_the_loss_is_the_sum_over_single_pairs(trained: Path) -> None:
    """Invariant L, by torch's own function, without padding and without label smoothing."""
    translator = Translator.load(trained)
    nats, tokens = 0.0, 0
    for source, target in zip(lines(trained, "test.de"), lines(trained, "test.en"), strict=True):
        ids = translator.tokenizers.target.encode([target])[0]
        first = torch.tensor([[*translator.tokenizers.source.encode([source])[0], EOS]])
        with torch.no_grad():
            logits = translator.model(first, torch.tensor([[BOS, *ids]]))[0]
        nats += functional.cross_entropy(logits, torch.tensor([*ids, EOS]), reduction="sum").item()
        tokens += len(ids) + 1
    found = evaluate(trained)
    assert found.tokens == tokens
    assert found.loss == approx(nats / tokens)


def test_scored_outputs_are_in_the_order_of_the_lines(trained: Path) -> None:
    found = evaluate(trained)
    sources, references = lines(trained, "test.de"), lines(trained, "test.en")
    expected = [Translator.load(trained).translate([source])[0].translation for source in sources]
    assert found.outputs == expected
    assert len(set(expected)) > 3
    assert found.scores.bleu == pytest.approx(sacrebleu.corpus_bleu(expected, [references], force=True).score)
    assert found.scores.chrf == pytest.approx(sacrebleu.corpus_chrf(expected, [references]).score)
    assert found.exact == sum(map(str.__eq__, expected, references)) / 6


def test_files_are_scored_like_the_split_that_they_hold(trained: Path) -> None:
    folder = corpus_of(trained)
    files = evaluate(trained, source=folder / "test.de", reference=folder / "test.en")
    split = evaluate(trained, split="test")
    assert (files.outputs, files.loss, files.scores) == (split.outputs, split.loss, split.scores)


def test_words_are_scored_with_the_white_space_of_training(tmp_path: Path) -> None:
    """`evaluate` gives the loss that training gave for the same weights and validation set."""
    corpus = write_corpus(tmp_path / "corpus")
    for name in ("train", "valid"):
        path = corpus / f"{name}.en"
        path.write_text(path.read_text(encoding="utf-8").replace(" ", "  "), encoding="utf-8")
    tokenizer = {"kind": "words", "joint": False}
    config = make_config(corpus, tokenizer=tokenizer, model={"tied_embeddings": "none"})
    listener = CollectingListener()
    train(config, tmp_path / "run", listener=listener)
    found = evaluate(tmp_path / "run", split="valid")
    assert found.loss == approx(min(report.loss for report in listener.validations))


def test_files_may_hold_empty_lines_and_miss_the_last_newline(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("der Hund läuft\n\ndie Katze singt", encoding="utf-8")
    (tmp_path / "r").write_text("the dog runs\nnothing\n\n", encoding="utf-8")
    found = evaluate(trained, source=tmp_path / "s", reference=tmp_path / "r")
    assert len(found.outputs) == 3
    assert found.outputs[1] == ""
    assert math.isfinite(found.loss)


@pytest.mark.parametrize(
    ("source", "reference", "error", "message"),
    [
        ("two", "three", DataError, r"two has 2 lines, but the other file 3"),
        ("three", "two", DataError, r"two has 2 lines, but the other file 3"),
        ("empty", "empty", DataError, r"nothing to score|no lines"),
        ("two", None, UsageError, "belong together"),
        (None, "two", UsageError, "belong together"),
        (None, None, UsageError, "names no test set"),
    ],
)
def test_a_text_that_cannot_be_scored_is_refused_with_the_reason(
    trained: Path, tmp_path: Path, source: str | None, reference: str | None, error: type[Exception], message: str
) -> None:
    for name, lines in (("empty", ""), ("two", "eins\nzwei\n"), ("three", "one\ntwo\nthree\n")):
        (tmp_path / name).write_text(lines, encoding="utf-8")
    paths = [name and tmp_path / name for name in (source, reference)]
    with pytest.raises(error, match=message):
        evaluate(trained, source=paths[0], reference=paths[1], overrides=["data.test=none"])


def test_settings_can_be_overridden(trained: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(corpus_of(trained), tmp_path / "moved"))
    (moved / "test.de").write_text("der Mann liest\n", encoding="utf-8")
    (moved / "test.en").write_text("the man reads\n", encoding="utf-8")
    listener = CollectingListener()
    found = evaluate(trained, overrides=[f"data.root={moved}", "search.beam_size=1"], listener=listener)
    assert len(found.outputs) == 1
    assert "greedy search" in listener.messages[0]
    assert found.lines()[0] == f"data.test: {len(found.outputs)} sentences, greedy search"
    with pytest.raises(ConfigError, match=r"search\.beam_sise"):
        evaluate(trained, overrides=["search.beam_sise=1"])


def test_perfect_outputs_score_100_with_references_cleaned_like_training_text(
    trained: Path, tmp_path: Path
) -> None:
    """Bytes that no tokenizer restores must not count as errors."""
    sources = lines(trained, "test.de")
    outputs = [translation.translation for translation in Translator.load(trained).translate(sources)]
    (tmp_path / "r").write_text(
        "".join(f"\ufeff{line[:3]}\x07{line[3:]}\r\n" for line in outputs), encoding="utf-8"
    )
    found = evaluate(trained, source=corpus_of(trained) / "test.de", reference=tmp_path / "r")
    assert found.scores.chrf == pytest.approx(100)
    assert found.exact == sum(line == " ".join(line.split()) for line in outputs) / 6
    assert found.scores.ter == 0


def test_a_run_against_itself_does_not_differ(trained: Path) -> None:
    found = compare(trained, trained)
    assert [result.metric for result in found.results] == ["bleu", "chrf"]
    for result in found.results:
        assert result.difference == 0
        assert result.p_value == 1
        assert result.score == result.baseline
    text = "\n".join(found.lines())
    assert text.count("not significant") == 2
    assert f"verdict: BLEU is the same for {trained} and {trained}" in text
    value = json.loads(json.dumps(found.to_json()))
    assert (value["run"], value["bleu"]["difference"], value["chrf"]["p_value"]) == (str(trained), 0, 1)
    assert value["verdict"] == ". ".join(found.verdict())
    assert value["bleu"]["lines"] == 6


def test_two_runs_are_compared_on_the_text_of_the_first(trained: Path, tmp_path: Path) -> None:
    config = make_config(corpus_of(trained), training={"steps": 1, "valid_sentences": 0}, data={"test": None})
    train(config, tmp_path / "other")
    found = compare(trained, tmp_path / "other")
    own = evaluate(trained)
    other = evaluate(tmp_path / "other", overrides=["data.test=test"])
    chrf = found.results[1]
    assert chrf.score == pytest.approx(own.scores.chrf)
    assert chrf.baseline == pytest.approx(other.scores.chrf)
    assert chrf.difference == pytest.approx(own.scores.chrf - other.scores.chrf)


def test_the_model_is_loaded_on_the_given_device(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    devices: list[str] = []
    load = Translator.load.__func__

    def recording_load(kind: type[Translator], run: Path, *, device: str = "auto") -> Translator:
        devices.append(device)
        translator: Translator = load(kind, run, device="cpu")
        return translator

    monkeypatch.setattr(Translator, "load", classmethod(recording_load))
    evaluate(trained, device="cuda:1")
    compare(trained, trained, device="cuda:2")
    assert devices == ["cuda:1", "cuda:2", "cuda:2"]
