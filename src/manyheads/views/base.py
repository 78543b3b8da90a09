"""Base class of inspections and curves: views as text, SVG, PNG and CSV, and the data as JSON.

The JSON is described in docs/inspecting.md. `_VERSION` changes when a field changes its meaning or is removed, but
not when fields are added.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from manyheads.errors import UsageError
from manyheads.views.charts import Chart
from manyheads.views.codec import from_json_values, to_json_values
from manyheads.views.lines import chart_lines, csv_of
from manyheads.views.parts import ModelFacts
from manyheads.views.picture import Picture
from manyheads.views.png import png_of
from manyheads.views.svg import svg_of
from manyheads.views.words import written_in

_FORMATS = ("svg", "png", "json", "csv")
_VERSION = 1
_MAX_COLUMNS = 100  # default number of columns of a terminal
_FIRST_VIEW = Picture()
ViewFunction = Callable[[Picture], list[Chart]]


class Document(ABC):
    """Data with named views, each a list of charts.

    Every method that takes a `Picture` raises `UsageError` if there is no such view or attention.

    Attributes:
        format: name of the JSON format.
        noun: name of such a document in messages.
    """

    format: ClassVar[str]
    noun: ClassVar[str]

    @abstractmethod
    def view_functions(self) -> dict[str, ViewFunction]:
        """Return the function that makes the charts of each available view, the most informative view first."""

    @property
    def views(self) -> tuple[str, ...]:
        """Return the names of the available views."""
        return tuple(self.view_functions())

    def charts(self, picture: Picture = _FIRST_VIEW) -> list[Chart]:
        """Return the charts of a view."""
        functions = self.view_functions()
        view = picture.view or next(iter(functions))
        if view not in functions:
            raise UsageError(f'there is no view "{view}" here. Use one of {", ".join(functions)}.')
        return functions[view](picture)

    def lines(self, picture: Picture = _FIRST_VIEW, columns: int = _MAX_COLUMNS) -> list[str]:
        """Return a view as text for a terminal of so many columns."""
        lines: list[str] = []
        with written_in(picture.language):
            for chart in self.charts(picture):
                lines += [*([""] if lines else []), *chart_lines(chart, columns)]
        return lines

    def render(self, picture: Picture, form: str) -> bytes:
        """Return a view as the content of a file.

        A picture with a `width` is laid out for print: without titles, which belong into the caption. A
        `UserWarning` says when its text becomes too small.

        Args:
            picture: the view; JSON holds the whole document.
            form: one of `_FORMATS`; csv and json are always in English.

        Raises:
            UsageError: there is no such format.
            MissingExtraError: png without resvg_py (extra `plot`).
        """
        if form == "json":
            return self.to_json().encode() + b"\n"
        with written_in("en" if form == "csv" else picture.language):
            match form:
                case "svg":
                    return svg_of(self.charts(picture), picture.width).encode()
                case "png":
                    return png_of(self.charts(picture), width=picture.width)
                case "csv":
                    return csv_of(self.charts(picture)).encode()
                case _:
                    raise UsageError(f'there is no format "{form}". Use one of {", ".join(_FORMATS)}.')

    def _repr_svg_(self) -> str:
        return self.render(_FIRST_VIEW, "svg").decode()

    def header(self) -> dict[str, Any]:
        """Return the first fields of the JSON."""
        return {"format": self.format, "version": _VERSION}

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; arrays are lists of numbers with 6 decimals."""
        return {**self.header(), **to_json_values(self)}

    def to_json(self) -> str:
        """Return `to_dict` as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def class_for(cls, document: Mapping[str, Any]) -> type:
        """Return the class to build from JSON values whose format and version fit."""
        return cls

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return the object from the values of `to_dict` or `packed_dict`; `Inspection` accepts every kind.

        Raises:
            UsageError: the values are of another format, version or kind, or incomplete.
        """
        if not isinstance(document, Mapping) or document.get("format") != cls.format:
            raise UsageError(f'this document holds no {cls.noun}: its "format" is not "{cls.format}".')
        if document.get("version") != _VERSION:
            raise UsageError(
                f"the {cls.noun} in this document has version {document.get('version')}; this program reads "
                f"version {_VERSION}."
            )
        return from_json_values(cls.class_for(document), document, f"the {cls.noun}")


@dataclass(frozen=True, eq=False)
class Inspection(Document):
    """Base of the objects that `manyheads inspect` makes, one class for each kind.

    Attributes:
        kind: name of the kind, as in the JSON.
        run: name of the run, or "".
        model: settings of the model.
    """

    format = "manyheads-inspection"
    noun = "inspection"
    kind: ClassVar[str]

    run: str
    model: ModelFacts

    def header(self) -> dict[str, Any]:
        """Return the first fields of the JSON, the kind of inspection among them."""
        return {**super().header(), "kind": self.kind}

    def packed_dict(self) -> dict[str, Any]:
        """Return `to_dict` for the page, with arrays as 16-bit numbers in base64."""
        return {**self.header(), **to_json_values(self, packed=True)}

    @classmethod
    def class_for(cls, document: Mapping[str, Any]) -> type:
        """Return the class of the kind of a document."""
        kinds = {kind.kind: kind for kind in Inspection.__subclasses__() if issubclass(kind, cls)}
        if document.get("kind") not in kinds:
            raise UsageError(f'kind = "{document.get("kind")}" is none of {", ".join(kinds)}.')
        return kinds[document["kind"]]
