"""Write and read the profile and the lexicons of a cleaning, as NumPy arrays without pickle."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bitext.cleaning.language import LanguageModel
from bitext.cleaning.lexicon import Lexicon
from bitext.cleaning.rules import Profile
from bitext.errors import DataError
from bitext.files import cure_of

_Arrays = dict[str, NDArray[Any]]
_Learned = TypeVar("_Learned")


def _pack(arrays: _Arrays) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def pack_profile(profile: Profile) -> bytes:
    """Return a profile as the bytes of a file."""
    facts = [profile.character_ratio, profile.word_ratio, profile.cut_at_end, profile.cut_at_start]
    arrays: _Arrays = {"facts": np.array(facts)}
    for side, model in enumerate(profile.models):
        arrays[f"names{side}"] = np.array(model.names, dtype="U16")
        arrays[f"scripts{side}"] = np.array(model.scripts, dtype="U16")
        arrays[f"weights{side}"] = model.weights
    return _pack(arrays)


def _unpack_profile(arrays: _Arrays) -> Profile:
    models = tuple(
        LanguageModel(
            tuple(arrays[f"names{side}"].tolist()),
            arrays[f"weights{side}"].astype(np.int16),
            tuple(arrays[f"scripts{side}"].tolist()),
        )
        for side in (0, 1)
    )
    facts = [float(fact) for fact in arrays["facts"]]
    return Profile(facts[0], facts[1], facts[2], facts[3], (models[0], models[1]))


def pack_lexicons(lexicons: tuple[Lexicon, Lexicon]) -> bytes:
    """Return the lexicons of both directions as the bytes of a file."""
    names = [field.name for field in fields(Lexicon)]
    return _pack({f"{name}{side}": vars(lexicons[side])[name] for side in (0, 1) for name in names})


def _unpack_lexicons(arrays: _Arrays) -> tuple[Lexicon, Lexicon]:
    names = [field.name for field in fields(Lexicon)]
    first, second = (Lexicon(**{name: arrays[f"{name}{side}"] for name in names}) for side in (0, 1))
    return first, second


def _read(path: Path, unpack: Callable[[_Arrays], _Learned]) -> _Learned:
    """Read a file of arrays.

    Raises:
        DataError: the file is missing, as on a machine without the folder, or damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return unpack(dict(arrays))
    except (OSError, ValueError, KeyError, EOFError) as error:
        cure = cure_of(error, "All workers need the output folder: put it on a disk that all of them share.")
        raise DataError(f"{path} cannot be read by a worker ({error}). {cure}") from error


@lru_cache(2)
def load_profile(path: Path) -> Profile:
    """Read a profile, once in each process; raises as `_read`."""
    return _read(path, _unpack_profile)


@lru_cache(2)
def load_lexicons(path: Path) -> tuple[Lexicon, Lexicon]:
    """Read lexicons, once in each process; raises as `_read`."""
    return _read(path, _unpack_lexicons)
