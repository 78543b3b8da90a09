"""POST /classify: what a text is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from manyheads.errors import UsageError
from manyheads.search.interface import Abandoned
from manyheads.serving.answers import Refusal, json_answer
from manyheads.serving.fields import Fields, read_fields
from manyheads.serving.items import Item
from manyheads.serving.service import Service
from manyheads.serving.translating import texts_of
from manyheads.tasks.classification import Classification, Classifier

__all__ = ["chosen", "classify", "routes"]

Model = TypeVar("Model")


@dataclass(frozen=True)
class Classifying:
    """A group of texts for one classifier."""

    classifier: Classifier

    def compute(self, payloads: Sequence[str], abandoned: Abandoned) -> list[Classification]:
        """See `Group.compute`."""
        return self.classifier.classify(list(payloads))


async def classify(request: Request) -> Response:
    """POST /classify: `q` text or list, `model` the name of a run where several are served."""
    service = Service.of(request)
    fields = await read_fields(request, service.settings.body_limit)
    service.access.check(request, fields)
    texts, is_list = texts_of(fields, service)
    group = Classifying(chosen(service.models.classifiers, fields, "classifier"))
    try:
        found = await service.work.run(
            request.receive,
            lambda ticket: service.batcher.results(
                [Item(group, text, max(1, len(text) // 4), ticket) for text in texts]
            ),
        )
    except UsageError as error:
        raise Refusal(400, str(error)) from error
    service.metrics.count_texts(len(texts), sum(map(len, texts)))
    said = [
        {"label": one.label, "probability": one.probability, "probabilities": one.probabilities,
         "truncated": one.truncated}
        for one in found
    ]  # fmt: skip
    return json_answer(said if is_list else said[0])


def chosen(models: dict[str, Model], fields: Fields, kind: str) -> Model:
    """The model that a request names, or the only one.

    Raises:
        Refusal: there is none of this name, or no name where there are several.
    """
    name = fields.text("model")
    if not models:
        raise Refusal(404, f"No {kind} is served here")
    if name in models:
        return models[name]
    if name is None and len(models) == 1:
        return next(iter(models.values()))
    raise Refusal(404 if name else 400, f"model must be one of: {', '.join(models)}")


def routes() -> list[Route]:
    """The one."""
    return [Route("/classify", classify, methods=["POST"])]
