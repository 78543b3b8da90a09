"""The classes of a classifier, as its run directory holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from manyheads.checkpoint import RunDirectory
from manyheads.errors import RunError

LABELS = "labels.json"  # file name in a run directory


@dataclass(frozen=True)
class Labels:
    """The classes of a classifier.

    Attributes:
        names: names of the classes, in the order of the model's outputs.
        texts: number of texts of an example, 1 or 2.
        trained: whether the classification head was trained.
    """

    names: tuple[str, ...]
    texts: int
    trained: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the content of `labels.json`."""
        document = {"labels": list(self.names), "texts": self.texts}
        return document if self.trained else {**document, "trained": False}

    @classmethod
    def of_run(cls, run: RunDirectory) -> Self:
        """Read the labels of a run.

        Raises:
            RunError: the file of the labels is missing or damaged.
        """
        content = run.document(LABELS)
        names, texts = content.get("labels"), content.get("texts")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or texts not in (1, 2):
            raise RunError(f"{run.path / LABELS} is damaged: it holds no list of labels. Copy the run again.")
        return cls(tuple(names), texts, trained=content.get("trained") is not False)
