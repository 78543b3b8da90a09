"""Every variant of the encoder-decoder: causality, padding, numbers of parameters, and learning."""

from __future__ import annotations

import math

import pytest
import torch
from tests.model.samples import (
    BOS,
    EOS,
    PAD,
    fresh_model,
    make_config,
    random_ids,
    scrambled_model,
    source_and_target,
)
from tests.tolerances import assert_close
from torch import Tensor

from manyheads.config.schema import ModelConfig
from manyheads.decoding.greedy import greedy_search
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.errors import UsageError
from manyheads.inference.batching import SPECIAL_IDS
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.options import SearchOptions
from manyheads.tensors.pairs import Batch, _real_positions, make_batch
from manyheads.training.objective import translation_loss

B, S, T = 5, 11, 7


# Causality


@pytest.mark.parametrize("gradients", [True, False])
def test_a_later_target_token_changes_no_earlier_output(model, gradients) -> None:
    source, target = source_and_target(model, B, S, T)
    with torch.set_grad_enabled(gradients):
        before = model(source, target)
        for position in range(1, T):
            changed = target.clone()
            changed[:, position] = (target[:, position] + 1) % (model.output.out_features - EOS - 1) + EOS + 1
            after = model(source, changed)
            assert torch.equal(after[:, :position], before[:, :position])
            assert bool((after[:, position:] != before[:, position:]).any(-1).all())


# Padding

REAL = (S, 7, 2)  # real source tokens of each row


def padded(rows: list[Tensor], width: int, position: str) -> Tensor:
    """Return rows of different lengths in one tensor, padded at a side, in the middle or at random positions."""
    filled = torch.full((len(rows), width), PAD)
    for number, row in enumerate(rows):
        if position == "left":
            positions = torch.arange(width - len(row), width)
        elif position == "right":
            positions = torch.arange(len(row))
        elif position == "middle":
            positions = torch.cat([torch.zeros(1, dtype=torch.int64), torch.arange(width - len(row) + 1, width)])
        else:
            positions = torch.randperm(width)[: len(row)].sort().values
        filled[number, positions] = row
    return filled


PADDINGS = (("left", S), ("middle", S + 2), ("right", S), ("right", S + 6), ("scattered", S + 6))


def check_source_padding(model: EncoderDecoder) -> None:
    """Compare memory and logits of single sources with those of batches of several kinds of padding."""
    source, target = source_and_target(model, len(REAL), S, T)
    rows = [row[:length] for row, length in zip(source, REAL, strict=True)]
    alone = [
        (model.encode(row[None])[0][0], model(row[None], fed[None])[0])
        for row, fed in zip(rows, target, strict=True)
    ]
    for position, width in PADDINGS:
        batch = padded(rows, width, position)
        memory, mask = model.encode(batch)
        logits = model(batch, target)
        for number, (right_memory, right_logits) in enumerate(alone):
            assert_close(memory[number, mask[number, 0, 0]], right_memory)
            assert_close(logits[number], right_logits)


@torch.no_grad()
def test_padding_the_source_changes_nothing(model) -> None:
    check_source_padding(model)


@pytest.mark.usefixtures("path")
def test_padding_the_source_changes_nothing_in_training(model) -> None:
    check_source_padding(model)


def test_padding_the_target_changes_nothing_at_real_positions(model) -> None:
    source, target = source_and_target(model, len(REAL), S, T)
    rows = [row[:length] for row, length in zip(target, (7, 3, 1), strict=True)]
    logits = model(source, padded(rows, T + 4, "right"))
    for number, row in enumerate(rows):
        right = model(source[number][None], row[None])[0]
        assert_close(logits[number, : len(row)], right)


