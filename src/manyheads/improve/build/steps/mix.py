"""Join texts, each with its tag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from bitext.lines import count_lines, read_lines, text_line
from manyheads.errors import DataError
from manyheads.improve.build.inputs import BuildContext
from manyheads.improve.build.schema import Mixed, MixStep


def run(context: BuildContext, name: str, step: MixStep, folder: Path) -> Mapping[str, Any]:
    """Mix the texts of a step."""
    plan, languages = context.plan, [context.plan.source, context.plan.target]
    parts = [(mixed, plan.files(mixed.text, languages)) for mixed in step.text]
    return {"pairs": mix_texts(parts, [folder / f"text.{language}" for language in languages])}


def mix_texts(parts: Sequence[tuple[Mixed, Sequence[Path]]], out: Sequence[Path]) -> int:
    """Join texts, source and target files each, and return the number of pairs."""
    count = 0
    with out[0].open("wb") as source_file, out[1].open("wb") as target_file:
        for mixed, files in parts:
            before = f"{mixed.tag} " if mixed.tag else ""
            for source, target in parallel(files, mixed.lines):
                source_file.write(text_line(before + source))
                target_file.write(text_line(target))
                count += 1
    return count


def parallel(files: Sequence[Path], most: int | None) -> Iterator[tuple[str, ...]]:
    """Yield line i of all files together, for at most `most` lines.

    Raises:
        DataError: the files differ in length.
    """
    lines = zip(*map(read_lines, files), strict=True)
    try:
        yield from islice(lines, most)
    except ValueError as error:
        counts = " and ".join(f"{path} has {count_lines(path):,} lines" for path in files)
        raise DataError(f"{counts}. The files must belong together line by line.") from error
