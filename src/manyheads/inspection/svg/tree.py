"""The tree of a beam search, from left to right.

Branches that continue are solid, pruned ones dashed; the box of a finished output has a double border.
"""

from __future__ import annotations

from collections import Counter

from manyheads.inspection.beam_tree import DROPPED, BeamNode, BeamTree, reason
from manyheads.inspection.charts import Tree, minus, visible
from manyheads.inspection.colours import INK
from manyheads.inspection.svg.canvas import SMALL, Canvas, clipped, text_width, widest

__all__ = ["draw_tree"]

TOKEN = 90  # longer tokens are cut
HEAD = 20
ROW = 34
BOX = 28
GAP = 34
BEST, PLAIN, FAINT = "#0072B2", "#1a1a1a", "#6b6b6b"


def draw_tree(chart: Tree, room: float) -> Canvas:
    """Draw a column for each step with its candidates by rank; the path of the best output is thick."""
    canvas, tree = Canvas(), chart.tree
    wide = max(widest(map(label, tree.nodes)), 52.0) + 12
    corners = positions(tree, wide)
    for step in sorted({node.step for node in tree.nodes}):
        canvas.text(step * (wide + GAP) + wide / 2, 11, f"step {step + 1}", anchor="middle", size=SMALL)
    for node in tree.nodes:
        draw_branch(canvas, node, corners, wide)
    for node in tree.nodes:
        draw_node(canvas, node, corners[node.number], wide, reason(node, tree))
    draw_legend(canvas, canvas.height + 22, max(room, canvas.width))
    return canvas


def label(node: BeamNode) -> str:
    """Return the text in the box of a node."""
    return clipped(node.piece, TOKEN)


def positions(tree: BeamTree, wide: float) -> dict[int, tuple[float, float]]:
    """Return the upper left corner of each node: a column for each step, in the order of ranks."""
    seen: Counter[int] = Counter()
    corners = {}
    for node in tree.nodes:
        corners[node.number] = (node.step * (wide + GAP), HEAD + float(seen[node.step] * ROW))
        seen[node.step] += 1
    return corners


def draw_branch(canvas: Canvas, node: BeamNode, corners: dict[int, tuple[float, float]], wide: float) -> None:
    """Draw the branch from the parent."""
    if node.parent is None:
        return
    (x, y), (left, top) = corners[node.parent], corners[node.number]
    start, middle, end_y = x + wide, y + BOX / 2, top + BOX / 2
    canvas.path(
        f"M{start:.1f} {middle:.1f}C{start + GAP / 2:.1f} {middle:.1f} {left - GAP / 2:.1f} {end_y:.1f} "
        f"{left:.1f} {end_y:.1f}",
        stroke=BEST if node.best else FAINT,
        width=3 if node.best else 1,
        dash="4 3" if node.state in DROPPED else "",
    )


def draw_node(canvas: Canvas, node: BeamNode, corner: tuple[float, float], wide: float, why: str) -> None:
    """Draw a box with token and log-probability so far; its border shows its state."""
    x, y = corner
    dropped = node.state in DROPPED
    colour = BEST if node.best else FAINT if dropped else PLAIN
    title = f"{node.piece} {node.total:.3f} {why or 'continued'}"
    extra = f'stroke="{colour}" stroke-width="{2.5 if node.best else 1}" rx="3"'
    extra += ' stroke-dasharray="4 3"' if dropped else ""
    canvas.box(x, y, wide, BOX, "#ffffff", extra=extra, title=visible(title))
    if node.state == "finished":
        canvas.box(x + 3, y + 3, wide - 6, BOX - 6, "none", extra=f'stroke="{colour}" rx="2"')
    ink = FAINT if dropped else INK
    canvas.text(x + wide / 2, y + 12, label(node), anchor="middle", size=SMALL, fill=ink)
    canvas.text(x + wide / 2, y + 23, minus(f"{node.total:.2f}"), anchor="middle", size=9, fill=ink)


def draw_legend(canvas: Canvas, top: float, room: float) -> None:
    """Draw the meaning of the borders, in as many lines as needed."""
    entries = [
        ("continued, or left open", f'stroke="{PLAIN}"', False),
        ("pruned or outranked", f'stroke="{FAINT}" stroke-dasharray="4 3"', False),
        ("finished", f'stroke="{PLAIN}"', True),
        ("on the path of the best output", f'stroke="{BEST}" stroke-width="2.5"', False),
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
    canvas.text(0, top + 34, "number: log-probability of all tokens up to here (nats)", size=SMALL)
