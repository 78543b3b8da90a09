"""Two runs score pairs by their teacher-forced cross-entropies, independently of other pairs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.tolerances import assert_close

from clusters import Cluster
from manyheads.config.load import load_config, resolve_recipe
from manyheads.config.schema import Config
from manyheads.errors import UsageError
from manyheads.inference.translation.translator import Translator
from manyheads.runs.clean import _cross_entropies, _dual_scores, _name_of, clean
from manyheads.runs.train import train

SMALL = (
    "training.steps=2", "training.epochs=none", "training.max_minutes=none", "training.save_every=2",
    "model.d_model=16", "model.d_ff=16", "training.valid_sentences=2", "data.limit=100", "training.device=cpu",
    "tokenizer.kind=characters",
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "de-en"
    train(load_config(resolve_recipe("demo-de-en"), SMALL), folder)
    return folder


def test_cross_entropies_do_not_depend_on_other_pairs(run: Path) -> None:
    translator = Translator.load(run, device="cpu")
    sources = ["Der Hund schläft.", "Ja.", "Die kleine Katze sitzt auf dem roten Stuhl."]
    targets = ["The dog sleeps.", "Yes.", "The small cat sits on the red chair."]
    together = _cross_entropies(translator, sources, targets)
    alone = [_cross_entropies(translator, [s], [t])[0] for s, t in zip(sources, targets, strict=True)]
    assert_close(together, alone, dtype=torch.float32)
    assert (together > 0).all()


def test_two_equal_models_score_the_mean_and_the_difference(run: Path) -> None:
    translator = Translator.load(run, device="cpu")
    texts = ["Der Hund schläft."], ["The dog sleeps."]
    forward = _cross_entropies(translator, *texts)
    backward = _cross_entropies(translator, *texts[::-1])
    expected = -(abs(forward - backward) + (forward + backward) / 2)
    assert_close(_dual_scores(str(run), str(run), texts), expected, dtype=torch.float32)


def test_the_output_files_are_named_after_the_split() -> None:
    config = Config.model_validate({"data": {"source": "de", "target": "en", "train": "corpus"}})
    assert _name_of(config) == "corpus"
    config = Config.model_validate({"data": {"source": "de", "target": "en", "train": ["a/b.de", "a/b.en"]}})
    assert _name_of(config) == "train"


def test_a_cluster_whose_workers_run_in_another_folder_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = load_config(resolve_recipe("demo-de-en"), ["data.limit=200"])
    clean(config, Path("here"))
    Path("dask").mkdir()
    with Cluster(tmp_path / "dask", 1) as cluster:
        clean(config, Path("there"), scheduler=cluster.address)
    names = sorted(path.name for path in Path("here").iterdir())
    assert names == sorted(path.name for path in Path("there").iterdir())
    for name in set(names) - {"report.json", "report.html"}:  # which name their folder
        assert Path("here", name).read_bytes() == Path("there", name).read_bytes()


def test_other_tasks_are_refused(tmp_path: Path) -> None:
    config = Config.model_validate({"task": "classification", "data": {"language": "en"}})
    with pytest.raises(UsageError, match="takes pairs of sentences"):
        clean(config, tmp_path / "out")
