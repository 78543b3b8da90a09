"""Export a run in the format of another program, compared with the run before it is kept; upload a run to a hub."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bitext.shell import command_line
from manyheads.checkpoint import RunDirectory, write_atomically
from manyheads.checkpoint.bundle import LoadedModel, is_export
from manyheads.checkpoint.hub import is_hub_name, push_folder
from manyheads.checkpoint.shown_card import korean_card, licence_of
from manyheads.config.schema import Config
from manyheads.data.training_text import available_pairs, name_files
from manyheads.errors import RunError, UsageError
from manyheads.files import new_folder
from manyheads.inference.export_formats import FORMATS, check_format
from manyheads.inference.export_settings import (
    compare_without_lost_settings,
    described_losses,
    join_comparisons,
)
from manyheads.inference.parity import Parity, Reference, compare, has_transformers, samples_of
from manyheads.interop.argos import PACKAGE_VERSION, check_argos, package_name, write_argos
from manyheads.interop.ctranslate2.convert import check_ctranslate2, write_ctranslate2
from manyheads.interop.huggingface.check import check_pretrained, compare_back
from manyheads.interop.huggingface.reader import read_pretrained
from manyheads.interop.huggingface.writer import write_pretrained
from manyheads.interop.marian.reader import check_marian, read_marian
from manyheads.interop.marian.writer import TRAINED_START, marian_numbers, starts_from_zero, write_marian
from manyheads.interop.reference import reference
from manyheads.interop.sentence_transformers import check_sentence_transformer, write_sentence_transformer
from manyheads.model.encoder_only import TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.reports import NO_LISTENER, Listener
from manyheads.runs.evaluate import card_line, with_line
from manyheads.runs.model_card import exported_card
from manyheads.tasks.translation.task import card_line_of_translator
from manyheads.tensors.models import build_model, load_run
from manyheads.text.huggingface import HuggingFaceTokenizer
from manyheads.text.tokenizer import Tokenizer, TokenizerPair
from manyheads.training.registry import task_of
from manyheads.web.html_export import Export, export_for_browsers, size_of
from transformer_doctor.texts import Language


def export(
    run: Path,
    out: Path,
    to: str,
    *,
    quantization: str | None = None,
    package_version: str | None = None,
    language: Language = "en",
    listener: Listener = NO_LISTENER,
) -> Export:
    """Export a run to `out` in another format; an export with other results is not kept.

    In float32, tokens and log-probabilities must be those of the run; a quantized export may differ by the rounding
    of its weights.

    Args:
        run: run directory.
        out: folder to write; for argos also a file that ends in .argosmodel, for html one that ends in .html.
        to: one of `FORMATS`.
        quantization: number format of the matrices (default: float32; int8 for argos, html and javascript).
        package_version: version of an Argos package; None is `argos.PACKAGE_VERSION`.
        language: language of the model card inside an Argos package.
        listener: receives messages.

    Raises:
        RunError: the run cannot be read, `out` exists, or the format cannot hold such a model.
        UsageError: there is no such format or quantisation.
        ParityError: the export gives other results than the run.
        MissingExtraError: the format needs a package that is not installed.
    """
    directory = RunDirectory.existing(run)
    config, texts, scoring = directory.config(), None, ""
    if package_version is not None and to != "argos":
        raise UsageError("--package-version is the version of an Argos package. Leave it out, or use --to argos.")
    numbers = check_format(config.task, to, quantization, str(run))
    listener.message(f"{run}: comparing and writing")
    parity: Parity | None
    if FORMATS[to].for_browsers:
        return export_for_browsers(run, out, to, quantization, listener=listener)
    name_files(config, ["valid", "test"], listener)
    if not config.spec.decodes:
        with (
            new_folder(out) as draft,
            directory.frozen(draft.parent / ".run") as frozen,
            listener.phase("comparing and writing"),
        ):
            parity = _write_text_model(draft, RunDirectory(frozen), to, listener)
    else:
        opened = load_run(run)
        if config.multilingual and to == "argos" and out.suffix == ".argosmodel":
            raise UsageError(f"{out} is one file, and an Argos package holds one direction. Name a folder: -o DIR.")
        with new_folder(out) as draft:
            with listener.phase("comparing and writing"):
                if numbers != "float32":
                    _check_conversion(opened)
                writer = _WRITERS[to]
                if to == "argos":
                    version = PACKAGE_VERSION if package_version is None else package_version
                    writer = partial(_as_argos, version=version, language=language)
                parity = writer(draft, opened, numbers)
                texts = join_comparisons([compare_without_lost_settings(view, to) for view in opened.directions()])
            if to == "huggingface" and not starts_from_zero(opened.model):
                listener.message(f"warning: {TRAINED_START}")
            if to != "argos":
                with listener.phase("scoring the test text for the model card"):
                    write_atomically(draft / "README.md", _card_of(opened, to).encode())
        if numbers != "float32":
            scoring = _scoring_command(run, out, opened)
    return Export(out, to, numbers, size_of(out), parity, texts, scoring)


# --- translators ---


def _card_of(opened: LoadedModel, to: str) -> str:
    """Return the model card of an export, with the scores of the run if its test text is available."""
    card = exported_card(opened.config, opened.tokenizers, to, lost=described_losses(opened.config, to))
    if to == "huggingface" and not starts_from_zero(opened.model):
        card = card.replace("\n```python", f"\n{TRAINED_START[0].upper()}{TRAINED_START[1:]}.\n\n```python", 1)
    return with_line(card, card_line_of_translator(opened))


def _reference(opened: LoadedModel) -> Reference:
    """Return the results of a direction of a run, to compare an export with them."""
    return reference(opened.model, samples_of(opened), opened.prefix)


def _worst(parities: Sequence[Parity]) -> Parity:
    """Return the largest differences of an export, of all directions."""
    return max(parities, key=lambda parity: parity.largest)


def _check_conversion(opened: LoadedModel) -> None:
    """Compare the conversion in float32: the tolerance of quantized weights would hide a mistake."""
    with TemporaryDirectory() as name:
        _as_ctranslate2(Path(name), opened, "float32")


def _scoring_command(run: Path, out: Path, opened: LoadedModel) -> str:
    """Return the command that scores the first direction of a run and its export; "" for several Argos packages."""
    first, several = opened.directions()[0].config, opened.config.multilingual
    if out.is_dir() and not is_export(out):  # of Argos packages
        if several:
            return ""
        (out,) = out.glob("*.argosmodel")
    words: list[str | Path] = ["manyheads", "evaluate", run, "--against", out]
    if several:
        words += ["--from", first.data.source, "--to", first.data.target]
    if not available_pairs(first, "test", 1):
        found = available_pairs(first, "valid", 1)
        words += ["--split", "valid"] if found else ["--source-file", "FILE", "--reference-file", "FILE"]
    return command_line(*words)


def _as_ctranslate2(draft: Path, opened: LoadedModel, numbers: str) -> Parity:
    """Write and compare a CTranslate2 folder."""
    write_ctranslate2(draft, opened.config, opened.tokenizers, opened.model, numbers)
    return _worst([check_ctranslate2(draft, _reference(view)) for view in opened.directions()])


def _as_argos(
    draft: Path, opened: LoadedModel, numbers: str, version: str = PACKAGE_VERSION, language: Language = "en"
) -> Parity:
    """Write and compare an Argos package of each direction in a temporary folder."""
    parities = []
    for view in opened.directions():
        data = view.config.data
        path = draft / f"{package_name(data.source, data.target, version)}.argosmodel"
        card = _card_of(view, "argos")
        write_argos(path, view, numbers, korean_card(card) if language == "ko" else card, version)
        parities.append(check_argos(path, view, _reference(view)))
    return _worst(parities)


def _as_huggingface(draft: Path, opened: LoadedModel, numbers: str) -> Parity:
    """Write a MarianMT folder and compare it: in transformers if that is installed, else read back."""
    write_marian(draft, opened.config, opened.tokenizers, opened.model)
    expected = [_reference(view) for view in opened.directions()]
    if has_transformers():
        their_ids = marian_numbers(opened.model)
        return _worst([check_marian(draft, their_ids, their_ids, wanted) for wanted in expected])
    exported = read_marian(draft).model
    again = [reference(exported, wanted.samples, wanted.prefix) for wanted in expected]
    return _worst(
        [
            compare(wanted, other.scores, other.outputs, "float32", "the MarianMT folder")
            for wanted, other in zip(expected, again, strict=True)
        ]
    )


_Writer = Callable[[Path, LoadedModel, str], Parity]
_WRITERS: dict[str, _Writer] = {
    "ctranslate2": _as_ctranslate2,
    "argos": _as_argos,
    "huggingface": _as_huggingface,
}


# --- classifiers, encoders and language models ---


def _write_text_model(draft: Path, run: RunDirectory, to: str, listener: Listener) -> Parity:
    """Write a run of any task but translation and compare it: in the other program if installed, else read back."""
    config = run.config()
    tokenizers = run.tokenizers(config)
    task = task_of(config)
    labels, model = task.exported_classes(run), task.open_model(run)
    parity = _TEXT_WRITERS[to](draft, config, tokenizers.source, model, labels)
    card = with_line(exported_card(config, tokenizers, to, labels), card_line(run.path, listener))
    write_atomically(draft / "README.md", card.encode())
    return parity


def _as_transformers(
    draft: Path, config: Config, tokenizer: Tokenizer, model: Transformer, labels: tuple[str, ...]
) -> Parity:
    write_pretrained(draft, config, tokenizer, model, labels)
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    if has_transformers():
        return check_pretrained(draft, tokenizer, config.spec.architecture, model)
    exported = read_pretrained(draft)
    if exported.labels != labels:
        raise RunError(f"the labels were not written as they are: {', '.join(exported.labels)}.")
    reloaded = build_model(config, TokenizerPair(tokenizer, tokenizer, joint=True), len(labels))
    reloaded.load_state_dict(exported.tensors(config.spec.architecture), strict=False)
    return compare_back(model, reloaded.eval(), tokenizer, config.spec.architecture)


def _as_sentence_transformer(
    draft: Path, config: Config, tokenizer: Tokenizer, model: Transformer, labels: tuple[str, ...]
) -> Parity:
    assert isinstance(model, TextClassifier)
    write_sentence_transformer(draft, config, tokenizer, model, labels)
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    return check_sentence_transformer(draft, config, tokenizer, model)


_TextWriter = Callable[[Path, Config, Tokenizer, Transformer, tuple[str, ...]], Parity]
_TEXT_WRITERS: dict[str, _TextWriter] = {
    "huggingface": _as_transformers,
    "sentence-transformers": _as_sentence_transformer,
}


# --- upload ---


def push(run: Path, name: str, *, private: bool = False, listener: Listener = NO_LISTENER) -> str:
    """Upload configuration, weights, tokenizers, labels, metrics and card of a run; return its address.

    If the text of its test set is available, the scores on it are added to the card.

    Args:
        run: run directory; it is opened first, so that a damaged run is not uploaded.
        name: user/name on the hub.
        private: whether a new repository is private.
        listener: receives messages.

    Raises:
        RunError: the run is missing or damaged, its card names no licence, or the hub refuses the upload.
        DataError: the test set has labels that the run does not know.
        UsageError: the name is not of the form user/name.
        MissingExtraError: huggingface_hub is not installed.
    """
    if not is_hub_name(name):
        raise UsageError(f"{name} is no name on the hub. Give user/name.")
    directory = RunDirectory.existing(run)
    config = directory.config()
    if not licence_of(directory.card()):
        raise RunError(
            f"{run / 'README.md'} names no licence, so that others have no right to use the model. Fill in its "
            "line `license:`, such as `license: apache-2.0`; mind the licence of the text it was trained on."
        )
    listener.message(f"{run}: opening it, and scoring it if its text is available")
    name_files(config, ["valid", "test"], listener)
    line = card_line(run, listener)
    if line is not None:
        directory.describe(with_line(directory.card(), line))
    listener.message(f"sending it to {name}")
    return push_folder(run, name, private=private)
