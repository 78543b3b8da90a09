"""What the objects that `manyheads inspect` makes have in common."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from manyheads.errors import UsageError
from manyheads.inspection.codec import listed, packed, plain, rebuilt
from manyheads.inspection.shown import Shown

__all__ = ["FORMAT", "VERSION", "Inspection"]

FORMAT = "manyheads-inspection"
VERSION = 1


class Inspection(Shown):
    """What all of them have in common.

    Attributes:
        kind: which of them it is, as its JSON says.
    """

    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; arrays are lists of numbers of 6 decimals."""
        return {"format": FORMAT, "version": VERSION, "kind": self.kind, **plain(self, listed)}

    def packed_dict(self) -> dict[str, Any]:
        """The same with arrays as 16-bit numbers in base64, for a page."""
        return {"format": FORMAT, "version": VERSION, "kind": self.kind, **plain(self, packed)}

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """What `to_dict` or `packed_dict` gave; of `Inspection` itself whatever kind it is.

        Raises:
            UsageError: it is none, or of another kind or version.
        """
        if not isinstance(document, Mapping) or document.get("format") != FORMAT:
            raise UsageError(f'this is no inspection: its "format" is not "{FORMAT}".')
        if document.get("version") != VERSION:
            raise UsageError(
                f"this inspection is of version {document.get('version')}; this program reads version {VERSION}."
            )
        kinds = {kind.kind: kind for kind in Inspection.__subclasses__() if issubclass(kind, cls)}
        if document.get("kind") not in kinds:
            raise UsageError(f'kind = "{document.get("kind")}" is none of {", ".join(kinds)}.')
        found: Self = rebuilt(kinds[document["kind"]], dict(document), "the inspection")
        return found
