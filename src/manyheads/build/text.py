"""The steps that write text: mixtures, and translations in shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from sacrebleu.metrics import BLEU

from manyheads.build.schema import DistilStep, Mixed, TranslateStep
from manyheads.data.lines import count_lines, read_lines
from manyheads.data.shards import available_cores, map_shards, open_executor, remove_shards
from manyheads.errors import DataError
from manyheads.search.options import Sampling
from manyheads.tasks.options import TranslateOptions
from manyheads.tasks.translation import Translator
from manyheads.text.normalize import normalize
from manyheads.training.log import Listener

__all__ = ["InlineExecutor", "executor_for", "mix_texts", "translate_text"]

SHARD = 256  # lines; part of the key of a translation, because a sample depends on its place in a shard


class Shard(NamedTuple):
    """Lines that are translated together.

    Attributes:
        number: number of the shard, from 0.
        sources: lines to translate.
        references: their reference translations; empty if they are not needed.
    """

    number: int
    sources: tuple[str, ...]
    references: tuple[str, ...]


class InlineExecutor(Executor):
    """Computes in the calling process, at once: for a few lines, where processes would take longer to start."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call the function and return its result as a finished future."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def executor_for(shards: int, scheduler: str | None, workers: int | None) -> Iterator[Executor]:
    """Open an executor for so many shards: this process for one shard or one worker; see `open_executor`."""
    if scheduler is None and min(shards, workers or available_cores()) <= 1:
        yield InlineExecutor()
    else:
        with open_executor(scheduler, workers) as executor:
            yield executor


def mix_texts(parts: Sequence[tuple[Mixed, Sequence[Path]]], out: Sequence[Path]) -> int:
    """Join texts, and return the number of pairs.

    Args:
        parts: the settings of each text, and its files: the source language, then the target language.
        out: files to write, in the same order of languages.

    Raises:
        DataError: the two files of a text differ in length.
    """
    count = 0
    with out[0].open("wb") as source_file, out[1].open("wb") as target_file:
        for mixed, files in parts:
            before = f"{mixed.tag} " if mixed.tag else ""
            for source, target in parallel(files, mixed.lines):
                source_file.write(f"{before}{one_line(source)}\n".encode())
                target_file.write(f"{one_line(target)}\n".encode())
                count += 1
    return count


def one_line(text: str) -> str:
    """Return a line without carriage returns, which would end it for some readers."""
    return text.replace("\r", " ")


def parallel(files: Sequence[Path], most: int | None) -> Iterator[tuple[str, ...]]:
    """Yield the lines of files that belong together, at most so many.

    Raises:
        DataError: the files differ in length.
    """
    readers = [read_lines(path) for path in files]
    lines = zip(*readers, strict=True)
    try:
        yield from islice(lines, most)
    except ValueError as error:
        counts = " and ".join(f"{path} has {count_lines(path):,} lines" for path in files)
        raise DataError(f"{counts}. The files must belong together line by line.") from error


def translate_text(
    step: TranslateStep | DistilStep,
    models: Sequence[Path],
    files: Sequence[Path],
    out: Sequence[Path],
    *,
    key: str,
    listener: Listener,
    device: str = "auto",
    scheduler: str | None = None,
    workers: int | None = None,
) -> int:
    """Translate a text in shards, and write its lines beside their translations; return the number of lines.

    Args:
        step: settings of the translation.
        models: run directories; several are an ensemble.
        files: file to translate; for the method "interpolation" then the file of the references.
        out: files to write: of the source and of the target language of the model.
        key: hash of everything that the translations depend on.
        listener: receives the progress.
        device: device of the models.
        scheduler: address of a Dask scheduler; None for this machine.
        workers: number of processes on this machine; None for one on each core.

    Raises:
        DataError: the text cannot be read or written, or a worker ended.
    """
    folder = out[0].parent / "shards"
    count = min(count_lines(files[0]), step.lines or count_lines(files[0]))
    work = partial(translate_shard, step=step, models=tuple(map(str, models)), device=device)
    number = -(-count // SHARD)
    with (
        executor_for(number, scheduler, workers) as executor,
        listener.phase("translating", count, "lines") as advance,
        out[0].open("wb") as source_file,
        out[1].open("wb") as target_file,
    ):
        results = map_shards(
            work, shards_of(files, step.lines), folder, key=key, executor=executor,
            advance=lambda shards: advance(min(count, SHARD) * shards),
        )  # fmt: skip
        for shard, result in zip(shards_of(files, step.lines), results, strict=True):
            source_file.write("".join(f"{line}\n" for line in shard.sources).encode())
            target_file.write(result)
    remove_shards(folder)
    return count


def shards_of(files: Sequence[Path], most: int | None) -> Iterator[Shard]:
    """Yield a text in shards of `SHARD` lines."""
    rows = parallel(files, most)
    number = 0
    while part := list(islice(rows, SHARD)):
        sources, *others = zip(*part, strict=True)
        yield Shard(number, tuple(map(one_line, sources)), tuple(others[0]) if others else ())
        number += 1


@lru_cache(1)
def load_translator(models: tuple[str, ...], device: str) -> Translator:
    """Load a translator once in a process."""
    return Translator.load(models[0], ensemble=models[1:], device=device)


def translate_shard(
    shard: Shard, *, step: TranslateStep | DistilStep, models: tuple[str, ...], device: str
) -> bytes:
    """Translate the lines of a shard; one output line for each."""
    translator = load_translator(models, device)
    options = TranslateOptions(token_scores=False)
    if isinstance(step, TranslateStep) and step.sampling is not None:
        sampling = Sampling(temperature=step.sampling, seed=1_000_003 * step.seed + shard.number)
        options = TranslateOptions(token_scores=False, sampling=sampling)
    if isinstance(step, DistilStep) and step.method == "interpolation":
        results = translator.translate(shard.sources, beam_size=step.beam, n_best=step.beam, options=options)
        texts = [
            closest_to(reference, [hypothesis.text for hypothesis in result.hypotheses] or [""])
            for result, reference in zip(results, shard.references, strict=True)
        ]
    else:
        results = translator.translate(shard.sources, beam_size=step.beam, options=options)
        texts = [result.translation for result in results]
    return "".join(f"{normalize(text)}\n" for text in texts).encode()


def closest_to(reference: str, hypotheses: Sequence[str]) -> str:
    """Return the hypothesis with the highest sentence BLEU, the likeliest of equal ones (Kim and Rush 2016, 3.3)."""
    bleu = BLEU(effective_order=True)
    scores = [bleu.sentence_score(text, [reference]).score for text in hypotheses]
    return hypotheses[scores.index(max(scores))]
