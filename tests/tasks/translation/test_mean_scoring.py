"""A translator of several languages is trained, resumed and scored direction by direction, and in the mean."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest
from tests.runs.parts import Interrupting, make_languages_config, metrics, write_languages
from tests.runs.test_train import assert_same_run
from tests.tolerances import approx
from tests.training.parts import CollectingListener

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.errors import UsageError
from manyheads.improve.tune import tune
from manyheads.inference.languages import languages_of
from manyheads.inference.translation.translator import Translator
from manyheads.runs.challenge import challenge_run
from manyheads.runs.clean import clean
from manyheads.runs.evaluate import evaluate
from manyheads.runs.examine_config import examine_config
from manyheads.runs.examine_run import examine_run
from manyheads.runs.export import export
from manyheads.runs.train import train
from manyheads.search.options import SearchOptions
from manyheads.tasks.translation.mean_scoring import MeanEvaluation
from manyheads.tasks.translation.scoring import Evaluation
from manyheads.text.languages import other_language
from manyheads.text.tokenizer import BOS, EOS
from manyheads.training.objective import corpus_nll

DIRECTIONS = ["en-de", "de-en", "en-fr"]
SENTENCE = "the dog sleeps"


def config_of(corpus: Path) -> Config:
    return make_languages_config(
        corpus, tokenizer={"sampling": 0.2}, model={"dropout": 0.2}, training={"average_checkpoints": 2}
    )


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_languages(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an uninterrupted run, which tests only read."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    train(config_of(corpus), out)
    return out


def test_a_validation_reports_each_direction_and_the_mean(run: Path) -> None:
    for record in metrics(run):
        if record["kind"] == "validation":
            assert record["bleu"] == approx(fmean(record[f"bleu {name}"] for name in DIRECTIONS))
            assert len(record["samples"]) == 3


def test_a_resumed_training_is_the_uninterrupted_one(corpus: Path, run: Path, tmp_path: Path) -> None:
    for step in (5, 9):
        with pytest.raises(KeyboardInterrupt):
            train(config_of(corpus), tmp_path / "run", listener=Interrupting(step=step))
    train(config_of(corpus), tmp_path / "run")
    assert_same_run(tmp_path / "run", run)


def test_a_time_limit_shortens_the_validation_of_every_direction(corpus: Path, tmp_path: Path) -> None:
    config = make_languages_config(corpus, training={"max_minutes": 1, "steps": 2, "save_every": 1})
    train(config, tmp_path / "run")
    train(config, tmp_path / "run")  # a stored size of the validation is read back
    assert RunDirectory(tmp_path / "run").described


def test_the_directions_of_an_evaluation_are_those_of_the_directions_alone(run: Path) -> None:
    together = evaluate(run, device="cpu")
    assert isinstance(together, MeanEvaluation)
    assert list(together.parts) == DIRECTIONS
    document = together.to_json()
    for name in DIRECTIONS:
        source, target = name.split("-")
        alone = evaluate(run, languages=(source, target), device="cpu")
        assert isinstance(alone, Evaluation)
        assert document["directions"][name]["bleu"] == alone.to_json()["bleu"]
        assert together.parts[name].loss == approx(alone.loss)
    for metric in ("bleu", "chrf", "ter", "loss"):
        assert document[metric] == approx(fmean(part[metric] for part in document["directions"].values()))
    json.dumps(document)
    assert len(together.lines()) == len(DIRECTIONS) + 3


def test_a_direction_that_was_not_trained_is_scored_and_named_as_such(run: Path) -> None:
    result = evaluate(run, languages=("de", "fr"), device="cpu")
    document = result.to_json()
    assert (document["direction"], document["trained"]) == ("de-fr", False)
    assert "de-fr was not trained" in result.lines()


def test_outputs_in_another_language_are_counted(run: Path) -> None:
    profiles = languages_of(RunDirectory(run))
    assert sorted(profiles) == ["de", "en", "fr"]
    texts = {"the horse likes to jump": "en", "eht esroh sekil ot pmuj": "", "das Pferd springt gern": "de"}
    assert {text: other_language(text, "fr", profiles) for text in texts} == texts


def test_the_target_language_is_no_part_of_an_output(run: Path) -> None:
    translator = Translator.load(run, device="cpu")
    (found,) = translator.translate([SENTENCE], target="fr", n_best=2, beam_size=2)
    for candidate in found.hypotheses:
        assert not any(piece.startswith("<to-") for piece in candidate.tokens)
        assert len(candidate.token_scores) == len(candidate.tokens)
        assert candidate.log_probability == approx(sum(candidate.token_scores))
    scores = [candidate.score for candidate in found.hypotheses]
    assert scores == sorted(scores, reverse=True)


def test_the_target_language_decides_the_output(run: Path) -> None:
    """Both search in C and with torch, in a batch and alone, streamed and not."""
    translator = Translator.load(run, device="cpu")
    texts = [SENTENCE, "a child reads. the man sings"]
    options = SearchOptions(split="sentences")
    to_french, to_german = (translator.to(source="en", target=target) for target in ("fr", "de"))
    found = [direction.translate(texts, options=options) for direction in (to_french, to_german)]
    assert found[0] != found[1]
    assert translator.translate(texts, target="fr", source="en", options=options) == found[0]
    for line, together in zip(texts, found[0], strict=True):
        (alone,) = to_french.translate([line], options=options)
        assert alone.translation == together.translation
        greedy = to_french.translate([line], options=options, beam_size=1)[0].translation
        assert "".join(to_french.stream(line, options=options)) == greedy
    with_torch = Translator(to_french.config, to_french.tokenizers, to_french.model)
    assert [translation.translation for translation in with_torch.translate(texts, options=options)] == [
        translation.translation for translation in found[0]
    ]


def test_a_direction_that_was_not_trained_is_translated_with_a_warning(run: Path) -> None:
    translator = Translator.load(run, device="cpu")
    assert "untrained-direction" in translator.translate(["der Hund"], target="fr", source="de")[0].warnings
    assert "untrained-direction" not in translator.translate([SENTENCE], target="fr")[0].warnings


def test_a_translator_of_several_languages_needs_a_target(run: Path) -> None:
    translator = Translator.load(run, device="cpu")
    with pytest.raises(UsageError, match="several directions fit: en-de, de-en, en-fr"):
        translator.translate([SENTENCE])
    with pytest.raises(UsageError, match="several directions fit"):
        list(translator.stream(SENTENCE))


@pytest.mark.learning
def test_a_translator_learns_to_write_the_language_that_is_asked_for(
    corpus: Path, tmp_path: Path, training_seed: int
) -> None:
    listener = CollectingListener()
    config = make_languages_config(
        corpus,
        model={"d_model": 32, "d_ff": 64},
        training={
            "steps": 300, "batch_tokens": 300, "save_every": 100, "warmup_steps": 30, "seed": training_seed,
        },
    )  # fmt: skip
    train(config, tmp_path / "run", listener=listener)
    translator = Translator.load(tmp_path / "run", device="cpu")
    words = {"de": {"der", "die", "das", "ein", "eine"}, "fr": {"eht", "a"}}
    for target, first_words in words.items():
        found = translator.translate(["the dog sings", "a child reads", "the man plays"], target=target)
        assert all(translation.translation.split()[0] in first_words for translation in found), [
            translation.translation for translation in found
        ]


def test_a_run_of_several_directions_has_one_model_of_the_confidence_and_scores_pairs_of_each(
    tmp_path: Path,
) -> None:
    training = {"steps": 2, "save_every": 2, "valid_sentences": 30}
    folder = write_languages(tmp_path / "text")
    for language in ("de", "en", "fr"):  # 12 pairs of each direction
        with (folder / f"valid.{language}").open("a", encoding="utf-8") as file:
            file.write((folder / f"test.{language}").read_text(encoding="utf-8"))
    train(make_languages_config(folder, data={"test": None}, training=training), tmp_path / "run")
    translator = Translator.load(tmp_path / "run", device="cpu")
    assert translator.confidence is not None
    pairs = [("der Hund", "the dog"), ("das Pferd springt", "horse jumps")]
    sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
    for source, target in (("de", "en"), ("de", "fr")):
        own = translator.to(source=source, target=target)
        ids = own.tokenizers.source.encode(sources), own.tokenizers.target.encode(targets)
        nats, tokens = corpus_nll(own.model, *ids, bos=BOS, eos=EOS, prefix=own.prefix)
        scored = translator.score(sources, targets, target=target, source=source)
        assert [translation.translation for translation in scored] == targets
        assert sum(translation.hypotheses[0].log_probability for translation in scored) == approx(-nats)
        assert sum(len(translation.hypotheses[0].token_scores) for translation in scored) == tokens
        untrained = target == "fr"
        assert all(("untrained-direction" in translation.warnings) == untrained for translation in scored)
        assert not untrained or {translation.confidence_level for translation in scored} == {"low"}


# --- what reads a configuration or a run of several directions ---


def test_the_doctor_names_the_direction_of_what_it_finds(corpus: Path, run: Path) -> None:
    config = examine_config(config_of(corpus), "x.toml")
    trained = examine_run(run)
    for name in DIRECTIONS:
        assert config.facts[f"{name} text"].startswith("train 36 pairs read")
        assert trained.facts[f"{name} outputs"].startswith("BLEU")
    of_text = [finding for finding in config.report.findings if finding.name == "few-validation-texts"]
    assert [finding.evidence[:6] for finding in of_text] == ["en-de:"]
    (ends,) = [finding for finding in trained.report.findings if finding.name in ("never-ends", "nothing-said")][:1]
    assert ends.evidence.partition(":")[0] in DIRECTIONS


def test_the_doctor_compares_an_export_of_one_direction_with_it(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    copied = Path(shutil.copytree(run, tmp_path / "run"))
    export(copied, tmp_path / "run-packages", "argos", quantization="float32")
    for path in (tmp_path / "run-packages").glob("*.argosmodel"):
        path.rename(tmp_path / f"run-{path.name}")
    found = examine_run(copied)
    compared = [fact for fact in found.facts if fact.startswith("export ")]
    assert len(compared) == len(DIRECTIONS)
    assert "export-differs" not in found.report.names


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda config, run, out: clean(config, out), "data clean takes one pair of languages"),
        (lambda config, run, out: tune(str(run), out / "corrections.tsv", out / "tuned"), "tune takes one pair"),
        (lambda config, run, out: challenge_run(run), "--challenge takes one pair"),
    ],
)
def test_work_for_one_direction_names_those_that_there_are(
    corpus: Path, run: Path, tmp_path: Path, work: Callable[..., object], message: str
) -> None:
    with pytest.raises(UsageError, match=f"{message}.*en-de, de-en, en-fr"):
        work(config_of(corpus), run, tmp_path)
    assert not any(tmp_path.iterdir())
