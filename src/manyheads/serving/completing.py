"""POST /v1/completions: OpenAI's shape for language models, whole or as a stream of server-sent events."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from time import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from manyheads.search.interface import Abandoned
from manyheads.search.options import Sampling
from manyheads.serving.answers import Refusal, as_json, json_answer
from manyheads.serving.classifying import chosen
from manyheads.serving.fields import Fields, missing, read_fields
from manyheads.serving.items import Item, Stopped, Ticket
from manyheads.serving.service import Service
from manyheads.tasks.language_modeling import Continuation, GenerateOptions, Generation, Generator

__all__ = ["Wish", "complete", "routes"]

MOST_TOKENS = 4_096  # of a completion
MOST_SAMPLES = 16
MOST_STOPS = 4
REASONS = {"end": "stop", "stop": "stop", "length": "length"}
# What OpenAI's interface knows and we do not do, with the value that asks for nothing.
NOT_DONE: dict[str, Any] = {
    "suffix": None, "logprobs": None, "logit_bias": {}, "frequency_penalty": 0, "presence_penalty": 0, "best_of": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Wish:
    """What somebody wants written.

    Attributes:
        name: of the model, for the answer.
        prompts: beginnings.
        options: how to go on.
        echo: whether the beginnings come back before what is written.
        stream: whether pieces are sent as they come.
    """

    name: str
    prompts: list[str]
    options: GenerateOptions
    echo: bool
    stream: bool


@dataclass(frozen=True)
class Writing:
    """A group of beginnings that one model goes on with in the same way."""

    generator: Generator
    options: GenerateOptions

    def compute(self, payloads: Sequence[str], abandoned: Abandoned) -> list[Continuation]:
        """See `Group.compute`."""
        return self.generator.generate(list(payloads), self.options, abandoned)


@dataclass(frozen=True, eq=False)
class Streaming:
    """A group of its own: one beginning, whose pieces are given out as they come."""

    generator: Generator
    options: GenerateOptions
    ticket: Ticket
    give: Callable[[str], None]

    def compute(self, payloads: Sequence[str], abandoned: Abandoned) -> list[str]:
        """Write after the only one; returns what it was ended by."""
        pieces = self.generator.stream(payloads[0], self.options)
        while not self.ticket.stopped:
            try:
                self.give(next(pieces))
            except StopIteration as end:
                return [end.value]
        pieces.close()
        raise Stopped


async def complete(request: Request) -> Response:
    """POST /v1/completions."""
    service = Service.of(request)
    fields = await read_fields(request, service.settings.body_limit)
    service.access.check(request, fields)
    generator = chosen(service.models.generators, fields, "language model")
    name = next(name for name, one in service.models.generators.items() if one is generator)
    wish = wish_of(fields, name, service)
    service.metrics.count_texts(len(wish.prompts), sum(map(len, wish.prompts)))
    if wish.stream:
        return await streamed(request, service, generator, wish)
    group = Writing(generator, wish.options)
    found = await service.work.run(
        request.receive,
        lambda ticket: service.batcher.results(
            [Item(group, prompt, size_of(generator, prompt, wish), ticket) for prompt in wish.prompts]
        ),
    )
    return json_answer(document(wish, found, generator))


def size_of(generator: Generator, prompt: str, wish: Wish) -> int:
    """What a beginning takes of a batch, in tokens: the longest that its rows can get."""
    return min(generator.window, len(prompt.encode()) + wish.options.max_tokens) * wish.options.samples


def wish_of(fields: Fields, name: str, service: Service) -> Wish:
    """What a request wants; raises `Refusal` for what cannot be done."""
    for unknown, nothing in NOT_DONE.items():
        if fields.values.get(unknown, nothing) not in (None, nothing):
            raise Refusal(400, f"{unknown} is not supported")
    if "prompt" not in fields.values:
        raise missing("prompt")
    found = fields.texts("prompt") if fields.get("prompt") is not None else ""
    prompts = found if isinstance(found, list) else [found]
    limits = service.settings
    for size, limit in ((len(prompts), limits.batch_limit), (sum(map(len, prompts)), limits.char_limit)):
        if size > limit:
            raise Refusal(400, f"prompt ({size}) exceeds the limit ({limit})")
    stream, samples = fields.flag("stream"), at_most(fields, "n", 1, MOST_SAMPLES)
    if stream and (samples > 1 or len(prompts) > 1):
        raise Refusal(400, "a stream has one prompt and n = 1")
    options = GenerateOptions(
        sampling=sampling_of(fields),
        samples=samples,
        max_tokens=at_most(fields, "max_tokens", 16, MOST_TOKENS),
        stop=stops_of(fields),
    )
    return Wish(name, prompts, options, fields.flag("echo"), stream)


def at_most(fields: Fields, name: str, default: int, most: int) -> int:
    """A whole number from 1 to a limit."""
    value = fields.whole(name, default, 1)
    if value > most:
        raise Refusal(400, f"{name} must be <= {most}")
    return value


def sampling_of(fields: Fields) -> Sampling | None:
    """How tokens are drawn; at temperature 0 the likeliest is taken."""
    temperature, top_p = fields.number("temperature", 1.0), fields.number("top_p", 1.0)
    if temperature == 0:
        return None
    if not 1e-3 <= temperature <= 2:
        raise Refusal(400, "temperature must be 0, or from 0.001 to 2")
    if not 0 < top_p <= 1:
        raise Refusal(400, "top_p must be above 0 and at most 1")
    seed = fields.whole("seed", secrets.randbelow(2**31))
    return Sampling(temperature=temperature, top_p=top_p, seed=seed)


def stops_of(fields: Fields) -> tuple[str, ...]:
    """The texts before which a completion ends."""
    if fields.get("stop") is None:
        return ()
    found = fields.texts("stop")
    stops = tuple(found) if isinstance(found, list) else (found,)
    if len(stops) > MOST_STOPS or not all(stops):
        raise Refusal(400, f"stop takes at most {MOST_STOPS} texts, none of them empty")
    return stops


def document(wish: Wish, found: Sequence[Continuation], generator: Generator) -> dict[str, Any]:
    """The whole answer."""
    samples = [(one, sample) for one in found for sample in one.samples]
    prompt_tokens = sum(map(len, generator.tokenizer.encode(wish.prompts)))
    completion_tokens = sum(written(sample) for _, sample in samples)
    return head(wish, identifier()) | {
        "choices": [
            choice((one.prompt if wish.echo else "") + sample.text, REASONS[sample.ended], index)
            for index, (one, sample) in enumerate(samples)
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }


def written(sample: Generation) -> int:
    """How many tokens were written, the end mark not counted."""
    return len(sample.tokens) - (sample.ended == "end")


def head(wish: Wish, name: str) -> dict[str, Any]:
    """What every answer and every event begins with."""
    return {"id": name, "object": "text_completion", "created": int(time()), "model": wish.name}


def identifier() -> str:
    """A name for an answer."""
    return f"cmpl-{secrets.token_hex(12)}"


def choice(text: str, reason: str | None, index: int = 0) -> dict[str, Any]:
    """One text of an answer."""
    return {"text": text, "index": index, "logprobs": None, "finish_reason": reason}


async def streamed(request: Request, service: Service, generator: Generator, wish: Wish) -> Response:
    """An answer in events; a client that leaves, or the time limit, ends the writing."""
    refusal = service.work.refusal()
    if refusal is not None:
        raise refusal
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[str | None] = asyncio.Queue()
    ticket = Ticket()

    def give(piece: str | None) -> None:
        loop.call_soon_threadsafe(pieces.put_nowait, piece)

    def write(own: Ticket) -> str:
        group = Streaming(generator, wish.options, own, give)
        try:
            (reason,) = service.batcher.results([Item(group, wish.prompts[0], 1, own)])
        finally:
            give(None)
        return str(reason)

    done = service.work.begin(ticket, write)
    late = loop.call_later(service.work.seconds, ticket.stop)
    done.add_done_callback(lambda _: late.cancel())
    name = identifier()

    async def events() -> AsyncIterator[bytes]:
        try:
            if wish.echo and wish.prompts[0]:
                yield event(head(wish, name) | {"choices": [choice(wish.prompts[0], None)]})
            while (piece := await pieces.get()) is not None:
                yield event(head(wish, name) | {"choices": [choice(piece, None)]})
            try:
                reason = REASONS[await done]
            except Stopped:
                message = f"The request took longer than {service.work.seconds:g} seconds and was stopped"
                yield event({"error": {"message": message, "type": "server_error", "param": None, "code": None}})
                return
            yield event(head(wish, name) | {"choices": [choice("", reason)]})
            yield b"data: [DONE]\n\n"
        finally:
            ticket.stop()

    return StreamingResponse(events(), media_type="text/event-stream")


def event(content: dict[str, Any]) -> bytes:
    """A server-sent event."""
    return b"data: " + as_json(content) + b"\n\n"


async def models(request: Request) -> Response:
    """GET /v1/models: the language models."""
    names = Service.of(request).models.generators
    data = [{"id": name, "object": "model", "created": 0, "owned_by": "manyheads"} for name in names]
    return json_answer({"object": "list", "data": data})


def routes() -> list[Route]:
    """Both."""
    return [
        Route("/v1/completions", complete, methods=["POST"]),
        Route("/v1/models", models, methods=["GET"]),
    ]
