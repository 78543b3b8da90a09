"""LibreTranslate's routes: /translate, /detect, /languages and what belongs to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from manyheads.errors import UsageError
from manyheads.serving.answers import Refusal, json_answer
from manyheads.serving.engine import queued
from manyheads.serving.fields import Fields, read_fields
from manyheads.serving.items import Ticket
from manyheads.serving.markup.document import Document, plain_document, read_html
from manyheads.serving.service import Service
from manyheads.tasks.options import TranslateOptions
from manyheads.text.languages import language_name, same_language

__all__ = ["Asked", "detect", "languages", "routes", "settings", "translate", "translations"]

AUTO = "auto"


@dataclass(frozen=True)
class Asked:
    """What somebody wants translated.

    Attributes:
        texts: one or several.
        is_list: whether they came as a list, and go back as one.
        source: a code of ours, or "auto".
        target: a code of ours.
        html: whether the texts are HTML.
        alternatives: further translations a text.
    """

    texts: list[str]
    is_list: bool
    source: str
    target: str
    html: bool
    alternatives: int


async def translate(request: Request) -> Response:
    """POST /translate."""
    service = Service.of(request)
    fields = await read_fields(request, service.settings.body_limit)
    service.access.check(request, fields)
    asked = asked_of(fields, service)
    found = await service.work.run(request.receive, lambda ticket: translations(service, asked, ticket))
    return json_answer(found)


async def detect(request: Request) -> Response:
    """POST /detect."""
    service = Service.of(request)
    fields = await read_fields(request, service.settings.body_limit)
    service.access.check(request, fields)
    texts, _ = texts_of(fields, service)
    text = "\n".join(texts)
    found = await service.work.run(request.receive, lambda ticket: service.models.detector.detect(text))
    return json_answer([detected(one) for one in found])


async def languages(request: Request) -> Response:
    """GET /languages, with or without a body."""
    models = Service.of(request).models
    return json_answer(
        [{"code": code, "name": language_name(code), "targets": models.targets(code)} for code in models.languages]
    )


async def settings(request: Request) -> Response:
    """GET /frontend/settings."""
    service = Service.of(request)
    keys = service.access.ring is not None
    first = next(iter(service.models.translators), ("", ""))
    return json_answer(
        {
            "charLimit": service.settings.char_limit,
            "frontendTimeout": 500,
            "apiKeys": keys,
            "keyRequired": keys,
            "suggestions": False,
            "filesTranslation": False,
            "supportedFilesFormat": [],
            "language": {
                "source": {"code": AUTO, "name": "Auto Detect"},
                "target": {"code": first[1], "name": language_name(first[1])},
            },
        }
    )


async def no_files(request: Request) -> Response:
    """POST /translate_file, GET /download_file/NAME."""
    raise Refusal(403, "Files translation are disabled on this server.")


async def no_suggestions(request: Request) -> Response:
    """POST /suggest."""
    raise Refusal(403, "Suggestions are disabled on this server.")


def routes() -> list[Route]:
    """All of them."""
    return [
        Route("/translate", translate, methods=["POST"]),
        Route("/detect", detect, methods=["POST"]),
        Route("/languages", languages, methods=["GET"]),
        Route("/frontend/settings", settings, methods=["GET"]),
        Route("/translate_file", no_files, methods=["POST"]),
        Route("/download_file/{name:path}", no_files, methods=["GET"]),
        Route("/suggest", no_suggestions, methods=["POST"]),
    ]


def asked_of(fields: Fields, service: Service) -> Asked:
    """What a request wants; raises `Refusal` for what cannot be done."""
    texts, is_list = texts_of(fields, service)
    source, target = fields.required("source"), fields.required("target")
    alternatives = fields.whole("alternatives", 0)
    if alternatives > service.settings.alternatives_limit:
        most = service.settings.alternatives_limit
        raise Refusal(400, f"Invalid request: alternatives parameter must be <= {most}")
    kind = (fields.text("format") or "text").lower()
    if kind not in ("text", "html"):
        raise Refusal(400, f"{kind[:20]} format is not supported")
    return Asked(
        texts=texts,
        is_list=is_list,
        source=AUTO if source.lower() == AUTO else known(source, service),
        target=known(target, service),
        html=kind == "html",
        alternatives=alternatives,
    )


def texts_of(fields: Fields, service: Service) -> tuple[list[str], bool]:
    """The texts of a request, and whether they came as a list."""
    found = fields.texts("q")
    texts = found if isinstance(found, list) else [found]
    limits = service.settings
    for size, limit in ((len(texts), limits.batch_limit), (sum(map(len, texts)), limits.char_limit)):
        if size > limit:
            raise Refusal(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")
    return texts, isinstance(found, list)


def known(code: str, service: Service) -> str:
    """A code as one of ours."""
    found = same_language(code, service.models.languages)
    if found is None:
        raise Refusal(400, f"{code[:20]} is not supported")
    return found


def translations(service: Service, asked: Asked, ticket: Ticket) -> dict[str, Any]:
    """Translate; this runs in the request's own thread.

    Texts of one language are translated together. Those without a letter in them, and those that are in the target
    language already, go back as they came.
    """
    documents = [read_html(text) if asked.html else plain_document(text) for text in asked.texts]
    sources = [source_of(document, asked, service) for document in documents]
    results: list[list[str]] = [[document.unchanged] for document in documents]
    by_source: dict[str, list[int]] = {}
    for place, (document, (source, _)) in enumerate(zip(documents, sources, strict=True)):
        if source != asked.target and document.has_letters:
            by_source.setdefault(source, []).append(place)
    for source in by_source:
        if (source, asked.target) not in service.models.translators:
            raise Refusal(
                400,
                f"{language_name(asked.target)} ({asked.target}) is not available as a target language from "
                f"{language_name(source)} ({source})",
            )
    for source, places in by_source.items():
        for place, texts in zip(
            places, of_language(service, source, asked, documents, places, ticket), strict=True
        ):
            results[place] = texts
    return answer(asked, results, [detected(sure) for sure in sources])


def source_of(document: Document, asked: Asked, service: Service) -> tuple[str, float]:
    """The language of a text, and how sure that is."""
    if asked.source != AUTO:
        return asked.source, 100.0
    if not document.has_letters:
        return service.models.detector.fallback, 0.0
    language, share = service.models.detector.detect("\n".join(document.texts))[0]
    if share == 0:  # nothing can be told of it: the first language that can be translated
        pairs = service.models.translators
        language = next((source for source, target in pairs if target == asked.target), language)
    return language, share


def of_language(
    service: Service,
    source: str,
    asked: Asked,
    documents: Sequence[Document],
    places: Sequence[int],
    ticket: Ticket,
) -> list[list[str]]:
    """The translations of some documents of one language, each the best first."""
    translator = queued(service.models.translators[source, asked.target], service.batcher, ticket)
    chosen = [documents[place] for place in places]
    count = 0 if asked.html else asked.alternatives
    texts = [text for document in chosen for text in document.texts]
    tagged = any(document.is_tagged for document in chosen)
    try:
        found = translator.translate(
            texts,
            n_best=count + 1,
            options=TranslateOptions(split="sentences", token_scores=False, alignment=tagged),
        )
    except UsageError as error:
        raise Refusal(400, str(error)) from error
    service.metrics.count_texts(len(texts), sum(map(len, texts)))
    each = iter(found)
    return [document.put_together([next(each) for _ in document.texts]) for document in chosen]


def answer(asked: Asked, results: list[list[str]], languages: list[dict[str, Any]]) -> dict[str, Any]:
    """The document that goes back."""
    others = [list(dict.fromkeys(one for one in texts[1:] if one != texts[0])) for texts in results]
    found: dict[str, Any] = {"translatedText": [texts[0] for texts in results]}
    if asked.source == AUTO:
        found["detectedLanguage"] = languages
    if asked.alternatives:
        found["alternatives"] = others
    return found if asked.is_list else {name: values[0] for name, values in found.items()}


def detected(sure: tuple[str, float]) -> dict[str, Any]:
    """A language as clients know it."""
    return {"confidence": sure[1], "language": sure[0]}
