"""Export a run as one HTML file: the page with the model inside, which computes in the browser."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from manyheads.errors import RunError, UsageError
from manyheads.interop.html.pack import PackedModel, pack_model
from manyheads.interop.html.scripts import ENGINE, joined_script
from manyheads.interop.html.tokenizer import describe_tokenizer
from manyheads.runs.inspect import Loaded, curves, last_total_steps, load_for_inspection
from manyheads.runs.page import PageModel, described, example_of, model_document, page_with, strings
from manyheads.tasks.classification import Classifier
from manyheads.tasks.inspecting import inspect_model
from manyheads.tasks.inspecting.common import facts
from manyheads.tasks.language_modeling import first_token
from manyheads.tasks.translation import Translator

__all__ = ["HtmlModel", "html_document", "pack_run"]

CHUNK = 3 << 19  # bytes of tensors in one element of the file: decoded one at a time
LARGEST = 64 << 20  # bytes of tensors: a browser holds the file, its text and the numbers
CHAR_LIMIT = 100_000


@dataclass(frozen=True, eq=False)
class HtmlModel:
    """A run as a page computes with it.

    Attributes:
        loaded: the run.
        packed: its weights.
        header: the description of weights, tokenizers and settings (JSON).
    """

    loaded: Loaded
    packed: PackedModel
    header: dict[str, Any]


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
    if size > LARGEST:
        other = " With --quantization int8 they are a quarter." if precision == "fp32" else ""
        raise UsageError(
            f"the weights of {run} take {size / 2**20:.0f} MiB, and a page can hold {LARGEST >> 20} MiB.{other} "
            "Serve the run instead, `manyheads serve RUN`, or distil it to a smaller one."
        )
    return HtmlModel(loaded, packed, {**packed.header, **description(loaded, run.resolve().name)})


def description(loaded: Loaded, name: str) -> dict[str, Any]:
    """Return what a page must know beside the weights: tokenizers, and the settings of the task (JSON)."""
    config = loaded.config
    page: dict[str, Any] = {"run": name, "facts": asdict(facts(config))}
    if isinstance(loaded, Translator):
        source, target = loaded.tokenizers.source, loaded.tokenizers.target
        page |= {"source": config.data.source, "target": config.data.target, "max_length": config.data.max_length}
        page |= {"copy_literals": config.search.copy_literals, "lower_capitals": config.search.lower_capitals}
        other = None if loaded.tokenizers.joint else describe_tokenizer(target)
        return {"page": page, "tokenizers": {"source": describe_tokenizer(source), "target": other}}
    page["language"] = config.data.language
    if isinstance(loaded, Classifier):
        page |= {"labels": list(loaded.labels.names), "texts": loaded.labels.texts, "longest": loaded.longest}
    else:
        lines = config.data.documents == "line"
        page |= {"first": first_token(config, loaded.tokenizer), "lines": lines}
    return {"page": page, "tokenizers": {"source": describe_tokenizer(loaded.tokenizer), "target": None}}


def html_document(run: Path, model: HtmlModel, *, language: str | None = None) -> str:
    """Return a self-contained page that computes with a model.

    Args:
        run: run directory.
        model: the packed run.
        language: language in which the page opens; None is that of the browser.
    """
    loaded, name = model.loaded, run.resolve().name
    try:
        training = curves([run]).to_dict()
    except RunError:
        training = None
    inspection = inspect_model(loaded.config, loaded.model, total_steps=last_total_steps(run), run=name)
    about = {
        "models": [described(loaded.config, name, example=example_of(run))],
        "parts": ["inspection", "model", *(["curves"] if training else [])],
        "char_limit": CHAR_LIMIT,
        "key_required": False,
    }
    data = {
        "strings": strings(),
        "language": language,
        "about": about,
        "inspection": None,
        "model": model_document(inspection),
        "curves": training,
    }
    wasm = base64.b64encode(ENGINE.read_bytes()).decode("ascii")
    head = json.dumps({"wasm": wasm, "header": model.header}, ensure_ascii=False, allow_nan=False)
    return page_with(data, name, PageModel(joined_script("worker.js"), head, list(chunks(model.packed.block()))))


def chunks(block: bytes) -> Iterator[str]:
    """Yield the tensors in base64, in parts."""
    for start in range(0, len(block), CHUNK):
        yield base64.b64encode(block[start : start + CHUNK]).decode("ascii")
