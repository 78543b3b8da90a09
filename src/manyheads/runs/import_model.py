"""Import a model of another program as a run directory."""

from __future__ import annotations

import importlib.util
import platform
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from bitext.shell import command_line
from manyheads import __version__
from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.directory import command_to_use
from manyheads.checkpoint.hub import folder_of, is_marian, is_pretrained
from manyheads.config.schema import TASKS, Config
from manyheads.errors import RunError, UsageError
from manyheads.files import new_folder
from manyheads.inference.labels import LABELS, Labels
from manyheads.inference.parity import RANDOM_PIECES, Parity, Samples, has_transformers, random_rows, random_samples
from manyheads.interop.argos import is_package, opened_package
from manyheads.interop.ctranslate2.reader import check_imported, read_ctranslate2
from manyheads.interop.huggingface.check import check_pretrained
from manyheads.interop.huggingface.reader import read_pretrained
from manyheads.interop.huggingface.task_model import build_task_model, task_of
from manyheads.interop.marian.reader import check_marian, read_marian, their_numbers
from manyheads.interop.reference import reference
from manyheads.model.transformer import Transformer
from manyheads.reports import NO_LISTENER, Listener
from manyheads.results import Result
from manyheads.runs.model_card import imported_card
from manyheads.text.tokenizer import TokenizerPair

_SAMPLES = 200  # rows on which a model of CTranslate2 is compared


@dataclass(frozen=True)
class Import(Result):
    """Result of an import.

    Attributes:
        out: written run directory.
        source: folder or name of the imported model.
        task: task of the run.
        parameters: number of parameters.
        parity: comparison with the model in its own library; None if that is not installed.
        new: names of weights that the imported model does not have; they are initialised randomly.
        unused: names of weights of the imported model that are not used.
        library: library of the imported model.
    """

    out: Path
    source: str
    task: str
    parameters: int
    parity: Parity | None
    new: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    library: str = "transformers"

    def verdict(self) -> list[str]:
        """Return whether the run can replace the imported model."""
        if self.new:
            return ["the new weights are random: train the run before you use it"]
        if self.parity is None:
            return [f"not compared with the original: {self.library} is not installed"]
        return [f"{self.parity.verdict()}. Use the run in place of the original"]

    def following(self) -> str:
        """Return the commands that use and fine-tune the run."""
        tune = command_line("manyheads", "train", "CONFIG", "--set", f"model.init_from={self.out}")
        return (
            f"{command_to_use(self.out, self.task)}, or to fine-tune: {tune}" if TASKS[self.task].command else tune
        )

    def report(self) -> list[str]:
        """Return the size, the weights that the two models do not share, and the comparison."""
        return [
            f"{self.out}: {self.parameters:,} parameters of {self.source}, for {self.task}",
            *([f"warning: never trained, and by chance: {', '.join(self.new)}"] if self.new else []),
            *([f"not used: {', '.join(self.unused)}"] if self.unused else []),
            *([self.parity.line()] if self.parity else []),
        ]


def import_model(
    where: str,
    out: Path,
    *,
    source: str | None = None,
    target: str | None = None,
    language: str | None = None,
    labels: Sequence[str] = (),
    trust_pickle: bool = False,
    listener: Listener = NO_LISTENER,
) -> Import:
    """Import a model of transformers or CTranslate2 as a run directory.

    Args:
        where: folder, user/name on the hub, or Argos package.
        out: run directory to write.
        source: source language of a translation model (default: the name in the model).
        target: target language of a translation model (default: the name in the model).
        language: language of any other model.
        labels: make a classifier of these labels from an encoder; the head is new unless the model has them.
        trust_pickle: whether to read weights in a pickle.
        listener: receives the progress.

    Raises:
        RunError: the model is of another kind, cannot be read, or `out` exists.
        UsageError: an option is not for this kind of model.
        ParityError: the imported model gives other results than the original.
    """
    if labels and len({*labels}) < max(2, len(labels)):
        raise UsageError(f"--labels {','.join(labels)}: give at least two, no label twice.")
    if is_ctranslate2(Path(where)):
        if language or labels:
            raise UsageError(f"{where} is a CTranslate2 model: --language and --labels are for others.")
        return _import_ctranslate2(where, out, source, target, listener)
    with listener.phase("opening the model"):
        folder = folder_of(where)
    if not folder.is_dir():
        raise RunError(f"{where} is neither a folder nor a name on the Hugging Face hub, such as user/bert.")
    if is_pretrained(folder):
        if source or target:
            raise UsageError(f"{where} translates nothing: give --language in the place of --source and --target.")
        return _import_single(where, folder, out, language, tuple(labels), trust_pickle, listener)
    if not is_marian(folder):
        raise RunError(f"{where} is no model of transformers: there is no config.json that names its model_type.")
    if language or labels:
        raise UsageError(f"{where} is a MarianMT model: --language and --labels are for others.")
    with listener.phase("reading the model"):
        opened = read_marian(folder, source=source, target=target, trust_pickle=trust_pickle)
    parity = None
    if has_transformers():
        with listener.phase("comparing the outputs"):
            expected = reference(opened.model, random_samples(opened.tokenizers.source))
            parity = check_marian(folder, *their_numbers(folder), expected, trust_pickle=trust_pickle)
    parameters = _write_run(out, opened.config, opened.tokenizers, opened.model, where)
    return Import(out, where, opened.config.task, parameters, parity)


