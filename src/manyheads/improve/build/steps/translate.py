"""Translate a text in shards, with one model or an ensemble; also for a distillation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from sacrebleu.metrics.bleu import BLEU

from bitext.files import replacing
from bitext.lines import read_lines, text_line
from manyheads.improve.build.inputs import BuildContext, direction_of, languages_read
from manyheads.improve.build.schema import DistilStep, TranslateStep
from manyheads.improve.build.steps.mix import parallel
from manyheads.inference.translation.translate_file import SHARD_LINES, Shard, TranslationJob, translate_file
from manyheads.reports import Listener
from manyheads.search.options import Sampling, SearchOptions


def run(context: BuildContext, name: str, step: TranslateStep | DistilStep, folder: Path) -> Mapping[str, Any]:
    """Translate the text of a step; a distillation keeps the candidates closest to the references."""
    plan = context.plan
    count = translate_text(
        step,
        [plan.model(model) for model in step.models],
        plan.files(step.text, languages_read(plan, name)),
        [folder / f"text.{language}" for language in direction_of(plan, step.models[0])],
        listener=context.listener,
        device=context.device,
        scheduler=context.scheduler,
        workers=context.workers,
    )
    return {"lines": count}


def translate_text(
    step: TranslateStep | DistilStep,
    models: Sequence[Path],
    files: Sequence[Path],
    out: Sequence[Path],
    *,
    listener: Listener,
    device: str = "auto",
    scheduler: str | None = None,
    workers: int | None = None,
) -> int:
    """Translate a text in shards, and write its lines beside their translations; return the number of lines.

    Several models are an ensemble. The method "interpolation" also reads the file of the references. The two files
    to write have the source and the target language of the model. For the rest see `translate_file`.
    """
    closest = isinstance(step, DistilStep) and step.method == "interpolation"
    options = SearchOptions(n_best=(step.beam or 1) if closest else 1, token_scores=False)
    if step.beam is not None:
        options = replace(options, beam_size=step.beam)
    if isinstance(step, TranslateStep) and step.sampling is not None:
        options = replace(options, sampling=Sampling(temperature=step.sampling, seed=step.seed))
    job = TranslationJob(
        models[0],
        ensemble=tuple(models[1:]),
        device=device,
        options=options,
    )
    count = 0
    with out[0].open("wb") as file:
        for lines in parallel(files, step.lines):
            file.write(text_line(lines[0]))
            count += 1
    candidates = out[1].with_name("candidates") if closest else out[1]
    if not out[1].exists() and not candidates.exists():
        with listener.phase("translating", count, "lines") as advance:
            translate_file(
                job, job.open(), _shards_of(out[0]), candidates, inputs=[out[0]], workers=workers,
                scheduler=scheduler, advance=advance,
            )  # fmt: skip
    if closest and candidates.exists():
        _choose_closest(candidates, (lines[1] for lines in parallel(files, step.lines)), out[1])
    return count


def _shards_of(path: Path) -> Iterator[Shard]:
    lines, start = read_lines(path), 0
    while part := list(islice(lines, SHARD_LINES)):
        yield Shard(start, part, {})
        start += len(part)


def _choose_closest(candidates: Path, references: Iterable[str], out: Path) -> None:
    """Write the candidate for each line that is closest to its reference; then remove the file of candidates."""
    by_line = groupby(map(_parse_candidate, read_lines(candidates)), key=lambda candidate: candidate[0])
    with replacing(out) as draft, draft.open("wb") as file:
        for reference, (_, group) in zip(references, by_line, strict=True):
            file.write(text_line(_closest_to(reference, [text for _, text in group])))
    candidates.unlink()


def _parse_candidate(line: str) -> tuple[int, str]:
    """Return index and text of a line of n-best output: "0 ||| text ||| score"."""
    index, _, rest = line.partition(" |||")
    return int(index), rest.rpartition("||| ")[0].strip()


def _closest_to(reference: str, candidates: Sequence[str]) -> str:
    """Return the text with the highest sentence BLEU, the first of equal ones (Kim and Rush 2016, section 3.3)."""
    bleu = BLEU(effective_order=True)
    scores = [bleu.sentence_score(text, [reference]).score for text in candidates]
    return candidates[scores.index(max(scores))]
