"""Errors that a user can fix, and the exit code of each.

`bitext`, whose errors a user of manyheads meets too, defines the base class and the errors of texts.

```
ManyheadsError            1   base class, never raised itself
├── UsageError            2   a command line, a function argument
│   └── ConfigError       2   a configuration: every mistake found, one a line
├── DataError             3   text that cannot be used: file, line, cure
│   └── WriteError        3   a file that could not be written; what was finished before is kept
├── RunError              3   a run directory that is missing, foreign, damaged or in use
│   ├── SaveError         3   a checkpoint that could not be written; the last one is intact
│   └── OverflowedError   3   a model whose outputs are not finite
├── TrainingError         1   training cannot go on (a loss that is not finite, memory)
├── ParityError           1   an exported model that does not give what it should; it was not kept
└── MissingExtraError     4   an optional package: the message holds the pip line
```

A message says what is wrong with its value, where, and what to do. It is printed as one ``error:`` line,
without a traceback. Any other exception is a bug of manyheads, and shows its traceback.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import NoReturn

from bitext.errors import BitextError as ManyheadsError
from bitext.errors import DataError, MissingExtraError, UsageError, WriteError, printable

__all__ = [
    "HOW_TO_UPGRADE",
    "ConfigError",
    "DataError",
    "ManyheadsError",
    "MissingExtraError",
    "OverflowedError",
    "ParityError",
    "RunError",
    "SaveError",
    "TrainingError",
    "UsageError",
    "WriteError",
    "is_installed",
    "missing_training",
    "printable",
    "refuse_pickling",
    "require",
]

_TRAIN_PACKAGES = ("torch", "transformer_doctor", "sacrebleu")
# Not pip alone: that would replace an editable install.
HOW_TO_UPGRADE = "git pull in a copy of the source, elsewhere pip install --upgrade manyheads"
_TORCH_HINT = " (on Linux first: pip install uv && uv pip install --torch-backend=auto torch)"


class ConfigError(UsageError):
    """A configuration with mistakes; the message lists all, one a line."""

    def __init__(self, mistakes: list[str], *, origin: str | None = None) -> None:
        self.mistakes = mistakes
        self.origin = origin
        head = f"{origin}: " if origin else ""
        if len(mistakes) == 1:
            super().__init__(head + mistakes[0])
        else:
            super().__init__("\n  ".join([f"{head}{len(mistakes)} mistakes", *mistakes]))


class RunError(ManyheadsError):
    """A run directory that is missing, damaged, in use, or not a run directory."""

    exit_code = 3


class SaveError(RunError):
    """A checkpoint that could not be written; the one before it is intact."""


class OverflowedError(RunError):
    """A model whose outputs are not finite."""

    def __init__(self) -> None:
        super().__init__(
            "the outputs of the model are not numbers (NaN or infinity): its weights are damaged, or so large that "
            "numbers overflow. Use another checkpoint."
        )


class TrainingError(ManyheadsError):
    """Training that cannot go on; earlier checkpoints are intact."""


class ParityError(ManyheadsError):
    """An exported or imported model with other results than the original; it is not kept."""


def refuse_pickling(model: object) -> NoReturn:
    """Raise a `UsageError`: the `__reduce__` of a model that is in the memory of a library."""
    raise UsageError(
        "a model that C code computes cannot be pickled or copied deeply. Give the other process the path of its "
        "run, and open it there: load(PATH)."
    )


def require(module: str, *, extra: str = "train", purpose: str) -> ModuleType:
    """Import a module that needs an optional package; if that is missing, the error has the pip line.

    Args:
        module: module to import, such as ``"spacy"``, or one of manyheads that imports it.
        extra: extra of manyheads that installs the package.
        purpose: feature that needs it, the subject of the message.

    Raises:
        MissingExtraError: the module, or a package that it imports, cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if error.name and error.name.startswith("manyheads"):  # a fault of ours, not a missing package
            raise
        raise _missing(error.name or module, extra, purpose) from error


def is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    try:
        return importlib.util.find_spec(package) is not None
    except ImportError:
        return False


def missing_training(error: ModuleNotFoundError, purpose: str) -> MissingExtraError | None:
    """Return the error with the pip line for a missing package of the extra train, None for any other module."""
    package = (error.name or "").partition(".")[0]
    return _missing(package, "train", purpose) if package in _TRAIN_PACKAGES else None


def _missing(module: str, extra: str, purpose: str) -> MissingExtraError:
    hint = _TORCH_HINT if extra == "train" else ""
    return MissingExtraError.of(module.partition(".")[0], purpose, f'"manyheads[{extra}]"{hint}')
