"""Texts of many requests are computed in batches, and no request depends on the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic, sleep

import pytest
from tests.inference.translation.test_translator import make_translator
from tests.tolerances import approx

from manyheads.inference.translation.result import Translation
from manyheads.search.interface import Cancelled
from manyheads.search.options import SearchOptions
from manyheads.serving.batching import Batcher, _choose_batch
from manyheads.serving.queue_items import QueueItem, RequestCancelled, RequestHandle
from manyheads.serving.queued_engine import queued_translator

OnResult = Callable[[int, int], None]


@dataclass(eq=False)
class Doubling:
    """Doubles numbers, fails on any batch with a 13, records its batches, and waits until it is released."""

    batches: list[list[int]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    cancelled_payloads: list[int] = field(default_factory=list)

    def compute(self, payloads: Sequence[int], cancelled: Cancelled) -> list[int]:
        self.batches.append(list(payloads))
        while not self.released.wait(0.001):
            cancelled_indices = cancelled()
            if len(cancelled_indices) == len(payloads):
                self.cancelled_payloads += payloads
                return list(payloads)
        if 13 in payloads:
            raise ArithmeticError("13")
        return [2 * payload for payload in payloads]


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds, at most 30 seconds."""
    end = monotonic() + 30
    while not condition():
        assert monotonic() < end
        sleep(0.001)


@pytest.fixture
def batcher() -> Iterator[Batcher]:
    found = Batcher(workers=1, max_tokens=100, max_wait=0.0)
    yield found
    found.close(5)
    assert not any(thread.is_alive() for thread in found.threads)


def released_group() -> Doubling:
    group = Doubling()
    group.released.set()
    return group


def items(
    group: Doubling, numbers: Sequence[int], handle: RequestHandle | None = None, size: int = 1
) -> list[QueueItem]:
    handle = handle or RequestHandle()
    return [QueueItem(group, number, size, handle) for number in numbers]


def test_results_are_in_the_order_of_the_items(batcher: Batcher) -> None:
    numbers = range(100, 350)
    assert batcher.compute_all(items(released_group(), numbers)) == [2 * number for number in numbers]


def test_a_batch_respects_the_token_budget_including_padding(batcher: Batcher) -> None:
    group = released_group()
    sizes = [7, 30, 8, 9, 60, 31, 7, 200]
    waiting = [QueueItem(group, size, size, RequestHandle()) for size in sizes]
    while waiting:
        batch = _choose_batch(waiting, 100)
        assert waiting[0] in batch
        assert len(batch) == 1 or max(item.size for item in batch) * len(batch) <= 100
        waiting = [item for item in waiting if item not in batch]
    waiting = [QueueItem(group, size, size, RequestHandle()) for size in sizes]
    assert [item.payload for item in _choose_batch(waiting, 36)] == [7, 7, 8, 9]


def test_the_oldest_item_is_first_and_other_groups_are_not_mixed_in(batcher: Batcher) -> None:
    first, second = released_group(), released_group()
    waiting = [*items(first, [1]), *items(second, [2, 3]), *items(first, [4])]
    assert [item.payload for item in _choose_batch(waiting, 100)] == [1, 4]
    assert [item.payload for item in _choose_batch(waiting[1:], 100)] == [2, 3]


def test_an_item_that_cannot_be_computed_fails_alone(batcher: Batcher) -> None:
    group = Doubling()
    blocker = threading.Thread(target=batcher.compute_all, args=(items(group, [0]),))
    blocker.start()
    wait_until(lambda: batcher.computing)
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(batcher.compute_all, items(group, [number])) for number in (11, 12, 13, 14, 15)]
        wait_until(lambda: len(batcher.waiting) == 5)
        group.released.set()
        found = [future.exception() or future.result() for future in futures]
    blocker.join()
    assert isinstance(found[2], ArithmeticError)
    assert [found[index] for index in (0, 1, 3, 4)] == [[22], [24], [28], [30]]
    assert len(group.batches[1]) == 5  # all five were one batch at first


