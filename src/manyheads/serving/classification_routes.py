"""The route /classify."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from manyheads.errors import UsageError
from manyheads.search.interface import Cancelled
from manyheads.serving.queue_items import QueueItem
from manyheads.serving.responses import ApiError, json_response
from manyheads.serving.service import Service
from manyheads.tasks.classification import Classification, Classifier

__all__ = ["classify", "routes"]


@dataclass(frozen=True)
class ClassificationGroup:
    """Texts for one classifier, as a `BatchGroup`."""

    classifier: Classifier

    def compute(self, payloads: Sequence[str], cancelled: Cancelled) -> list[Classification]:
        """Classify all texts; see `BatchGroup.compute`."""
        return self.classifier.classify(list(payloads))


async def classify(request: Request) -> Response:
    """POST /classify: `q` text or list, `model` the name of a run where several are served."""
    service, fields = await Service.read(request)
    texts, is_list = fields.limited_texts(service.settings)
    group = ClassificationGroup(fields.model(service.models.classifiers, "classifier"))
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


def routes() -> list[Route]:
    """Return the routes of this module."""
    return [Route("/classify", classify, methods=["POST"])]
