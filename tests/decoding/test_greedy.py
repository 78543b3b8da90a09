"""Greedy search, compared with a loop over one sentence."""

from __future__ import annotations

import torch
from tests.search.tables import BOS, EOS, PAD, UNK, Table, TableStepper, parameters

from manyheads.decoding.greedy import greedy_search


def reference_greedy(table: Table, limit: int, forbidden: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """Append the most likely token until the end symbol."""
    prefix: tuple[int, ...] = ()
    while True:
        row = table.log_probs(prefix).tolist()
        token = max((t for t in range(len(row)) if t not in forbidden), key=lambda t: (row[t], -t))
        if token == EOS:
            return prefix, True
        if len(prefix) == limit:
            return prefix, False
        prefix = (*prefix, token)


def test_greedy_search_takes_the_most_likely_tokens_in_any_batch() -> None:
    forbidden = (UNK, PAD, BOS)
    tables = [Table(seed, size=11, end_bias=seed % 3 - 1.0) for seed in range(20)]
    limits = [seed % 8 for seed in range(20)]
    outputs = greedy_search(TableStepper(tables), *parameters(limits, suppressed=forbidden))
    assert [(output.tokens, output.ended) for output in outputs] == [
        reference_greedy(table, limit, forbidden) for table, limit in zip(tables, limits, strict=True)
    ]
    assert {output.ended for output in outputs} == {True, False}
    assert len({len(output.tokens) for output in outputs}) > 4


def test_finished_rows_are_removed_from_the_batch() -> None:
    stepper = TableStepper([Table(seed, end_bias=-torch.inf) for seed in range(4)])
    greedy_search(stepper, *parameters([2, 0, 4, 2], suppressed=()))
    assert stepper.row_counts == [4, 3, 3, 1, 1]


def test_greedy_search_of_no_sentences_gives_no_outputs() -> None:
    assert greedy_search(TableStepper([]), *parameters([])) == []