def test_a_cancelled_request_is_removed_from_the_queue_and_from_its_batch(batcher: Batcher) -> None:
    group, handle = Doubling(), RequestHandle()
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(batcher.compute_all, items(group, [1], handle))
        wait_until(lambda: batcher.computing)
        waiting = pool.submit(batcher.compute_all, items(group, [2], handle))
        wait_until(lambda: batcher.waiting)
        handle.cancel()
        for future in (running, waiting):
            with pytest.raises(RequestCancelled):
                future.result(5)
    wait_until(lambda: not batcher.computing)
    assert group.cancelled_payloads == [1]  # cancelled while it was computed
    assert group.batches == [[1]]  # the other one never started
    with pytest.raises(RequestCancelled):
        batcher.compute_all(items(group, [3], handle))


def test_items_wait_for_others_up_to_the_maximum_delay() -> None:
    batcher = Batcher(workers=1, max_tokens=100, max_wait=1.0)
    group = released_group()
    start = monotonic()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(batcher.compute_all, items(group, [1]))
        sleep(0.05)
        second = pool.submit(batcher.compute_all, items(group, [2]))
        assert (first.result(30), second.result(30)) == ([2], [4])
    assert group.batches == [[1, 2]]
    assert monotonic() - start > 0.9
    slow_batcher = Batcher(workers=1, max_tokens=100, max_wait=600.0)
    with ThreadPoolExecutor(1) as pool:
        whole = pool.submit(slow_batcher.compute_all, items(group, [3], size=100))
        try:
            assert whole.result(60) == [6], "a full batch does not wait"
        finally:
            slow_batcher.close(5)
    batcher.close(5)


@dataclass(eq=False)
class Stepping(Doubling):
    """Doubles numbers, each in as many steps as its value; fails on a step with a 13."""

    added: list[list[int]] = field(default_factory=list)
    steps: int = 0
    fails: bool = False

    def begin(self) -> Steps:
        return Steps(self)


@dataclass(eq=False)
class Steps:
    """A continuous batch of numbers; see `ContinuousBatch`."""

    group: Stepping
    batches: list[tuple[dict[int, int], dict[int, int], Cancelled, OnResult]] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return len(self.batches) >= 6

    def add(self, payloads: Sequence[int], cancelled: Cancelled, on_result: OnResult) -> None:
        self.group.added.append(list(payloads))
        self.batches.append((dict(enumerate(payloads)), dict(enumerate(payloads)), cancelled, on_result))

    def step(self) -> None:
        self.group.steps += 1
        sleep(0.002)
        for payloads, remaining, cancelled, on_result in self.batches:
            if 13 in payloads.values() or self.group.fails:
                raise ArithmeticError("13")
            for index in list(remaining):
                remaining[index] -= 1
                if remaining[index] <= 0 or index in cancelled():
                    del remaining[index]
                    on_result(index, 2 * payloads[index])
        self.batches = [batch for batch in self.batches if batch[1]]


def released_stepping_group() -> Stepping:
    group = Stepping()
    group.released.set()
    return group


def submit(pool: ThreadPoolExecutor, batcher: Batcher, new_items: Sequence[QueueItem]) -> Future[list[int]]:
    """Submit items, and wait until each is waiting, is being computed, or is done."""
    future = pool.submit(batcher.compute_all, new_items)
    for item in new_items:
        wait_until(lambda item=item: item in batcher.waiting or item in batcher.computing or item.future.done())
    return future


def test_a_later_item_is_added_to_the_running_batch_and_ends_when_it_is_ready(batcher: Batcher) -> None:
    group = released_stepping_group()
    with ThreadPoolExecutor(3) as pool:
        long = submit(pool, batcher, items(group, [100]))
        wait_until(lambda: group.steps)
        short = submit(pool, batcher, items(group, [3, 4]))
        assert short.result() == [6, 8]
        assert not long.done()
        assert long.result() == [200]
    assert group.added == [[100], [3, 4]]
    assert group.steps <= 101
    assert not group.batches  # `compute` was never called
    assert batcher.counts.items == 3


