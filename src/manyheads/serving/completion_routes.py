"""The routes /v1/completions and /v1/models in OpenAI's format; completions in full or as server-sent events."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from time import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from manyheads.inference.generator import Continuation, GenerateOptions, Generator
from manyheads.search.interface import Cancelled
from manyheads.search.options import Sampling
from manyheads.serving.fields import Fields, check_number_and_lengths, missing_field
from manyheads.serving.queue_items import QueueItem, RequestCancelled, RequestHandle
from manyheads.serving.responses import ApiError, json_bytes, json_response
from manyheads.serving.service import Service, WorkerTask

_MAX_TOKENS = 4_096  # of a completion
_MAX_SAMPLES = 16
_MAX_STOPS = 4
_FINISH_REASONS = {"end": "stop", "stop": "stop", "length": "length"}
# Fields of OpenAI's interface that are not supported, with the value that has no effect.
_UNSUPPORTED: dict[str, Any] = {
    "suffix": None, "logprobs": None, "logit_bias": {}, "frequency_penalty": 0, "presence_penalty": 0, "best_of": 1,
}  # fmt: skip


@dataclass(frozen=True)
class _CompletionRequest:
    """The checked fields of a request for completions.

    Attributes:
        name: name of the model, for the response.
        prompts: texts to continue.
        options: options of the generation.
        echo: whether each completion begins with its prompt.
        stream: whether the completion is sent in pieces.
        identifier: random identifier of the response.
    """

    name: str
    prompts: list[str]
    options: GenerateOptions
    echo: bool
    stream: bool
    identifier: str = field(default_factory=lambda: f"cmpl-{secrets.token_hex(12)}")


@dataclass(frozen=True)
class _CompletionGroup:
    """Prompts for one model with the same options, as a `BatchGroup`."""

    generator: Generator
    options: GenerateOptions

    def compute(self, payloads: Sequence[str], cancelled: Cancelled) -> list[Continuation]:
        """Continue all prompts; see `BatchGroup.compute`."""
        return self.generator.generate(list(payloads), self.options, cancelled)


async def complete(request: Request) -> Response:
    """POST /v1/completions."""
    service, fields = await Service.read(request)
    generators = service.models.generators
    name = fields.model_name(generators, "language model")
    generator, completion = generators[name], _completion_request(fields, name, service)
    service.metrics.count_texts(len(completion.prompts), sum(map(len, completion.prompts)))
    if completion.stream:
        return await _streaming_response(request, service, generator, completion)
    group = _CompletionGroup(generator, completion.options)
    options = completion.options  # the sizes are upper bounds of the tokens of a prompt and its completions
    sizes = [
        min(generator.window, len(prompt.encode()) + options.max_tokens) * options.samples
        for prompt in completion.prompts
    ]
    continuations = await service.compute(request, group, completion.prompts, sizes)
    return json_response(_completion_json(completion, continuations, generator))


def _completion_request(fields: Fields, name: str, service: Service) -> _CompletionRequest:
    """Check the fields of a request.

    Raises:
        ApiError: 400, a field is missing, not supported, or has an invalid value.
    """
    for unsupported, neutral in _UNSUPPORTED.items():
        if fields.values.get(unsupported, neutral) not in (None, neutral):
            raise ApiError(400, f"{unsupported} is not supported")
    if "prompt" not in fields.values:
        raise missing_field("prompt")
    prompts = [""] if fields.get("prompt") is None else fields.texts("prompt")
    check_number_and_lengths(prompts, service.settings)
    stream, samples = fields.boolean("stream"), _bounded_integer(fields, "n", 1, _MAX_SAMPLES)
    if stream and (samples > 1 or len(prompts) > 1):
        raise ApiError(400, "a stream has one prompt and n = 1")
    options = GenerateOptions(
        sampling=_sampling_of(fields),
        samples=samples,
        max_tokens=_bounded_integer(fields, "max_tokens", 16, _MAX_TOKENS),
        stop=_stops_of(fields),
    )
    return _CompletionRequest(name, prompts, options, fields.boolean("echo"), stream)


def _bounded_integer(fields: Fields, name: str, default: int, maximum: int) -> int:
    value = fields.integer(name, default, 1)
    if value > maximum:
        raise ApiError(400, f"{name} must be <= {maximum}")
    return value


def _sampling_of(fields: Fields) -> Sampling | None:
    """Return how tokens are sampled; None at temperature 0, which means greedy search."""
    temperature, top_p = fields.number("temperature", 1.0), fields.number("top_p", 1.0)
    if temperature == 0:
        return None
    if not 1e-3 <= temperature <= 2:
        raise ApiError(400, "temperature must be 0, or from 0.001 to 2")
    if not 0 < top_p <= 1:
        raise ApiError(400, "top_p must be above 0 and at most 1")
    seed = fields.integer("seed", secrets.randbelow(2**31))
    return Sampling(temperature=temperature, top_p=top_p, seed=seed)


def _stops_of(fields: Fields) -> tuple[str, ...]:
    """Return the texts before which a completion ends."""
    if fields.get("stop") is None:
        return ()
    stops = tuple(fields.texts("stop"))
    if len(stops) > _MAX_STOPS or not all(stops):
        raise ApiError(400, f"stop takes at most {_MAX_STOPS} texts, none of them empty")
    return stops


def _completion_json(
    completion: _CompletionRequest, continuations: Sequence[Continuation], generator: Generator
) -> dict[str, Any]:
    """Return the JSON object of a response that is not streamed."""
    samples = [(continuation, sample) for continuation in continuations for sample in continuation.samples]
    prompt_tokens = sum(map(len, generator.tokenizer.encode(completion.prompts)))
    completion_tokens = sum(len(sample.tokens) - (sample.ended == "end") for _, sample in samples)
    texts = [(continuation.prompt if completion.echo else "") + sample.text for continuation, sample in samples]
    reasons = [_FINISH_REASONS[sample.ended] for _, sample in samples]
    return _response_json(completion, list(zip(texts, reasons, strict=True))) | {
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }


def _response_json(completion: _CompletionRequest, choices: Sequence[tuple[str, str | None]]) -> dict[str, Any]:
    """Return the members of every response and every event; a choice is a text and its finish reason, or None."""
    return {
        "id": completion.identifier,
        "object": "text_completion",
        "created": int(time()),
        "model": completion.name,
        "choices": [
            {"text": text, "index": index, "logprobs": None, "finish_reason": reason}
            for index, (text, reason) in enumerate(choices)
        ],
    }


async def _streaming_response(
    request: Request, service: Service, generator: Generator, completion: _CompletionRequest
) -> Response:
    """Return a response of server-sent events; generation ends when the client disconnects or at the time limit.

    Raises:
        ApiError: 503, the server is busy.
    """
    overload = service.requests.overload_error()
    if overload is not None:
        raise overload
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[str | None] = asyncio.Queue()
    request_handle = RequestHandle()

    def put(piece: str | None) -> None:
        loop.call_soon_threadsafe(pieces.put_nowait, piece)

    def generate(handle: RequestHandle) -> str:
        task = WorkerTask(lambda _: _stream(generator, completion, handle, put))
        try:
            (reason,) = service.batcher.compute_all([QueueItem(task, None, 1, handle)])
        finally:
            put(None)
        return str(reason)

    ended = service.requests.start(request_handle, generate)
    timer = loop.call_later(service.requests.timeout, request_handle.cancel)
    ended.add_done_callback(lambda _: timer.cancel())

    def text_event(text: str, reason: str | None = None) -> bytes:
        return _event(_response_json(completion, [(text, reason)]))

    async def events() -> AsyncIterator[bytes]:
        try:
            if completion.echo and completion.prompts[0]:
                yield text_event(completion.prompts[0])
            while (piece := await pieces.get()) is not None:
                yield text_event(piece)
            try:
                reason = _FINISH_REASONS[await ended]
            except RequestCancelled:
                message = f"The request took longer than {service.requests.timeout:g} seconds and was stopped"
                yield _event({"error": {"message": message, "type": "server_error", "param": None, "code": None}})
                return
            yield text_event("", reason)
            yield b"data: [DONE]\n\n"
        finally:
            request_handle.cancel()

    return StreamingResponse(events(), media_type="text/event-stream")


def _stream(
    generator: Generator, completion: _CompletionRequest, handle: RequestHandle, on_piece: Callable[[str], None]
) -> str:
    """Call `on_piece` with each piece of a completion's text; return the reason of its end, as `Generation.ended`.

    Raises:
        RequestCancelled: the request was cancelled.
    """
    pieces = generator.stream(completion.prompts[0], completion.options)
    while not handle.cancelled:
        try:
            on_piece(next(pieces))
        except StopIteration as end:
            return str(end.value)
    pieces.close()
    raise RequestCancelled


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + json_bytes(content) + b"\n\n"


async def models(request: Request) -> Response:
    """GET /v1/models: the language models."""
    names = Service.of(request).models.generators
    data = [{"id": name, "object": "model", "created": 0, "owned_by": "manyheads"} for name in names]
    return json_response({"object": "list", "data": data})
