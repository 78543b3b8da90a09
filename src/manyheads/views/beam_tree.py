"""The tree of a beam search, with the reason why each branch ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from manyheads.search.beam_state import BeamStep
from manyheads.search.interface import length_divisor
from manyheads.views.words import localize

DROPPED = frozenset(("pruned", "outranked", "late-end"))  # states of branches that lost
# Reasons why a search stops.
STOPS = {
    "beam-full": "as many outputs as the beam is wide had finished, none worse than the best open prefix",
    "settled": "no open prefix could still come to a better score",
    "limit": "the length limit was reached",
}

# Reason of each state in which a branch ends.
_REASONS = {
    "pruned": "pruned: {total:.2f} < {threshold:.2f}, the last of the {beam} kept",
    "outranked": "outranked: no continuation reached {threshold:.2f}, the last of the {twice} best",
    "late-end": "no output: {total:.2f} < {threshold:.2f}, the last of the {beam} best",
    "finished": "finished: score {score:.2f}",
    "left": "left open when the search stopped",
    "cut": "cut at the length limit",
}


@dataclass(frozen=True)
class BeamNode:
    """A candidate of the search.

    Attributes:
        number: number of the node; parents have smaller numbers.
        parent: number of its parent, None for the first tokens.
        step: 0 for the first tokens.
        id, piece: the token.
        log_probability: log-probability of the token.
        total: log-probability of all tokens up to here.
        score: total / length ** length_penalty, by which outputs are ranked.
        rank: rank among the candidates of its step, from 1.
        state: "kept" (it continued), "pruned" (it fell out of the beam), "outranked" (kept, but none of its
            continuations was among the best of the next step), "finished" (it is an output), "late-end" (an end
            mark that was not among the best of its step), "left" (open when the search stopped), or "cut" (at the
            length limit).
        threshold: lowest total that would have sufficed for a pruned, outranked or late node; else None.
        best: whether it is on the path of the best output.
    """

    number: int
    parent: int | None
    step: int
    id: int
    piece: str
    log_probability: float
    total: float
    score: float
    rank: int
    state: str
    threshold: float | None
    best: bool


@dataclass(frozen=True)
class BeamTree:
    """The candidates of a beam search of one sentence: the 2 x beam_size best of every step.

    Attributes:
        beam_size: K.
        length_penalty: exponent of the length in the scores.
        steps: number of steps.
        stop: reason why it stopped, one of `STOPS`.
        nodes: all candidates, in the order of steps, and of ranks within a step.
    """

    beam_size: int
    length_penalty: float
    steps: int
    stop: str
    nodes: tuple[BeamNode, ...]

    def path(self, number: int) -> list[BeamNode]:
        """Return the nodes from the first token to this one."""
        nodes = [self.nodes[number]]
        while (parent := nodes[-1].parent) is not None:
            nodes.append(self.nodes[parent])
        return nodes[::-1]


def reason(node: BeamNode, tree: BeamTree) -> str:
    """Return why a branch ended at a node, in words with its numbers; "" if it continued."""
    if node.state not in _REASONS or (node.state in DROPPED and node.threshold is None):
        return ""
    numbers = {"total": node.total, "threshold": node.threshold, "score": node.score}
    return localize(_REASONS[node.state], **numbers, beam=tree.beam_size, twice=2 * tree.beam_size)


@dataclass(kw_only=True)
class BeamRecorder:
    """A `BeamObserver` of a search of one sentence with these options; `piece` returns the text of a token."""

    beam_size: int
    length_penalty: float
    eos: int
    piece: Callable[[int], str]

    def __post_init__(self) -> None:
        self.nodes: list[BeamNode] = []
        self.open: list[int | None] = [None]  # the node of each open prefix
        self.steps = 0
        self.stop = "limit"
        self.lowest: list[float] = []  # total of the last candidate of each step

    def step(self, step: BeamStep) -> None:
        """Add the nodes of a step of the search."""
        assert len(step.sentences) == 1
        self.steps += 1
        if step.closed[0]:
            self.close(step)
            return
        candidates, kept = step.candidates, step.kept[0].tolist()
        totals = candidates.total[0].tolist()
        lowest_kept = min((totals[rank] for rank in kept if totals[rank] > -float("inf")), default=None)
        numbers: dict[int, int] = {}
        for rank, total in enumerate(totals):
            if total == -float("inf"):
                continue
            token, finished = int(candidates.token[0, rank]), bool(step.finished[0, rank])
            state, threshold = "kept", None
            if finished:
                state = "finished"
            elif rank not in kept:
                state, threshold = "pruned", lowest_kept
            if token == self.eos and not finished:
                state, threshold = "late-end", totals[self.beam_size - 1]
            numbers[rank] = self.add(
                parent=self.open[int(candidates.parent[0, rank])],
                token=token,
                value=float(candidates.value[0, rank]),
                total=total,
                rank=rank + 1,
                state=state,
                threshold=threshold,
            )
        self.open = [numbers.get(rank) for rank in kept]
        self.lowest.append(min(totals[rank] for rank in numbers) if numbers else -float("inf"))
        if not step.active[0]:
            self.leave_open(self.stop_reason(step))

    def add(self, *, parent: int | None, token: int, value: float, total: float, **rest: Any) -> int:
        """Add a node and return its number."""
        number, depth = len(self.nodes), 0 if parent is None else self.nodes[parent].step + 1
        self.nodes.append(
            BeamNode(
                number=number,
                parent=parent,
                step=depth,
                id=token,
                piece=self.piece(token),
                log_probability=value,
                total=total,
                score=total / length_divisor(depth + 1, self.length_penalty),
                best=False,
                **rest,
            )
        )
        return number

    def close(self, step: BeamStep) -> None:
        """At the length limit, finish each open prefix whose likeliest token is the end mark; cut the others."""
        for row, number in enumerate(self.open):
            if number is None and row:
                continue
            value, token = float(step.last_value[0, row]), int(step.last_token[0, row])
            total = 0.0 if number is None else self.nodes[number].total
            if token == self.eos and value > -float("inf"):
                self.add(
                    parent=number, token=token, value=value, total=total + value, rank=row + 1, state="finished",
                    threshold=None,
                )  # fmt: skip
            elif number is not None:
                self.nodes[number] = replace(self.nodes[number], state="cut")
        self.stop = "limit"

    def stop_reason(self, step: BeamStep) -> str:
        """Return why the search stopped before the length limit."""
        totals = [self.nodes[number].total for number in self.open if number is not None]
        best = max(totals, default=-float("inf"))
        full = step.scores[0, -1] >= best / length_divisor(step.length + 1, self.length_penalty)
        return "beam-full" if full else "settled"

    def leave_open(self, stop: str) -> None:
        """Mark the open nodes when the search has stopped."""
        self.stop = stop
        for number in self.open:
            if number is not None and self.nodes[number].state == "kept":
                self.nodes[number] = replace(self.nodes[number], state="left")

    def tree(self, best: Sequence[int]) -> BeamTree:
        """Return the tree with the path of the best output marked; `best` has its ids, with its end mark if any."""
        numbers = {(node.parent, node.id): node.number for node in reversed(self.nodes)}
        parent: int | None = None
        for token in best:
            number = numbers.get((parent, token))
            if number is None:
                break
            self.nodes[number] = replace(self.nodes[number], best=True)
            parent = number
        self.outrank()
        return BeamTree(self.beam_size, self.length_penalty, self.steps, self.stop, tuple(self.nodes))

    def outrank(self) -> None:
        """Mark the kept nodes without any continuation among the candidates of the next step."""
        parents = {node.parent for node in self.nodes}
        for node in self.nodes:
            if node.state == "kept" and node.number not in parents and node.step + 1 < len(self.lowest):
                self.nodes[node.number] = replace(node, state="outranked", threshold=self.lowest[node.step + 1])
