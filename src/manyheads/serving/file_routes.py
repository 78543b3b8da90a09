"""LibreTranslate's routes for files: /translate_file and /download_file."""

from __future__ import annotations

from pathlib import PurePath
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from bitext.errors import BitextError
from bitext.languages import match_language
from manyheads.documents.document import Document, ReadOptions
from manyheads.documents.formats import FORMATS, format_of, read_document
from manyheads.inference.translation.documents import DocumentReport, write_document
from manyheads.inference.translation.translator import unit_fields
from manyheads.serving.access import header
from manyheads.serving.fields import Fields, SentFile, missing_field, read_fields
from manyheads.serving.queue_items import RequestHandle
from manyheads.serving.responses import ApiError, json_response
from manyheads.serving.service import Service
from manyheads.serving.translated_files import TranslatedFile
from manyheads.serving.translation_routes import no_translator, requested_languages, source_of, translate_texts

_TIMES = 20.0  # times the timeout of a request that the translation of a file may take
_FORM = 2**16  # bytes of a form around its file


async def translate(request: Request) -> Response:
    """POST /translate_file: translate the file `file` of a multipart form."""
    service, limit = Service.of(request), Service.of(request).settings.file_limit
    if not service.settings.files:
        raise ApiError(403, "Files translation are disabled on this server.")
    fields = await read_fields(request, limit + _FORM, file="file")
    key = service.access.check(request, fields)
    sent = fields.get("file")
    if not isinstance(sent, SentFile):
        raise missing_field("file")
    if len(sent.data) > limit:
        raise ApiError(413, f"Invalid request: the file has more than {limit} bytes")
    form, document = await service.requests.run(request.receive, lambda handle: _read(service, fields, sent))
    data, report = await service.requests.run(
        request.receive, lambda handle: _translated(service, fields, document, handle), _TIMES
    )
    stem, suffix = PurePath(sent.name).stem, PurePath(sent.name).suffix
    name = f"{stem}_{fields.required('target')}{suffix}"
    place = service.files.add(TranslatedFile(name, data, FORMATS[form].media_type, key.name if key else None))
    scheme = header(request.scope, b"x-forwarded-proto") if service.settings.trust_forwarded_for else None
    address = request.url.replace(
        scheme=scheme or request.url.scheme, path=f"/download_file/{quote(place)}", query=""
    )
    return json_response({"translatedFileUrl": str(address), "report": report.to_json()})


async def download(request: Request) -> Response:
    """GET /download_file/NAME: send a translated file, once."""
    service = Service.of(request)
    key = service.access.check(request, await read_fields(request, service.settings.body_limit))
    file = service.files.take(request.path_params["name"], key.name if key else None)
    disposition = f"attachment; filename*=UTF-8''{quote(file.name)}"
    return Response(file.data, headers={"Content-Disposition": disposition}, media_type=file.media_type)


def _read(service: Service, fields: Fields, sent: SentFile) -> tuple[str, Document]:
    """Read the document of a request; runs in the request's thread.

    Raises:
        ApiError: 400, the file cannot be read.
    """
    source, target = requested_languages(fields, service)
    try:
        form = format_of(sent.name, sent.data) or "paragraphs"
        return form, read_document(sent.data, form, ReadOptions("the file", source, target))
    except BitextError as error:
        raise ApiError(400, f"Invalid request: {error}") from error


def _translated(
    service: Service, fields: Fields, document: Document, handle: RequestHandle
) -> tuple[bytes, DocumentReport]:
    """Translate a document; runs in the request's thread."""
    models = service.models
    source, target = requested_languages(fields, service)
    source, _ = source_of([unit.text for unit in document.units], source, target, models)
    pair = models.pair(source, target)
    if not document.units or match_language(source, [target]):  # as /translate, unchanged
        return write_document(document, lambda texts: [(text, None, []) for text in texts])
    if pair is None:
        raise no_translator(source, target)
    tagged = any(unit.is_tagged for unit in document.units)

    def translate(texts: list[str]) -> list[tuple[str, str | None, list[str]]]:
        _, translations = translate_texts(service, models.route(pair), texts, handle, tagged=tagged)
        return [unit_fields(translation) for translation in translations]

    return write_document(document, translate)
