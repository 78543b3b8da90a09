"""The tree of a beam search equals that of a reference implementation that records every hypothesis."""

from __future__ import annotations

import pytest
import torch
from tests.search.tables import BOS, EOS, PAD, Prefix, Table, TableStepper, parameters, permitted, score

from manyheads.decoding.beam import beam_search
from manyheads.views.beam_tree import BeamRecorder, BeamTree, reason

FORBIDDEN = (PAD, BOS)
SETTINGS = {"beam_size": 3, "n_best": 3, "length_penalty": 1.0, "limit": 7}


def recorded_tree(table: Table, *, beam_size: int, n_best: int, length_penalty: float, limit: int) -> BeamTree:
    recorder = BeamRecorder(
        beam_size=beam_size, length_penalty=length_penalty, eos=EOS, piece=lambda token: f"t{token}"
    )
    search = parameters([limit], beam_size=beam_size, n_best=n_best, length_penalty=length_penalty)
    (found,) = beam_search(TableStepper([table]), *search, observer=recorder)
    (plain,) = beam_search(TableStepper([table]), *search)
    assert found == plain, "recording changes nothing"
    best = found[0]
    return recorder.tree([*best.tokens, *[EOS][: best.ended]])


def reference_states(
    table: Table, *, beam_size: int, n_best: int, length_penalty: float, limit: int
) -> dict[Prefix, tuple[str, float]]:
    """Return state and total of every hypothesis of a plain beam search, by its tokens."""
    beam: list[tuple[float, Prefix]] = [(0.0, ())]
    outputs: list[float] = []
    found: dict[Prefix, tuple[str, float]] = {}
    for length in range(limit + 1):
        choices = sorted(
            (-(total + value), parent, rank, token)
            for parent, (total, prefix) in enumerate(beam)
            for rank, (value, token) in enumerate(permitted(table, prefix, FORBIDDEN)[: beam_size + 1])
        )[: 2 * beam_size]
        if length == limit or not (choices or outputs):
            for total, prefix in beam:
                options = permitted(table, prefix, FORBIDDEN)
                if options and options[0][1] == EOS:
                    found[(*prefix, EOS)] = ("finished", total + options[0][0])
                elif prefix:
                    found[prefix] = ("cut", total)
            return found
        parents = {beam[parent][1] for _, parent, _, _ in choices}
        for total, prefix in beam:
            if prefix and prefix not in parents:
                found[prefix] = ("outranked", total)
        grown: list[tuple[float, Prefix]] = []
        for rank_of_choice, (negative, parent, _, token) in enumerate(choices):
            prefix = (*beam[parent][1], token)
            if token == EOS:
                found[prefix] = ("finished" if rank_of_choice < beam_size else "late-end", -negative)
                outputs += [score(-negative, length + 1, length_penalty)] * (rank_of_choice < beam_size)
            else:
                found[prefix] = ("kept" if len(grown) < beam_size else "pruned", -negative)
                grown += [(-negative, prefix)] * (len(grown) < beam_size)
        beam = grown
        outputs.sort(reverse=True)
        best = beam[0][0] if beam else -torch.inf
        full = len(outputs) >= beam_size and outputs[beam_size - 1] >= score(best, length + 1, length_penalty)
        settled = len(outputs) >= n_best and outputs[n_best - 1] >= score(best, limit + 1, length_penalty)
        if not beam or full or settled:
            found |= {prefix: ("left", total) for total, prefix in beam}
            return found
    raise AssertionError


@pytest.mark.parametrize("impossible", [0.0, 0.6])
@pytest.mark.parametrize("end_bias", [-4.0, 0.0, 2.0, 5.0])
@pytest.mark.parametrize(("beam_size", "n_best"), [(1, 1), (2, 1), (3, 3), (5, 5)])
def test_every_branch_equals_that_of_the_reference_implementation(beam_size, n_best, end_bias, impossible) -> None:
    for seed, limit in enumerate([7, 1, 3, 0, 9]):
        table = Table(seed, size=11, end_bias=end_bias, impossible=impossible)
        options = {"beam_size": beam_size, "n_best": n_best, "length_penalty": 1.0, "limit": limit}
        tree = recorded_tree(table, **options)
        states = {
            tuple(step.id for step in tree.path(node.number)): (node.state, pytest.approx(node.total))
            for node in tree.nodes
        }
        assert reference_states(table, **options) == states
        assert len(states) == len(tree.nodes)


def test_the_tested_searches_cover_every_state_and_end() -> None:
    states, stops = set(), set()
    for seed in range(12):
        for bias, beam_size, n_best in ((0.0, 3, 3), (2.0, 2, 1), (-4.0, 3, 3), (5.0, 2, 1)):
            tree = recorded_tree(
                Table(seed, size=11, end_bias=bias),
                beam_size=beam_size,
                n_best=n_best,
                length_penalty=0.0 if seed % 2 else 1.0,
                limit=7,
            )
            states |= {node.state for node in tree.nodes}
            stops.add(tree.stop)
    assert states == {"kept", "pruned", "outranked", "finished", "late-end", "left", "cut"}
    assert stops == {"beam-full", "settled", "limit"}


def test_the_path_to_the_best_output_is_marked_and_its_scores_add_up() -> None:
    tree = recorded_tree(Table(4, size=11), **SETTINGS)
    best_path = [node for node in tree.nodes if node.best]
    assert [node.number for node in best_path] == [node.number for node in tree.path(best_path[-1].number)]
    assert best_path[-1].total == pytest.approx(sum(node.log_probability for node in best_path))
    assert best_path[-1].score == pytest.approx(best_path[-1].total / len(best_path))
    finished = [node.score for node in tree.nodes if node.state == "finished"]
    assert best_path[-1].score == pytest.approx(max(finished))


def test_a_pruned_branch_names_the_total_that_it_lacked() -> None:
    tree = recorded_tree(Table(4, size=11), **SETTINGS)
    pruned = [node for node in tree.nodes if node.state == "pruned"]
    assert pruned
    for node in pruned:
        kept = [
            other.total
            for other in tree.nodes
            if other.step == node.step and other.id != EOS and other.state != "pruned"
        ]
        assert node.threshold == pytest.approx(min(kept))
        assert node.total <= node.threshold
        assert f"{node.total:.2f} < {node.threshold:.2f}" in reason(node, tree)
