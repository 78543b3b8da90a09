"""Prometheus metrics of a server. No metric holds an address, a key or a text."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from manyheads.serving.batching import Batcher
from manyheads.serving.request_pool import RequestPool

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds of a response


class Metrics(Collector):
    """The metrics of one server, in a separate registry; metrics of pool and queue are read when rendered."""

    def __init__(self, requests: RequestPool, batcher: Batcher) -> None:
        self.pool = requests
        self.batcher = batcher
        disable_created_metrics()  # type: ignore[no-untyped-call]  # else each counter has a second series with the time of its creation
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "manyheads_requests",
            "Answers by method, route and status.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "manyheads_request_seconds",
            "Time from the head of a request to its whole answer.",
            ["route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.registry.register(self)
        self.texts = Counter("manyheads_texts", "Texts that were computed.", registry=self.registry)
        self.characters = Counter("manyheads_characters", "Characters of these texts.", registry=self.registry)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a response and its time."""
        self.requests.labels(method, route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def count_texts(self, texts: int, characters: int) -> None:
        """Count computed texts and their characters; safe to call from any thread."""
        self.texts.inc(texts)
        self.characters.inc(characters)

    def render(self) -> bytes:
        """Return all metrics in Prometheus' text format (version 0.0.4)."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the request pool and the queue."""
        gauges = (
            ("requests_running", "Requests that are computed or wait.", self.pool.running),
            ("rows_waiting", "Sentences that wait for a worker.", len(self.batcher.waiting)),
            ("rows_computing", "Sentences in the batches that are computed.", len(self.batcher.computing)),
        )
        counts = self.batcher.counts
        counters = (
            ("batches", "Batches that were computed.", counts.batches),
            ("rows", "Sentences in these batches.", counts.items),
            ("computing_seconds", "Time they took, of all workers.", counts.seconds),
        )
        for name, documentation, value in gauges:
            yield GaugeMetricFamily(f"manyheads_{name}", documentation, value=value)
        for name, documentation, total in counters:
            yield CounterMetricFamily(f"manyheads_{name}", documentation, value=total)
