"""Tune a translator on corrections; the tuned model takes its place only if a proof shows no harm."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bitext.files import LOCK, discard, locked, sum_of
from bitext.shell import command_line
from manyheads import __version__
from manyheads.checkpoint import RunDirectory, as_json, read_json, write_atomically
from manyheads.config.load import parse_config
from manyheads.config.schema import Config
from manyheads.errors import RunError
from manyheads.files import new_folder, saving
from manyheads.improve.proof import lines_of, prove
from manyheads.improve.tune_checks import check_news, find_doubts
from manyheads.improve.tune_text import TuningText, add_general, data_of, read_corrections, read_text, write_text
from manyheads.inference.languages import LANGUAGES
from manyheads.inference.translation.confidence import CONFIDENCE
from manyheads.inference.translation.directions import require_one_direction
from manyheads.inference.translation.translator import Translator
from manyheads.inference.translation.unlike_training import SOURCES
from manyheads.reports import NO_LISTENER, Listener
from manyheads.results import Result
from manyheads.runs.evaluate import with_line
from manyheads.runs.import_model import import_model
from manyheads.runs.model_card import tuned_line
from manyheads.runs.train import train

TUNING = "tuning.json"  # in the tuned run: what it was made of, and the proof
_TEXT, _RUN, _IMPORTED, _PROOF = "text", "run", "imported", "proof.json"  # in the folder of a tuning
_PAIRS = 64  # of an update
_MOST_CORRECTED = 0.5  # of an update; the rest is general text
_FEW, _SHARE_OF_FEW = 8, 0.4  # corrections of an update where there are few: so many, or this share of them
_PASSES = 20  # over the corrections
_LEAST_STEPS, _MOST_STEPS = 100, 400
_CHECKS = 10  # validations
_PATIENCE = 3
_RATE, _RATE_OF_MANY, _MANY = 5e-4, 1e-3, 1_000  # learning rates, and corrections that are many


@dataclass(frozen=True)
class Tuning(Result):
    """Result of a tuning.

    Attributes:
        out: run directory that was asked for.
        model: the model that was tuned.
        kept: folder of the tuned model: `out` if it is used, else a run beside it; None if nothing was trained.
        text: number of pairs of each part of the text, and what was left out.
        proof: see `prove`.
    """

    out: Path
    model: str
    kept: Path | None
    text: dict[str, Any]
    proof: dict[str, Any]

    @property
    def exit_code(self) -> int:
        """Return 0 if the tuned model is in place, else 1."""
        return int(self.kept != self.out)

    def figures(self) -> dict[str, Any]:
        """Return the fields, and whether the tuned model is used."""
        first = {"out": self.out, "model": self.model, "kept": self.kept, "used": not self.exit_code}
        return {**first, "text": self.text, "proof": self.proof}

    def verdict(self) -> list[str]:
        """Return whether the tuned model is used, and why not."""
        reasons = self.proof["reasons"]
        if not reasons:
            if "general" not in self.proof:
                return ["no general text was compared: read some translations before you use the tuned model"]
            if self.text["own"]:
                return [
                    "general text is translated much as before, with no references to judge by: read some of it"
                ]
            return ["general text is as good as before: use the tuned model"]
        if not self.exit_code:
            return [*reasons, "used all the same, because of --accept"]
        if self.kept is None:
            return [*reasons, "nothing was trained. --accept trains and uses it all the same"]
        kept = f"{self.kept} holds the tuned one; --accept uses it all the same"
        return [*reasons, "the model stays as it is", kept]

    def report(self) -> list[str]:
        """Return the proof as lines of text; none if nothing was trained."""
        return [*lines_of(self.proof)] if self.kept else []

    def following(self) -> str:
        """Return the command that uses the tuned model, if it is in place."""
        return "" if self.exit_code else command_line("manyheads", "translate", self.out)


def tune(
    model: str,
    corrections: Path,
    out: Path,
    *,
    general: Sequence[Path] = (),
    replay: bool = True,
    accept: bool = False,
    source: str | None = None,
    target: str | None = None,
    device: str = "auto",
    listener: Listener = NO_LISTENER,
) -> Tuning:
    """Tune a translator on corrections into a new run; the same call resumes after an interruption.

    Everything is made in the folder OUT.tuning, which is removed when the tuned model takes its place as `out`. A
    model that the proof refuses stays there; the same call with `accept` uses it. Corrections that look wrong by
    themselves are not trained on without `accept`.

    Args:
        model: run directory, or another model that `import_model` reads.
        corrections: source and corrected translation, in any form that `manyheads data convert` reads.
        out: run directory to write.
        general: general text: a file of pairs, two files of lines, or a file of sources; the run's own data
            without it.
        replay: whether general text is trained on beside the corrections.
        accept: whether to use the tuned model whatever the proof says.
        source: source language of an imported model (default: the name in the model).
        target: target language of an imported model.
        device: "cpu", "cuda", "cuda:1"; "auto" takes a GPU when there is one.
        listener: receives the progress.

    Raises:
        RunError: the model cannot be read, or `out` holds something else.
        DataError: the corrections cannot be used.
        UsageError: there is no general text.
        KeyboardInterrupt, SystemExit: after Ctrl-C, SIGTERM or SIGHUP; the same call resumes.
    """
    if _is_run(model):
        require_one_direction(RunDirectory(Path(model)).config(), "tune")
    work = out.with_name(f"{out.name}.tuning")
    plan = _plan(model, corrections, general, replay=replay)
    if (out / TUNING).is_file() and (stored := read_json(out / TUNING)).get("plan") == plan:
        return Tuning(out, model, out, stored["text"], stored["proof"])
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise RunError(f"{out} exists, and is not this tuning. Choose another --output, or remove it.")
    with locked(work / LOCK, RunError(f"{work} is in use by another process. Wait for it.")):
        _keep_plan(work, plan)
        base = _base(model, work, source, target, listener)
        if not (work / _TEXT).is_dir():
            _prepare(work / _TEXT, base, corrections, general, replay, device, listener)
        text, summary = read_text(work / _TEXT, base.config().data)
        kept: Path | None = None
        proof: dict[str, Any] = {"reasons": text.doubts}
        if accept or not text.doubts:
            proof, kept = _trained(work, base, text, summary, device, listener), work / _RUN
            if accept or not proof["reasons"]:
                _place(out, work, base, {"plan": plan, "text": summary, "proof": proof, "accepted": accept})
                kept = out
    if kept != work / _RUN:
        discard(work)
    return Tuning(out, model, kept, summary, proof)


def _trained(
    work: Path, base: RunDirectory, text: TuningText, summary: dict[str, Any], device: str, listener: Listener
) -> dict[str, Any]:
    """Train the model, and return the proof, which is made once."""
    train(_config(base.config(), base.path, work / _TEXT, summary, device), work / _RUN, listener=listener)
    if not (work / _PROOF).is_file():
        before, after = (Translator.load(folder, device=device) for folder in (base.path, work / _RUN))
        _save(work / _PROOF, prove(before, after, text, listener))
    return read_json(work / _PROOF)


def _plan(model: str, corrections: Path, general: Sequence[Path], *, replay: bool) -> dict[str, Any]:
    """Return the inputs of a tuning: the files by their sums, and the options."""
    path = Path(model)
    files = [path, *(path / name for name in ("model.safetensors", "model.bin", "model/model.bin"))]
    sums = {str(file): sum_of(file) for file in (*files, corrections, *general) if file.is_file()}
    return {"manyheads": __version__, "model": model, "sha256": sums, "replay": replay}


def _keep_plan(work: Path, plan: dict[str, Any]) -> None:
    """Store the plan, or compare it with the stored one."""
    path = work / "plan.json"
    if not path.is_file():
        _save(path, plan)
    elif read_json(path) != plan:
        raise RunError(
            f"{work} holds a tuning of another model, of other text, or with other options. Remove it, or choose "
            "another --output."
        )


def _save(path: Path, document: dict[str, Any]) -> None:
    with saving(path.name, path.parent):
        write_atomically(path, as_json(document))


def _is_run(model: str) -> bool:
    """Return whether a model is a run; folders of other programs have a config.json too."""
    return (Path(model) / "environment.json").is_file()


def _base(model: str, work: Path, source: str | None, target: str | None, listener: Listener) -> RunDirectory:
    """Open the run to tune; any other model is imported first."""
    if _is_run(model):
        return RunDirectory.existing(Path(model))
    folder = work / _IMPORTED
    if not folder.is_dir():
        imported = import_model(model, folder, source=source, target=target, listener=listener)
        listener.message(f"{model}: imported, {imported.verdict()[0]}")
    return RunDirectory.existing(folder)


def _prepare(
    folder: Path,
    base: RunDirectory,
    corrections: Path,
    general: Sequence[Path],
    replay: bool,
    device: str,
    listener: Listener,
) -> None:
    """Read, check and divide the text, and write it."""
    config = base.config_of("translation")
    text = read_corrections(corrections, config, base.tokenizers(config))
    translator = Translator.load(base.path, device=device)
    pairs = [*text.corrections, *text.held_out]
    check_news(corrections, pairs, translator)
    text = add_general(text, base, general, lambda: translator, listener, replay=replay)
    text = replace(text, doubts=list(find_doubts(translator, pairs, text.general, listener)))
    for line in text.lines():
        listener.message(line)
    write_text(folder, text)


def _config(config: Config, base: Path, text: Path, summary: dict[str, Any], device: str) -> Config:
    """Return the configuration of the training.

    An epoch is one update: corrections and general text are drawn by their weights, so that each update holds both
    in a fixed share, whatever their lengths. All weights are trained: LoRA leaves the embeddings as they are, and
    did not learn a new word.
    """
    corrections, replayed = summary["corrections"], summary["replay"]
    most = _PAIRS * (_MOST_CORRECTED if replayed else 1.0)
    corrected = min(most, corrections, max(_FEW, _SHARE_OF_FEW * corrections))
    steps = int(min(_MOST_STEPS, max(_LEAST_STEPS, _PASSES * corrections / corrected)))
    data = data_of(text, config)
    if replayed:
        data |= {"weights": [corrected / corrections, min(1.0, (_PAIRS - corrected) / replayed)]}
    training = {
        "steps": steps, "batch_sentences": min(_PAIRS + 1, corrections + replayed), "optimizer": "adamw",
        "learning_rate": _RATE if corrections < _MANY else _RATE_OF_MANY, "schedule": "linear",
        "warmup_steps": steps // 10,
        "save_every": max(1, steps // _CHECKS), "patience": _PATIENCE, "valid_sentences": 0,
        "label_smoothing": config.training.label_smoothing, "seed": config.training.seed, "device": device,
    }  # fmt: skip
    start = {"init_from": str(base), "init_vocabulary": "keep", "init_decoder_layers": None}
    values = config.model_dump()
    changed = {"data": data, "model": values["model"] | start, "training": training}
    return parse_config(values | changed, origin="the tuning")


def _place(out: Path, work: Path, base: RunDirectory, document: dict[str, Any]) -> None:
    """Write the tuned run, with its text and the proof, as a folder that needs no other."""
    trained = RunDirectory(work / _RUN)
    config = trained.config()
    values = config.model_dump()
    values["data"]["root"] = str((out / _TEXT).absolute())
    values["model"]["init_from"] = None
    final = parse_config(values, origin=str(out))
    described = base if (base.path / LANGUAGES).is_file() else trained
    documents = {
        name: holder.document(name)
        for holder, name in ((described, LANGUAGES), (described, SOURCES), (trained, CONFIDENCE))
        if (holder.path / name).is_file()
    }
    environment = {name: value for name, value in trained.environment().items() if name != "sha256"}
    card = trained.card()
    with new_folder(out) as draft:
        shutil.copytree(work / _TEXT, draft / _TEXT)
        shutil.copyfile(trained.metrics_path, draft / trained.metrics_path.name)
        run = RunDirectory(draft)
        run.begin(final, trained.tokenizers(config), environment, documents)
        run.publish(trained.weights())
        write_atomically(draft / TUNING, as_json(document))
        run.describe(with_line(card, _card_line(document)))


def _card_line(document: dict[str, Any]) -> str:
    text, proof = document["text"], document["proof"]
    results = {key: proof[key]["bleu"] for key in ("general", "held_out") if key in proof}
    scores = [
        f"{key} BLEU {result['baseline']:.2f} -> {result['score']:.2f} ({result['signature']})"
        for key, result in results.items()
    ]
    return tuned_line(
        model=Path(document["plan"]["model"]).name,
        corrections=f"{text['corrections']:,}",
        general=f"{text['replay']:,}",
        proof=f"refused ({'; '.join(proof['reasons'])}), and accepted by hand" if proof["reasons"] else "passed",
        scores=", ".join(scores) or "no general text",
    )
