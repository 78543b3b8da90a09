"""The verbs of runs/ train, score and export by the object that is registered for a task, and by nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runs.parts import make_config, write_corpus
from tests.training.parts import CollectingListener

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.corpus import Pair
from manyheads.data.store import TextStore
from manyheads.runs.evaluate import evaluate
from manyheads.runs.export import export
from manyheads.runs.train import train
from manyheads.tasks.corpus import Corpus
from manyheads.tasks.registry import TASKS
from manyheads.tasks.scored_text import ScoredText
from manyheads.tasks.task import TrainingTask
from manyheads.tasks.translation.scoring import Evaluation, evaluate_texts
from manyheads.tasks.translation.task import TranslationTask
from manyheads.tasks.translation.translator import Translator
from manyheads.training.log import Listener


class ReversalTask(TranslationTask):
    """Reverse the line: the target of a text is its source, read from the end."""

    def prepare(self, config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
        sources, _ = corpus.train.sides()
        pairs = [Pair(source, source[::-1], line) for line, source in enumerate(sources, 1)]
        TextStore.build(run.path / "cache" / "reversed", [pairs], key="", details=lambda: corpus.train.details)
        valid = [pair._replace(target=pair.source[::-1]) for pair in corpus.valid]
        return super().prepare(config, run, Corpus(TextStore(run.path / "cache" / "reversed"), valid), listener)

    def evaluate(self, model: Translator, config: Config, text: ScoredText, listener: Listener) -> Evaluation:
        sources, _ = text.pairs(config)
        return evaluate_texts(model, sources, [source[::-1] for source in sources], listener, "reversed lines")

    def card_line(self, run: RunDirectory, listener: Listener) -> str:
        return "- Scores of a reversal"


def test_the_verbs_call_the_registered_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "translation", ReversalTask())
    config = make_config(write_corpus(tmp_path / "corpus"), tokenizer={"kind": "characters"})
    train(config, tmp_path / "run", listener=CollectingListener())
    assert "läuft"[::-1] in "".join(TextStore(tmp_path / "run" / "cache" / "reversed").sides()[1])
    result = evaluate(tmp_path / "run", device="cpu")
    assert isinstance(result, Evaluation)
    assert result.sides["references"] == [source[::-1] for source in result.sides["sources"]]
    exported = export(tmp_path / "run", tmp_path / "page", "javascript", quantization="float32")
    assert exported.parity is not None
    assert "- Scores of a reversal" in (tmp_path / "page" / "README.md").read_text("utf-8")
