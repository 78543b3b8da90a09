"""The route /classify, and the choice of a model by its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from manyheads.errors import UsageError
from manyheads.search.interface import Cancelled
from manyheads.serving.fields import Fields, read_fields
from manyheads.serving.queue_items import QueueItem
from manyheads.serving.responses import ApiError, json_response
from manyheads.serving.service import Service
from manyheads.serving.translation_routes import texts_of
from manyheads.tasks.classification import Classification, Classifier

__all__ = ["choose_model", "classify", "routes"]

Model = TypeVar("Model")


@dataclass(frozen=True)
class ClassificationGroup:
    """Texts for one classifier, as a `BatchGroup`."""

    classifier: Classifier

    def compute(self, payloads: Sequence[str], cancelled: Cancelled) -> list[Classification]:
        """Classify all texts; see `BatchGroup.compute`."""
        return self.classifier.classify(list(payloads))


async def classify(request: Request) -> Response:
    """POST /classify: `q` text or list, `model` the name of a run where several are served."""
    service = Service.of(request)
    fields = await read_fields(request, service.settings.body_limit)
    service.access.check(request, fields)
    texts, is_list = texts_of(fields, service)
    group = ClassificationGroup(choose_model(service.models.classifiers, fields, "classifier"))
    try:
        classifications = await service.requests.run(
            request.receive,
            lambda handle: service.batcher.compute_all(
                [QueueItem(group, text, max(1, len(text) // 4), handle) for text in texts]
            ),
        )
    except UsageError as error:
        raise ApiError(400, str(error)) from error
    service.metrics.count_texts(len(texts), sum(map(len, texts)))
    content = [
        {
            "label": result.label,
            "probability": result.probability,
            "probabilities": result.probabilities,
            "truncated": result.truncated,
        }
        for result in classifications
    ]
    return json_response(content if is_list else content[0])


def choose_model(models: dict[str, Model], fields: Fields, kind: str) -> Model:
    """Return the model that a request names, or the only one.

    Raises:
        ApiError: no model has this name (404), or no name was given where there are several models (400).
    """
    name = fields.text("model")
    if not models:
        raise ApiError(404, f"No {kind} is served here")
    if name in models:
        return models[name]
    if name is None and len(models) == 1:
        return next(iter(models.values()))
    raise ApiError(404 if name else 400, f"model must be one of: {', '.join(models)}")


def routes() -> list[Route]:
    """Return the routes of this module."""
    return [Route("/classify", classify, methods=["POST"])]
