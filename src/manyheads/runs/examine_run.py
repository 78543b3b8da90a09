"""`manyheads doctor RUN`: curves, weights, use of the text, decoding, outputs and exports, after training."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bitext.file_names import Split
from bitext.letters import has_text
from bitext.pairs import Pair
from manyheads.checkpoint import RunDirectory, read_json
from manyheads.checkpoint.bundle import METADATA, LoadedModel, is_export
from manyheads.checkpoint.hub import is_marian
from manyheads.checks.catalogue import run_finding, with_settings
from manyheads.checks.check import merge_findings, name_direction
from manyheads.checks.curves import curve_findings
from manyheads.checks.heads import weight_findings
from manyheads.checks.registry import examine_trained
from manyheads.checks.subjects import (
    TrainedClassifier,
    TrainedLanguageModel,
    TrainedModel,
    TrainedTranslator,
)
from manyheads.config.load import config_to_json, with_overrides
from manyheads.config.schema import Config
from manyheads.data.training_text import available_pairs, name_files
from manyheads.errors import MissingExtraError, ParityError, RunError
from manyheads.inference.classifier import Classifier
from manyheads.inference.generator import GenerateOptions, Generator
from manyheads.inference.labels import Labels
from manyheads.inference.languages import languages_of
from manyheads.inference.parity import Parity, compare, samples_of
from manyheads.inference.texts import encode_texts
from manyheads.inference.translation.options import plain_search
from manyheads.inference.translation.translator import Translator
from manyheads.interop.argos import check_argos, unpacked
from manyheads.interop.ctranslate2.convert import check_ctranslate2
from manyheads.interop.marian.reader import read_marian
from manyheads.interop.reference import reference
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.encoder_only import TextClassifier
from manyheads.reports import NO_LISTENER, Listener
from manyheads.runs.outcome import read_curves, with_steps_done
from manyheads.tasks.language_modeling.scoring import stream_of
from manyheads.tensors.devices import pick_device
from manyheads.tensors.models import load_model
from manyheads.text.languages import LanguageProfile
from manyheads.training.registry import task_of
from transformer_doctor.report import Diagnosis, Finding, Report, make_report

_TRAIN, _VALID = 50_000, 1_000  # maximum number of pairs that are read
_CURVES = "the curves come down, and to rest"
_EXPORTS = "exports give what the run gives"
_STREAM = 8_192  # maximum number of tokens of the validation text of a language model


def examine_run(
    path: Path, *, overrides: Sequence[str] = (), device: str = "cpu", listener: Listener = NO_LISTENER
) -> Diagnosis:
    """Examine a trained run; no file is changed.

    Args:
        path: the run directory.
        overrides: settings such as `data.root=DIR`, instead of those of the run.
        device: "cpu", "cuda", "cuda:1"; "auto" takes a GPU when there is one. Exports are compared on the CPU.
        listener: receives messages.
    """
    torch_device = pick_device(device)
    run = RunDirectory.existing(path)
    config = with_overrides(run.config(), overrides)
    weights = run.weights()
    facts = {"model": f"{sum(tensor.numel() for tensor in weights.values()):,} parameters"}
    report = make_report(weight_findings(weights), ["all weights are numbers"])
    curves = read_curves(run)
    if curves.validations:
        step, loss = curves.best
        facts["training"] = f"{curves.last_step:,} updates; best validation loss {loss:.3f} at step {step:,}"
    unigram_loss = None
    if report.ok:
        name_files(config, ["train", "valid", "test"], listener)
        with listener.phase("reading the text"):
            trained = _trained_model(run, config, curves.best[1] if curves.validations else None)
            trained.model.to(torch_device)
        facts["text"] = (
            f"{len(trained.train):,} of train and {len(trained.valid):,} of the validation set were read"
            if trained.train or trained.valid
            else "not on this machine: what needs it was left out (--set data.root=DIR says where it is)"
        )
        listener.message("examining the model")
        for name, part in _directions_of(trained):
            report += name_direction(examine_trained(part, listener), name)
            facts |= {f"{name} {fact}".strip(): text for fact, text in part.facts.items()}
        unigram_loss = trained.unigram_loss()
        if isinstance(trained, TrainedTranslator):
            opened = LoadedModel(config, trained.tokenizers, trained.model.cpu())
            with listener.phase("comparing the exports"):
                report += _compare_exports(run.path, opened, facts)
    if curves.losses or curves.validations:
        report += make_report(curve_findings(curves, unigram_loss), [_CURVES])
    else:
        report += make_report([], [], [(_CURVES, "the run has no log of a training")])
    report = with_settings(report, with_steps_done(config, curves))
    return Diagnosis(facts, report, {"subject": str(path), "facts": facts})


def _trained_model(run: RunDirectory, config: Config, logged_loss: float | None) -> TrainedModel:
    """Open the model of a run with its text, as far as it is available on this machine."""
    tokenizers = run.tokenizers(config)
    source, target = tokenizers.source, tokenizers.target
    train, valid = _available_text(config, "train", _TRAIN), _available_text(config, "valid", _VALID)
    classes = task_of(config).classes(run)
    model = load_model(run, config, tokenizers, len(classes))
    if isinstance(model, EncoderDecoder):
        translator = Translator(config, tokenizers, model)
        return _trained_translator(translator, train, valid, logged_loss, languages_of(run))
    if isinstance(model, TextClassifier):
        classifier = Classifier(config, source, Labels.of_run(run), model)
        return TrainedClassifier(
            config, tokenizers, model, train, valid, logged_loss, labels=classes,
            probabilities=classifier.probabilities, longest=classifier.longest,
            encode=lambda texts: encode_texts(source.encode, texts, source.marks_between),
        )  # fmt: skip
    if isinstance(model, DecoderOnly):
        generator = Generator(config, target, model)

        def generate(texts: int, tokens: int) -> list[str]:
            options = GenerateOptions(samples=texts, max_tokens=tokens)
            return [sample.text for sample in generator.generate([""], options)[0].samples]

        return TrainedLanguageModel(
            config, tokenizers, model, train, valid, logged_loss, window=generator.window,
            tokens=stream_of(config, [pair.target for pair in valid], target)[:_STREAM], generate=generate,
        )  # fmt: skip
    return TrainedModel(config, tokenizers, model, train, valid, logged_loss)


def _trained_translator(
    translator: Translator,
    train: list[Pair],
    valid: list[Pair],
    logged_loss: float | None,
    profiles: Mapping[str, LanguageProfile],
) -> TrainedTranslator:
    config = translator.config

    def translate(texts: Sequence[str]) -> list[tuple[str, bool]]:
        return [(result.translation, not result.truncated) for result in translator.translate(texts)]

    return TrainedTranslator(
        config, translator.tokenizers, translator.model, train, valid, logged_loss, engine=translator.engine,
        options=plain_search(config.search), longest_source=translator.longest_source, translate=translate,
        profiles=profiles,
    )  # fmt: skip


def _directions_of(trained: TrainedModel) -> Iterator[tuple[str, TrainedModel]]:
    """Yield the name and the translator of each direction, with its own text; else "" and the model itself."""
    views = trained.config.by_direction()
    if not isinstance(trained, TrainedTranslator) or "" in views:
        yield "", trained
        return
    logged_loss, profiles = trained.logged_loss, trained.profiles
    for name, view in views.items():
        train = _available_text(view, "train", _TRAIN // len(views))
        valid = _available_text(view, "valid", _VALID // len(views))
        translator = Translator(view, trained.tokenizers, trained.model)
        part = _trained_translator(translator, train, valid, logged_loss, profiles)
        part.train_counts = trained.train_counts  # one vocabulary for all directions
        yield name, part


def _available_text(config: Config, split: Split, most: int) -> list[Pair]:
    """Return the first clean pairs of a split that have a target; none where its text is not on this machine."""
    return [pair for pair in available_pairs(config, split, most) if has_text(pair.target)]


def _compare_exports(run: Path, opened: LoadedModel, facts: dict[str, str]) -> Report:
    """Compare the exports beside a run with the run (invariant O), and add a fact about each of them."""
    findings: list[Finding] = []
    checks: list[str] = []
    views = [opened, *opened.directions()]
    for path in _paths_near(run):
        try:
            if (view := _exported_view(path, views)) is None:
                continue
            facts[f"export {path.name}"] = _compare_export(path, view).line()
        except ParityError as error:
            findings.append(run_finding("export-differs", f"{path}: {error}"))
        except MissingExtraError as error:
            facts[f"export {path.name}"] = f"not compared: {error}"
        except RunError as error:
            findings.append(run_finding("export-differs", f"{path} cannot be read: {error}"))
        checks = [_EXPORTS]
    skipped = [] if checks else [(_EXPORTS, "there is no export inside or beside the run")]
    return make_report(merge_findings(findings), checks, skipped)


def _paths_near(run: Path) -> list[Path]:
    """Return the paths inside a run, and beside it those that begin with the name of the run."""
    run = run.resolve()
    near = [path for path in run.parent.iterdir() if path.name.startswith(run.name) and path != run]
    return sorted([*run.iterdir(), *near])


def _exported_view(path: Path, views: Sequence[LoadedModel]) -> LoadedModel | None:
    """Return the run as exported to a path: an Argos package holds one direction; None for no such export."""
    document = _carried_config(path)
    if document is not None:
        return next((view for view in views if document == json.loads(config_to_json(view.config))), None)
    return views[0] if path.is_dir() and is_marian(path) else None


def _carried_config(path: Path) -> object | None:
    """Return the configuration in a CTranslate2 folder or an Argos package; None where the path is neither."""
    if path.is_dir() and is_export(path):
        return read_json(path / METADATA).get("config", {})
    if path.suffix == ".argosmodel" and path.is_file():
        with unpacked(path) as folder:
            return next((read_json(file).get("config", {}) for file in folder.glob(f"*/model/{METADATA}")), None)
    return None


def _compare_export(path: Path, opened: LoadedModel) -> Parity:
    """Compare an export with the run; raise `ParityError` if they differ."""
    expected = reference(opened.model, samples_of(opened), opened.prefix)
    if path.suffix == ".argosmodel":
        return check_argos(path, opened, expected)
    if is_export(path):
        return check_ctranslate2(path, expected)
    exported = reference(read_marian(path).model, expected.samples)
    return compare(expected, exported.scores, exported.outputs, "float32", "the MarianMT folder")
