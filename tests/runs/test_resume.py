"""Signals while training: noted the first time, obeyed at once the second."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from manyheads.runs.resume import SAVING, STOPPING, Requests, recording_signals


class Obeyed(BaseException):
    """A signal did what it does when nobody heeds it."""


def obey(number: int, frame: object) -> None:
    raise Obeyed(number)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Signals do something that can be seen."""
    before = {each: signal.signal(each, obey) for each in (*STOPPING, *SAVING)}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.mark.parametrize("first", STOPPING)
@pytest.mark.parametrize("second", STOPPING)
def test_the_first_signal_is_only_noted_and_the_second_obeyed(
    first: signal.Signals, second: signal.Signals
) -> None:
    with recording_signals(launched=False) as requests:
        assert not requests.stop()
        signal.raise_signal(first)
        assert requests.stop()
        assert requests.signal is first
        with pytest.raises(Obeyed):
            signal.raise_signal(second)


def test_under_a_launcher_a_second_signal_is_only_noted_too() -> None:
    """It may be the same request once more: from the terminal, and from the launcher."""
    with recording_signals(launched=True) as requests:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGTERM):
            signal.raise_signal(number)
            assert requests.signal is number


@pytest.mark.skipif(not SAVING, reason="Windows has none")
def test_each_request_to_save_is_heeded_once() -> None:
    with recording_signals(launched=False) as requests:
        for _ in range(2):
            assert not requests.save_now()
            signal.raise_signal(signal.SIGUSR1)
            assert requests.save_now()
        assert not requests.save_now()
        assert not requests.stop()


@pytest.mark.parametrize("sent", [[], [*SAVING], [signal.SIGTERM], [*SAVING, signal.SIGINT]])
def test_afterwards_signals_do_what_they_did_before(sent: list[signal.Signals]) -> None:
    def train() -> None:
        with recording_signals(launched=False):
            for number in sent:
                signal.raise_signal(number)
            raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        train()
    assert [signal.getsignal(each) for each in (*STOPPING, *SAVING)] == [obey] * len((*STOPPING, *SAVING))


def test_in_another_thread_signals_stay_as_they_are() -> None:
    """Python lets only the main thread decide about them."""
    seen: list[object] = []

    def train() -> None:
        with recording_signals(launched=False) as requests:
            seen.extend([requests.stop(), requests.save_now(), signal.getsignal(signal.SIGINT)])

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert seen == [False, False, obey]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (None, 143)])
def test_leaving_ends_the_program_as_the_signal_would_have(number: signal.Signals | None, code: int) -> None:
    """None: another process had it."""
    requests = Requests()
    requests.signal = number
    with pytest.raises(SystemExit) as caught:
        requests.leave()
    assert caught.value.code == code


def test_leaving_after_an_interruption_is_one() -> None:
    requests = Requests()
    requests.signal = signal.SIGINT
    with pytest.raises(KeyboardInterrupt):
        requests.leave()
