"""Texts of many requests computed together: nobody notices the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic, sleep

import pytest
from tests.tasks.test_translation import make_translator

from manyheads.search.interface import Cancelled
from manyheads.serving.batching import Batcher, choose_batch
from manyheads.serving.queue_items import QueueItem, RequestCancelled, RequestHandle
from manyheads.serving.queued_engine import queued_translator
from manyheads.tasks.options import TranslateOptions
from manyheads.tasks.result import Translation

OnResult = Callable[[int, int], None]


@dataclass(eq=False)
class Doubling:
    """Doubles numbers; fails on any batch with a 13 in it; notes its batches; waits while it is held."""

    batches: list[list[int]] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)
    left: list[int] = field(default_factory=list)

    def compute(self, payloads: Sequence[int], cancelled: Cancelled) -> list[int]:
        self.batches.append(list(payloads))
        while not self.held.wait(0.001):
            gone = cancelled()
            if len(gone) == len(payloads):
                self.left += payloads
                return list(payloads)
        if 13 in payloads:
            raise ArithmeticError("13")
        return [2 * one for one in payloads]


@pytest.fixture
def batcher() -> Iterator[Batcher]:
    found = Batcher(workers=1, max_tokens=100, max_wait=0.0)
    yield found
    found.close(5)
    assert not any(thread.is_alive() for thread in found.threads)


def free() -> Doubling:
    group = Doubling()
    group.held.set()
    return group


def items(
    group: Doubling, numbers: Sequence[int], handle: RequestHandle | None = None, size: int = 1
) -> list[QueueItem]:
    handle = handle or RequestHandle()
    return [QueueItem(group, number, size, handle) for number in numbers]


def test_results_come_in_order(batcher: Batcher) -> None:
    numbers = range(100, 350)
    assert batcher.compute_all(items(free(), numbers)) == [2 * number for number in numbers]


def test_a_batch_has_no_more_tokens_than_allowed_padding_included(batcher: Batcher) -> None:
    group = free()
    sizes = [7, 30, 8, 9, 60, 31, 7, 200]
    waiting = [QueueItem(group, size, size, RequestHandle()) for size in sizes]
    while waiting:
        batch = choose_batch(waiting, 100)
        assert waiting[0] in batch
        assert len(batch) == 1 or max(item.size for item in batch) * len(batch) <= 100
        waiting = [item for item in waiting if item not in batch]
    assert [
        item.payload for item in choose_batch([QueueItem(group, size, size, RequestHandle()) for size in sizes], 36)
    ] == [
        7,
        7,
        8,
        9,
    ]


def test_who_waits_longest_is_first_and_other_groups_are_left(batcher: Batcher) -> None:
    first, second = free(), free()
    waiting = [*items(first, [1]), *items(second, [2, 3]), *items(first, [4])]
    assert [item.payload for item in choose_batch(waiting, 100)] == [1, 4]
    assert [item.payload for item in choose_batch(waiting[1:], 100)] == [2, 3]


def test_one_that_cannot_be_computed_fails_alone(batcher: Batcher) -> None:
    group = Doubling()
    blocker = threading.Thread(target=batcher.compute_all, args=(items(group, [0]),))
    blocker.start()
    while not batcher.computing:
        sleep(0.001)
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(batcher.compute_all, items(group, [number])) for number in (11, 12, 13, 14, 15)]
        while len(batcher.waiting) < 5:
            sleep(0.001)
        group.held.set()
        found = [future.exception() or future.result() for future in futures]
    blocker.join()
    assert isinstance(found[2], ArithmeticError)
    assert [found[place] for place in (0, 1, 3, 4)] == [[22], [24], [28], [30]]
    assert len(group.batches[1]) == 5  # they were together first


def test_a_request_that_is_stopped_leaves_the_queue_and_its_batch(batcher: Batcher) -> None:
    group, handle = Doubling(), RequestHandle()
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(batcher.compute_all, items(group, [1], handle))
        while not batcher.computing:
            sleep(0.001)
        waiting = pool.submit(batcher.compute_all, items(group, [2], handle))
        while not batcher.waiting:
            sleep(0.001)
        handle.cancel()
        for future in (running, waiting):
            with pytest.raises(RequestCancelled):
                future.result(5)
    while batcher.computing:
        sleep(0.001)
    assert group.left == [1]  # told to leave while it was computed
    assert group.batches == [[1]]  # and the other never began
    with pytest.raises(RequestCancelled):
        batcher.compute_all(items(group, [3], handle))


def test_items_wait_for_others_only_so_long() -> None:
    batcher = Batcher(workers=1, max_tokens=100, max_wait=2.0)
    group = free()
    begun = monotonic()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(batcher.compute_all, items(group, [1]))
        sleep(0.05)
        second = pool.submit(batcher.compute_all, items(group, [2]))
        assert (first.result(30), second.result(30)) == ([2], [4])
    assert group.batches == [[1, 2]]
    assert monotonic() - begun > 1.9
    patient = Batcher(workers=1, max_tokens=100, max_wait=600.0)
    with ThreadPoolExecutor(1) as pool:
        whole = pool.submit(patient.compute_all, items(group, [3], size=100))
        try:
            assert whole.result(60) == [6], "a whole batch waits for no other"
        finally:
            patient.close(5)
    batcher.close(5)


@dataclass(eq=False)
class Stepping(Doubling):
    """Doubles numbers, one after so many steps as it says; fails on a step with a 13 in it."""

    joined: list[list[int]] = field(default_factory=list)
    steps: int = 0
    fails: bool = False

    def begin(self) -> Steps:
        return Steps(self)


@dataclass(eq=False)
class Steps:
    """See `ContinuousBatch`."""

    group: Stepping
    batches: list[tuple[dict[int, int], dict[int, int], Cancelled, OnResult]] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return len(self.batches) >= 6

    def add(self, payloads: Sequence[int], cancelled: Cancelled, on_result: OnResult) -> None:
        self.group.joined.append(list(payloads))
        self.batches.append((dict(enumerate(payloads)), dict(enumerate(payloads)), cancelled, on_result))

    def step(self) -> None:
        self.group.steps += 1
        sleep(0.002)
        for payloads, left, cancelled, on_result in self.batches:
            if 13 in payloads.values() or self.group.fails:
                raise ArithmeticError("13")
            for place in list(left):
                left[place] -= 1
                if left[place] <= 0 or place in cancelled():
                    del left[place]
                    on_result(place, 2 * payloads[place])
        self.batches = [one for one in self.batches if one[1]]


def stepping() -> Stepping:
    group = Stepping()
    group.held.set()
    return group


def nothing_is_computed(batcher: Batcher) -> bool:
    """Return whether no item is computed any more, soon: a result is known before its item is removed."""
    end = monotonic() + 30
    while batcher.computing and monotonic() < end:
        sleep(0.001)
    return not batcher.computing


def begin(pool: ThreadPoolExecutor, batcher: Batcher, asked: Sequence[QueueItem]) -> Future[list[int]]:
    """Hand in items, and wait until they are computed or, as the workers are, at least wait."""
    future = pool.submit(batcher.compute_all, asked)
    while not all(item in batcher.waiting or item in batcher.computing or item.future.done() for item in asked):
        sleep(0.0005)
    return future


def test_what_comes_later_joins_and_ends_when_it_is_ready(batcher: Batcher) -> None:
    group = stepping()
    with ThreadPoolExecutor(3) as pool:
        long = begin(pool, batcher, items(group, [100]))
        while not group.steps:
            sleep(0.001)
        short = begin(pool, batcher, items(group, [3, 4]))
        assert short.result() == [6, 8]
        assert not long.done()
        assert long.result() == [200]
    assert group.joined == [[100], [3, 4]]
    assert group.steps <= 101
    assert not group.batches  # nothing was computed in one go
    assert batcher.counts.items == 3


def test_a_result_is_given_before_those_that_take_longer(batcher: Batcher) -> None:
    group = stepping()
    long, short = items(group, [60, 2])
    with ThreadPoolExecutor(1) as pool:
        future = begin(pool, batcher, [long, short])
        assert short.future.result() == 4
        assert not long.future.done()
        assert future.result() == [120, 4]


def test_where_a_step_fails_one_fails_alone(batcher: Batcher) -> None:
    group = stepping()
    with ThreadPoolExecutor(3) as pool:
        first = begin(pool, batcher, items(group, [50]))
        asked = items(group, [5, 13, 6])
        second = begin(pool, batcher, asked)
        assert first.result() == [100]
        with pytest.raises(ArithmeticError):
            second.result()
        assert (asked[0].future.result(), asked[2].future.result()) == (10, 12)
        assert batcher.compute_all(items(group, [7])) == [14]  # and the worker goes on
    assert nothing_is_computed(batcher)


def test_a_batch_that_cannot_be_begun_fails_and_the_worker_goes_on(batcher: Batcher) -> None:
    class Failing(Stepping):
        def begin(self) -> Steps:
            raise ArithmeticError("begin")

        def compute(self, payloads: Sequence[int], cancelled: Cancelled) -> list[int]:
            raise ArithmeticError("compute")

    with pytest.raises(ArithmeticError):
        batcher.compute_all(items(Failing(), [1, 2]))
    assert batcher.compute_all(items(stepping(), [7])) == [14]
    assert nothing_is_computed(batcher)


def begin_and_join(
    pool: ThreadPoolExecutor, batcher: Batcher, group: Stepping, joining: QueueItem
) -> tuple[Future[list[int]], Future[list[int]]]:
    """Hand in an item of 100 steps, and one that joins it; return both requests."""
    first = begin(pool, batcher, items(group, [100]))
    while not group.steps:
        sleep(0.001)
    second = begin(pool, batcher, [joining])
    while len(group.joined) < 2:
        sleep(0.001)
    return first, second


def test_an_item_that_joined_and_is_cancelled_while_a_step_fails_is_forgotten(batcher: Batcher) -> None:
    group, handle = stepping(), RequestHandle()
    with ThreadPoolExecutor(2) as pool:
        first, second = begin_and_join(pool, batcher, group, *items(group, [10_000], handle))
        handle.cancelled = True  # the moment in `cancel` before the futures get their error
        group.fails = True
        assert first.result() == [200]
        assert nothing_is_computed(batcher)
        handle.cancel()
        with pytest.raises(RequestCancelled):
            second.result()


class CancelledNextTime(Future[int]):
    """A future whose request is cancelled just after somebody has asked whether it is done."""

    handle: RequestHandle | None = None

    def done(self) -> bool:
        answer, handle, self.handle = super().done(), self.handle, None
        if handle is not None:
            handle.cancel()
        return answer


def test_an_item_that_joined_and_is_cancelled_between_two_looks_is_forgotten(batcher: Batcher) -> None:
    group, handle, future = stepping(), RequestHandle(), CancelledNextTime()
    with ThreadPoolExecutor(2) as pool:
        first, second = begin_and_join(pool, batcher, group, QueueItem(group, 10_000, 1, handle, future))
        future.handle = handle
        with pytest.raises(RequestCancelled):
            second.result()
        assert first.result() == [200]
    assert nothing_is_computed(batcher)


def test_what_has_waited_longest_is_not_passed_by_those_that_could_join(batcher: Batcher) -> None:
    group, other = stepping(), stepping()
    with ThreadPoolExecutor(3) as pool:
        (first,) = items(group, [30])
        begin(pool, batcher, [first])
        while not group.steps:
            sleep(0.001)
        waiting = begin(pool, batcher, items(other, [2]))
        later = begin(pool, batcher, items(group, [2]))
        assert waiting.result() == [4]
        assert first.future.done()
        assert later.result() == [4]
    assert group.joined == [[30], [2]]
    assert group.steps <= 32  # the later one did not join the first


def test_no_more_join_than_there_is_room_for(batcher: Batcher) -> None:
    group = stepping()
    with ThreadPoolExecutor(9) as pool:
        futures = [begin(pool, batcher, items(group, [40], size=60))]
        while not group.steps:
            sleep(0.001)
        futures.append(begin(pool, batcher, items(group, [5], size=41)))  # 100 tokens are allowed
        sleep(0.03)
        assert group.joined == [[40]]
        assert [one.result() for one in futures] == [[80], [10]]
        assert group.joined == [[40], [5]]


def test_each_of_two_workers_takes_its_share() -> None:
    batcher, group = Batcher(workers=2, max_tokens=10_000, max_wait=0.0), stepping()
    with ThreadPoolExecutor(9) as pool:
        futures = [begin(pool, batcher, items(group, [60]))]
        while not group.steps:
            sleep(0.001)
        futures.append(begin(pool, batcher, items(group, [61])))
        while batcher.busy < 2:
            sleep(0.001)
        assert group.joined == [[60], [61]]  # the second did not join where a worker was free
        futures.append(begin(pool, batcher, items(group, [20] * 8)))
        assert [one.result()[0] for one in futures] == [120, 122, 40]
    assert sorted(map(len, group.joined)) == [1, 1, 4, 4]
    batcher.close(5)


def test_nothing_joins_where_a_worker_is_free() -> None:
    batcher, group = Batcher(workers=2, max_tokens=10_000, max_wait=0.05), stepping()
    with ThreadPoolExecutor(9) as pool:
        futures = [begin(pool, batcher, items(group, [100]))]
        while not group.steps:
            sleep(0.001)
        futures.append(begin(pool, batcher, items(group, [3, 4, 5])))  # the free worker waits for more
        assert [one.result()[0] for one in futures] == [200, 6]
    assert group.joined == [[100], [3, 4, 5]]
    batcher.close(5)


def test_a_request_that_is_stopped_leaves_what_is_computed_in_steps(batcher: Batcher) -> None:
    group, handle = stepping(), RequestHandle()
    with ThreadPoolExecutor(2) as pool:
        running = begin(pool, batcher, items(group, [10_000], handle))
        while not group.steps:
            sleep(0.001)
        handle.cancel()
        with pytest.raises(RequestCancelled):
            running.result(5)
    assert nothing_is_computed(batcher)
    assert group.steps < 1_000


def test_a_translation_is_the_same_whoever_is_translated_with_it() -> None:
    translator = make_translator()
    texts = ["abc", "abcdefgh ij", "ba", "hgf edc ba ab", "jjjj", "a", "cab abc", "ghi"]
    asked = [TranslateOptions(split="sentences", alignment=bool(place % 2)) for place in range(len(texts))]
    alone = [translator.translate([text], options=how)[0] for text, how in zip(texts, asked, strict=True)]
    batcher = Batcher(workers=2, max_tokens=400, max_wait=0.05)
    with ThreadPoolExecutor(len(texts)) as pool:

        def one(place: int) -> Translation:
            return queued_translator(translator, batcher, RequestHandle()).translate(
                [texts[place]], options=asked[place]
            )[0]

        found = list(pool.map(one, list(range(len(texts))) * 3))
    assert batcher.counts.items == 3 * len(texts)
    assert batcher.counts.batches < batcher.counts.items  # some were together
    batcher.close(5)
    for result, expected in zip(found, alone * 3, strict=True):
        assert (result.translation, result.alignment) == (expected.translation, expected.alignment)
        assert result.score == pytest.approx(expected.score, abs=1e-5)
