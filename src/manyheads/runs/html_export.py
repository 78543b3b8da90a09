"""Export a run for a browser: one HTML file with the page and the model inside, or a JavaScript module."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from manyheads.checkpoint import RunDirectory, as_json, saving, write_atomically
from manyheads.data.literals import literal_kinds
from manyheads.errors import UsageError
from manyheads.files import new_folder
from manyheads.interop.bundle import LoadedModel
from manyheads.interop.html.check import compare_packed, reference_of_text_model, translate_packed
from manyheads.interop.html.pack import PackedModel, pack_model, rounded_model
from manyheads.interop.html.tokenizer import describe_tokenizer
from manyheads.interop.parity import MAX_SAMPLE_TOKENS, Parity, random_rows, reference
from manyheads.languages import normal_form
from manyheads.runs.evaluate import card_line, with_line
from manyheads.runs.export_cost import PageEngine, QuantizationCost, measure_cost
from manyheads.runs.export_settings import TextComparison, compare_texts, setting_lines
from manyheads.runs.inspect import Loaded, last_total_steps, load_for_inspection
from manyheads.runs.model_card import exported_card
from manyheads.runs.page import PageModel, card_of, describe, example_of, model_document, page_of_run
from manyheads.shell import command_line
from manyheads.tasks.classification.classifier import Classifier
from manyheads.tasks.corpus import samples_of
from manyheads.tasks.inspecting.common import facts
from manyheads.tasks.inspecting.model import inspect_model
from manyheads.tasks.language_modeling.generator import Generator, first_token
from manyheads.tasks.translation.translator import Translator
from manyheads.text.tokenizer import BOS, EOS
from manyheads.training.log import Listener
from manyheads.web.scripts import ENGINE, WEB, joined_script

FOR_BROWSERS = ("html", "javascript")  # formats, in float32 or int8, for runs of any task but masked-lm
_ROWS = 16  # rows of random ids on which a classifier or a language model is compared
_CHUNK = 3 << 19  # bytes of tensors in one element of the file: decoded one at a time
_MAX_TENSOR_BYTES = 64 << 20  # bytes of tensors: a browser holds the file, its text and the numbers
_CHAR_LIMIT = 100_000
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


def export_for_browsers(
    run: Path, out: Path, to: str, numbers: str, *, force: bool, listener: Listener
) -> tuple[Parity | None, TextComparison | None, QuantizationCost | None]:
    """Write a run as a page or a module, and compare it in Node.js if that is installed.

    Raises:
        RunError: the run cannot be read.
        UsageError: a page cannot hold such a model.
        ParityError: the engine gives other results than the run, or quantization costs too much.
    """
    model = pack_run(run, "fp32" if numbers == "float32" else numbers)
    loaded, cost = model.loaded, None
    with new_folder(out) as draft:
        with listener.phase("comparing and writing"):
            parity = _compare_with_run(model, numbers)
            texts = _compare_texts_with_run(model, to, numbers)
        with listener.phase("scoring the test text for the model card"):
            line = card_line(run, listener)
        if to == "html":
            page = html_document(run, model, card=with_line(card_of(run), line))
            write_atomically(draft / f"{run.resolve().name}.html", page.encode())
        else:
            labels = loaded.labels.names if isinstance(loaded, Classifier) else ()
            card = exported_card(loaded.config, RunDirectory(run).tokenizers(loaded.config), to, labels)
            _write_module(draft, model, with_line(card, line))
        if isinstance(loaded, Translator) and numbers != "float32":
            listener.message(f"measuring what {numbers} costs")
            engines = PageEngine(loaded.model, "float32"), PageEngine(rounded_model(loaded.model), numbers)
            cost = measure_cost(_open(loaded), numbers, engines, force=force, listener=listener)
    return parity, texts, cost


def write_page(run: Path, path: Path) -> None:
    """Write a run as a page with int8 weights, and compare it in Node.js if that is installed.

    Unlike `export_for_browsers`, measure no BLEU, so that it takes a second.

    Raises:
        RunError: the run cannot be read.
        SaveError: the page could not be written.
        UsageError: a page cannot hold such a model.
        ParityError: the engine gives other results than the run.
    """
    model = pack_run(run, "int8")
    _compare_with_run(model, "int8")
    page = html_document(run, model, card=card_of(run))
    with saving("the page", path, "The run is intact."):
        write_atomically(path, page.encode())


def _compare_with_run(model: HtmlModel, numbers: str) -> Parity | None:
    """Compare a packed model with the run that it was made of; None without Node.js.

    Raises:
        ParityError: the engine gives other results than the run.
    """
    loaded = model.loaded
    if isinstance(loaded, Translator):
        expected = reference(loaded.model, samples_of(_open(loaded)))
    else:
        expected = reference_of_text_model(loaded.model, _marked_samples(loaded))
    return compare_packed(model.head(), model.packed.block(), expected, numbers, decodes=loaded.config.spec.decodes)


def _compare_texts_with_run(model: HtmlModel, to: str, numbers: str) -> TextComparison | None:
    """Compare the translations of lines by a packed model with those of its run; None without Node.js.

    Raises:
        ParityError: the translations differ.
    """
    if not isinstance(model.loaded, Translator):
        return None
    run = _open(model.loaded)
    lines = setting_lines(run)
    outputs = translate_packed(model.head(), model.packed.block(), lines)
    if outputs is None:
        return None
    return compare_texts(run, to, lines, outputs, exact=numbers == "float32")


def _open(translator: Translator) -> LoadedModel:
    return LoadedModel(translator.config, translator.tokenizers, translator.model)


def _marked_samples(loaded: Classifier | Generator) -> list[list[int]]:
    """Return rows of random ids with the marks of the task."""
    longest = min(MAX_SAMPLE_TOKENS, loaded.model.config.max_positions, loaded.config.data.max_length) - 2
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
    packed = pack_model(loaded.config, loaded.model, precision)
    size = packed.header["bytes"]
    if size > _MAX_TENSOR_BYTES:
        advice = " With --quantization int8 they are a quarter." if precision == "fp32" else ""
        raise UsageError(
            f"the weights of {run} take {size / 2**20:.0f} MiB, and a page can hold {_MAX_TENSOR_BYTES >> 20} MiB."
            f"{advice} Serve the run, `{command_line('manyheads', 'serve', run)}`, or distil it to a smaller one."
        )
    return HtmlModel(loaded, packed, {**packed.header, **_description(loaded, run.resolve().name)})


def _description(loaded: Loaded, name: str) -> dict[str, Any]:
    """Return the metadata of a page: the tokenizers, and the settings of the task (JSON)."""
    config = loaded.config
    page: dict[str, Any] = {"run": name, "facts": asdict(facts(config))}
    if isinstance(loaded, Translator):
        source, target = loaded.tokenizers.source, loaded.tokenizers.target
        page |= dict(zip(("source", "target"), map(normal_form, config.languages), strict=True))
        kinds = literal_kinds() if config.search.copy_literals else ()
        page |= {"literals": [{"pattern": kind.pattern, "needs": kind.needs} for kind in kinds] or None}
        page |= {"lower_capitals": config.search.lower_capitals, "max_length": config.data.max_length}
        target_tokenizer = None if loaded.tokenizers.joint else describe_tokenizer(target)
        return {"page": page, "tokenizers": {"source": describe_tokenizer(source), "target": target_tokenizer}}
    page["language"] = normal_form(config.data.language)
    if isinstance(loaded, Classifier):
        page |= {"labels": list(loaded.labels.names), "texts": loaded.labels.texts, "longest": loaded.longest}
    else:
        lines = config.data.documents == "line"
        page |= {"first": first_token(config, loaded.tokenizer), "lines": lines}
    return {"page": page, "tokenizers": {"source": describe_tokenizer(loaded.tokenizer), "target": None}}


def html_document(run: Path, model: HtmlModel, *, card: str = "") -> str:
    """Return a self-contained page that computes with a model.

    Args:
        run: run directory.
        model: the packed run.
        card: the model card (Markdown).
    """
    loaded, name = model.loaded, run.resolve().name
    inspection = inspect_model(loaded.config, loaded.model, total_steps=last_total_steps(run), run=name)
    about = {
        "models": [describe(loaded.config, name, example=example_of(run))],
        "parts": ["inspection", "model", "curves"],
        "char_limit": _CHAR_LIMIT,
        "weights": {"precision": model.header["precision"], "bytes": model.header["bytes"]},
    }
    parts = list(_chunks(model.packed.block()))
    packed = PageModel(joined_script("worker.js"), model.head(), parts)
    return page_of_run(run, about, None, model_document(inspection, card), None, packed)


def _chunks(block: bytes) -> Iterator[str]:
    """Yield the tensors in base64, in parts."""
    for start in range(0, len(block), _CHUNK):
        yield base64.b64encode(block[start : start + _CHUNK]).decode("ascii")


def _write_module(folder: Path, model: HtmlModel, card: str) -> None:
    """Write a JavaScript module with its types, the model that it reads, and the model card.

    The file of the model begins with the length of its head (8 bytes, little-endian). The head and the tensors
    follow.
    """
    head = model.head().encode()
    package = {"name": "manyheads-model", "private": True, "type": "module", "main": _MODULE, "types": _TYPES}
    files = {
        _MODULE: joined_script("module.js").encode(),
        _TYPES: (WEB / _TYPES).read_bytes(),
        "package.json": as_json(package),
        "README.md": card.encode(),
        "model.bin": len(head).to_bytes(8, "little") + head + model.packed.block(),
    }
    for name, content in files.items():
        write_atomically(folder / name, content)
