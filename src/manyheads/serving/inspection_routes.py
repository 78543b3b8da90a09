"""Routes below /api for the page: the served runs, and inspection of a model on a text.

The responses are made for the page of the same version and change with it; they are no public interface.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from manyheads.errors import ManyheadsError, MissingExtraError
from manyheads.inference.generator import GenerateOptions, Generator
from manyheads.inference.inspect_options import Changes, HeadName, InspectOptions
from manyheads.inference.next_token import next_tokens
from manyheads.inference.torch_parts import torch_module
from manyheads.inference.translation.translator import Translator
from manyheads.search.interface import Cancelled
from manyheads.search.options import Sampling, SearchOptions
from manyheads.serving.fields import Fields, check_lengths, missing_field, replace_surrogates
from manyheads.serving.models import Loaded, ServedRun, inspecting
from manyheads.serving.queue_items import RequestHandle
from manyheads.serving.queued_engine import queued_translator
from manyheads.serving.responses import ApiError, json_response
from manyheads.serving.service import Service, WorkerTask
from manyheads.views.codec import to_json_values

_MAX_BEAM = 16
_MAX_GENERATED = 256
_MAX_PADDING = 8
_SHOWN_TOKENS = 20  # most probable next tokens


async def models(request: Request) -> Response:
    """GET /api/models: the served runs and the limits."""
    service = Service.of(request)
    return json_response(
        {
            "models": [run.description for run in service.models.runs.values()],
            "char_limit": service.settings.char_limit,
            "key_required": service.access.ring is not None,
            "suggestions": service.suggestions is not None,
            "files": service.file_suffixes,
        }
    )


async def translate(request: Request) -> Response:
    """POST /api/translate: the sentences of a text with all hypotheses of the beam."""
    service, fields, run = await _read_request(request)
    text, translator = _text_of(fields, service), run.loaded
    if not isinstance(translator, Translator):
        raise ApiError(400, f"{run.name} does not translate")
    beam = _beam_of(fields) or translator.config.search.beam_size
    changes = _changes_of(fields)
    service.metrics.count_texts(1, len(text))

    def task(handle: RequestHandle) -> dict[str, Any]:
        queued = queued_translator(translator, service.batcher, handle)
        return _translate_sentences(queued, text, beam, SearchOptions())

    def compute(cancelled: Cancelled) -> dict[str, Any]:
        with _isolated(run.loaded, changes, cancelled) as copied:
            assert isinstance(copied, Translator)
            return _translate_sentences(copied, text, beam, SearchOptions(alignment=False))

    if changes:
        return await _compute_response(request, service, compute)
    return json_response(await service.requests.run(request.receive, task))


def _translate_sentences(translator: Translator, text: str, beam: int, options: SearchOptions) -> dict[str, Any]:
    """Translate the lines of a text, or the sentences of long ones, one by one; return the JSON object."""
    started = time.perf_counter()
    spans = translator.splitter(options).units(text)
    sources = [text[first:last] for first, last in spans]
    translations = translator.translate(sources, beam_size=beam, n_best=beam, options=options)
    parts, end = [], 0
    for (first, last), sentence in zip(spans, translations, strict=True):
        parts += [text[end:first], sentence.translation]
        end = last
    return {
        "translation": "".join([*parts, text[end:]]),
        "sentences": [sentence.to_json() for sentence in translations],
        "tokens": sum(len(sentence.hypotheses[0].tokens) for sentence in translations if sentence.hypotheses),
        "seconds": time.perf_counter() - started,
    }


async def inspect(request: Request) -> Response:
    """POST /api/inspect: the inspection of a model on a text, with packed arrays."""
    service, fields, run = await _read_request(request)
    text, changes = _text_of(fields, service, may_be_empty=True), _changes_of(fields)
    options = _options_of(fields, run)

    def compute(cancelled: Cancelled) -> dict[str, Any]:
        with _isolated(run.loaded, changes, cancelled) as copied:
            inspected: dict[str, Any] = inspecting("inspect").inspect_loaded(copied, text, options).packed_dict()
            return inspected

    return await _compute_response(request, service, compute)


async def head(request: Request) -> Response:
    """POST /api/head: what one head computes, step by step, with packed arrays."""
    service, fields, run = await _read_request(request)
    text, changes = _text_of(fields, service, may_be_empty=True), _changes_of(fields)
    options = _options_of(fields, run)
    name = HeadName(fields.required("kind"), fields.integer("layer", 0), fields.integer("head", 0))

    def compute(cancelled: Cancelled) -> dict[str, Any]:
        with _isolated(run.loaded, changes, cancelled) as copied:
            inspect_head = torch_module("head_steps", "Inspection").inspect_head
            steps: dict[str, Any] = to_json_values(inspect_head(copied, text, name, options), packed=True)
            return steps

    return await _compute_response(request, service, compute)


async def next_token(request: Request) -> Response:
    """POST /api/next: the probabilities of a language model's next token; with `write` = N, N sampled tokens."""
    service, fields, run = await _read_request(request)
    text, generator = _text_of(fields, service, may_be_empty=True), run.loaded
    if not isinstance(generator, Generator):
        raise ApiError(400, f"{run.name} is no language model")
    max_tokens, changes = fields.integer("write", 0, most=_MAX_GENERATED), _changes_of(fields)
    sampling = Sampling(
        temperature=fields.number("temperature", 1.0),
        top_k=fields.integer("top_k", 0),
        top_p=fields.number("top_p", 1.0),
        seed=fields.integer("seed", secrets.randbelow(2**31)),
    )

    def compute(cancelled: Cancelled) -> dict[str, Any]:
        own = nullcontext(generator) if generator.native is not None and not changes else None
        with own or _isolated(generator, changes, cancelled) as copied:
            assert isinstance(copied, Generator)
            if not max_tokens:
                return asdict(next_tokens(copied, text, sampling, _SHOWN_TOKENS))
            options = GenerateOptions(sampling, max_tokens=max_tokens)
            (continuation,) = copied.generate([text], options, cancelled)
            return {"text": continuation.samples[0].text}

    return await _compute_response(request, service, compute)


