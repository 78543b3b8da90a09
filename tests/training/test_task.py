"""A task is one class and one entry of the registry; the verbs of runs/ train, score and export it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.runs.labelled import write_unlabelled
from tests.runs.parts import make_config

from bitext.pairs import Pair
from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import TASKS, Config, TaskSpec
from manyheads.data.store import TextStore
from manyheads.data.training_text import Corpus
from manyheads.inference.translation.translator import Translator
from manyheads.reports import Listener
from manyheads.runs.evaluate import evaluate
from manyheads.runs.export import export
from manyheads.runs.train import train
from manyheads.tasks.translation.scoring import Evaluation, evaluate_texts
from manyheads.tasks.translation.task import TranslationTask
from manyheads.training.scored_text import ScoredText
from manyheads.training.task import TrainingTask

REVERSAL = TaskSpec(
    module=__name__,
    model_class=f"{__name__}:Reverser",
    architecture="encoder-decoder",
    reads="documents",
    command="translate",
    page="translation",
)


class Reverser(Translator):
    """A translator from a line to the same line, read from its end."""

    task = "reversal"


class ReversalTask(TranslationTask):
    """Reverse the line: the target of a text is the text, read from its end."""

    name = "reversal"

    def prepare(self, config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
        pairs = [Pair(text, text[::-1], line) for line, text in enumerate(corpus.train.sides()[1], 1)]
        folder = run.path / "cache" / "reversed"
        TextStore.build(folder, [pairs], key="", details=lambda: corpus.train.details)
        valid = [Pair(pair.target, pair.target[::-1], pair.line) for pair in corpus.valid]
        return super().prepare(config, run, Corpus(TextStore(folder), valid), listener)

    def evaluate(self, model: Translator, config: Config, text: ScoredText, listener: Listener) -> Evaluation:
        lines = text.lines(config)
        return evaluate_texts(model, lines, [line[::-1] for line in lines], listener, "reversed lines")

    def card_line(self, run: RunDirectory, listener: Listener) -> str:
        return "- Scores of a reversal"


TASK = ReversalTask()


def test_a_task_of_a_test_is_trained_scored_and_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "reversal", REVERSAL)
    values = make_config(write_unlabelled(tmp_path), tokenizer={"kind": "characters"}).model_dump()
    data = {"root": str(tmp_path), "language": "en", "train": "plain", "valid": 0.2}
    train(Config.model_validate(values | {"task": "reversal", "data": data}), tmp_path / "run")
    assert json.loads((tmp_path / "run" / "config.json").read_text("utf-8"))["task"] == "reversal"
    result = evaluate(tmp_path / "run", split="valid", device="cpu")
    assert isinstance(result, Evaluation)
    assert result.sides["references"] == [source[::-1] for source in result.sides["sources"]]
    exported = export(tmp_path / "run", tmp_path / "page", "javascript", quantization="float32")
    assert exported.parity is not None
    assert "- Scores of a reversal" in (tmp_path / "page" / "README.md").read_text("utf-8")
