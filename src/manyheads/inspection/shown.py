"""What can be done with anything that is shown as charts: look at it, and write it to a file of any format."""

from __future__ import annotations

from abc import ABC, abstractmethod

from manyheads.errors import UsageError
from manyheads.inspection.charts import Chart
from manyheads.inspection.html import fragment_of, page_of
from manyheads.inspection.lines import chart_lines
from manyheads.inspection.png import png_of
from manyheads.inspection.svg import svg_of
from manyheads.inspection.tables import csv_of
from manyheads.inspection.views import Look

__all__ = ["FORMATS", "Shown"]

FORMATS = ("html", "svg", "png", "json", "csv")
WIDTH = 100  # columns of a terminal, unless told
LOOK = Look()


class Shown(ABC):
    """Charts by the names of views."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is about, in a line."""

    @property
    @abstractmethod
    def views(self) -> tuple[str, ...]:
        """The views there are, the most telling first."""

    @abstractmethod
    def view(self, name: str, look: Look) -> list[Chart]:
        """The charts of a view that there is."""

    @abstractmethod
    def to_json(self) -> str:
        """All of it as JSON text."""

    def charts(self, view: str | None = None, look: Look = LOOK) -> list[Chart]:
        """The charts of a view, or of all.

        Raises:
            UsageError: there is no such view, or nothing that `look` means.
        """
        if view is None:
            return [chart for name in self.views for chart in self.view(name, look)]
        if view not in self.views:
            raise UsageError(f'there is no view "{view}" here. Use one of {", ".join(self.views)}.')
        return self.view(view, look)

    def lines(self, view: str | None = None, look: Look = LOOK, *, width: int = WIDTH) -> list[str]:
        """A view as text for a terminal; the first one unless named."""
        found: list[str] = []
        for chart in self.charts(view or self.views[0], look):
            found += [*([""] if found else []), *chart_lines(chart, width)]
        return found

    def to_svg(self, view: str | None = None, look: Look = LOOK) -> str:
        """A view as SVG; the first one unless named."""
        return svg_of(self.charts(view or self.views[0], look))

    def to_png(self, view: str | None = None, look: Look = LOOK) -> bytes:
        """A view as PNG, by matplotlib (extra `plot`); the first one unless named."""
        return png_of(self.charts(view or self.views[0], look))

    def to_csv(self, view: str | None = None, look: Look = LOOK) -> str:
        """The values of a view as CSV; the first one unless named."""
        return csv_of(self.charts(view or self.views[0], look))

    def to_html(self, view: str | None = None, look: Look = LOOK) -> str:
        """A page that stands alone, with one view or all."""
        return page_of(self.title, self.charts(view, look))

    def to_format(self, name: str, view: str | None = None, look: Look = LOOK) -> bytes:
        """A file's content in one of `FORMATS`.

        Raises:
            UsageError: there is no such format, view, or what `look` means.
            MissingExtraError: png without matplotlib.
        """
        match name:
            case "html":
                return self.to_html(view, look).encode()
            case "svg":
                return self.to_svg(view, look).encode()
            case "png":
                return self.to_png(view, look)
            case "json":
                return self.to_json().encode() + b"\n"
            case "csv":
                return self.to_csv(view, look).encode()
        raise UsageError(f'there is no format "{name}". Use one of {", ".join(FORMATS)}.')

    def _repr_html_(self) -> str:
        """For notebooks."""
        return fragment_of(self.charts())
