"""Exports and imports are compared, written completely or not at all, and usable at once."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import zipfile
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, get_args
from zipfile import ZipFile

import pytest
import sentencepiece
from tests.interop.marian import write_marian_folder
from tests.runs.labelled import labelled_config, write_labelled
from tests.runs.parts import configure, make_config, make_languages_config, metrics, write_corpus, write_languages
from tests.tolerances import assert_close, within
from tests.training.parts import CollectingListener

from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.checkpoints import TrainingRun
from manyheads.cli import export as command
from manyheads.cli.main import run as program
from manyheads.config.schema import Config
from manyheads.errors import ParityError, RunError, UsageError
from manyheads.improve.build.schema import ExportStep
from manyheads.inference.export_formats import FORMATS
from manyheads.inference.parity import samples_of
from manyheads.inference.translation.translator import Translator
from manyheads.interop.marian.reader import read_marian
from manyheads.reports import NO_LISTENER, Advance
from manyheads.runs.compare import compare
from manyheads.runs.evaluate import evaluate, with_line
from manyheads.runs.export import export
from manyheads.runs.import_model import import_model
from manyheads.runs.listeners import ForwardingListener
from manyheads.runs.train import train
from manyheads.tensors.models import load_model, load_run

ctranslate2 = pytest.importorskip("ctranslate2")
module = import_module("manyheads.interop.ctranslate2.convert")

GOLDEN = Path(__file__).parent.parent / "golden" / "format-1" / "run"
TEXTS = ["der Hund läuft", "", "eine Frau liest heute", "das Pferd  springt gern", "漢"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a post-norm run with subwords, which every format can hold."""
    folder = tmp_path_factory.mktemp("trained")
    config = make_config(write_corpus(folder / "corpus"), model={"norm": "post"}, training={"steps": 60})
    train(config, folder / "run")
    return folder / "run"


def texts_of(translator: Translator, **options: Any) -> list[str]:
    return [found.translation for found in translator.translate(TEXTS, **options)]


@pytest.mark.parametrize("to", ["ctranslate2", "huggingface", "argos"])
def test_an_export_is_compared_on_sentences_of_the_run(trained: Path, tmp_path: Path, to: str) -> None:
    done = export(trained, tmp_path / "out", to)
    assert done.parity.origin == "the first of the run's test set"
    assert done.parity.sentences == 6
    assert (done.parity.mean < 0.1) if to == "argos" else (done.parity.largest < 1e-4)
    assert done.quantization == ("int8" if to == "argos" else "float32")
    if to != "argos":
        lost = done.texts.verdict()
        same = "both give the same results: what is left is rounding"
        assert done.verdict() == ([f"for the same tokens, {same}", lost] if lost else [same])
        assert done.scoring == ""
    verdicts = [f"verdict: {sentence}" for sentence in done.verdict()]
    assert done.lines()[1 : 3 + len(verdicts)] == [done.parity.line(), done.texts.line(), *verdicts]
    assert done.to_json()["verdict"] == ". ".join(done.verdict())
    assert any("greedy outputs are the same" in line for line in done.lines())
    if to != "argos":
        card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
        right = evaluate(trained)
        assert (
            f"- Scores on 6 sentences of its test set, beam 2: BLEU {right.scores.bleu:.2f} (nrefs:1|case:" in card
        )
        assert f"chrF {right.scores.chrf:.2f} ({right.scores.signature['chrf']})\n- Intended use" in card
        assert "license:  # to be filled in by you" in card
    assert done.bytes == sum(path.stat().st_size for path in (tmp_path / "out").rglob("*") if path.is_file())
    json.dumps(done.to_json(), allow_nan=False)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_run_without_its_text_is_compared_on_random_pieces(trained: Path, tmp_path: Path) -> None:
    copy = configure(Path(shutil.copytree(trained, tmp_path / "copy")), "data", root=str(tmp_path / "nowhere"))
    done = export(copy, tmp_path / "out", "ctranslate2", quantization="int8")
    assert done.parity.origin == "random pieces of the vocabulary"
    assert done.scoring.endswith("out --source-file FILE --reference-file FILE")


def test_the_first_hundred_sentences_are_compared(trained: Path) -> None:
    opened, folder = load_run(trained), trained.parent / "corpus"
    config = opened.config.model_copy(update={"data": opened.config.data.model_copy(update={"test": "long"})})
    for language in ("de", "en"):
        lines = (folder / f"train.{language}").read_text(encoding="utf-8")
        (folder / f"long.{language}").write_text(4 * lines, encoding="utf-8")
    samples = samples_of(replace(opened, config=config))
    assert len(samples.rows) == 100


