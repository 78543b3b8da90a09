"""Progress: one live line on a terminal, few plain lines elsewhere."""

from __future__ import annotations

import importlib
import io
import os
import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console
from tests.clocks import Clock

from manyheads.cli.progress import Progress, _LiveProgress, _PlainProgress, open_progress
from manyheads.cli.verbs import Settings
from manyheads.reports import StepReport, ValidationReport

module = importlib.import_module("manyheads.cli.progress")

REPORT = StepReport(
    step=50,
    total_steps=1000,
    epoch=0.5,
    loss=4.321,
    nll=4.0,
    learning_rate=1e-3,
    gradient_norm=1.5,
    source_tokens_per_second=9_000,
    target_tokens_per_second=12_345.6,
    padding=0.125,
    seconds=10,
    seconds_left=190,
    skipped=0,
)
VALIDATION = ValidationReport(
    step=500,
    loss=2.31,
    scores={"bleu": 23.44, "chrf": 45.66},
    best=True,
    sample=("Ein\x1b[2J Hund", "A", "가"),
    decoded=500,
)


def plain(*, verbose: bool = False) -> tuple[_PlainProgress, io.StringIO, Clock]:
    stream, clock = io.StringIO(), Clock()
    return _PlainProgress(stream, verbose=verbose, clock=clock), stream, clock


def plain_steps(seconds_a_step: float, steps: int, *, verbose: bool = False) -> list[int]:
    """Report each of `steps` steps, and return those that plain progress prints."""
    progress, stream, clock = plain(verbose=verbose)
    for step in range(1, steps + 1):
        clock.now += seconds_a_step
        progress.step(replace(REPORT, step=step, total_steps=steps))
    return [int(found) for found in re.findall(r"^step (\d+)/", stream.getvalue(), re.MULTILINE)]


def live(width: int, *, verbose: bool = False) -> tuple[_LiveProgress, io.StringIO]:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, no_color=True, width=width, highlight=False, markup=False)
    return _LiveProgress(console, verbose=verbose), stream


def drawn(stream: io.StringIO) -> str:
    """Return the text of the live line that is on the screen."""
    return re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", stream.getvalue()).rpartition("\r")[2].split("\n")[-1]


def test_a_step_line_shows_progress_loss_speed_and_remaining_time() -> None:
    progress, stream, _ = plain()
    progress.step(REPORT)
    assert stream.getvalue() == "step 50/1,000  5%  loss 4.321  12,346 tokens/s  3:10 left\n"


def test_a_validation_line_shows_its_scores_and_later_lines_repeat_the_bleu() -> None:
    progress, stream, _ = plain()
    progress.validation(VALIDATION)
    progress.step(replace(REPORT, skipped=2))
    first, second = stream.getvalue().split("\n")[:2]
    scores = "BLEU 23.4  chrF 45.7  (greedy, 500 sentences)"
    assert first == f"step 500  valid loss 2.310  perplexity 10.07  {scores}  best so far"
    assert second.endswith("3:10 left  BLEU 23.4  2 skipped")


def test_a_validation_without_decoding_has_no_bleu() -> None:
    progress, stream, _ = plain()
    progress.validation(replace(VALIDATION, scores={"bleu": None, "chrf": None}, best=False))
    assert stream.getvalue() == "step 500  valid loss 2.310  perplexity 10.07\n"


@pytest.mark.parametrize(
    ("seconds_a_step", "printed"),
    [
        (1.0, [1, 11, 21, 31, 41, 51, 61, 71, 81, 91, 100]),  # at each tenth of the training
        (0.125, [1, 41, 81, 100]),  # five seconds apart or more, and the last
        (10.0, [1, 7, 13, 19, 25, 31, 37, 43, 49, 55, 61, 67, 73, 79, 85, 91, 97, 100]),  # every minute
    ],
)
def test_plain_lines_are_few_and_the_last_is_always_printed(seconds_a_step: float, printed: list[int]) -> None:
    assert plain_steps(seconds_a_step, 100) == printed


def test_verbose_prints_a_line_for_every_step_with_more_figures() -> None:
    assert plain_steps(0.125, 7, verbose=True) == [1, 2, 3, 4, 5, 6, 7]
    progress, stream, _ = plain(verbose=True)
    progress.step(REPORT)
    progress.validation(VALIDATION)
    assert "epoch 0.50  rate 1.00e-03  norm 1.50  padding 12%" in stream.getvalue()
    assert stream.getvalue().endswith("  source     Ein�[2J Hund\n  reference  A\n  output     가\n")


