"""Export a run for a browser: one HTML file with the page and the model inside, or a JavaScript module."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bitext.languages import normal_form
from bitext.shell import command_line
from manyheads.checkpoint import RunDirectory, as_json, saving, write_atomically
from manyheads.checkpoint.arrays import TensorFile
from manyheads.checkpoint.bundle import LoadedModel
from manyheads.data.training_text import name_files
from manyheads.errors import UsageError, is_installed
from manyheads.files import new_folder
from manyheads.inference.about import describe_all, direction_name
from manyheads.inference.classifier import Classifier
from manyheads.inference.export_formats import check_format
from manyheads.inference.export_settings import TextComparison, compare_texts, join_comparisons, setting_lines
from manyheads.inference.generator import Generator, first_token
from manyheads.inference.inspect import Loaded, inspect_weights, load_for_inspection
from manyheads.inference.native.language_model import with_fixed_bias
from manyheads.inference.native.weights import FloatArray
from manyheads.inference.native_engine import tied_matrices
from manyheads.inference.parity import MAX_SAMPLE_TOKENS, Parity, random_rows, samples_of
from manyheads.inference.torch_parts import torch_module
from manyheads.inference.translation.translator import Translator
from manyheads.reports import Listener
from manyheads.results import Result
from manyheads.text.tokenizer import BOS, EOS
from manyheads.views.parts import ModelFacts
from manyheads.web.check import compare_packed, translate_packed
from manyheads.web.html_page import PageModel, model_document, page_of_run
from manyheads.web.pack import PackedModel, pack_model
from manyheads.web.scripts import ENGINE, WEB, model_script
from manyheads.web.tokenizer import describe_tokenizer

_ROWS = 16  # rows of random ids on which a classifier or a language model is compared
_ELEMENT_BYTES = 3 << 19  # bytes of tensors in one element of the file: decoded one at a time
_MAX_TENSOR_BYTES = 64 << 20  # bytes of tensors: a browser holds the file, its text and the numbers
_CHAR_LIMIT = 100_000
_NOT_COMPARED = "not compared: that needs Node.js 18 or newer, and torch"
_MODULE, _TYPES = "manyheads.js", "manyheads.d.ts"


@dataclass(frozen=True, eq=False)
class HtmlModel:
    """A run, packed for the engine of a page.

    Attributes:
        loaded: the run.
        packed: its weights.
        header: the description of weights, tokenizers and settings (JSON).
    """

    loaded: Loaded
    packed: PackedModel
    header: dict[str, Any]

    def head(self) -> str:
        """Return JSON text with the engine in base64 ("wasm") and the "header"."""
        wasm = base64.b64encode(ENGINE.read_bytes()).decode("ascii")
        return json.dumps({"wasm": wasm, "header": self.header}, ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True)
class Export(Result):
    """Result of an export.

    Attributes:
        out: written folder or file.
        to: format.
        quantization: number format of the matrices.
        bytes: size of all files.
        parity: comparison with the run in float32; None for a page or a module where Node.js is missing.
        texts: comparison with the run on lines of text that use its settings; None for runs that are no
            translators, and for a page or a module where Node.js is missing.
        scoring: command that scores the run and a quantized export; "" for others, and for a page or a module.
    """

    out: Path
    to: str
    quantization: str
    bytes: int
    parity: Parity | None
    texts: TextComparison | None
    scoring: str = ""

    def verdict(self) -> list[str]:
        """Return whether the export can replace the run."""
        lost = self.texts.verdict() if self.texts else ""
        model = [f"{'for the same tokens, ' if lost else ''}{self.parity.verdict()}"] if self.parity else []
        return [*model, *([lost] if lost else [])] or ["not compared with the run"]

    def report(self) -> list[str]:
        """Return the size, and the comparisons with the run."""
        compared = self.parity.line() if self.parity else _NOT_COMPARED
        lines = [f"{self.out}: {self.to}, {self.quantization}, {self.bytes / 2**20:.1f} MiB", compared]
        return [*lines, *([self.texts.line()] if self.texts else [])]

    def following(self) -> str:
        """Return the command that scores both, for a quantized export."""
        return f"score both, and test the difference: {self.scoring}" if self.scoring else ""


def size_of(out: Path) -> int:
    """Return the size of a file, or of all files of a folder, in bytes."""
    return sum(path.stat().st_size for path in ([out] if out.is_file() else out.rglob("*")) if path.is_file())


def export_for_browsers(
    run: Path, out: Path, to: str, quantization: str | None, *, listener: Listener, project: str = ""
) -> Export:
    """Write a run as a page or a module, and compare it in Node.js if that is installed.

    Without torch, only translations are compared, and a page does not show the weights. `project` is the address of
    the project, for the footer of a page.

    Raises:
        RunError: the run cannot be read.
        UsageError: a page cannot hold such a model, there is no such number format, or `project` is no address.
        ParityError: the engine gives other results than the run.
        MissingExtraError: a module, whose card is written with its scores, needs torch.
    """
    directory, with_torch = RunDirectory.existing(run), is_installed("torch")
    numbers = check_format(directory.config().task, to, quantization, str(run))
    if project and (to != "html" or not project.startswith(("https://", "http://"))):
        raise UsageError(f"--project-url {project} is for --to html, and begins with https:// or http://.")
    with new_folder(out) as draft, directory.frozen(draft.parent / ".run") as run:
        model = pack_run(run, "fp32" if numbers == "float32" else numbers)
        loaded = model.loaded
        name_files(loaded.config, ["valid", "test"], listener)
        with listener.phase("comparing and writing"):
            parity = _compare_with_run(model, numbers) if with_torch else None
            texts = _compare_texts_with_run(model, to, numbers)
        if with_torch or to != "html":
            with listener.phase("scoring the test text for the model card"):
                evaluation = torch_module("evaluate", f"--to {to}")
                line = evaluation.card_line(run, listener)
        if to == "html":
            card = RunDirectory(run).card()
            card = evaluation.with_line(card, line) if with_torch else card
            page = html_document(run, model, card=card, project=project)
            name = out.name if out.suffix == ".html" else f"{directory.path.resolve().name}.html"
            write_atomically(draft / name, page.encode())
        else:
            model_card = torch_module("model_card", f"--to {to}")
            labels = loaded.labels.names if isinstance(loaded, Classifier) else ()
            card = model_card.exported_card(loaded.config, RunDirectory(run).tokenizers(loaded.config), to, labels)
            _write_module(draft, model, evaluation.with_line(card, line))
    return Export(out, to, numbers, size_of(out), parity, texts)


def write_page(run: Path, path: Path) -> None:
    """Write a run as a page with int8 weights, and compare it in Node.js if that is installed.

    Unlike `export_for_browsers`, translate no test text for the model card, so that it takes a second.
    """
    model = pack_run(run, "int8")
    if is_installed("torch"):
        _compare_with_run(model, "int8")
    page = html_document(run, model, card=RunDirectory(run).card())
    with saving("the page", path, "The run is intact."):
        write_atomically(path, page.encode())


def _compare_with_run(model: HtmlModel, numbers: str) -> Parity | None:
    """Compare a packed model with the run that it was made of; None without Node.js."""
    loaded = model.loaded
    reference = torch_module("reference", "The comparison with the run")
    if isinstance(loaded, Translator):
        opened = LoadedModel(loaded.config, loaded.tokenizers, loaded.model)
        expected = [
            reference.reference(loaded.model, samples_of(view), view.prefix) for view in opened.directions()
        ]
    else:
        expected = [reference.reference_of_text_model(loaded.model, _marked_samples(loaded))]
    decodes, head, block = loaded.config.spec.decodes, model.head(), model.packed.block()
    parities = [compare_packed(head, block, wanted, numbers, decodes=decodes) for wanted in expected]
    compared = [parity for parity in parities if parity is not None]
    return max(compared, key=lambda parity: parity.largest, default=None)


def _compare_texts_with_run(model: HtmlModel, to: str, numbers: str) -> TextComparison | None:
    """Compare the translations of lines by a packed model with those of its run; None without Node.js."""
    if not isinstance(model.loaded, Translator):
        return None
    translator, head, block, found = model.loaded, model.head(), model.packed.block(), []
    for view in LoadedModel(translator.config, translator.tokenizers, translator.engine).directions():
        lines = setting_lines(view)
        outputs = translate_packed(head, block, lines, direction_name(model.header["page"]["run"], view.config))
        if outputs is None:
            return None
        found.append(compare_texts(view, to, lines, outputs, exact=numbers == "float32"))
    return join_comparisons(found)


def _marked_samples(loaded: Classifier | Generator) -> list[list[int]]:
    """Return rows of random ids with the marks of the task."""
    longest = min(MAX_SAMPLE_TOKENS, loaded.config.model.max_positions, loaded.config.data.max_length) - 2
    rows = random_rows(loaded.tokenizer, _ROWS, min(2, longest), longest)
    return [[BOS, *row, EOS] for row in rows] if isinstance(loaded, Classifier) else rows


def pack_run(run: Path, precision: str) -> HtmlModel:
    """Pack the model of a run for a page.

    Args:
        run: run directory.
        precision: number format of the matrices, "fp32" or "int8".

    Raises:
        RunError: there is no such run.
        UsageError: a page cannot hold such a model; the message names the setting or the limit.
    """
    loaded = load_for_inspection(run, "cpu")
    config, tied = loaded.config, tied_matrices(loaded.config)
    tensors: Mapping[str, FloatArray] = TensorFile(RunDirectory(run).weights_path, tied)
    if isinstance(loaded, Generator):
        tensors = with_fixed_bias(tensors, loaded.tokenizer.size, loaded.tokenizer.absent)
    packed = pack_model(config, tensors, tied, precision)
    size = packed.header["bytes"]
    if size > _MAX_TENSOR_BYTES:
        advice = " With --quantization int8 they are a quarter." if precision == "fp32" else ""
        raise UsageError(
            f"the weights of {run} take {size / 2**20:.0f} MiB, and a page can hold {_MAX_TENSOR_BYTES >> 20} MiB."
            f"{advice} Serve the run, `{command_line('manyheads', 'serve', run)}`, or distil it to a smaller one."
        )
    return HtmlModel(loaded, packed, {**packed.header, **_description(loaded, RunDirectory(run).name)})


def _description(loaded: Loaded, name: str) -> dict[str, Any]:
    """Return the metadata of a page: the tokenizers, and the settings of the task (JSON)."""
    config = loaded.config
    page: dict[str, Any] = {"run": name, "facts": asdict(ModelFacts.of(config))}
    if isinstance(loaded, Translator):
        source, target = loaded.tokenizers.source, loaded.tokenizers.target
        directions = [
            dict(zip(("source", "target"), map(normal_form, view.languages), strict=True))
            | {"run": direction_name(name, view), "prefix": target.language_prefix(view.data.target)}
            for view in config.for_directions()
        ]
        page |= directions[0] | {"run": name, "directions": directions if config.multilingual else None}
        page |= loaded.splitter().page_data()
        for stage in loaded.stages:
            page |= stage.page_data(loaded)
        target_tokenizer = None if loaded.tokenizers.joint else describe_tokenizer(target)
        return {"page": page, "tokenizers": {"source": describe_tokenizer(source), "target": target_tokenizer}}
    page["language"] = normal_form(config.data.language)
    if isinstance(loaded, Classifier):
        page |= {"labels": list(loaded.labels.names), "texts": loaded.labels.texts, "longest": loaded.longest}
    else:
        lines = config.data.documents == "line"
        page |= {"first": first_token(config, loaded.tokenizer), "lines": lines}
    return {"page": page, "tokenizers": {"source": describe_tokenizer(loaded.tokenizer), "target": None}}


def html_document(run: Path, model: HtmlModel, *, card: str = "", project: str = "") -> str:
    """Return a self-contained page that computes with a model.

    Args:
        run: run directory.
        model: the packed run.
        card: the model card (Markdown).
        project: web address in the footer; "" for a page without a footer.
    """
    loaded, name = model.loaded, RunDirectory(run).name
    document = model_document(inspect_weights(loaded, run, name), card) if is_installed("torch") else None
    about = {
        "models": describe_all(loaded.config, name, run),
        "parts": ["inspection", *(["model"] if document else []), "curves"],
        "char_limit": _CHAR_LIMIT,
        "project": project,
        "weights": {"precision": model.header["precision"], "bytes": model.header["bytes"]},
    }
    parts = list(_chunks(model.packed.block()))
    packed = PageModel(model_script("worker.js"), model.head(), parts)
    return page_of_run(run, about, None, document, None, packed)


def _chunks(block: bytes) -> Iterator[str]:
    """Yield the tensors in base64, in parts."""
    for start in range(0, len(block), _ELEMENT_BYTES):
        yield base64.b64encode(block[start : start + _ELEMENT_BYTES]).decode("ascii")


def _write_module(folder: Path, model: HtmlModel, card: str) -> None:
    """Write a JavaScript module with its types, the model that it reads, and the model card.

    The file of the model begins with the length of its head (8 bytes, little-endian). The head and the tensors
    follow.
    """
    head = model.head().encode()
    package = {"name": "manyheads-model", "private": True, "type": "module", "main": _MODULE, "types": _TYPES}
    files = {
        _MODULE: model_script("module.js").encode(),
        _TYPES: (WEB / _TYPES).read_bytes(),
        "package.json": as_json(package),
        "README.md": card.encode(),
        "model.bin": len(head).to_bytes(8, "little") + head + model.packed.block(),
    }
    for name, content in files.items():
        write_atomically(folder / name, content)