@pytest.mark.usefixtures("path")
def test_padding_changes_no_gradient_of_any_weight(model) -> None:
    source, target = source_and_target(model, len(REAL), S, T)
    sources = [row[:length] for row, length in zip(source, REAL, strict=True)]
    targets = [row[:length] for row, length in zip(target, (7, 3, 1), strict=True)]

    def gradients(positions: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
        score = torch.zeros((), dtype=torch.float64)
        for batch, fed in positions:
            real = fed != PAD
            score = score + model(batch, fed)[real].log_softmax(-1)[:, 5].square().sum()
        return list(torch.autograd.grad(score, list(model.parameters())))

    alone = gradients([(row[None], fed[None]) for row, fed in zip(sources, targets, strict=True)])
    together = gradients([(padded(sources, S + 2, "left"), padded(targets, T + 2, "right"))])
    assert_close(together, alone, dtype=torch.float32)


def test_every_source_token_matters_to_every_output(model) -> None:
    """Check that masks hide no real token, and that the order of tokens matters."""
    source, target = source_and_target(model, B, S, T)
    before = model(source, target)
    for position in range(S):
        changed = source.clone()
        changed[:, position] = (source[:, position] + 1) % (47 - EOS - 1) + EOS + 1
        assert bool((model(changed, target) - before).abs().amax(-1).gt(1e-9).all())
    assert float((model(source.flip(1), target) - before).detach().abs().max()) > 1e-3


# Limits


def test_an_input_past_the_limit_of_learned_positions_is_refused_with_the_limit() -> None:
    model = scrambled_model(positions="learned", max_positions=5)
    ids = random_ids(2, 6, 47)
    assert model(ids[:, :5], ids[:, :5]).shape == (2, 5, 47)
    for source, target in ((ids, ids[:, :5]), (ids[:, :5], ids)):
        with pytest.raises(UsageError, match=r"6 tokens .* model\.max_positions = 5"):
            model(source, target)
    stepper = EncoderDecoderStepper(model, ids[:, :5])
    for _ in range(5):
        stepper.step(torch.tensor([BOS, BOS]))
    with pytest.raises(UsageError, match=r"model\.max_positions = 5"):
        stepper.step(torch.tensor([BOS, BOS]))


# Sizes


def count(config: ModelConfig, source_size: int, target_size: int) -> int:
    with torch.device("meta"):
        model = EncoderDecoder(config, source_size, target_size)
    return sum(parameter.numel() for parameter in model.parameters())


def test_the_models_of_two_tutorials_have_the_published_numbers_of_parameters() -> None:
    """Build systems S3 and S4."""
    kind = {"norm": "post", "tied_embeddings": "none", "num_heads": 8}
    small = {"d_model": 256, "d_ff": 512, "num_encoder_layers": 3, "positions": "learned", "max_positions": 100}
    assert count(make_config(**kind, **small), 7853, 5893) == 9_038_341
    base = {"d_model": 512, "d_ff": 2048, "num_encoder_layers": 6, "num_decoder_layers": 6}
    assert count(make_config(**kind, **base), 5893, 7855) == 55_207_087


@pytest.mark.parametrize(("tied", "matrices"), [("all", 1), ("decoder", 2), ("none", 3)])
def test_tied_matrices_are_one_parameter(tied, matrices) -> None:
    model = fresh_model(tied_embeddings=tied)
    weights = [
        model.source_embedding.tokens.weight,
        model.target_embedding.tokens.weight,
        model.output.weight,
    ]
    assert len({weight.data_ptr() for weight in weights}) == len({id(weight) for weight in weights}) == matrices
    assert (weights[1] is weights[2]) == (tied != "none")
    listed = [parameter.data_ptr() for _, parameter in model.named_parameters()]
    assert [listed.count(weight.data_ptr()) for weight in weights] == [1, 1, 1]


# Learning


def random_batch(rows: int, size: int) -> Batch:
    """Return random targets that are independent of the sources: only the uniform distribution can be learned."""
    source, target = torch.randint(EOS + 1, size, (2, rows, 13))
    begin = torch.full((rows, 1), BOS)
    shifted, positions = torch.cat([begin, target[:, :-1]], 1), _real_positions(target, PAD)
    return Batch(source, shifted, target, positions, source.numel(), target.numel(), PAD)


@pytest.mark.parametrize("norm", [pytest.param("pre", marks=pytest.mark.slow), "post"])
def test_the_loss_on_random_targets_never_falls_below_the_logarithm_of_their_number(norm, training_seed) -> None:
    """Train 50 steps, in which a model with a leak of the target gets far below."""
    symbols = 7
    sizes = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    model = fresh_model(training_seed, norm=norm, tied_embeddings="all", **sizes)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(50):
        batch = random_batch(32, EOS + 1 + symbols)
        loss, nll = translation_loss(model, batch, 0.0)
        (loss / batch.target_tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(nll) / batch.target_tokens)
    assert min(losses) > math.log(symbols) - 0.05
    assert losses[-1] < math.log(symbols) + 0.1


LEARNERS = {
    "pre-sinusoidal-all": {"norm": "pre", "positions": "sinusoidal", "tied_embeddings": "all"},
    "post-learned-none": {"norm": "post", "positions": "learned", "tied_embeddings": "none"},
    "pre-rotary-swiglu-decoder": {
        "norm": "pre",
        "positions": "rotary",
        "activation": "swiglu",
        "tied_embeddings": "decoder",
    },
}


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(variant, marks=[pytest.mark.slow] if name != "pre-sinusoidal-all" else [], id=name)
        for name, variant in LEARNERS.items()
    ],
)
def test_thirty_two_random_pairs_are_memorized_and_decoded_exactly(variant, training_seed) -> None:
    torch.manual_seed(5)  # with this seed no source occurs twice
    lengths = torch.randint(2, 8, (2, 32)).tolist()
    sources, targets = ([torch.randint(EOS + 1, 47, (n,)).tolist() for n in side] for side in lengths)
    batch = make_batch(sources, targets, pad=PAD, bos=BOS, eos=EOS)
    model = fresh_model(training_seed, num_encoder_layers=1, num_decoder_layers=1, **variant)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=150)  # small updates at the end
    for _ in range(150):
        loss, _ = translation_loss(model, batch, 0.0)
        (loss / batch.target_tokens).backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    stepper = EncoderDecoderStepper(model.eval(), batch.source)
    found = greedy_search(stepper, SearchOptions(length_penalty=1.0), torch.full((32,), 11), SPECIAL_IDS)
    assert [list(output.tokens) for output in found] == targets
    assert all(output.ended for output in found)


def test_a_dropped_word_keeps_its_position_signal() -> None:
    config = ModelConfig(d_model=16, num_heads=2, word_dropout=0.5, dropout=0.0)
    embedding = TokenEmbedding(config, 11, pad=1)
    ids, positions = torch.full((1, 64), 5), torch.arange(64)[None]
    signal = embedding.positions(positions, 64)
    torch.manual_seed(1)
    words = embedding(ids, positions, 64) - signal
    kept = words.abs().sum(-1) > 1e-3
    assert 16 < int(kept.sum()) < 48
    torch.testing.assert_close(words[kept], (2 * 4 * embedding.tokens.weight[5]).expand(int(kept.sum()), -1))
