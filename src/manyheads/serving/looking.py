"""What the page asks for: what is served, and what a text does inside a model.

These answers are made for the page that this version serves, and change with it; they are no interface for others.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from manyheads.errors import ManyheadsError
from manyheads.runs import page
from manyheads.runs.curves import curves
from manyheads.runs.inspect import inspect_loaded
from manyheads.search.interface import Abandoned
from manyheads.search.options import Sampling
from manyheads.serving.answers import Refusal, json_answer
from manyheads.serving.engine import queued
from manyheads.serving.fields import Fields, missing, read_fields, readable
from manyheads.serving.items import Item, Ticket
from manyheads.serving.models import Opened
from manyheads.serving.service import Service
from manyheads.tasks.inspecting import InspectOptions, inspect_model
from manyheads.tasks.inspecting.apart import apart
from manyheads.tasks.inspecting.next_token import next_tokens
from manyheads.tasks.language_modeling import GenerateOptions, Generator
from manyheads.tasks.translation import Translator
from manyheads.text.sentences import sentence_spans

__all__ = ["COMPUTING", "routes"]

COMPUTING = ("/api/translate", "/api/inspect", "/api/next", "/api/model", "/api/curves")
WIDEST_BEAM = 16
MOST_WRITTEN = 256
MOST_PADDING = 8
SHOWN_TOKENS = 20  # of those that may come next


@dataclass(frozen=True, eq=False)
class Errand:
    """A group of its own: something that a worker does for one request."""

    do: Callable[[Abandoned], Any]

    def compute(self, payloads: Sequence[None], abandoned: Abandoned) -> list[Any]:
        """See `Group.compute`."""
        return [self.do(abandoned) for _ in payloads]


async def models(request: Request) -> Response:
    """GET /api/models: what can be looked at, and the limits."""
    service = Service.of(request)
    return json_answer(
        {
            "models": [one.description for one in service.models.opened.values()],
            "char_limit": service.settings.char_limit,
            "key_required": service.access.ring is not None,
        }
    )


async def translate(request: Request) -> Response:
    """POST /api/translate: the sentences of a text, each with what the beam found."""
    service, fields, opened = await begun(request)
    text, translator = text_of(fields, service), opened.loaded
    if not isinstance(translator, Translator):
        raise Refusal(400, f"{opened.name} does not translate")
    beam = beam_of(fields) or translator.config.search.beam_size

    def task(ticket: Ticket) -> dict[str, Any]:
        started = time.perf_counter()
        spans = sentence_spans(text, translator.config.data.source)
        found = queued(translator, service.batcher, ticket).translate(
            [text[first:last] for first, last in spans], beam_size=beam, n_best=beam
        )
        parts, end = [], 0
        for (first, last), one in zip(spans, found, strict=True):
            parts += [text[end:first], one.translation]
            end = last
        return {
            "translation": "".join([*parts, text[end:]]),
            "sentences": [one.to_json() for one in found],
            "tokens": sum(len(one.hypotheses[0].tokens) for one in found if one.hypotheses),
            "seconds": time.perf_counter() - started,
        }

    service.metrics.count_texts(1, len(text))
    return json_answer(await done(request, service, task))


async def inspect(request: Request) -> Response:
    """POST /api/inspect: what a text does inside a model, with arrays packed."""
    service, fields, opened = await begun(request)
    text = text_of(fields, service, may_be_empty=True)
    target = fields.text("target")
    prefix, beam = ids_of(fields), beam_of(fields)
    padding, written = at_most(fields, "padding", MOST_PADDING), at_most(fields, "max_tokens", MOST_WRITTEN)

    def look(abandoned: Abandoned) -> dict[str, Any]:
        model = apart(opened.model(), abandoned)
        options = InspectOptions(
            target=None if target is None else readable(target),
            prefix=prefix,
            beam_size=beam,
            padding=padding,
            max_tokens=written,
            run=opened.name,
        )
        return inspect_loaded(model, text, options).packed_dict()

    return json_answer(await done(request, service, errand(service, look)))


async def next_token(request: Request) -> Response:
    """POST /api/next: what a language model may write next; with `write`, what it writes."""
    service, fields, opened = await begun(request)
    text, generator = text_of(fields, service, may_be_empty=True), opened.loaded
    if not isinstance(generator, Generator):
        raise Refusal(400, f"{opened.name} is no language model")
    written = at_most(fields, "write", MOST_WRITTEN)
    try:
        sampling = Sampling(
            temperature=fields.number("temperature", 1.0),
            top_k=fields.whole("top_k", 0),
            top_p=fields.number("top_p", 1.0),
            seed=fields.whole("seed", secrets.randbelow(2**31)),
        )
    except ValueError as error:
        raise Refusal(400, str(error)) from error

    def look(abandoned: Abandoned) -> dict[str, Any]:
        if not written:
            return asdict(next_tokens(generator, text, sampling, SHOWN_TOKENS))
        (found,) = generator.generate([text], GenerateOptions(sampling, max_tokens=written), abandoned)
        return {"text": found.samples[0].text}

    return json_answer(await done(request, service, errand(service, look)))


async def model(request: Request) -> Response:
    """GET /api/model: tensors, positions, schedule, and the code behind the symbols."""
    service, _, opened = await begun(request)

    def look(_: Abandoned) -> dict[str, Any]:
        if opened.document is None:
            loaded = opened.model()
            found = inspect_model(loaded.config, loaded.model, total_steps=opened.total_steps(), run=opened.name)
            opened.document = page.model_document(found)
        return opened.document

    return json_answer(await done(request, service, errand(service, look)))


async def training(request: Request) -> Response:
    """GET /api/curves: how the training went; without curves where nothing is known of it."""
    service, _, opened = await begun(request)

    def look(_: Abandoned) -> dict[str, Any]:
        try:
            return curves([opened.folder]).to_dict()
        except ManyheadsError:
            return {"runs": []}

    return json_answer(await done(request, service, errand(service, look)))


async def begun(request: Request) -> tuple[Service, Fields, Opened]:
    """What every request for a model needs; raises `Refusal`."""
    service = Service.of(request)
    fields = await read_fields(request, service.settings.body_limit)
    service.access.check(request, fields)
    name, opened = fields.text("model"), service.models.opened
    if name is None and len(opened) == 1:
        return service, fields, next(iter(opened.values()))
    if name not in opened:
        raise Refusal(404 if name else 400, f"model must be one of: {', '.join(opened)}")
    return service, fields, opened[name]


async def done(request: Request, service: Service, task: Callable[[Ticket], dict[str, Any]]) -> dict[str, Any]:
    """The result of a task; what a user can mend becomes a refusal."""
    try:
        return await service.work.run(request.receive, task)
    except ManyheadsError as error:
        raise Refusal(400, str(error)) from error


def errand(service: Service, do: Callable[[Abandoned], dict[str, Any]]) -> Callable[[Ticket], dict[str, Any]]:
    """A task that a worker of the queue does, so that no more is computed at once than there are workers."""

    def task(ticket: Ticket) -> dict[str, Any]:
        found: dict[str, Any] = service.batcher.results([Item(Errand(do), None, 1, ticket)])[0]
        return found

    return task


def text_of(fields: Fields, service: Service, *, may_be_empty: bool = False) -> str:
    """The text of a request."""
    text = fields.text("q")
    if text is None and not may_be_empty:
        raise missing("q")
    size = len(text or "") + len(fields.text("target") or "")
    if size > service.settings.char_limit:
        raise Refusal(400, f"Invalid request: request ({size}) exceeds text limit ({service.settings.char_limit})")
    return readable(text or "")


def ids_of(fields: Fields) -> tuple[int, ...]:
    """The tokens that an output begins with."""
    found = fields.get("prefix") or []
    whole = isinstance(found, list) and all(isinstance(one, int) and not isinstance(one, bool) for one in found)
    if not whole:
        raise Refusal(400, "Invalid request: prefix parameter must be a list of token ids")
    return tuple(found)


def beam_of(fields: Fields) -> int | None:
    """The beam size, None where that of the run is meant."""
    return at_most(fields, "beam", WIDEST_BEAM) or None


def at_most(fields: Fields, name: str, most: int) -> int:
    """A whole number from 0 to a limit."""
    value = fields.whole(name, 0)
    if value > most:
        raise Refusal(400, f"Invalid request: {name} parameter must be <= {most}")
    return value


def routes() -> list[Route]:
    """All of them."""
    return [
        Route("/api/models", models, methods=["GET"]),
        Route("/api/translate", translate, methods=["POST"]),
        Route("/api/inspect", inspect, methods=["POST"]),
        Route("/api/next", next_token, methods=["POST"]),
        Route("/api/model", model, methods=["GET"]),
        Route("/api/curves", training, methods=["GET"]),
    ]
