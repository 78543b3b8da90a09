from __future__ import annotations

import asyncio

import pytest

from manyheads.serving import translated_files
from manyheads.serving.responses import ApiError
from manyheads.serving.translated_files import TranslatedFile, TranslatedFiles


def file(size: int) -> TranslatedFile:
    return TranslatedFile("a.srt", b"x" * size, "text/plain", None)


def test_the_files_that_wait_are_bounded_and_have_names_that_cannot_be_guessed() -> None:
    async def use() -> None:
        files = TranslatedFiles(10)
        names = {files.add(file(5)) for _ in range(2)}
        assert len(names) == 2
        assert all(len(name) > 30 and name.endswith(".a.srt") for name in names)
        with pytest.raises(ApiError, match="Too many files"):
            files.add(file(1))
        files.take(names.pop(), None)
        files.add(file(5))

    asyncio.run(use())


def test_a_file_is_forgotten_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translated_files, "_SECONDS", 0.0)

    async def use() -> None:
        files = TranslatedFiles(10)
        name = files.add(file(5))
        await asyncio.sleep(0.01)
        with pytest.raises(ApiError, match="no such file"):
            files.take(name, None)

    asyncio.run(use())
