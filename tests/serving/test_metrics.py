"""Metrics of a server, parsed by the client of Prometheus."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import REGISTRY, Metric
from prometheus_client.parser import text_string_to_metric_families

from manyheads.serving.metrics import _BUCKETS, Metrics

TYPES = {
    "manyheads_requests": "counter",
    "manyheads_request_seconds": "histogram",
    "manyheads_requests_running": "gauge",
    "manyheads_rows_waiting": "gauge",
    "manyheads_rows_computing": "gauge",
    "manyheads_texts": "counter",
    "manyheads_characters": "counter",
    "manyheads_batches": "counter",
    "manyheads_rows": "counter",
    "manyheads_computing_seconds": "counter",
}


@pytest.fixture
def batcher() -> Any:
    return SimpleNamespace(
        waiting=[None] * 2, computing={1, 2, 3}, counts=SimpleNamespace(batches=5, items=7, seconds=1.25)
    )


@pytest.fixture
def metrics(batcher: Any) -> Metrics:
    return Metrics(SimpleNamespace(running=11), batcher)  # type: ignore[arg-type]


def families(metrics: Metrics) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(metrics.render().decode())}


def value(metrics: Metrics, name: str, **labels: str) -> float:
    (found,) = [
        sample.value
        for family in families(metrics).values()
        for sample in family.samples
        if sample.name == f"manyheads_{name}" and sample.labels == labels
    ]
    return found


def test_names_types_and_series_are_those_that_dashboards_use(metrics: Metrics) -> None:
    metrics.count_request("GET", "/health", 200, 0.1)
    found = families(metrics)
    assert {name: family.type for name, family in found.items()} == TYPES
    assert not any(sample.name.endswith("_created") for family in found.values() for sample in family.samples)


def test_requests_are_counted_by_method_route_and_status(metrics: Metrics) -> None:
    for status in (200, 200, 503):
        metrics.count_request("POST", "/translate", status, 0.25)
    assert value(metrics, "requests_total", method="POST", route="/translate", status="200") == 2
    assert value(metrics, "requests_total", method="POST", route="/translate", status="503") == 1


def test_a_bucket_counts_the_requests_that_are_not_slower(metrics: Metrics) -> None:
    seconds = [0.005, 0.0051, 0.3, 29.0, 31.0]
    for seconds_taken in seconds:
        metrics.count_request("POST", "/detect", 200, seconds_taken)
    counts = {
        float(sample.labels["le"]): sample.value
        for sample in families(metrics)["manyheads_request_seconds"].samples
        if sample.name.endswith("_bucket")
    }
    assert counts == {
        limit: sum(seconds_taken <= limit for seconds_taken in seconds) for limit in (*_BUCKETS, math.inf)
    }
    assert value(metrics, "request_seconds_count", route="/detect") == len(seconds)
    assert value(metrics, "request_seconds_sum", route="/detect") == pytest.approx(sum(seconds))


def test_texts_and_the_queue_are_read_at_the_time_of_the_request(metrics: Metrics, batcher: Any) -> None:
    metrics.count_texts(2, 13)
    metrics.count_texts(1, 4)
    assert (value(metrics, "texts_total"), value(metrics, "characters_total")) == (3, 17)
    names = ("requests_running", "rows_waiting", "rows_computing", "batches_total", "rows_total")
    assert [value(metrics, name) for name in names] == [11, 2, 3, 5, 7]
    assert value(metrics, "computing_seconds_total") == 1.25
    batcher.waiting.clear()
    assert value(metrics, "rows_waiting") == 0


def test_servers_do_not_share_metrics(metrics: Metrics, batcher: Any) -> None:
    metrics.count_texts(1, 1)
    other = Metrics(SimpleNamespace(running=0), batcher)  # type: ignore[arg-type]
    assert value(other, "texts_total") == 0
    assert not any(family.name.startswith("manyheads") for family in REGISTRY.collect())