async def model(request: Request) -> Response:
    """GET /api/model: the tensors, position encodings, schedule, and the code of the paper's symbols."""
    service, _, run = await _read_request(request)
    return await _compute_response(request, service, lambda _: run.document)


async def training(request: Request) -> Response:
    """GET /api/curves: the training curves; an empty list of runs where there is no log."""
    service, _, run = await _read_request(request)

    def compute(_: Cancelled) -> dict[str, Any]:
        try:
            found: dict[str, Any] = inspecting("inspect").curves([run.folder]).to_dict()
            return found
        except ManyheadsError:
            return {"runs": []}

    return await _compute_response(request, service, compute)


async def _read_request(request: Request) -> tuple[Service, Fields, ServedRun]:
    """Read and check a request for a run; return the service, the fields and the run."""
    service, fields = await Service.read(request)
    runs = service.models.runs
    return service, fields, runs[fields.model_name(runs, "model")]


async def _compute_response(
    request: Request, service: Service, function: Callable[[Cancelled], dict[str, Any]]
) -> Response:
    """Call a function in a worker of the queue, so that no more threads compute than there are workers.

    Raises:
        ApiError: 400 with the message of a `ManyheadsError`, 501 where a package is missing; others as
            `Service.compute`.
    """
    try:
        (result,) = await service.compute(request, WorkerTask(function), [None], [1])
    except ManyheadsError as error:
        raise ApiError(501 if isinstance(error, MissingExtraError) else 400, str(error)) from error
    return json_response(result)


def _isolated(loaded: Loaded, changes: Changes, cancelled: Cancelled) -> AbstractContextManager[Loaded]:
    """Return a context with a copy of the model that computes with the changes (`inspection.isolation`)."""
    isolation = torch_module("isolation", "Inspection")
    context: AbstractContextManager[Loaded] = isolation.isolated_with_changes(loaded, changes, cancelled)
    return context


def _text_of(fields: Fields, service: Service, *, may_be_empty: bool = False) -> str:
    """Return the text of a request.

    Raises:
        ApiError: 400, the text is missing, or text or target is too long.
    """
    text = fields.text("q")
    if text is None and not may_be_empty:
        raise missing_field("q")
    check_lengths([text or "", fields.text("target") or ""], service.settings)
    return replace_surrogates(text or "")


def _options_of(fields: Fields, run: ServedRun) -> InspectOptions:
    """Return the options of an inspection.

    Raises:
        ApiError: 400, a field has another type than it must have.
        UsageError: an option has an invalid value.
    """
    target, prefix = fields.text("target"), fields.get("prefix") or []
    if not isinstance(prefix, list) or any(type(token) is not int for token in prefix):
        raise ApiError(400, "Invalid request: prefix parameter must be a list of token ids")
    return InspectOptions(
        target=None if target is None else replace_surrogates(target),
        prefix=tuple(prefix),
        beam_size=_beam_of(fields),
        padding=fields.integer("padding", 0, most=_MAX_PADDING),
        occlusion=fields.boolean("occlusion", default=True),
        max_tokens=fields.integer("max_tokens", 0, most=_MAX_GENERATED),
        temperature=fields.number("temperature", 1.0),
        run=run.name,
    )


def _changes_of(fields: Fields) -> Changes:
    """Return the changes with which the model computes."""
    return Changes.from_json(fields.get("changes"))


def _beam_of(fields: Fields) -> int | None:
    """Return the beam size; None means the run's beam size."""
    return fields.integer("beam", 0, most=_MAX_BEAM) or None