def test_a_result_is_returned_before_those_that_take_longer(batcher: Batcher) -> None:
    group = released_stepping_group()
    long, short = items(group, [60, 2])
    with ThreadPoolExecutor(1) as pool:
        future = submit(pool, batcher, [long, short])
        assert short.future.result() == 4
        assert not long.future.done()
        assert future.result() == [120, 4]


def test_after_a_failed_step_only_the_faulty_item_fails(batcher: Batcher) -> None:
    group = released_stepping_group()
    with ThreadPoolExecutor(3) as pool:
        first = submit(pool, batcher, items(group, [50]))
        mixed = items(group, [5, 13, 6])
        second = submit(pool, batcher, mixed)
        assert first.result() == [100]
        with pytest.raises(ArithmeticError):
            second.result()
        assert (mixed[0].future.result(), mixed[2].future.result()) == (10, 12)
        assert batcher.compute_all(items(group, [7])) == [14]  # the worker continues
    wait_until(lambda: not batcher.computing)


def test_a_batch_that_cannot_begin_fails_and_the_worker_continues(batcher: Batcher) -> None:
    class Failing(Stepping):
        def begin(self) -> Steps:
            raise ArithmeticError("begin")

        def compute(self, payloads: Sequence[int], cancelled: Cancelled) -> list[int]:
            raise ArithmeticError("compute")

    with pytest.raises(ArithmeticError):
        batcher.compute_all(items(Failing(), [1, 2]))
    assert batcher.compute_all(items(released_stepping_group(), [7])) == [14]
    wait_until(lambda: not batcher.computing)


def submit_and_add(
    pool: ThreadPoolExecutor, batcher: Batcher, group: Stepping, later: QueueItem
) -> tuple[Future[list[int]], Future[list[int]]]:
    """Submit an item of 100 steps, and one that is added to its batch; return both requests."""
    first = submit(pool, batcher, items(group, [100]))
    wait_until(lambda: group.steps)
    second = submit(pool, batcher, [later])
    wait_until(lambda: len(group.added) == 2)
    return first, second


def test_an_added_item_that_is_cancelled_while_a_step_fails_is_removed(batcher: Batcher) -> None:
    group, handle = released_stepping_group(), RequestHandle()
    with ThreadPoolExecutor(2) as pool:
        first, second = submit_and_add(pool, batcher, group, *items(group, [10_000], handle))
        handle.cancelled = True  # the state inside `cancel` before the futures get their error
        group.fails = True
        assert first.result() == [200]
        wait_until(lambda: not batcher.computing)
        handle.cancel()
        with pytest.raises(RequestCancelled):
            second.result()


class CancelledAfterCheck(Future[int]):
    """A future whose request is cancelled just after a call of `done`."""

    handle: RequestHandle | None = None

    def done(self) -> bool:
        answer, handle, self.handle = super().done(), self.handle, None
        if handle is not None:
            handle.cancel()
        return answer


def test_an_added_item_that_is_cancelled_between_two_checks_is_removed(batcher: Batcher) -> None:
    group, handle, future = released_stepping_group(), RequestHandle(), CancelledAfterCheck()
    with ThreadPoolExecutor(2) as pool:
        first, second = submit_and_add(pool, batcher, group, QueueItem(group, 10_000, 1, handle, future))
        future.handle = handle
        with pytest.raises(RequestCancelled):
            second.result()
        assert first.result() == [200]
    wait_until(lambda: not batcher.computing)


