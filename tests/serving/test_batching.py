"""Texts of many requests computed together: nobody notices the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic, sleep

import pytest
from tests.tasks.test_translation import make_translator

from manyheads.search.interface import Abandoned
from manyheads.serving.batching import Batcher, Item, Stopped, Ticket, choose
from manyheads.serving.engine import queued
from manyheads.tasks.options import TranslateOptions
from manyheads.tasks.result import Translation


@dataclass(eq=False)
class Doubling:
    """Doubles numbers; fails on any batch with a 13 in it; notes its batches; waits while it is held."""

    batches: list[list[int]] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)
    left: list[int] = field(default_factory=list)

    def compute(self, payloads: Sequence[int], abandoned: Abandoned) -> list[int]:
        self.batches.append(list(payloads))
        while not self.held.wait(0.001):
            gone = abandoned()
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


def items(group: Doubling, numbers: Sequence[int], ticket: Ticket | None = None, size: int = 1) -> list[Item]:
    ticket = ticket or Ticket()
    return [Item(group, number, size, ticket) for number in numbers]


def test_results_come_in_order(batcher: Batcher) -> None:
    numbers = range(100, 350)
    assert batcher.results(items(free(), numbers)) == [2 * number for number in numbers]


def test_a_batch_has_no_more_tokens_than_allowed_padding_included(batcher: Batcher) -> None:
    group = free()
    sizes = [7, 30, 8, 9, 60, 31, 7, 200]
    waiting = [Item(group, size, size, Ticket()) for size in sizes]
    while waiting:
        batch = choose(waiting, 100)
        assert waiting[0] in batch
        assert len(batch) == 1 or max(item.size for item in batch) * len(batch) <= 100
        waiting = [item for item in waiting if item not in batch]
    assert [item.payload for item in choose([Item(group, size, size, Ticket()) for size in sizes], 36)] == [
        7,
        7,
        8,
        9,
    ]


def test_who_waits_longest_is_first_and_other_groups_are_left(batcher: Batcher) -> None:
    first, second = free(), free()
    waiting = [*items(first, [1]), *items(second, [2, 3]), *items(first, [4])]
    assert [item.payload for item in choose(waiting, 100)] == [1, 4]
    assert [item.payload for item in choose(waiting[1:], 100)] == [2, 3]


def test_one_that_cannot_be_computed_fails_alone(batcher: Batcher) -> None:
    group = Doubling()
    blocker = threading.Thread(target=batcher.results, args=(items(group, [0]),))
    blocker.start()
    while not batcher.computing:
        sleep(0.001)
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(batcher.results, items(group, [number])) for number in (11, 12, 13, 14, 15)]
        while len(batcher.waiting) < 5:
            sleep(0.001)
        group.held.set()
        found = [future.exception() or future.result() for future in futures]
    blocker.join()
    assert isinstance(found[2], ArithmeticError)
    assert [found[place] for place in (0, 1, 3, 4)] == [[22], [24], [28], [30]]
    assert len(group.batches[1]) == 5  # they were together first


def test_a_request_that_is_stopped_leaves_the_queue_and_its_batch(batcher: Batcher) -> None:
    group, ticket = Doubling(), Ticket()
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(batcher.results, items(group, [1], ticket))
        while not batcher.computing:
            sleep(0.001)
        waiting = pool.submit(batcher.results, items(group, [2], ticket))
        while not batcher.waiting:
            sleep(0.001)
        ticket.stop()
        for future in (running, waiting):
            with pytest.raises(Stopped):
                future.result(5)
    while batcher.computing:
        sleep(0.001)
    assert group.left == [1]  # told to leave while it was computed
    assert group.batches == [[1]]  # and the other never began
    with pytest.raises(Stopped):
        batcher.results(items(group, [3], ticket))


def test_items_wait_for_others_only_so_long() -> None:
    batcher = Batcher(workers=1, max_tokens=100, max_wait=0.2)
    group = free()
    begun = monotonic()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(batcher.results, items(group, [1]))
        sleep(0.05)
        second = pool.submit(batcher.results, items(group, [2]))
        assert (first.result(), second.result()) == ([2], [4])
    assert group.batches == [[1, 2]]
    assert 0.19 < monotonic() - begun < 2
    begun = monotonic()
    batcher.results(items(group, [3], size=100))  # a whole batch waits for nobody
    assert monotonic() - begun < 0.19
    batcher.close(5)


def test_a_translation_is_the_same_whoever_is_translated_with_it() -> None:
    translator = make_translator()
    texts = ["abc", "abcdefgh ij", "ba", "hgf edc ba ab", "jjjj", "a", "cab abc", "ghi"]
    asked = [TranslateOptions(split="sentences", alignment=bool(place % 2)) for place in range(len(texts))]
    alone = [translator.translate([text], options=how)[0] for text, how in zip(texts, asked, strict=True)]
    batcher = Batcher(workers=2, max_tokens=400, max_wait=0.05)
    with ThreadPoolExecutor(len(texts)) as pool:

        def one(place: int) -> Translation:
            return queued(translator, batcher, Ticket()).translate([texts[place]], options=asked[place])[0]

        found = list(pool.map(one, list(range(len(texts))) * 3))
    assert batcher.counts.items == 3 * len(texts)
    assert batcher.counts.batches < batcher.counts.items  # some were together
    batcher.close(5)
    for result, expected in zip(found, alone * 3, strict=True):
        assert (result.translation, result.alignment) == (expected.translation, expected.alignment)
        assert result.score == pytest.approx(expected.score, abs=1e-5)
