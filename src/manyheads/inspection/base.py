"""Base class of inspections and curves: views as text, SVG, PNG, HTML and CSV, and the data as JSON.

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
from manyheads.inspection.charts import Chart
from manyheads.inspection.codec import from_json_values, to_json_values
from manyheads.inspection.html import fragment_of, page_of
from manyheads.inspection.lines import chart_lines, csv_of
from manyheads.inspection.parts import ModelFacts
from manyheads.inspection.png import png_of
from manyheads.inspection.svg import svg_of
from manyheads.inspection.views import AttentionSelection
from manyheads.inspection.words import written_in

_FORMATS = ("html", "svg", "png", "json", "csv")
_VERSION = 1
_MAX_COLUMNS = 100  # default number of columns of a terminal
_DEFAULT_SELECTION = AttentionSelection()
ViewFunction = Callable[[AttentionSelection], list[Chart]]


class Document(ABC):
    """Data with named views, each a list of charts.

    Every method that takes a view and a selection raises `UsageError` if there is no such view or attention.
    `language` is the language of titles, axes and legends, one of `words.LANGUAGES`; csv and json are always in
    English.

    Attributes:
        format: name of the JSON format.
        noun: name of such a document in messages.
    """

    format: ClassVar[str]
    noun: ClassVar[str]

    @property
    @abstractmethod
    def title(self) -> str:
        """Return the subject in one line."""

    @abstractmethod
    def view_functions(self) -> dict[str, ViewFunction]:
        """Return the function that makes the charts of each available view, the most informative view first."""

    @property
    def views(self) -> tuple[str, ...]:
        """Return the names of the available views."""
        return tuple(self.view_functions())

    def charts(self, view: str | None = None, selection: AttentionSelection = _DEFAULT_SELECTION) -> list[Chart]:
        """Return the charts of one view, or of all."""
        functions = self.view_functions()
        if view is None:
            return [chart for function in functions.values() for chart in function(selection)]
        if view not in functions:
            raise UsageError(f'there is no view "{view}" here. Use one of {", ".join(functions)}.')
        return functions[view](selection)

    def view_charts(self, view: str | None, selection: AttentionSelection) -> list[Chart]:
        """Return the charts of one view, by default of the first."""
        return self.charts(view or self.views[0], selection)

    def lines(
        self,
        view: str | None = None,
        selection: AttentionSelection = _DEFAULT_SELECTION,
        *,
        width: int = _MAX_COLUMNS,
        language: str = "en",
    ) -> list[str]:
        """Return a view, by default the first, as text for a terminal of `width` columns."""
        lines: list[str] = []
        with written_in(language):
            for chart in self.view_charts(view, selection):
                lines += [*([""] if lines else []), *chart_lines(chart, width)]
        return lines

    def to_svg(
        self,
        view: str | None = None,
        selection: AttentionSelection = _DEFAULT_SELECTION,
        *,
        width: float | None = None,
        language: str = "en",
    ) -> str:
        """Return a view, by default the first, as SVG.

        With a `width` in millimetres the picture is laid out for print: without titles, which belong into the
        caption. A `UserWarning` says when its text becomes too small.
        """
        with written_in(language):
            return svg_of(self.view_charts(view, selection), titled=width is None, width=width)

    def to_png(
        self,
        view: str | None = None,
        selection: AttentionSelection = _DEFAULT_SELECTION,
        *,
        width: float | None = None,
        language: str = "en",
    ) -> bytes:
        """Render the SVG of a view as PNG (extra `plot`), with a `width` at 300 dpi; see `to_svg`."""
        with written_in(language):
            return png_of(self.view_charts(view, selection), width=width)

    def to_csv(self, view: str | None = None, selection: AttentionSelection = _DEFAULT_SELECTION) -> str:
        """Return the values of a view, by default the first, as CSV."""
        return csv_of(self.view_charts(view, selection))

    def to_html(
        self,
        view: str | None = None,
        selection: AttentionSelection = _DEFAULT_SELECTION,
        *,
        language: str = "en",
    ) -> str:
        """Return a self-contained page with one view, or all."""
        with written_in(language):
            return page_of(self.title, self.charts(view, selection))

    def to_format(
        self,
        name: str,
        view: str | None = None,
        selection: AttentionSelection = _DEFAULT_SELECTION,
        *,
        width: float | None = None,
        language: str = "en",
    ) -> bytes:
        """Return the content of a file in one of `_FORMATS`; `width` in millimetres is for svg and png.

        Raises:
            UsageError: there is no such format.
            MissingExtraError: png without resvg_py (extra `plot`).
        """
        match name:
            case "html":
                return self.to_html(view, selection, language=language).encode()
            case "svg":
                return self.to_svg(view, selection, width=width, language=language).encode()
            case "png":
                return self.to_png(view, selection, width=width, language=language)
            case "json":
                return self.to_json().encode() + b"\n"
            case "csv":
                return self.to_csv(view, selection).encode()
            case _:
                raise UsageError(f'there is no format "{name}". Use one of {", ".join(_FORMATS)}.')

    def _repr_html_(self) -> str:
        return fragment_of(self.charts())

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
        """See `Document.header`."""
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
