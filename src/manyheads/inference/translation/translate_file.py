"""Translate a large file in numbered shards: in this process, in processes of this machine, or on a cluster."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import manyheads
from bitext.files import MAX_NAME, locked_output, name_hash, refuse_links, replacing_output, sum_of
from bitext.lines import text_line
from bitext.placing import open_packed
from bitext.tsv import join_row
from manyheads.allocator import keep_decoding_small
from manyheads.config.load import with_overrides
from manyheads.data import CALL_LINES
from manyheads.documents.document import Document
from manyheads.errors import ManyheadsError, RunError
from manyheads.inference.threads import limit_threads
from manyheads.inference.translation.documents import (
    DocumentReport,
    UnitFields,
    texts_of,
    with_alignment,
    write_document,
)
from manyheads.inference.translation.glossary import Glossary
from manyheads.inference.translation.translator import (
    DEFAULTS,
    STAGES,
    Translation,
    Translator,
    unit_fields,
    warnings_of,
)
from manyheads.search.options import SearchOptions

SHARD_LINES = 2 * CALL_LINES
_SHARD_FORMAT = 2  # of a result (`_translate_shard`); with another number, stored shards are translated again
_FOREIGN = {"", ".jsonl", ".lock", ".md"}  # suffixes of the files of a run that translations do not depend on

# Columns of a table -> the value of a translation.
COLUMNS: dict[str, Callable[[Translation], object]] = {
    "score": lambda translation: f"{translation.score:.4f}",
    "truncated": lambda translation: int(translation.truncated),
    **{name: value for stage in STAGES for name, value in stage.columns.items()},
}


@dataclass(frozen=True)
class TranslationJob:
    """The files of a translator and how a file is translated, as a small value to send to other processes.

    Attributes:
        run: run directory.
        overrides: settings of the configuration, each as section.key=value.
        ensemble: further runs; see `Translator.load`, also for the next three.
        engine: see `Translator.load`.
        device: see `Translator.load`.
        precision: see `Translator.load`.
        target: see `Translator.to`, also for the next one.
        source: see `Translator.to`.
        options: options of the search; `n_best` is the number of translations to write for each line.
        columns: names of `COLUMNS` to write beside each translation; empty for plain lines.
        glossary: file of terms with their translations (`Glossary.read`), or None.
        units: whether to write each translation as a line of JSON for a document (`translate_document_file`).
        digest: hash of the files of the runs and of the glossary, which every worker compares with its own; ""
            compares nothing.
    """

    run: Path
    overrides: tuple[str, ...] = ()
    ensemble: tuple[Path, ...] = ()
    engine: str = "auto"
    device: str = "auto"
    precision: str = "fp32"
    target: str = ""
    source: str = ""
    options: SearchOptions = DEFAULTS
    columns: tuple[str, ...] = ()
    glossary: Path | None = None
    units: bool = False
    digest: str = ""

    def open(self) -> Translator:
        """Load the translator."""
        keep_decoding_small()
        translator = Translator.load(
            self.run,
            device=self.device,
            engine=self.engine,
            ensemble=self.ensemble,
            precision=self.precision,
        )
        if self.overrides:
            translator = replace(translator, config=with_overrides(translator.config, self.overrides))
        translator = translator.to(source=self.source, target=self.target)
        if self.glossary is None:
            return translator
        return translator.with_glossary(Glossary.read(self.glossary, translator.config.languages))

    def read_digest(self) -> str:
        """Return the hash of the files of the runs, and of the glossary, that this machine has."""
        files = [
            path
            for run in (self.run, *self.ensemble)
            for path in sorted(run.iterdir())
            if path.is_file() and path.suffix not in _FOREIGN
        ]
        return _digest_of([*files, *([self.glossary] if self.glossary else [])])

    def for_workers(self) -> TranslationJob:
        """Return the job with absolute paths and the digest of its runs."""
        runs = [run.absolute() for run in (self.run, *self.ensemble)]
        glossary = self.glossary and self.glossary.absolute()
        return replace(self, run=runs[0], ensemble=tuple(runs[1:]), glossary=glossary, digest=self.read_digest())


def _digest_of(paths: Iterable[Path]) -> str:
    return hashlib.sha256("".join(map(sum_of, paths)).encode()).hexdigest()


def header_lines(columns: Sequence[str]) -> list[str]:
    """Return the first line of a table with these columns; none without columns."""
    return [join_row(("translation", *columns))] if columns else []


def output_lines(index: int, translation: Translation, n_best: int = 1, columns: Sequence[str] = ()) -> list[str]:
    """Return the output line of an input line, or its `n_best` lines with its index.

    With columns the line is a row of tab-separated values (`data.tsv`).
    """
    if n_best > 1:
        return [
            f"{index} ||| {hypothesis.text} ||| {hypothesis.score:.4f}" for hypothesis in translation.hypotheses
        ]
    links = "" if translation.alignment is None else f" ||| {translation.alignment}"
    text = translation.translation + links
    if not columns:
        return [text]
    return [join_row((text, *(COLUMNS[name](translation) for name in columns)))]


class Shard(NamedTuple):
    """Lines to translate, and the constraints on each; see `Translator.translate`.

    Attributes:
        start: index of the first line, from 0.
        lines: the lines.
        constraints: lists with an entry for each line.
    """

    start: int
    lines: list[str]
    constraints: dict[str, list[Any]]


class _LoadedTranslator(threading.local):
    """The translator that this thread loaded last; a cluster may give a worker several threads."""

    job: TranslationJob | None = None
    translator: Translator | None = None

    def of(self, job: TranslationJob) -> Translator:
        """Return the translator of a job, loading it if another was used before."""
        if self.translator is None or self.job != job:
            self.translator = None
            self.translator, self.job = job.open(), job
        return self.translator


_loaded = _LoadedTranslator()


def _translate_shard(job: TranslationJob, shard: Shard) -> bytes:
    """Return the number of lines and the warnings of a shard as a line of JSON, and then its output lines."""
    translator = _loaded.of(job)
    warned: dict[str, list[int]] = {}
    output = []
    for first in range(0, len(shard.lines), CALL_LINES):
        part = slice(first, first + CALL_LINES)
        constraints: dict[str, Any] = {name: entries[part] for name, entries in shard.constraints.items()}
        for position, translation in enumerate(
            translator.translate(shard.lines[part], options=job.options, **constraints), start=first
        ):
            index = shard.start + position
            if job.units:
                output.append(json.dumps(unit_fields(translation)))
            else:
                output += output_lines(index, translation, job.options.n_best, job.columns)
            for warning in warnings_of(translation):
                warned.setdefault(warning, []).append(index + 1)
    return json.dumps([len(shard.lines), warned]).encode() + b"\n" + b"".join(map(text_line, output))


def _translate_shard_in_worker(job: TranslationJob, version: str, shard: Shard) -> bytes:
    """Translate a shard with one thread, in another process or on another machine.

    Raises:
        RunError: this machine has no such run or another one, or another version of manyheads.
    """
    limit_threads(1)
    machine = platform.node()
    if version != manyheads.__version__:
        raise RunError(
            f"The worker on {machine} has manyheads {manyheads.__version__}, and this machine {version}. "
            "Install the same version on both."
        )
    if _loaded.job != job:
        try:
            _loaded.of(job)
            same = job.read_digest() == job.digest
        except (ManyheadsError, OSError) as error:
            raise RunError(
                f"The worker on {machine} cannot load the model: {error} Copy {job.run} to the same path on every "
                "machine, or put it on a shared disk."
            ) from error
        if not same:
            _loaded.job = None
            raise RunError(
                f"The worker on {machine} has another model at {job.run} than this machine. Copy the directory "
                "again."
            )
    return _translate_shard(job, shard)


def _shards_folder(output: Path) -> Path:
    """Return the folder that holds the finished shards of an output file until all are finished."""
    name = f"{output.name}.shards"
    return output.with_name(name if len(os.fsencode(name)) <= MAX_NAME else f".shards-{name_hash(output)}")


def translate_file(
    job: TranslationJob,
    translator: Translator,
    shards: Iterable[Shard],
    output: Path,
    *,
    inputs: Sequence[Path],
    workers: int | None = None,
    scheduler: str | None = None,
    warn: Callable[[str, Sequence[int]], object] = lambda warning, numbers: None,
    advance: Callable[[int], object] = lambda count: None,
) -> None:
    """Write the translations of a file; the output appears under its name when it is complete.

    Finished shards are kept in a folder beside the output, FILE.shards. A call with the same model, options and
    inputs resumes with the missing shards; any other call starts again. The folder is removed at the end.

    Args:
        job: translator and options.
        translator: translator of the job, as loaded by this process.
        shards: lines to translate, in order, `SHARD_LINES` each.
        output: file to write, compressed according to its suffix.
        inputs: files from which the shards are read.
        workers: number of processes of this machine; None computes in this process, with all its threads.
        scheduler: address of a Dask scheduler; see `open_executor`.
        warn: called for each shard with each warning and the numbers of its lines, from 1.
        advance: called with the number of lines that are done since the last call.
    """
    with (
        finished_shards(job, translator, shards, output, inputs=inputs, workers=workers, scheduler=scheduler) as (
            draft,
            results,
        ),
        open_packed(draft) as file,
    ):
        file.write("".join(f"{line}\n" for line in header_lines(job.columns)).encode())
        for result in results:
            head, _, lines = result.partition(b"\n")
            file.write(lines)
            count, warned = json.loads(head)
            for warning, numbers in warned.items():
                warn(warning, numbers)
            advance(count)


@contextmanager
def finished_shards(
    job: TranslationJob,
    translator: Translator,
    shards: Iterable[Shard],
    output: Path,
    *,
    inputs: Sequence[Path],
    workers: int | None = None,
    scheduler: str | None = None,
) -> Iterator[tuple[Path, Iterator[bytes]]]:
    """Open the draft of an output file, and the results of its shards in order; see `translate_file`.

    At the end the draft replaces the file. The results are those of `_translate_shard`.
    """
    folder = _shards_folder(output)
    job = job.for_workers()
    settings = (_SHARD_FORMAT, job, manyheads.__version__, SHARD_LINES, _digest_of(inputs))
    from bitext.executors import InlineExecutor, open_executor
    from bitext.shards import map_shards, remove_shards

    with locked_output(output) as path:
        refuse_links(folder.parent, [folder.name], RunError)
        try:
            with replacing_output(path) as draft, open_executor(scheduler, workers) as executor:
                work = partial(_translate_shard_in_worker, job, manyheads.__version__)
                if isinstance(executor, InlineExecutor):
                    _loaded.job, _loaded.translator = job, translator
                    work = partial(_translate_shard, job)
                yield (
                    draft,
                    map_shards(
                        work,
                        shards,
                        folder,
                        key=hashlib.sha256(repr(settings).encode()).hexdigest(),
                        executor=executor,
                    ),
                )
        except BaseException:
            if not any(folder.glob("*.shard")):  # finished shards are kept
                remove_shards(folder)
            raise
        remove_shards(folder)


def translate_document_file(
    job: TranslationJob,
    translator: Translator,
    document: Document,
    output: Path,
    *,
    inputs: Sequence[Path],
    workers: int | None = None,
    scheduler: str | None = None,
    bilingual: bool = False,
    advance: Callable[[int], object] = lambda count: None,
) -> DocumentReport:
    """Write the file of a document with its translations, in shards that a later call resumes.

    For the arguments see `Translator.translate_document` and `translate_file`.
    """
    texts = texts_of(document)
    job = replace(job, units=True, options=with_alignment(job.options, document))
    shards = (Shard(first, texts[first : first + SHARD_LINES], {}) for first in range(0, len(texts), SHARD_LINES))
    with finished_shards(job, translator, shards, output, inputs=inputs, workers=workers, scheduler=scheduler) as (
        draft,
        results,
    ):

        def fields(texts: list[str]) -> Iterator[UnitFields]:
            for result in results:
                lines = result.split(b"\n")[1:-1]  # of JSON in ASCII
                yield from map(json.loads, lines)
                advance(len(lines))

        data, report = write_document(document, fields, bilingual=bilingual)
        draft.write_bytes(data)
    return report
