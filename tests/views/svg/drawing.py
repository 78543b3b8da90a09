"""Positions in a drawing: texts and boxes with the transforms of the groups around them applied."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from rich.cells import cell_len

SVG = "{http://www.w3.org/2000/svg}"
TRANSLATE = re.compile(r"translate\((\S+) (\S+)\)(?: scale\((\S+)\))?")
ROTATE = re.compile(r"rotate\((\S+) ")


@dataclass(frozen=True)
class Mark:
    """A text or a box with its bounding box; a character is assumed to be half as wide as the font size."""

    tag: str
    text: str
    left: float
    top: float
    right: float
    bottom: float
    attributes: dict[str, str]


def marks(svg: str | bytes) -> list[Mark]:
    """Return every text and box of a document."""
    return list(marks_below(ElementTree.fromstring(svg), 0.0, 0.0, 1.0))


def texts(svg: str | bytes) -> dict[str, Mark]:
    """Return the texts of a document."""
    return {mark.text: mark for mark in marks(svg) if mark.tag == "text"}


def marks_below(node: ElementTree.Element, x: float, y: float, scale: float) -> Iterator[Mark]:
    found = TRANSLATE.match(node.get("transform", ""))
    if node.tag == f"{SVG}g" and found:
        x, y = x + scale * float(found[1]), y + scale * float(found[2])
        scale *= float(found[3] or 1)
    if node.tag == f"{SVG}rect" and not node.get("width", "").endswith("%"):
        left, top = x + scale * float(node.get("x", "0")), y + scale * float(node.get("y", "0"))
        wide, high = (scale * float(node.get(name, "0")) for name in ("width", "height"))
        yield Mark("rect", "", left, top, left + wide, top + high, node.attrib)
    if node.tag == f"{SVG}text":
        yield text_mark(node, x, y)
    for child in node:
        yield from marks_below(child, x, y, scale)


def text_mark(node: ElementTree.Element, x: float, y: float) -> Mark:
    size, text = float(node.get("font-size", "0")), node.text or ""
    width = cell_len(text) * size * 0.5
    start = -width * {"start": 0.0, "middle": 0.5, "end": 1.0}[node.get("text-anchor", "start")]
    rotation = ROTATE.match(node.get("transform", ""))
    angle = math.radians(float(rotation[1])) if rotation else 0.0
    x, y = x + float(node.get("x", "0")), y + float(node.get("y", "0"))
    corners = [
        (x + along * math.cos(angle) - up * math.sin(angle), y + along * math.sin(angle) + up * math.cos(angle))
        for along in (start, start + width)
        for up in (-0.7 * size, 0.0)
    ]
    across, down = zip(*corners, strict=True)
    return Mark("text", text, min(across), min(down), max(across), max(down), node.attrib)


def view_of(svg: str) -> tuple[float, float]:
    """Return width and height of the view box."""
    found = re.search(r'viewBox="0 0 (\S+) (\S+)"', svg)
    assert found
    return float(found[1]), float(found[2])


def size_of(svg: str) -> tuple[str, str]:
    """Return width and height with their units."""
    root = ElementTree.fromstring(svg)
    return root.get("width", ""), root.get("height", "")


def plot_of(svg: str) -> Mark:
    """Return the largest box with an outline and no fill: the frame of a plot."""
    frames = [mark for mark in marks(svg) if mark.tag == "rect" and mark.attributes.get("fill") == "none"]
    return max(frames, key=lambda mark: (mark.right - mark.left) * (mark.bottom - mark.top))
