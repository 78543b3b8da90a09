"""Export a run in the format of another program; the export is compared with the run before it is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyheads.checkpoint import RunDirectory, write_atomically
from manyheads.config.schema import Config, Task
from manyheads.data.locate import Split
from manyheads.errors import UsageError
from manyheads.interop.argos import check_argos, package_name, write_argos
from manyheads.interop.ctranslate2 import check_ctranslate2, write_ctranslate2
from manyheads.interop.drafts import drafted
from manyheads.interop.marian import check_marian, has_transformers, marian_numbers, read_marian, write_marian
from manyheads.interop.onnx import check_onnx, write_onnx
from manyheads.interop.opened import OpenedModel
from manyheads.interop.parity import Parity, Reference, Samples, compare, random_samples, reference
from manyheads.interop.sources import open_run
from manyheads.runs.export_cost import QuantizationCost, measure_cost
from manyheads.runs.export_text import TEXT_FORMATS, write_text_model
from manyheads.runs.model_card import export_card
from manyheads.runs.test_set_scores import pairs_at_hand, test_scores, with_scores
from manyheads.training.log import Listener, SilentListener

__all__ = ["Export", "export", "pairs_at_hand", "samples_of"]

NO_LISTENER = SilentListener()
SAMPLES = 16  # sentences that are compared


@dataclass(frozen=True)
class Export:
    """Result of an export.

    Attributes:
        out: written folder or file.
        to: format.
        quantization: number format of the matrices.
        size: number of bytes of all files.
        parity: comparison with the run in float32.
        cost: cost of the quantization on this machine; None for float32.
    """

    out: Path
    to: str
    quantization: str
    size: int
    parity: Parity
    cost: QuantizationCost | None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "out": str(self.out),
            "to": self.to,
            "quantization": self.quantization,
            "bytes": self.size,
            "parity": self.parity.to_json(),
            "cost": self.cost.to_json() if self.cost else None,
        }

    def lines(self) -> list[str]:
        """Return lines of text."""
        found = [f"{self.out}: {self.to}, {self.quantization}, {self.size / 2**20:.1f} MiB", self.parity.line()]
        return [*found, self.cost.line()] if self.cost else found


def export(
    run: Path,
    out: Path,
    to: str,
    *,
    quantization: str | None = None,
    force: bool = False,
    listener: Listener = NO_LISTENER,
) -> Export:
    """Export a run to `out` in another format; an export with other results is not kept.

    In float32, tokens and log-probabilities must be those of the run. A quantized export is judged by its cost on
    the run's validation text, on this machine.

    Args:
        run: run directory.
        out: folder to write; for argos also a file that ends in .argosmodel.
        to: one of `FORMATS`.
        quantization: number format of the matrices (default: float32, for argos int8).
        force: whether to keep a quantized export that costs too much.
        listener: receives messages.

    Raises:
        RunError: the run cannot be read, `out` exists, or the format cannot hold such a model.
        UsageError: there is no such format or quantisation.
        ParityError: the export gives other results than the run, or quantization costs too much.
        MissingExtraError: the format needs a package that is not installed.
    """
    if to not in FORMATS:
        raise UsageError(f"--to {to} is none of {', '.join(FORMATS)}.")
    numbers = quantization or ("int8" if to == "argos" else "float32")
    task = RunDirectory.existing(run).config().task
    if task != "translation":
        return export_text_model(run, out, to, numbers, task, listener)
    if to not in WRITERS:
        raise UsageError(f"--to {to} is for classifiers, and {run} is a translator. Use {', '.join(WRITERS)}.")
    opened = open_run(run)
    listener.message(f"{run}: comparing and writing")
    right = reference(opened.model, samples_of(opened.config, opened))
    with drafted(out) as draft:
        parity = WRITERS[to](draft, opened, numbers, right)
        if to != "argos":
            write_atomically(draft / "README.md", card_of(opened, to).encode())
        cost = None
        if numbers != "float32":
            listener.message(f"measuring what {numbers} costs on this machine")
            cost = measure_cost(opened, numbers, right, force=force)
    size = sum(path.stat().st_size for path in ([out] if out.is_file() else out.rglob("*")) if path.is_file())
    return Export(out, to, numbers, size, parity, cost)


def export_text_model(run: Path, out: Path, to: str, numbers: str, task: Task, listener: Listener) -> Export:
    """Export a run of a task other than translation, as `export` does."""
    if to not in TEXT_FORMATS or numbers != "float32":
        able = " or ".join(TEXT_FORMATS) if task == "classification" else "huggingface"
        raise UsageError(f'{run} is of task = "{task}", which goes out by --to {able} alone, in float32.')
    listener.message(f"{run}: comparing and writing")
    directory = RunDirectory.existing(run)
    with drafted(out) as draft:
        parity = write_text_model(draft, directory, to, listener)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    return Export(out, to, numbers, size, parity, None)


def card_of(opened: OpenedModel, to: str) -> str:
    """Return the model card of an export, with the scores of the run if its test text is available."""
    card, scores = export_card(opened.config, opened.tokenizers, to), test_scores(opened)
    return card if scores is None else with_scores(card, scores)


def as_ctranslate2(draft: Path, opened: OpenedModel, numbers: str, right: Reference) -> Parity:
    """Write and compare a CTranslate2 folder."""
    write_ctranslate2(draft, opened.config, opened.tokenizers, opened.model, numbers)
    return check_ctranslate2(draft, right)


def as_argos(draft: Path, opened: OpenedModel, numbers: str, right: Reference) -> Parity:
    """Write and compare an Argos package, in the temporary folder or in its place."""
    data = opened.config.data
    path = draft / f"{package_name(data.source, data.target)}.argosmodel"
    write_argos(path, opened, numbers, card_of(opened, "argos"))
    return check_argos(path, opened, right)


def as_huggingface(draft: Path, opened: OpenedModel, numbers: str, right: Reference) -> Parity:
    """Write a MarianMT folder and compare it: in transformers if that is installed, else read back."""
    check_float32(numbers)
    write_marian(draft, opened.config, opened.tokenizers, opened.model)
    if has_transformers():
        return check_marian(draft, marian_numbers(opened.model), right)
    back = reference(read_marian(draft).model, right.samples)
    return compare(right, back.scores, back.outputs, "float32", "the MarianMT folder")


def as_onnx(draft: Path, opened: OpenedModel, numbers: str, right: Reference) -> Parity:
    """Write and compare ONNX graphs."""
    check_float32(numbers)
    write_onnx(draft, opened.config, opened.tokenizers, opened.model)
    return check_onnx(draft, right)


def check_float32(numbers: str) -> None:
    """Refuse other number formats than float32."""
    if numbers != "float32":
        raise UsageError(f"--quantization {numbers} goes with --to ctranslate2 and argos alone.")


Writer = Callable[[Path, OpenedModel, str, Reference], Parity]
WRITERS: dict[str, Writer] = {
    "ctranslate2": as_ctranslate2,
    "argos": as_argos,
    "huggingface": as_huggingface,
    "onnx": as_onnx,
}
FORMATS = tuple(dict.fromkeys([*WRITERS, *TEXT_FORMATS]))


def samples_of(config: Config, opened: OpenedModel) -> Samples:
    """Return the first test or validation sentences of a run; random pieces if its text is not on this machine."""
    splits: list[Split] = ["test", "valid"]
    for split in splits:
        rows = opened.tokenizers.source.encode([pair.source for pair in pairs_at_hand(config, split, SAMPLES)])
        if any(rows):
            return Samples([row for row in rows if row], f"the first of the run's {split} set")
    return random_samples(opened.tokenizers.source)