@pytest.mark.parametrize("width", [10, 20, 32, 45, 60, 80, 120])
def test_the_live_line_fits_the_terminal(width: int) -> None:
    progress, stream = live(width)
    progress.validation(VALIDATION)
    progress.step(replace(REPORT, step=12_345, total_steps=100_000))
    line = drawn(stream)
    assert 0 < cell_len(line) < width
    assert line.startswith("step 12,3"[: width - 2]) or width >= 120
    assert ("BLEU 23.4" in line) == (width >= 60)
    assert ("━" in line) == (width >= 120)


def test_messages_are_printed_above_the_live_line() -> None:
    progress, stream = live(80)
    progress.step(REPORT)
    progress.message("[bold]a message[/bold] 가나다")
    assert "[bold]a message[/bold] 가나다" in stream.getvalue()
    assert drawn(stream).startswith("step 50/1,000")


def test_a_result_goes_to_stdout_and_the_live_line_is_cleared(capsys: pytest.CaptureFixture[str]) -> None:
    progress, stream = live(80)
    progress.step(REPORT)
    progress.write("a result")
    assert capsys.readouterr().out == "a result\n"
    assert drawn(stream) == ""
    assert stream.getvalue().endswith("\x1b[2K") or "\x1b[?25h" in stream.getvalue()
    progress.step(replace(REPORT, step=60))
    assert drawn(stream).startswith("step 60/1,000")


def test_output_without_a_terminal_is_plain_even_with_force_color(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with open_progress(Settings()) as progress:
        progress.message("begins")
        progress.step(REPORT)
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("begins\nstep 50/1,000")
    assert "\x1b" not in output.err


def test_quiet_prints_results_only(capsys: pytest.CaptureFixture[str]) -> None:
    with open_progress(Settings(quiet=True)) as progress:
        assert type(progress) is Progress
        progress.message("begins")
        progress.step(REPORT)
        progress.validation(VALIDATION)
        progress.write("a result")
    assert capsys.readouterr() == ("a result\n", "")


# --- phases ---


def test_plain_lines_of_a_phase_are_printed_every_ten_seconds_after_the_first_two() -> None:
    progress, stream, clock = plain()
    with progress.phase("reading the text", unit="pairs") as advance:
        for _ in range(250):
            clock.now += 0.125
            advance(2)
    assert stream.getvalue().splitlines() == [
        "reading the text  32 pairs  0:02",
        "reading the text  192 pairs  0:12",
        "reading the text  352 pairs  0:22",
    ]


def test_successive_phases_share_the_interval() -> None:
    progress, stream, clock = plain()
    for _ in range(5):
        with progress.phase("validating: loss", 3, "pairs") as advance:
            for _ in range(3):
                clock.now += 1
                advance(1)
    assert stream.getvalue().splitlines() == [
        "validating: loss  66%  2/3 pairs  0:01 left",
        "validating: loss  100%  3/3 pairs  0:00 left",
    ]


def test_a_short_phase_is_not_shown() -> None:
    progress, stream, clock = plain()
    with progress.phase("reading the text") as advance:
        clock.now += 1.9
        advance(1)
    assert stream.getvalue() == ""


def test_a_long_phase_replaces_the_line_of_the_last_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MIN_PHASE_SECONDS", 0.0)
    progress, stream = live(100)
    progress.step(REPORT)
    with progress.phase("validating: translating", 8, "sentences") as advance:
        advance(2)
        progress.draw()
        assert "validating: translating  25%  2/8 sentences" in drawn(stream)
        with progress.phase("packing"):
            assert drawn(stream).startswith("packing")
        assert "2/8 sentences" in drawn(stream)
    assert "step 50/1,000" in drawn(stream)
    progress.pause()


def test_a_short_phase_leaves_the_line_of_the_last_step() -> None:
    progress, stream = live(80)
    progress.step(REPORT)
    with progress.phase("validating: loss", 8, "pairs") as advance:
        advance(8)
        progress.draw()
        assert drawn(stream).startswith("step 50/1,000")
    progress.pause()


def test_after_a_phase_without_steps_the_line_is_empty() -> None:
    progress, stream = live(80)
    with progress.phase("reading the text"):
        assert progress.live is not None
    assert progress.live is None
    assert drawn(stream) == ""


def test_the_message_after_a_signal_bypasses_the_buffer() -> None:
    """Write a message as from a signal handler, while the buffer of the stream is being written."""
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as reader, os.fdopen(writing, "w", encoding="utf-8") as stream:
        stream.write("a line that is being written")
        _PlainProgress(stream).interrupted("stopping")
        assert reader.readline() == "stopping\n"


def test_the_message_after_a_signal_is_dropped_for_a_stream_without_a_descriptor() -> None:
    _PlainProgress(io.StringIO()).interrupted("stopping")
