"""What a server counts, in Prometheus' text format (version 0.0.4). Nothing in it tells who asked or what."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator

from manyheads.serving.batching import Batcher
from manyheads.serving.work import Work

__all__ = ["Metrics"]

# Upper ends of the classes of answering times in seconds.
CLASSES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counts since the start."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()  # method, route, status
        self.seconds: Counter[tuple[str, float]] = Counter()  # route, class: requests not slower
        self.sums: defaultdict[str, float] = defaultdict(float)  # seconds of all requests of a route
        self.texts = 0
        self.characters = 0
        self.lock = threading.Lock()

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self.requests[method, route, status] += 1
        self.sums[route] += seconds
        self.seconds[route, next((limit for limit in CLASSES if seconds <= limit), float("inf"))] += 1

    def count_texts(self, texts: int, characters: int) -> None:
        """Count texts that were computed; called from any thread."""
        with self.lock:
            self.texts += texts
            self.characters += characters

    def lines(self, work: Work, batcher: Batcher) -> Iterator[str]:
        """All of it as text."""
        yield from head("requests_total", "counter", "Answers by method, route and status.")
        for (method, route, status), count in sorted(self.requests.items()):
            yield sample("requests_total", f'method="{method}",route="{route}",status="{status}"', count)
        yield from head("request_seconds", "histogram", "Time from the head of a request to its whole answer.")
        for route in sorted(self.sums):
            total = 0
            for limit in (*CLASSES, float("inf")):
                total += self.seconds[route, limit]
                name = "+Inf" if limit == float("inf") else f"{limit:g}"
                yield sample("request_seconds_bucket", f'route="{route}",le="{name}"', total)
            yield sample("request_seconds_sum", f'route="{route}"', round(self.sums[route], 6))
            yield sample("request_seconds_count", f'route="{route}"', total)
        counts = batcher.counts
        for name, kind, meaning, value in (
            ("requests_running", "gauge", "Requests that are computed or wait.", work.running),
            ("rows_waiting", "gauge", "Sentences that wait for a worker.", len(batcher.waiting)),
            ("rows_computing", "gauge", "Sentences in the batches that are computed.", len(batcher.computing)),
            ("texts_total", "counter", "Texts that were computed.", self.texts),
            ("characters_total", "counter", "Characters of these texts.", self.characters),
            ("batches_total", "counter", "Batches that were computed.", counts.batches),
            ("rows_total", "counter", "Sentences in these batches.", counts.items),
            ("computing_seconds_total", "counter", "Time they took, of all workers.", round(counts.seconds, 6)),
        ):
            yield from head(name, kind, meaning)
            yield sample(name, "", value)


def head(name: str, kind: str, meaning: str) -> Iterator[str]:
    """The two lines before the samples of a metric."""
    yield f"# HELP manyheads_{name} {meaning}\n"
    yield f"# TYPE manyheads_{name} {kind}\n"


def sample(name: str, labels: str, value: float) -> str:
    """One line."""
    return f"manyheads_{name}{{{labels}}} {value}\n" if labels else f"manyheads_{name} {value}\n"
