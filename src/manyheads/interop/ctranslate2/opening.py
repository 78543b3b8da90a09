"""The CTranslate2 engine of a folder: of an export, or of a run, which is converted once."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import finalize

from manyheads.checkpoint import RunDirectory, sha256
from manyheads.errors import RunError, SaveError
from manyheads.interop.carried import CARRIED, Carried, read_carried
from manyheads.interop.ctranslate2.convert import KIND, check_ctranslate2, engine_of, write_ctranslate2
from manyheads.interop.ctranslate2.engine import CTranslate2Engine
from manyheads.interop.drafts import drafted
from manyheads.interop.parity import random_samples, reference

__all__ = ["engine_for", "is_export"]

CACHED = "ctranslate2-"


def is_export(folder: Path) -> bool:
    """Whether a folder is an export of ours, which only another engine can use."""
    return (folder / CARRIED).is_file()


def engine_for(folder: Path, **choices: Any) -> tuple[Carried, CTranslate2Engine]:
    """Open a folder; `choices` are device, workers and threads of the engine.

    A run is converted to float32 in its cache, and compared, when that has not been done since its weights changed;
    where nothing can be written, in a temporary folder.

    Raises:
        RunError: it is neither, or it cannot be read.
        ParityError: the converted model gives something else.
        MissingExtraError: ctranslate2 is not installed.
    """
    if is_export(folder):
        carried = read_carried(folder)
        if carried.kind != KIND:
            raise RunError(f"{folder} was exported to {carried.kind}, which this engine cannot open.")
        return carried, engine_of(folder, carried, **choices)
    run = RunDirectory.existing(folder)
    converted = folder / "cache" / f"{CACHED}{sha256(run.weights_path)[:16]}"
    if not is_export(converted):
        try:
            with drafted(converted) as draft:
                convert(run, draft)
        except SaveError:
            return temporary(run, choices)
        others = [path for path in converted.parent.glob(f"{CACHED}*") if path != converted]
        *old, _ = sorted(others, key=lambda path: path.stat().st_mtime) or [converted]
        for path in old:  # but the last, which a program may still use
            shutil.rmtree(path, ignore_errors=True)
    carried = read_carried(converted)
    return carried, engine_of(converted, carried, **choices)


def convert(run: RunDirectory, draft: Path) -> None:
    """Write a run's model, and compare it."""
    config = run.config()
    tokenizers = run.tokenizers(config)
    model = run.model(config, tokenizers)
    write_ctranslate2(draft, config, tokenizers, model)
    check_ctranslate2(draft, reference(model, random_samples(tokenizers.source)))


def temporary(run: RunDirectory, choices: dict[str, Any]) -> tuple[Carried, CTranslate2Engine]:
    """The engine of a run in a temporary folder, which goes when the engine does."""
    with ExitStack() as leaving:
        folder = Path(leaving.enter_context(TemporaryDirectory(prefix="manyheads-")))
        convert(run, folder)
        carried = read_carried(folder)
        engine = engine_of(folder, carried, **choices)
        finalize(engine, leaving.pop_all().close)
    return carried, engine