def test_the_oldest_waiting_item_is_not_overtaken_by_items_that_could_be_added(batcher: Batcher) -> None:
    group, other = released_stepping_group(), released_stepping_group()
    with ThreadPoolExecutor(3) as pool:
        (first,) = items(group, [30])
        submit(pool, batcher, [first])
        wait_until(lambda: group.steps)
        waiting = submit(pool, batcher, items(other, [2]))
        later = submit(pool, batcher, items(group, [2]))
        assert waiting.result() == [4]
        assert first.future.done()
        assert later.result() == [4]
    assert group.added == [[30], [2]]
    assert group.steps <= 32  # the later item was not added to the first batch


def test_items_are_added_only_within_the_token_budget(batcher: Batcher) -> None:
    group = released_stepping_group()
    with ThreadPoolExecutor(9) as pool:
        futures = [submit(pool, batcher, items(group, [40], size=60))]
        wait_until(lambda: group.steps)
        futures.append(submit(pool, batcher, items(group, [5], size=41)))  # 100 tokens are allowed
        sleep(0.03)
        assert group.added == [[40]]
        assert [future.result() for future in futures] == [[80], [10]]
        assert group.added == [[40], [5]]


def test_two_workers_divide_the_items() -> None:
    batcher, group = Batcher(workers=2, max_tokens=10_000, max_wait=0.0), released_stepping_group()
    with ThreadPoolExecutor(9) as pool:
        futures = [submit(pool, batcher, items(group, [60]))]
        wait_until(lambda: group.steps)
        futures.append(submit(pool, batcher, items(group, [61])))
        wait_until(lambda: batcher.busy == 2)
        assert group.added == [[60], [61]]  # not added, because a worker was free
        futures.append(submit(pool, batcher, items(group, [20] * 8)))
        assert [future.result()[0] for future in futures] == [120, 122, 40]
    assert sorted(map(len, group.added)) == [1, 1, 4, 4]
    batcher.close(5)


def test_no_item_is_added_to_a_batch_while_a_worker_is_free() -> None:
    batcher, group = Batcher(workers=2, max_tokens=10_000, max_wait=0.05), released_stepping_group()
    with ThreadPoolExecutor(9) as pool:
        futures = [submit(pool, batcher, items(group, [100]))]
        wait_until(lambda: group.steps)
        futures.append(submit(pool, batcher, items(group, [3, 4, 5])))  # the free worker waits for more
        assert [future.result()[0] for future in futures] == [200, 6]
    assert group.added == [[100], [3, 4, 5]]
    batcher.close(5)


def test_a_cancelled_request_is_removed_from_a_continuous_batch(batcher: Batcher) -> None:
    group, handle = released_stepping_group(), RequestHandle()
    with ThreadPoolExecutor(2) as pool:
        running = submit(pool, batcher, items(group, [10_000], handle))
        wait_until(lambda: group.steps)
        handle.cancel()
        with pytest.raises(RequestCancelled):
            running.result(5)
    wait_until(lambda: not batcher.computing)
    assert group.steps < 1_000


def test_a_translation_does_not_depend_on_the_other_texts_of_its_batch() -> None:
    translator = make_translator()
    texts = ["abc", "abcdefgh ij", "ba", "hgf edc ba ab", "jjjj", "a", "cab abc", "ghi"]
    options = [SearchOptions(split="sentences", alignment=bool(index % 2)) for index in range(len(texts))]
    separate = [translator.translate([text], options=own)[0] for text, own in zip(texts, options, strict=True)]
    batcher = Batcher(workers=2, max_tokens=400, max_wait=0.05)
    with ThreadPoolExecutor(len(texts)) as pool:

        def translate(index: int) -> Translation:
            return queued_translator(translator, batcher, RequestHandle()).translate(
                [texts[index]], options=options[index]
            )[0]

        found = list(pool.map(translate, list(range(len(texts))) * 3))
    assert batcher.counts.items == 3 * len(texts)
    assert batcher.counts.batches < batcher.counts.items  # some were in one batch
    batcher.close(5)
    for result, expected in zip(found, separate * 3, strict=True):
        assert (result.translation, result.alignment) == (expected.translation, expected.alignment)
        assert result.score == approx(expected.score)
