"""The loss on held-out text does not depend on how the text is batched (invariant L)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.tolerances import approx
from tests.training.parts import BOS, EOS, PairUpdates, pair_losses, random_pairs, tiny_model

from manyheads.training.objective import corpus_nll


def nll_by_pairs(sources: list[list[int]], targets: list[list[int]]) -> tuple[float, int]:
    """Return the summed NLL and the number of tokens, one pair at a time, by torch's own function."""
    with torch.no_grad():
        alone = list(pair_losses(tiny_model().eval(), PairUpdates(sources, targets), 0.0))
    return float(sum(loss for loss, _ in alone)), sum(tokens for _, tokens in alone)


@pytest.mark.parametrize("batch_tokens", [1, 10, 37, 4_096])
def test_the_corpus_nll_is_the_sum_over_the_pairs_for_every_batch_size(batch_tokens: int) -> None:
    sources, targets = random_pairs(29)
    nats, tokens = corpus_nll(tiny_model().eval(), sources, targets, bos=BOS, eos=EOS, batch_tokens=batch_tokens)
    expected, count = nll_by_pairs(sources, targets)
    assert tokens == count == sum(len(target) + 1 for target in targets)
    assert nats == approx(expected)


def test_the_corpus_nll_does_not_depend_on_the_order_of_the_pairs() -> None:
    sources, targets = random_pairs(29)
    found = set()
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(29)
        shuffled = [sources[index] for index in order], [targets[index] for index in order]
        nats, tokens = corpus_nll(tiny_model().eval(), *shuffled, bos=BOS, eos=EOS, batch_tokens=40)
        found.add((round(nats, 3), tokens))
    assert len(found) == 1


def test_the_corpus_nll_depends_on_the_sources() -> None:
    """Invariant N, with a small model: the loss depends on the pairing of the two sides."""
    sources, targets = random_pairs(12)
    paired, _ = corpus_nll(tiny_model().eval(), sources, targets, bos=BOS, eos=EOS)
    shifted, _ = corpus_nll(tiny_model().eval(), sources[1:] + sources[:1], targets, bos=BOS, eos=EOS)
    assert abs(paired - shifted) > 1e-3


def test_the_tokens_of_a_prefix_are_read_and_not_counted() -> None:
    """The symbol of a target language is no part of the perplexity, which else would depend on it."""
    sources, targets = random_pairs(12)
    model, symbol = tiny_model().eval(), 5
    nats, tokens = corpus_nll(model, sources, targets, bos=BOS, eos=EOS, prefix=[symbol])
    with_symbol, _ = corpus_nll(model, sources, [[symbol, *target] for target in targets], bos=BOS, eos=EOS)
    with torch.no_grad():
        of_symbol = sum(
            -model(torch.tensor([[*source, EOS]]), torch.tensor([[BOS]])).log_softmax(-1)[0, 0, symbol].item()
            for source in sources
        )
    assert tokens == sum(len(target) + 1 for target in targets)
    assert nats == approx(with_symbol - of_symbol)


def test_sides_without_tokens_count_as_their_end_marks() -> None:
    sources, targets = [[], [5, 6], []], [[7], [], []]
    nats, tokens = corpus_nll(tiny_model().eval(), sources, targets, bos=BOS, eos=EOS)
    assert tokens == 4
    assert nats == approx(nll_by_pairs(sources, targets)[0])


def test_no_pairs_have_no_loss() -> None:
    assert corpus_nll(tiny_model().eval(), [], [], bos=BOS, eos=EOS) == (0.0, 0)


def test_sides_of_different_number_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        corpus_nll(tiny_model().eval(), [[4]], [[4], [5]], bos=BOS, eos=EOS)


def test_no_gradient_is_kept() -> None:
    model = tiny_model().eval()
    corpus_nll(model, *random_pairs(5), bos=BOS, eos=EOS)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_pairs_longer_than_learned_positions_are_left_out() -> None:
    sources, targets = random_pairs(29)
    longest = [max(map(len, pair)) for pair in zip(sources, targets, strict=True)]
    limit = sorted(longest)[14]
    model = tiny_model(positions="learned", max_positions=limit).eval()
    fits = [index for index in range(29) if longest[index] < limit]
    assert 0 < len(fits) < 29
    short = [sources[index] for index in fits], [targets[index] for index in fits]
    everything = corpus_nll(model, sources, targets, bos=BOS, eos=EOS)
    assert everything == corpus_nll(model, *short, bos=BOS, eos=EOS)
    assert corpus_nll(model, [[4] * 99], [[4]], bos=BOS, eos=EOS) == (0.0, 0)
