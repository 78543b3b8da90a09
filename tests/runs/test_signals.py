"""The first signal during training is recorded and answered; a later signal has its usual effect."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest
from tests.clocks import Clock

from manyheads.reports import SilentListener
from manyheads.runs import signals
from manyheads.runs.signals import _REPEAT, _SAVING, _STOPPING, Requests
from manyheads.training.interruption import call_in_thread


class UsualEffect(BaseException):
    """Raised as the usual effect of a signal."""


def usual_handler(number: int, frame: object) -> None:
    raise UsualEffect(number)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Install handlers that raise `UsualEffect`, and restore the previous ones after the test."""
    before = {each: signal.signal(each, usual_handler) for each in (*_STOPPING, *_SAVING)}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(signals, "time", clock)
    return clock


class AnswerListener(SilentListener):
    """A listener that collects the answers to signals."""

    def __init__(self) -> None:
        self.answers: list[str] = []

    def interrupted(self, text: str) -> None:
        self.answers.append(text)


@pytest.mark.parametrize("first", _STOPPING)
@pytest.mark.parametrize("second", _STOPPING)
def test_the_first_signal_is_recorded_and_a_later_one_has_its_usual_effect(
    first: signal.Signals, second: signal.Signals, clock: Clock
) -> None:
    requests = Requests()
    with requests.recorded():
        assert not requests.stop()
        signal.raise_signal(first)
        assert requests.stop()
        assert requests.signal is first
        clock.now += _REPEAT
        with pytest.raises(UsualEffect):
            signal.raise_signal(second)


def test_a_repetition_within_a_second_is_the_same_request(clock: Clock) -> None:
    """`timeout` signals a process, and then its whole group."""
    requests, listener = Requests(), AnswerListener()
    with requests.recorded(listener):
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
            clock.now += 0.3
        clock.now += 0.2
        with pytest.raises(UsualEffect):
            signal.raise_signal(signal.SIGTERM)
    assert len(listener.answers) == 1


def test_the_answer_is_computed_when_the_signal_arrives() -> None:
    requests, listener = Requests(), AnswerListener()
    moment = "reading"
    requests.stop_message = lambda: f"stopping while {moment}"
    with requests.recorded(listener):
        moment = "validating"
        signal.raise_signal(signal.SIGINT)
    assert listener.answers == ["stopping while validating"]


def test_under_a_launcher_repeated_signals_change_nothing(clock: Clock) -> None:
    """Repeated signals may be one request, sent by the terminal and by the launcher."""
    requests, listener = Requests(), AnswerListener()
    with requests.recorded(listener, launched=True):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGTERM):
            signal.raise_signal(number)
            clock.now += 2 * _REPEAT
            assert requests.signal is signal.SIGINT
    assert len(listener.answers) == 1


@pytest.mark.skipif(not _SAVING, reason="Windows has none")
def test_each_request_to_save_is_answered_once() -> None:
    requests = Requests()
    with requests.recorded():
        for _ in range(2):
            assert not requests.save_now()
            signal.raise_signal(signal.SIGUSR1)
            assert requests.save_now()
        assert not requests.save_now()
        assert not requests.stop()


@pytest.mark.parametrize("sent", [[], [*_SAVING], [signal.SIGTERM], [*_SAVING, signal.SIGINT]])
def test_the_previous_handlers_are_restored_after_training(sent: list[signal.Signals]) -> None:
    def train() -> None:
        with Requests().recorded():
            for number in sent:
                signal.raise_signal(number)
            raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        train()
    assert [signal.getsignal(each) for each in (*_STOPPING, *_SAVING)] == [usual_handler] * len(
        (*_STOPPING, *_SAVING)
    )


@pytest.mark.parametrize("ignored", [*_STOPPING, *_SAVING])
def test_an_ignored_signal_stays_ignored_in_training(ignored: signal.Signals) -> None:
    """`nohup` ignores SIGHUP, and a shell Ctrl-C for a background job of a script."""
    requests = Requests()
    signal.signal(ignored, signal.SIG_IGN)
    with requests.recorded():
        signal.raise_signal(ignored)
        assert not requests.stop()
        assert not requests.save_now()
    assert signal.getsignal(ignored) is signal.SIG_IGN


def test_handlers_are_not_changed_in_another_thread() -> None:
    """Python allows only the main thread to set signal handlers."""
    seen: list[object] = []

    def train() -> None:
        requests = Requests()
        with requests.recorded():
            seen.extend([requests.stop(), requests.save_now(), signal.getsignal(signal.SIGINT)])

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert seen == [False, False, usual_handler]


def test_a_call_in_a_thread_returns_its_result_or_raises_its_error() -> None:
    assert call_in_thread(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        call_in_thread(lambda: 1 // 0)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="Windows has no SIGALRM")
def test_a_call_in_a_thread_does_not_delay_a_signal() -> None:
    """The main thread would handle it only after the end of C code."""
    threads, end, before = [], threading.Event(), signal.signal(signal.SIGALRM, usual_handler)

    def call() -> None:
        threads.append(threading.current_thread())
        os.kill(os.getpid(), signal.SIGALRM)
        end.wait()

    try:
        with pytest.raises(UsualEffect):
            call_in_thread(call)
        (thread,) = threads
        assert thread is not threading.main_thread()
        assert thread.is_alive(), "the signal was handled before the end of the call"
        end.set()
        thread.join()
    finally:
        end.set()
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (None, 143), (getattr(signal, "SIGHUP", None), 129)]
)
def test_leaving_exits_with_the_code_of_the_signal(number: signal.Signals | None, code: int) -> None:
    """None stands for a signal that another process received."""
    requests = Requests()
    requests.signal = number
    with pytest.raises(SystemExit) as caught:
        requests.leave()
    assert caught.value.code == code


def test_leaving_after_an_interruption_raises_keyboard_interrupt() -> None:
    requests = Requests()
    requests.signal = signal.SIGINT
    with pytest.raises(KeyboardInterrupt):
        requests.leave()
