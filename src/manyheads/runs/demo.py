"""The demo: train on built-in text, score, translate, show the attention, write a page with the model inside."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import torch

from bitext.shell import command_line
from manyheads.checkpoint import RunDirectory
from manyheads.config.load import load_config, resolve_recipe
from manyheads.inference.inspect import inspect_loaded
from manyheads.inference.inspect_options import InspectOptions
from manyheads.inference.translation.translator import Translator
from manyheads.reports import Listener
from manyheads.runs.evaluate import with_line
from manyheads.runs.train import train
from manyheads.tasks.translation.scoring import evaluate_texts
from manyheads.tasks.translation.task import scores_line
from manyheads.training.scored_text import ScoredText
from manyheads.views.picture import Picture
from manyheads.web.html_export import write_page

_PAGE = "page.html"  # in the run directory
_SHOWN = 3  # translations; the shortest of these sentences is inspected
_MAP_WIDTH = 96  # columns of the map of the attention
_EASY_TEXT = (
    "the built-in text is generated from few patterns of sentences: on text of your own, expect lower scores"
)
_FREE_SHARE = 0.75  # share of the processor below which fewer threads are faster


def demo(
    pair: str,
    out: Path,
    *,
    device: str = "auto",
    listener: Listener,
    write: Callable[[str], None],
    program: str = "manyheads",
) -> None:
    """Train the recipe `demo-PAIR` into a run directory and show its results.

    Args:
        pair: "de-en" or "ko-en".
        out: run directory; a finished run is shown without training. The page is written there too.
        device: "cpu", "cuda", "cuda:1"; "auto" takes a GPU when there is one.
        listener: receives the progress of the training.
        write: writes one line of the results.
        program: name of this program in the commands to type next.
    """
    start = time.perf_counter()
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(_useful_threads(torch.get_num_threads()))
    config = load_config(resolve_recipe(f"demo-{pair}"), [f"training.device={device}"])
    train(config, out, listener=listener)
    translator = Translator.load(out, device=device)
    sources, references = ScoredText().pairs(config)
    result = evaluate_texts(translator, sources, references, listener, "data.test")
    write(f"\n{len(sources)} sentences that were not in training:")
    for line in [*result.lines(), f"verdict: {_EASY_TEXT}"]:
        write(f"  {line}")
    step = len(sources) // _SHOWN
    shown = list(zip(sources, result.outputs, references, strict=True))[: step * _SHOWN : step]
    for source, output, expected in shown:
        write("")
        write(f"  {config.data.source}  {source}")
        write(f"  {config.data.target}  {output}")
        if output != expected:
            write(f"      (reference: {expected})")
    write("")
    shortest = min((source for source, *_ in shown), key=len)
    inspection = inspect_loaded(translator, shortest, InspectOptions(occlusion=False, neighbours=0))
    for line in inspection.lines(Picture("attention"), _MAP_WIDTH):
        write(f"  {line}")
    card = with_line(RunDirectory(out).card(), scores_line(config, len(sources), result.scores))
    RunDirectory(out).describe(card)
    write_page(out, out / _PAGE)
    write(f"\nAll of it took {time.perf_counter() - start:.0f} seconds. The model is the directory {out}. Next:")
    write(f"  {command_line('echo', sources[0])} | {program} {command_line('translate', out)}")
    write(f"  {program} {command_line('evaluate', out, '--set', 'search.beam_size=1')}")
    write(f"  {program} init my-model --from multi30k-de-en")
    write(f"The model is also a page that translates without a network; open it in a browser: {out / _PAGE}")


def _useful_threads(most: int, seconds: float = 0.2) -> int:
    """Return the number of PyTorch threads, at most `most`, that are useful beside other running programs.

    Threads wait for one another after every operation, so that beside busy programs all of them advance as slowly
    as the one that waits for a core. Beside four busy programs on two cores the demo takes 370 seconds with two
    threads and 244 with one (`benchmarks/busy.py --parts demo --busy 4`). `seconds` is the duration of
    the measurement.
    """
    x = torch.ones(512, 512)
    torch.mm(x, x)  # starts the threads
    wall, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < seconds:
        torch.mm(x, x)
    share = (time.process_time() - used) / (time.perf_counter() - wall) / most
    return most if share >= _FREE_SHARE else max(1, int(share * most))
