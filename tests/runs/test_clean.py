"""Two runs score pairs by their teacher-forced cross-entropies, independently of other pairs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.clusters import Cluster
from tests.tolerances import assert_close

from manyheads.config.load import load_config, resolve_recipe
from manyheads.config.schema import Config
from manyheads.data.lines import read_lines
from manyheads.errors import UsageError
from manyheads.runs.clean import _cross_entropies, _dual_scores, _names_of, clean
from manyheads.runs.train import train
from manyheads.tasks.translation.translator import Translator

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
    assert _names_of(config) == ("corpus.de.gz", "corpus.en.gz")
    config = Config.model_validate({"data": {"source": "de", "target": "en", "train": ["a/b.de", "a/b.en"]}})
    assert _names_of(config) == ("train.de.gz", "train.en.gz")


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


@pytest.mark.parametrize(("off", "count"), [([], 1), (["access-keys"], 0)])
def test_pairs_with_access_keys_are_counted_and_lose_them(tmp_path: Path, off: list[str], count: int) -> None:
    texts = [("Datei _öffnen", "_Open a file"), ("Der kleine Hund schläft.", "The small dog is asleep.")]
    paths = [tmp_path / name for name in ("a.de", "a.en")]
    for path, lines in zip(paths, zip(*texts, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines))
    data = {"source": "de", "target": "en", "train": list(map(str, paths))}
    report = clean(Config.model_validate({"data": data, "clean": {"off": off}}), tmp_path / "out")
    assert report.repaired == ({"access-keys": 1} if count else {})
    assert [line.split() for line in report.lines() if "access keys" in line] == [
        ["access-keys", "1", "50.0", "%", "repaired:", "access", "keys,", "such", "as", "_File", "or", "(&F)"]
    ] * count
    assert clean(Config.model_validate({"data": data, "clean": {"off": off}}), tmp_path / "out") == report


@pytest.mark.parametrize("off", [False, True])
def test_typographic_marks_are_counted_and_leave_both_sides_but_no_break_blanks_stay(
    tmp_path: Path, off: bool
) -> None:
    texts = [
        ("Der Donau\u00addampfer ﬁndet\u200b heim.", "Le ba\u00adteau rentre\u00a0!"),
        ("Das Wetter ist heute schön.", "Quel beau temps\u00a0!"),
    ]
    for index, language in enumerate(("de", "fr")):
        lines = "".join(f"{pair[index]}\n" for pair in texts)
        (tmp_path / f"train.{language}").write_text(lines, encoding="utf-8")
    data = {"root": str(tmp_path), "source": "de", "target": "fr"}
    config = Config.model_validate({"data": data, "clean": {"off": ["typography"] if off else []}})
    report = clean(config, tmp_path / "out")
    assert report.repaired == ({} if off else {"typography": 1})
    kept = [list(read_lines(tmp_path / "out" / f"train.{language}.gz")) for language in ("de", "fr")]
    plain = [["Der Donaudampfer findet heim.", texts[1][0]], ["Le bateau rentre\u00a0!", texts[1][1]]]
    assert kept == ([list(side) for side in zip(*texts, strict=True)] if off else plain)