def is_ctranslate2(path: Path) -> bool:
    """Return whether a path is an Argos package, packed or not, or a CTranslate2 folder."""
    return path.suffix == ".argosmodel" or is_package(path)


@contextmanager
def opened_run(path: Path, overrides: Sequence[str] = (), listener: Listener = NO_LISTENER) -> Iterator[Path]:
    """Yield a run directory: `path`, or, of a CTranslate2 model, an import that is removed afterwards.

    Args:
        path: run directory, Argos package or CTranslate2 folder.
        overrides: `data.source=...` and `data.target=...` name the languages of a model that names none.
        listener: receives messages.
    """
    if not is_ctranslate2(path):
        yield path
        return
    named = dict(override.split("=", 1) for override in overrides if "=" in override)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, path.stem or "run")
        imported = import_model(
            str(path), run, source=named.get("data.source"), target=named.get("data.target"), listener=listener
        )
        listener.message(f"{path}: {imported.verdict()[0]}")
        yield run


def _import_ctranslate2(
    where: str, out: Path, source: str | None, target: str | None, listener: Listener
) -> Import:
    """Import a CTranslate2 folder or an Argos package, as `import_model` does."""
    with opened_package(Path(where)) as (folder, metadata):
        with listener.phase("reading the model"):
            languages = (source or metadata.get("from_code"), target or metadata.get("to_code"))
            imported = read_ctranslate2(folder, source=languages[0], target=languages[1])
        loaded, parity = imported.loaded, None
        if importlib.util.find_spec("ctranslate2"):
            with listener.phase("comparing the outputs"):
                tokenizer = loaded.tokenizers.source
                samples = Samples(random_rows(tokenizer, _SAMPLES, 3, 19), RANDOM_PIECES)
                parity = check_imported(folder, imported, reference(loaded.model, samples))
    parameters = _write_run(out, loaded.config, loaded.tokenizers, loaded.model, where)
    return Import(out, where, loaded.config.task, parameters, parity, library="ctranslate2")


def _import_single(
    where: str,
    folder: Path,
    out: Path,
    language: str | None,
    labels: tuple[str, ...],
    trust_pickle: bool,
    listener: Listener,
) -> Import:
    """Import an encoder or a GPT-2, as `import_model` does."""
    with listener.phase("reading the model"):
        pretrained = read_pretrained(folder, trust_pickle=trust_pickle)
        task = task_of(pretrained, labels)
        task_model = build_task_model(pretrained, task, language=language, labels=labels)
    parity = None
    if has_transformers() and not task_model.new:
        with listener.phase("comparing the outputs"):
            architecture = task_model.config.spec.architecture
            parity = check_pretrained(
                folder, task_model.tokenizer, architecture, task_model.model, trust_pickle=trust_pickle
            )
    tokenizers = TokenizerPair(task_model.tokenizer, task_model.tokenizer, joint=True)
    classes = Labels(task_model.labels, 1, trained=task_model.trained) if task_model.labels else None
    parameters = _write_run(out, task_model.config, tokenizers, task_model.model, where, classes)
    return Import(out, where, task, parameters, parity, task_model.new, pretrained.unused)


def _write_run(
    out: Path,
    config: Config,
    tokenizers: TokenizerPair,
    model: Transformer,
    where: str,
    labels: Labels | None = None,
) -> int:
    """Write a run directory atomically; return the number of parameters."""
    documents = {LABELS: labels.to_json()} if labels else {}
    versions = {"manyheads": __version__, "python": platform.python_version(), "torch": torch.__version__}
    with new_folder(out) as draft:
        run = RunDirectory(draft)
        run.begin(config, tokenizers, {**versions, "imported_from": where}, documents)
        run.publish({name: parameter.detach() for name, parameter in model.named_parameters()})
        run.describe(imported_card(config, tokenizers, where, labels.names if labels else ()))
    return sum(parameter.numel() for parameter in model.parameters())
