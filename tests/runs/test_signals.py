"""Signals while training: recorded and answered the first time; a later one has its usual effect."""

from __future__ import annotations

import hashlib
import signal
import threading
from collections.abc import Iterator

import pytest
from tests.clocks import Clock

from manyheads.runs import signals
from manyheads.runs.signals import REPEAT, SAVING, STOPPING, Requests, call_in_thread
from manyheads.training.log import SilentListener


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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(signals, "time", clock)
    return clock


class Answers(SilentListener):
    """A listener that collects the answers to signals."""

    def __init__(self) -> None:
        self.answers: list[str] = []

    def interrupted(self, text: str) -> None:
        self.answers.append(text)


@pytest.mark.parametrize("first", STOPPING)
@pytest.mark.parametrize("second", STOPPING)
def test_the_first_signal_is_recorded_and_a_later_one_obeyed(
    first: signal.Signals, second: signal.Signals, clock: Clock
) -> None:
    requests = Requests()
    with requests.recorded():
        assert not requests.stop()
        signal.raise_signal(first)
        assert requests.stop()
        assert requests.signal is first
        clock.now += REPEAT
        with pytest.raises(Obeyed):
            signal.raise_signal(second)


def test_a_repetition_within_a_second_is_the_same_request(clock: Clock) -> None:
    """`timeout` signals a process, and then its whole group."""
    requests, listener = Requests(), Answers()
    with requests.recorded(listener):
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
            clock.now += 0.3
        clock.now += 0.2
        with pytest.raises(Obeyed):
            signal.raise_signal(signal.SIGTERM)
    assert len(listener.answers) == 1


def test_the_answer_fits_the_moment_of_the_signal() -> None:
    requests, listener = Requests(), Answers()
    moment = "reading"
    requests.answer = lambda: f"stopping while {moment}"
    with requests.recorded(listener):
        moment = "validating"
        signal.raise_signal(signal.SIGINT)
    assert listener.answers == ["stopping while validating"]


def test_under_a_launcher_repeated_signals_change_nothing(clock: Clock) -> None:
    """They may be the same request once more: from the terminal, and from the launcher."""
    requests, listener = Requests(), Answers()
    with requests.recorded(listener, launched=True):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGTERM):
            signal.raise_signal(number)
            clock.now += 2 * REPEAT
            assert requests.signal is signal.SIGINT
    assert len(listener.answers) == 1


@pytest.mark.skipif(not SAVING, reason="Windows has none")
def test_each_request_to_save_is_heeded_once() -> None:
    requests = Requests()
    with requests.recorded():
        for _ in range(2):
            assert not requests.save_now()
            signal.raise_signal(signal.SIGUSR1)
            assert requests.save_now()
        assert not requests.save_now()
        assert not requests.stop()


@pytest.mark.parametrize("sent", [[], [*SAVING], [signal.SIGTERM], [*SAVING, signal.SIGINT]])
def test_afterwards_signals_do_what_they_did_before(sent: list[signal.Signals]) -> None:
    def train() -> None:
        with Requests().recorded():
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
        requests = Requests()
        with requests.recorded():
            seen.extend([requests.stop(), requests.save_now(), signal.getsignal(signal.SIGINT)])

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert seen == [False, False, obey]


def test_a_call_in_a_thread_gives_its_result_or_its_error() -> None:
    assert call_in_thread(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        call_in_thread(lambda: 1 // 0)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no timer signals")
def test_a_call_in_a_thread_does_not_hold_a_signal_back() -> None:
    """The main thread would handle it only after the end of the C code."""
    others, before = set(threading.enumerate()), signal.signal(signal.SIGALRM, obey)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Obeyed):
            call_in_thread(lambda: hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 3_000_000))
        (thread,) = set(threading.enumerate()) - others
        thread.join()
    finally:
        signal.signal(signal.SIGALRM, before)


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
