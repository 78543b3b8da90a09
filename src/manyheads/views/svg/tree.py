"""The tree of a beam search: a column for each step, or a row for each step where the columns do not fit.

Branches that continue are solid, pruned ones dashed; the box of a finished output has a double border.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from manyheads.views.beam_tree import DROPPED, BeamNode, BeamTree, reason
from manyheads.views.charts import Tree, minus, visible
from manyheads.views.colours import INK
from manyheads.views.svg.canvas import SMALL, Canvas, clip, text_width, widest
from manyheads.views.words import localize

_TOKEN = 90  # longer tokens are cut
_HEAD = 20
_ROW, _DOWN_ROW = 34, 56  # from one box to the next one below: of the same step, of the next step
_BOX, _NARROW_BOX, _COMMON_BOX = 28, 28, 52  # height, least width, and least width with letters of the common size
_GAP, _NARROW_GAP = 34, 3  # between boxes beside each other: of two steps, of the same step
_STEP_NUMBER = 18  # width of the number of a step at the left of its row
_BEST, _PLAIN, _FAINT = "#0072B2", "#1a1a1a", "#6b6b6b"


@dataclass(frozen=True)
class _Layout:
    """The boxes of a tree.

    Attributes:
        down: whether the steps are rows, from top to bottom, instead of columns.
        width: width of a box.
        corners: number of a node -> x and y of the upper left corner of its box.
    """

    down: bool
    width: float
    corners: dict[int, tuple[float, float]]

    @property
    def sizes(self) -> tuple[float, float]:
        return (SMALL, 9) if self.width >= _COMMON_BOX else (8, 7.5)

    def token(self, node: BeamNode) -> str:
        return clip(node.piece, min(_TOKEN, self.width - 4), self.sizes[0])


def _layout_of(tree: BeamTree, room: float) -> _Layout:
    """Place the candidates of each step by rank: in a column, or in a row where the columns are too wide."""
    wide = max(widest(clip(node.piece, _TOKEN) for node in tree.nodes), _COMMON_BOX) + 12
    seen: Counter[int] = Counter()
    cells = {}
    for node in tree.nodes:
        cells[node.number] = (node.step, seen[node.step])
        seen[node.step] += 1
    down = (1 + max(seen, default=0)) * (wide + _GAP) - _GAP > room
    if not down:
        corners = {node: (step * (wide + _GAP), _HEAD + float(rank * _ROW)) for node, (step, rank) in cells.items()}
        return _Layout(down, wide, corners)
    pitch = max(_NARROW_BOX + _NARROW_GAP, min(wide + _GAP, (room - _STEP_NUMBER) / max(seen.values())))
    wide = min(wide, pitch - _NARROW_GAP)
    corners = {
        node: (_STEP_NUMBER + rank * pitch, _HEAD + float(step * _DOWN_ROW)) for node, (step, rank) in cells.items()
    }
    return _Layout(down, wide, corners)


def draw_tree(chart: Tree, room: float) -> Canvas:
    """Draw the candidates of each step by rank; the path of the best output is thick."""
    canvas, tree = Canvas(), chart.tree
    layout = _layout_of(tree, room)
    _draw_steps(canvas, tree, layout)
    for node in tree.nodes:
        _draw_branch(canvas, node, layout)
    for node in tree.nodes:
        _draw_node(canvas, node, layout, reason(node, tree))
    _draw_legend(canvas, canvas.height + 22, room if layout.down else max(room, canvas.width))
    return canvas


def _draw_steps(canvas: Canvas, tree: BeamTree, layout: _Layout) -> None:
    """Draw the number of each step above its column, or at the left of its row."""
    for step, number in {node.step: node.number for node in reversed(tree.nodes)}.items():  # the first of each step
        x, y = layout.corners[number]
        if layout.down:
            canvas.text(_STEP_NUMBER - 5, y + _BOX / 2 + 4, str(step + 1), anchor="end", size=9)
        else:
            name = localize("step {step}", step=step + 1)
            canvas.text(x + layout.width / 2, 11, name, anchor="middle", size=SMALL)
    if layout.down:
        canvas.text(0, 11, localize("step"), size=SMALL)


def _draw_branch(canvas: Canvas, node: BeamNode, layout: _Layout) -> None:
    if node.parent is None:
        return
    (x, y), (left, top) = layout.corners[node.parent], layout.corners[node.number]
    if layout.down:
        x, y, left = x + layout.width / 2, y + _BOX, left + layout.width / 2
        bends = f"{x:.1f} {(y + top) / 2:.1f} {left:.1f} {(y + top) / 2:.1f}"
    else:
        x, y, top = x + layout.width, y + _BOX / 2, top + _BOX / 2
        bends = f"{(x + left) / 2:.1f} {y:.1f} {(x + left) / 2:.1f} {top:.1f}"
    canvas.path(
        f"M{x:.1f} {y:.1f}C{bends} {left:.1f} {top:.1f}",
        stroke=_BEST if node.best else _FAINT,
        width=3 if node.best else 1,
        dash="4 3" if node.state in DROPPED else "",
    )


def _draw_node(canvas: Canvas, node: BeamNode, layout: _Layout, why: str) -> None:
    """Draw a box with token and log-probability so far; its border shows its state."""
    (x, y), wide = layout.corners[node.number], layout.width
    dropped = node.state in DROPPED
    colour = _BEST if node.best else _FAINT if dropped else _PLAIN
    title = f"{node.piece} {node.total:.3f} {why or localize('continued')}"
    extra = f'stroke="{colour}" stroke-width="{2.5 if node.best else 1}" rx="3"'
    extra += ' stroke-dasharray="4 3"' if dropped else ""
    canvas.box(x, y, wide, _BOX, "#ffffff", extra=extra, title=visible(title))
    if node.state == "finished":
        canvas.box(x + 3, y + 3, wide - 6, _BOX - 6, "none", extra=f'stroke="{colour}" rx="2"')
    ink = _FAINT if dropped else INK
    token_size, number_size = layout.sizes
    canvas.text(x + wide / 2, y + 12, layout.token(node), anchor="middle", size=token_size, fill=ink)
    canvas.text(x + wide / 2, y + 23, minus(f"{node.total:.2f}"), anchor="middle", size=number_size, fill=ink)


def _draw_legend(canvas: Canvas, top: float, room: float) -> None:
    """Draw the meaning of the borders, in as many lines as needed."""
    entries = [
        (localize("continued, or left open"), f'stroke="{_PLAIN}"', False),
        (localize("pruned or outranked"), f'stroke="{_FAINT}" stroke-dasharray="4 3"', False),
        (localize("finished"), f'stroke="{_PLAIN}"', True),
        (localize("on the path of the best output"), f'stroke="{_BEST}" stroke-width="2.5"', False),
    ]
    x = 0.0
    for text, extra, double in entries:
        width = 34 + text_width(text, SMALL)
        if x and x + width > room:
            x, top = 0.0, top + 24
        canvas.box(x, top, 26, 16, "#ffffff", extra=extra)
        if double:
            canvas.box(x + 3, top + 3, 20, 10, "none", extra=extra)
        canvas.text(x + 34, top + 12, text, size=SMALL)
        x += width + 24
    meaning = localize("number: log-probability of all tokens up to here (nats)")
    canvas.paragraph(0, top + 34, meaning, room)
