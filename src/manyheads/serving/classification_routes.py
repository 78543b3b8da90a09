"""The route /classify."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from manyheads.inference.classifier import Classification, Classifier
from manyheads.search.interface import Cancelled
from manyheads.serving.responses import json_response
from manyheads.serving.service import Service


@dataclass(frozen=True)
class _ClassificationGroup:
    """Texts for one classifier, as a `BatchGroup`."""

    classifier: Classifier

    def compute(self, payloads: Sequence[str], cancelled: Cancelled) -> list[Classification]:
        """Classify all texts; see `BatchGroup.compute`."""
        return self.classifier.classify(list(payloads))


async def classify(request: Request) -> Response:
    """POST /classify: `q` text or list, `model` the name of a run where several are served."""
    service, fields = await Service.read(request)
    texts, is_list = fields.limited_texts(service.settings)
    classifiers = service.models.classifiers
    group = _ClassificationGroup(classifiers[fields.model_name(classifiers, "classifier")])
    results = await service.compute(request, group, texts, [max(1, len(text) // 4) for text in texts])
    service.metrics.count_texts(len(texts), sum(map(len, texts)))
    content = [{name: value for name, value in result.to_json().items() if name != "text"} for result in results]
    return json_response(content if is_list else content[0])
