"""LibreTranslate's routes /translate, /detect, /languages, /frontend/settings and /suggest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from bitext.languages import language_name, language_names, match_language
from bitext.letters import has_letters
from manyheads.data.suggestions import Suggestion, SuggestionFile
from manyheads.documents.html import read_html
from manyheads.documents.units import Part, Translated
from manyheads.errors import DataError, UsageError, WriteError
from manyheads.inference.translation.glossary import Term
from manyheads.inference.translation.result import Translation
from manyheads.inference.translation.translator import Translator
from manyheads.search.options import SearchOptions
from manyheads.serving.fields import Fields, check_lengths, read_fields
from manyheads.serving.glossary import requested_terms, with_terms
from manyheads.serving.models import LanguageConfidence, Models
from manyheads.serving.pivots import join
from manyheads.serving.queue_items import RequestHandle
from manyheads.serving.queued_engine import queued_translator
from manyheads.serving.responses import ApiError, json_response
from manyheads.serving.service import Service

AUTO = "auto"


@dataclass(frozen=True)
class _TranslationRequest:
    """The checked fields of a request for translations.

    Attributes:
        texts: one or several texts.
        is_list: whether the texts were sent as a list, and are returned as one.
        source: the code of a served language, or "auto".
        target: the code of a served language.
        html: whether the texts are HTML.
        alternatives: number of further translations per text.
        terms: further terms of the glossary.
    """

    texts: list[str]
    is_list: bool
    source: str
    target: str
    html: bool
    alternatives: int
    terms: Sequence[Term] = ()


class _Text:
    """A text of a request: plain, or HTML with units.

    Attributes:
        unchanged: the text as it was sent.
        part: the units of HTML; None for plain text.
    """

    def __init__(self, text: str, *, html: bool) -> None:
        self.unchanged = text
        self.part = Part(text, [read_html]) if html else None

    @property
    def texts(self) -> list[str]:
        """Return the texts that are translated."""
        return [unit.text for unit in self.part.units] if self.part else [self.unchanged]

    @property
    def is_tagged(self) -> bool:
        """Return whether a word alignment is needed to place tags."""
        return self.part is not None and any(unit.is_tagged for unit in self.part.units)

    def assemble(self, translations: Sequence[Translation]) -> list[str]:
        """Return complete texts, best first, from the translations of `texts`; for HTML only the best one."""
        if self.part:
            return [self.part.write(Translated(one.translation, one.alignment) for one in translations)]
        return [hypothesis.text for hypothesis in translations[0].hypotheses] or [self.unchanged]


@dataclass(frozen=True)
class _Answer:
    """The answer about one text.

    Attributes:
        texts: translations, best first.
        warnings: names of the warnings.
        fields: further fields by name; None where this text has no value.
    """

    texts: list[str]
    warnings: list[str] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def alternatives(self) -> list[str]:
        """Translations that differ from the first, each once."""
        return [text for text in dict.fromkeys(self.texts) if text != self.texts[0]]


async def translate(request: Request) -> Response:
    """POST /translate."""
    service, fields = await Service.read(request)
    query = _translation_request(fields, service)
    content = await service.requests.run(request.receive, lambda handle: _translations(service, query, handle))
    return json_response(content)


async def detect(request: Request) -> Response:
    """POST /detect."""
    service, fields = await Service.read(request)
    texts, _ = fields.limited_texts(service.settings)
    text = "\n".join(texts)
    detected = await service.requests.run(request.receive, lambda handle: service.models.detector.detect(text))
    return json_response([_language_json(language) for language in detected])


async def languages(request: Request) -> Response:
    """GET /languages, with or without a body."""
    models = Service.of(request).models
    names = language_names(models.languages)
    listed = [
        {"code": code, "name": names[code], "targets": models.targets(code)}
        | ({"pivots": via} if (via := models.via(code)) else {})
        for code in names
    ]
    return json_response(listed)


async def settings(request: Request) -> Response:
    """GET /frontend/settings."""
    service = Service.of(request)
    keys = service.access.ring is not None
    first = next(iter(service.models.translators), ("", ""))
    return json_response(
        {
            "charLimit": service.settings.char_limit,
            "frontendTimeout": 500,
            "apiKeys": keys,
            "keyRequired": keys,
            "suggestions": service.suggestions is not None,
            "filesTranslation": service.settings.files,
            "supportedFilesFormat": service.file_suffixes,
            "language": {
                "source": {"code": AUTO, "name": "Auto Detect"},
                "target": {"code": first[1], "name": language_name(first[1])},
            },
        }
    )


async def suggest(request: Request) -> Response:
    """POST /suggest: store a correction `s` of the translation of `q`, with what the served model says now."""
    service = Service.of(request)
    file = service.suggestions
    if file is None:
        raise ApiError(403, "Suggestions are disabled on this server.")
    fields = await read_fields(request, service.settings.body_limit)
    key = service.access.check_suggestion(request, fields)
    query = replace(_translation_request(fields, service), html=False, alternatives=0)
    corrections = fields.texts("s")
    if query.is_list or len(corrections) > 1:
        raise ApiError(400, "Invalid request: q and s parameters must be one text each")
    check_lengths(corrections, service.settings)
    await service.requests.run(
        request.receive, lambda handle: _store(service, file, query, corrections[0], key, handle)
    )
    return json_response({"success": True})


def _store(
    service: Service,
    file: SuggestionFile,
    query: _TranslationRequest,
    correction: str,
    key: str | None,
    handle: RequestHandle,
) -> None:
    """Translate the text of a suggestion and store both; runs in the request's thread.

    Raises:
        ApiError: 400, as `_translations`; 507, the file is full or cannot be written.
    """
    content = _translations(service, query, handle)
    source = content["detectedLanguage"]["language"] if query.source == AUTO else query.source
    time = datetime.now(UTC).isoformat(timespec="seconds")
    texts = query.texts[0], content["translatedText"], correction
    try:
        file.append(Suggestion(time, (source, query.target), *texts, key))
    except WriteError as error:
        service.log(f"suggestion not stored: {error}")
        raise ApiError(507, "The server cannot store suggestions at present") from error


def _translation_request(fields: Fields, service: Service) -> _TranslationRequest:
    """Check the fields of a request.

    Raises:
        ApiError: 400, a field is missing or has an invalid value.
    """
    texts, is_list = fields.limited_texts(service.settings)
    source, target = requested_languages(fields, service)
    alternatives = fields.integer("alternatives", 0, least=None, most=service.settings.alternatives_limit)
    kind = (fields.text("format") or "text").lower()
    if kind not in ("text", "html"):
        raise ApiError(400, f"{kind[:20]} format is not supported")
    return _TranslationRequest(
        texts=texts,
        is_list=is_list,
        source=source,
        target=target,
        html=kind == "html",
        alternatives=max(0, alternatives),
        terms=requested_terms(fields),
    )


def requested_languages(fields: Fields, service: Service) -> tuple[str, str]:
    """Return the source language of a request, which may be "auto", and its target language.

    Raises:
        ApiError: 400, a language is missing or not served.
    """
    source, target = fields.required("source"), fields.required("target")
    own = AUTO if source.lower() == AUTO else _served_language(source, service)
    return own, _served_language(target, service)


def _served_language(code: str, service: Service) -> str:
    """Return the served language that a client's code means.

    Raises:
        ApiError: 400, the language is not served.
    """
    language = match_language(code, service.models.languages)
    if language is None:
        raise ApiError(400, f"{code[:20]} is not supported")
    return language


def _translations(service: Service, query: _TranslationRequest, handle: RequestHandle) -> dict[str, Any]:
    """Translate the texts of a request and return the JSON object of the response; runs in the request's thread.

    Texts of one language are translated together. Texts that are in the target language already, or in a language
    that no translator knows, are returned unchanged, and texts without a letter also where no translator has their
    language.

    Raises:
        ApiError: 400, no served translator has this language pair.
    """
    models = service.models
    documents = [_Text(text, html=query.html) for text in query.texts]
    sources = [source_of(document.texts, query.source, query.target, models) for document in documents]
    answers = [_Answer([document.unchanged]) for document in documents]
    by_pair: dict[tuple[str, str], list[int]] = {}
    for index, (document, (source, confidence)) in enumerate(zip(documents, sources, strict=True)):
        if source == query.target or (confidence == 0 and models.detector.profiles):
            continue
        pair = models.pair(source, query.target)
        if pair is None:
            if not any(map(has_letters, document.texts)) or match_language(source, [query.target]):
                continue
            raise no_translator(source, query.target)
        by_pair.setdefault(pair, []).append(index)
    for pair, indices in by_pair.items():
        own = [documents[index] for index in indices]
        translated = _translate_documents(service, models.route(pair), query, own, handle)
        for index, answer in zip(indices, translated, strict=True):
            answers[index] = answer
    return _translation_json(query, answers, [_language_json(language) for language in sources])


def no_translator(source: str, target: str) -> ApiError:
    """Return the error for two languages between which no served translator translates."""
    return ApiError(
        400,
        f"{language_name(target)} ({target}) is not available as a target language from "
        f"{language_name(source)} ({source})",
    )


def source_of(texts: Sequence[str], source: str, target: str, models: Models) -> LanguageConfidence:
    """Return the source language of texts, which a request names or leaves to the server, and its confidence."""
    if source != AUTO:
        return source, 100.0
    if not any(map(has_letters, texts)):
        return models.detector.fallback, 0.0
    language, confidence = models.detector.detect("\n".join(texts))[0]
    if not models.detector.profiles:  # take the first language that can be translated
        language = next((own for own, other in models.translators if other == target), language)
    return language, confidence


def _translate_documents(
    service: Service,
    served: Sequence[Translator],
    query: _TranslationRequest,
    documents: Sequence[_Text],
    handle: RequestHandle,
) -> list[_Answer]:
    """Translate documents of one language."""
    texts = [text for document in documents for text in document.texts]
    tagged = any(document.is_tagged for document in documents)
    translator, translated = translate_texts(
        service,
        served,
        texts,
        handle,
        tagged=tagged,
        alternatives=0 if query.html else query.alternatives,
        terms=query.terms,
    )
    pivot = served[0].config.data.target if len(served) > 1 else None
    remaining = iter(translated)
    parts = [[next(remaining) for _ in document.texts] for document in documents]
    answers = []
    for document, own in zip(documents, parts, strict=True):
        warnings = list(dict.fromkeys(name for part in own for name in part.warnings))
        fields: dict[str, Any] = {}
        for stage in translator.stages:
            fields |= stage.answer_fields(translator, own)
        answers.append(_Answer(document.assemble(own), warnings, fields | {"pivot": pivot}))
    return answers


def translate_texts(
    service: Service,
    served: Sequence[Translator],
    texts: Sequence[str],
    handle: RequestHandle,
    *,
    tagged: bool,
    alternatives: int = 0,
    terms: Sequence[Term] = (),
) -> tuple[Translator, list[Translation]]:
    """Translate texts of one language; of two translators, the second translates the output of the first.

    Args:
        service: the service.
        served: one or two translators.
        texts: the texts.
        handle: handle of the request.
        tagged: whether a word alignment is needed.
        alternatives: number of further translations per text.
        terms: further terms of the glossary.

    Returns:
        The last translator, as it was used, and the translations.

    Raises:
        ApiError: 400, a term cannot be used.
    """
    *before, translator = (queued_translator(direction, service.batcher, handle) for direction in served)
    if before and terms:
        raise ApiError(400, "Invalid request: a glossary is for a direct translation, and this one has a pivot")
    options = SearchOptions(token_scores=False, alignment=tagged, match_source=service.settings.match_source)
    try:
        if terms:
            translator = with_terms(translator, terms)
        middle = [translation for step in before for translation in step.translate(texts, options=options)]
        inputs = [translation.translation for translation in middle] if before else texts
        translated = translator.translate(inputs, n_best=alternatives + 1, options=options)
        if before:
            translated = list(map(join, middle, translated))
    except (DataError, UsageError) as error:
        if not terms:
            raise
        raise ApiError(400, f"Invalid request: {error}") from error
    service.metrics.count_texts(len(texts), sum(map(len, texts)))
    return translator, translated


def _translation_json(
    query: _TranslationRequest, answers: list[_Answer], languages: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the JSON object of a response; for a single text, without lists.

    Warnings and further fields are there if a text has them.
    """
    content: dict[str, Any] = {"translatedText": [answer.texts[0] for answer in answers]}
    if query.source == AUTO:
        content["detectedLanguage"] = languages
    if query.alternatives:
        content["alternatives"] = [answer.alternatives for answer in answers]
    further: dict[str, list[Any]] = {"warnings": [answer.warnings for answer in answers]}
    for name in dict.fromkeys(chain.from_iterable(answer.fields for answer in answers)):
        further[name] = [answer.fields.get(name) for answer in answers]
    content |= {name: values for name, values in further.items() if any(values)}
    return content if query.is_list else {name: values[0] for name, values in content.items()}


def _language_json(detected: LanguageConfidence) -> dict[str, Any]:
    language, confidence = detected
    return {"confidence": confidence, "language": language}