def test_a_card_gets_its_scores_once_and_keeps_its_other_lines() -> None:
    card = "license: mit\n\n- Data: x\n- Intended use and limits: mine\n"
    first = with_line(card, "- Scores on 7 sentences")
    assert first == "license: mit\n\n- Data: x\n- Scores on 7 sentences\n- Intended use and limits: mine\n"
    assert with_line(first, "- Scores on 11 sentences") == first.replace("7", "11")
    own = with_line("# All my own words\n", "- Scores on 7 sentences")
    assert own == "# All my own words\n\n- Scores on 7 sentences\n"
    assert with_line(own, "- Scores on 7 sentences") == own


def test_an_existing_output_is_not_overwritten(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("x")
    with pytest.raises(RunError, match="out exists"):
        export(trained, tmp_path / "out", "ctranslate2")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["precious"]


def test_an_export_that_fails_its_comparison_is_not_kept(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module("manyheads.runs.export")  # the package has a function of that name
    reference = module.reference

    def wrong(*arguments: Any) -> Any:
        right = reference(*arguments)
        return replace(right, scores=[[score - 0.01 for score in row] for row in right.scores])

    monkeypatch.setattr(module, "reference", wrong)
    for to in module._WRITERS:
        if to == "argos":
            continue  # int8 may differ by so much
        with pytest.raises(ParityError, match="was not kept"):
            export(trained, tmp_path / "out", to)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_conversion_is_refused_though_the_rounding_of_int8_would_hide_it(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_spec = module.build_spec

    def wrong(model: Any, tokenizers: Any) -> Any:
        spec = build_spec(model, tokenizers)
        spec.config.layer_norm_epsilon *= 1000
        return spec

    monkeypatch.setattr(module, "build_spec", wrong)
    for to in ("ctranslate2", "argos"):
        with pytest.raises(ParityError, match="does not give what the run gives"):
            export(trained, tmp_path / "out", to, quantization="int8")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("to", "out", "split"),
    [("ctranslate2", "out", "test"), ("argos", "out", "test"), ("argos", "out.argosmodel", "valid")],
)
def test_a_quantized_export_names_the_command_that_scores_it(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], to: str, out: str, split: str
) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    if split == "valid":
        configure(run, "data", test=None)
    assert program(["export", str(run), str(tmp_path / out), "--to", to, "--quantization", "int8"]) == 0
    _, _, command = capsys.readouterr().out.splitlines()[-1].partition("manyheads ")
    assert program([*shlex.split(command), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["run"] == str(run)
    assert document["text"].startswith(f"data.{split}: 6 sentences")


class TrainingBeside(ForwardingListener):
    """Publishes other weights whenever a phase of the export begins, as a training of the same run does."""

    def __init__(self, run: Path) -> None:
        super().__init__(NO_LISTENER)
        self.run = RunDirectory(run)

    def phase(self, name: str, total: int | None = None, unit: str = "") -> AbstractContextManager[Advance]:
        self.run.publish({name: 0.9 * tensor for name, tensor in self.run.weights().items()})
        return super().phase(name, total, unit)


@pytest.mark.parametrize(
    ("kind", "to"), [("translation", "html"), ("translation", "ctranslate2"), ("classification", "html")]
)
def test_an_export_beside_a_training_holds_one_state_of_the_run(kind: str, to: str, tmp_path: Path) -> None:
    if kind == "classification":
        train(labelled_config(write_labelled(tmp_path / "text"), training={"steps": 2}), tmp_path / "alone" / "run")
    else:
        shutil.copytree(GOLDEN, tmp_path / "alone" / "run")
    shutil.copytree(tmp_path / "alone", tmp_path / "beside")
    written = []
    for name, listener in (("alone", NO_LISTENER), ("beside", TrainingBeside(tmp_path / "beside" / "run"))):
        out = tmp_path / name / "out.html" if to == "html" else tmp_path / name / "out"
        export(tmp_path / name / "run", out, to, listener=listener)
        files = [out] if out.is_file() else sorted(path for path in out.rglob("*") if path.is_file())
        written.append({path.name: path.read_bytes() for path in files})
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == sorted(["run", out.name])
    assert written[0] == written[1]


def fail_beside_a_training(run: Path) -> None:
    TrainingBeside(run).phase("comparing")
    raise ParityError("does not give what the run gives")


def test_without_hard_links_new_weights_during_an_export_are_named_as_the_cause(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "run")
    run = RunDirectory(tmp_path / "run")
    (tmp_path / "taken").touch()  # no links can be made below a file
    with (
        pytest.raises(RunError, match=r"run has new weights: it is being trained\."),
        run.frozen(tmp_path / "taken") as frozen,
    ):
        fail_beside_a_training(frozen)


@pytest.mark.parametrize(
    ("to", "numbers", "message"),
    [
        ("pytorch", None, "--to pytorch is none of ctranslate2"),
        ("huggingface", "int8", "goes with --to ctranslate2"),
    ],
)
def test_an_unknown_format_or_an_unsupported_quantization_is_refused(
    trained: Path, tmp_path: Path, to: str, numbers: str | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        export(trained, tmp_path / "out", to, quantization=numbers)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", ["ctranslate2", "huggingface"])
def test_an_import_translates_like_the_exported_run(trained: Path, tmp_path: Path, to: str) -> None:
    export(trained, tmp_path / "out", to)
    if to == "ctranslate2":
        command = re.escape(f"manyheads import {tmp_path / 'out'} -o RUN")
        with pytest.raises(RunError, match=rf"is a model of CTranslate2, not a run\. Make a run of it: {command}"):
            Translator.load(tmp_path / "out")
    done = import_model(str(tmp_path / "out"), tmp_path / "run")
    assert done.parity is not None
    assert done.parity.largest < 1e-4
    assert texts_of(Translator.load(tmp_path / "run")) == texts_of(Translator.load(trained))
    assert "Imported from" in (tmp_path / "run" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("to", ["ctranslate2", "argos"])
def test_an_export_is_scored_like_its_run(trained: Path, tmp_path: Path, to: str) -> None:
    config = make_config(trained.parent / "corpus", model={"norm": "post"}, training={"steps": 20})
    train(config, tmp_path / "other")
    export(tmp_path / "other", tmp_path / "out.argosmodel", to, quantization="float32")
    greedy = {"overrides": ["search.beam_size=1"]}
    found, right = (compare(trained, tmp_path / other, **greedy).results for other in ("out.argosmodel", "other"))
    assert [result.baseline for result in found] == [result.baseline for result in right]
    assert [result.score for result in found] == [result.score for result in right]
    assert found[1].difference != 0
    back = compare(tmp_path / "out.argosmodel", trained, **greedy).results
    assert [result.score for result in back] == [result.baseline for result in right]


def test_a_model_of_ctranslate2_that_is_no_export_is_imported_before_it_is_scored(
    trained: Path, tmp_path: Path
) -> None:
    export(trained, tmp_path / "out", "ctranslate2")
    (tmp_path / "out" / "manyheads.json").unlink()
    with pytest.raises(RunError, match=r"is no export of manyheads\. Import it, .*: manyheads import .*out"):
        compare(trained, tmp_path / "out")


def test_a_quantized_export_is_scored_in_its_own_arithmetic(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(trained, tmp_path / "out", "ctranslate2", quantization="int8")
    computed = []
    search = module.CTranslate2Engine.search

    def recording_search(self: Any, *arguments: Any) -> Any:
        computed.append(self.compute_type)
        return search(self, *arguments)

    monkeypatch.setattr(module.CTranslate2Engine, "search", recording_search)
    compare(trained, tmp_path / "out", device="cpu")
    assert {name[:4] for name in computed} == {"int8"}


def test_the_export_and_import_commands_report_their_results(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["export", str(trained), "-o", str(tmp_path / "x.argosmodel"), "--to", "argos", "--json"]
    assert program([*line, "--lang", "ko"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["to"], document["quantization"], document["parity"]["sentences"]) == ("argos", "int8", 6)
    with ZipFile(tmp_path / "x.argosmodel") as package:
        assert "\n- 용도와 한계: " in package.read("translate-de_en-100_0/README.md").decode()
    assert program(["export", str(trained), "-o", str(tmp_path / "hf"), "--to", "huggingface"]) == 0
    captured = capsys.readouterr()
    warned = "CTranslate2's own converter starts MarianMT models"
    assert warned in captured.out + captured.err
    assert warned in (tmp_path / "hf" / "README.md").read_text(encoding="utf-8")
    assert program(["import", str(tmp_path / "hf"), "-o", str(tmp_path / "again"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["parity"]["same_outputs"] == document["parity"]["sentences"]


def test_the_doctor_examines_an_argos_package_as_the_run_that_it_would_become(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "x.argosmodel"
    assert program(["export", str(trained), "-o", str(package), "--to", "argos", "--quantization", "float32"]) == 0
    capsys.readouterr()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    documents = []
    for subject in (package, trained):
        assert program(["doctor", str(subject), "--json"]) in (0, 1)
        documents.append(json.loads(capsys.readouterr().out))
    ours, runs = documents
    assert (ours["subject"], runs["subject"]) == (str(package), str(trained))
    assert ours["facts"]["model"] == runs["facts"]["model"]
    assert ours["facts"]["outputs"] == runs["facts"]["outputs"]
    assert {*runs["asked"]} - {*ours["asked"]} == {"the curves come down, and to rest"}
    assert not [*(tmp_path / "temporary").iterdir()]


# --- import, and fine-tuning of imported models ---


def test_a_path_without_a_model_of_transformers_is_refused(trained: Path, tmp_path: Path) -> None:
    for where, message in (
        (trained, "is no model of transformers"),
        (tmp_path / "nothing", "is neither a folder nor"),
    ):
        with pytest.raises(RunError, match=message):
            import_model(str(where), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def fine_tuning(corpus: Path, origin: Path, **training: Any) -> Config:
    """Return a configuration of another shape than the origin, whose shape overrides it."""
    return make_config(
        corpus,
        model={"d_model": 24, "num_heads": 3, "dropout": 0.0, "init_from": str(origin)},
        training={"steps": 4, "save_every": 2, "learning_rate": 1e-9, "warmup_steps": 0} | training,
    )


@pytest.mark.parametrize("kind", ["folder", "two vocabularies", "imported", "run"])
def test_a_model_is_fine_tuned_in_one_command(trained: Path, tmp_path: Path, kind: str) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    if kind == "run":
        origin = trained
    else:
        origin = tmp_path / "theirs"
        write_marian_folder(origin, separate=kind == "two vocabularies")
    if kind == "imported":
        import_model(str(origin), tmp_path / "ours")
        origin = tmp_path / "ours"
    listener = CollectingListener()
    train(fine_tuning(corpus, origin), tmp_path / "run", listener=listener)
    assert any(message.startswith(f"as in {origin}: d_model = ") for message in listener.messages)
    assert not any("training the tokenizer" in message for message in listener.messages)
    if kind in ("folder", "two vocabularies"):
        loaded = read_marian(origin)
        tokenizers, model = loaded.tokenizers, loaded.model
    else:
        run = RunDirectory(origin)
        tokenizers = run.tokenizers(run.config())
        model = load_model(run, run.config(), tokenizers)
    tuned = RunDirectory(tmp_path / "run")
    config = tuned.config()
    assert config.model.d_model == model.config.d_model
    assert config.model.dropout == 0.0
    assert tuned.tokenizers(config).source.sha256 == tokenizers.source.sha256
    after = dict(load_model(tuned, config, tuned.tokenizers(config)).named_parameters())
    for name, before in model.named_parameters():  # the rate is next to nothing
        assert_close(after[name], before)


def test_fine_tuning_starts_with_the_loss_of_its_model_and_resumes_without_it(
    trained: Path, tmp_path: Path
) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    origin = Path(shutil.copytree(trained, tmp_path / "origin"))
    config = fine_tuning(corpus, origin, learning_rate=0.002)
    train(config, tmp_path / "run")
    first = next(record["loss"] for record in metrics(tmp_path / "run") if record["kind"] == "validation")
    before = [record["loss"] for record in metrics(trained) if record["kind"] == "validation"]
    assert first < before[0]
    assert first == within(before[-1], 0.5)
    shutil.rmtree(origin)
    longer = config.model_copy(update={"training": config.training.model_copy(update={"steps": 6})})
    train(longer, tmp_path / "run", force=True)
    assert TrainingRun(tmp_path / "run").checkpoints.steps()[-1] == 6


# --- several directions ---

DIRECTIONS = [("en", "de"), ("de", "en"), ("en", "fr")]


@pytest.fixture(scope="module")
def languages_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("languages")
    steps = {"steps": 120, "save_every": 60, "batch_tokens": 300, "warmup_steps": 20}
    config = make_languages_config(write_languages(folder / "corpus"), model={"norm": "post"}, training=steps)
    train(config, folder / "run")
    return folder / "run"


def texts_in(translator: Translator, source: str, target: str) -> list[str]:
    texts = ["the dog sings", "a child reads today"] if source == "en" else ["der Hund singt", "ein Kind liest"]
    found = translator.translate(texts, source=source, target=target, beam_size=1)
    return [translation.translation for translation in found]


def test_one_ctranslate2_folder_holds_every_direction(languages_run: Path, tmp_path: Path) -> None:
    done = export(languages_run, tmp_path / "out", "ctranslate2")
    assert done.parity.same_outputs == done.parity.sentences
    import_model(str(tmp_path / "out"), tmp_path / "again")
    own, imported = Translator.load(languages_run), Translator.load(tmp_path / "again")
    for source, target in DIRECTIONS:
        assert texts_in(imported, source, target) == texts_in(own, source, target)
    with pytest.raises(UsageError, match="several directions fit"):
        imported.translate(["the dog"])


def test_a_quantized_export_of_several_directions_is_scored_in_the_first(
    languages_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = export(languages_run, tmp_path / "out", "ctranslate2", quantization="int8")
    assert program(shlex.split(done.scoring)[1:]) == 0
    assert "data.test: 6 sentences" in capsys.readouterr().out
    assert export(languages_run, tmp_path / "packages", "argos").scoring == ""  # which manyheads does not open


def test_each_direction_is_an_argos_package_with_the_symbol_of_its_target(
    languages_run: Path, tmp_path: Path
) -> None:
    export(languages_run, tmp_path / "out", "argos", quantization="float32")
    own = Translator.load(languages_run)
    for source, target in DIRECTIONS:
        name = f"translate-{source}_{target}-100_0"
        with zipfile.ZipFile(tmp_path / "out" / f"{name}.argosmodel") as archive:
            archive.extractall(tmp_path / "unpacked")
        folder = tmp_path / "unpacked" / name
        metadata = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
        assert (metadata["from_code"], metadata["to_code"]) == (source, target)
        assert metadata["target_prefix"] == f"<to-{target}>"
        translator = ctranslate2.Translator(str(folder / "model"))
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
        texts = ["the dog sings"] if source == "en" else ["der Hund singt"]
        found = translator.translate_batch(
            pieces.encode(texts, out_type=str), target_prefix=[[metadata["target_prefix"]]], beam_size=1
        )
        (expected,) = own.translate(texts, source=source, target=target, beam_size=1)
        assert pieces.decode(found[0].hypotheses[0]).startswith(expected.translation.strip())
    with pytest.raises(UsageError, match="is one file, and an Argos package holds one direction"):
        export(languages_run, tmp_path / "one.argosmodel", "argos")


def test_transformers_forces_the_symbol_of_the_target_as_the_card_says(languages_run: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    export(languages_run, tmp_path / "out", "huggingface")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert 'forced_bos_token_id=tokenizer.convert_tokens_to_ids("<to-de>")' in card
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path / "out")
    model = transformers.MarianMTModel.from_pretrained(tmp_path / "out")
    own = Translator.load(languages_run)
    for target in ("de", "fr"):
        symbol = tokenizer.convert_tokens_to_ids(f"<to-{target}>")
        batch = tokenizer(["the dog sings"], return_tensors="pt")
        found = model.generate(**batch, forced_bos_token_id=symbol, num_beams=1, max_new_tokens=12)
        (text,) = tokenizer.batch_decode(found, skip_special_tokens=True)
        (expected,) = own.translate(["the dog sings"], target=target, beam_size=1)
        assert expected.translation.startswith(text.strip()[:5])
        assert text


def test_an_export_that_does_not_force_the_target_language_is_refused(
    languages_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = module.CTranslate2Engine.search
    monkeypatch.setattr(
        module.CTranslate2Engine, "search", lambda self, rows, options, _: search(self, rows, options)
    )
    with pytest.raises(ParityError):
        export(languages_run, tmp_path / "out", "ctranslate2")
    assert not (tmp_path / "out").exists()


def test_a_plan_and_the_command_line_know_every_format() -> None:
    assert set(FORMATS) == set(get_args(ExportStep.model_fields["to"].annotation)) == set(command._FORMATS)
