"""Charts as SVG, written by hand: self-contained, no script, no style sheet, no font, no link."""

from manyheads.inspection.svg.document import svg_of

__all__ = ["svg_of"]
