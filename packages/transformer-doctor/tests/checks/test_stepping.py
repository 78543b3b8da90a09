"""A decoder with a cache is compared with teacher forcing, and what the cache lacks is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from specimens import cached_decoders, peers, unusual_models
from specimens.planted import VOCABULARY
from transformer_doctor import examine
from transformer_doctor.checks import stepping
from transformer_doctor.texts import FINDING_TEXTS

pytestmark = pytest.mark.usefixtures("one_length")


class Cached:
    """Decoder with a KV cache that reads one token a step; `position` gives the position of step t."""

    reordered = 2

    def __init__(self, model: unusual_models.NanoGPT, position: Callable[[int], int], table: Tensor | None) -> None:
        self.model, self.position, self.table = model, position, table
        self.cache: list[list[tuple[Tensor, Tensor]]] = [[] for _ in model.blocks]
        self.steps = 0

    def reorder(self, rows: Tensor) -> None:
        """Keep the hypotheses of some rows, in the first `reordered` layers alone."""
        for layer_cache in self.cache[: self.reordered]:
            layer_cache[:] = [(key[rows], value[rows]) for key, value in layer_cache]

    @torch.no_grad()
    def step(self, tokens: Tensor) -> Tensor:
        index = self.position(self.steps)
        row = self.model.wpe.weight[index] if self.table is None else self.table[index]
        x = self.model.wte(tokens) + row
        self.steps += 1
        for block, layer_cache in zip(self.model.blocks, self.cache, strict=True):
            parts = block.c_attn(block.ln_1(x)).chunk(3, -1)
            query, key, value = (part.unflatten(-1, (unusual_models.H, -1)) for part in parts)
            layer_cache.append((key, value))
            keys, values = (torch.stack([pair[side] for pair in layer_cache], 2) for side in (0, 1))
            weights = (query[:, :, None] @ keys.transpose(-1, -2) / keys.size(-1) ** 0.5).softmax(-1)
            x = x + block.c_proj((weights @ values).flatten(1))
            x = x + block.mlp(block.ln_2(x))
        return self.model.lm_head(self.model.ln_f(x))


class PositionTable(unusual_models.NanoGPT):
    """Model whose positions are a fixed table instead of an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(unusual_models.LONGEST, unusual_models.D))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.wte(ids) + self.table[: ids.size(1)]
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def with_large_weights(model: unusual_models.NanoGPT) -> unusual_models.NanoGPT:
    """Initialize the weights large enough for positions to change the scores."""
    for weight in model.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.3)
    return model


@pytest.mark.parametrize(
    ("make", "position", "seen"),
    [
        (PositionTable, lambda step: step, None),
        (PositionTable, lambda step: step + 1, "token 2 has the place of token 3"),
        (unusual_models.NanoGPT, lambda step: step + (step > 0), "token 2 has the place of token 3"),
        (unusual_models.NanoGPT, lambda step: max(step - 1, 0), "token 2 has the place of token 1"),
        (PositionTable, lambda step: 0, "token 2 has the place of token 1"),
        (unusual_models.NanoGPT, lambda step: 3 * step, "other queries"),
    ],
)
def test_wrong_positions_of_a_stepper_are_named(
    make: type[unusual_models.NanoGPT], position: Callable[[int], int], seen: str | None
) -> None:
    model = with_large_weights(make())
    table = model.table if isinstance(model, PositionTable) else None
    report = examine(
        model, vocab_size=VOCABULARY, kind="decoder", longest=64,
        stepper=lambda ids: Cached(model, position, table),
    )  # fmt: skip
    assert report.names == ([] if seen is None else ["cache-differs"])
    assert seen is None or report.findings[0].evidence.endswith(f"attention 1 of 2 is the first to differ: {seen}")


@pytest.mark.parametrize(
    ("layers", "causes"), [(2, []), (1, [FINDING_TEXTS["en"]["cases"]["cache-rows"]["cause"]])]
)
def test_a_stepper_that_reorders_a_part_of_its_cache_is_named(layers: int, causes: list[str]) -> None:
    model = with_large_weights(unusual_models.NanoGPT())

    def start(ids: Tensor) -> Cached:
        stepper = Cached(model, lambda step: step, None)
        stepper.reordered = layers
        return stepper

    report = examine(model, vocab_size=VOCABULARY, kind="decoder", longest=64, stepper=start)
    assert stepping._REORDERED in report.asked
    assert [found.cause for found in report.findings] == causes


@pytest.mark.usefixtures("cache_alone")
@pytest.mark.parametrize("make", cached_decoders.SOUND)
def test_a_sound_cache_is_found_in_any_code_style_and_gives_no_finding(make: type[cached_decoders.Base]) -> None:
    report = cached_decoders.examined(make())
    assert report.names == []
    assert {stepping.STEPPING, stepping._AGAIN} <= {*report.asked}


class PositionsGiven(cached_decoders.Base):
    """Takes positions (T,) or (B, T), and keeps nothing."""

    def forward(self, ids: Tensor, positions: Tensor | None = None) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.size(1)) if positions is None else positions)
        for block in self.blocks:
            x = block.close(
                x, cached_decoders.attend(*block.project(x), cached_decoders.causal(*[ids.size(1)] * 2, ""))
            )
        return self.head(self.norm(x))


@pytest.mark.usefixtures("cache_alone")
def test_a_model_that_takes_positions_and_keeps_no_cache_is_not_decoded() -> None:
    report = cached_decoders.examined(PositionsGiven())
    assert report.names == []
    assert stepping.STEPPING in dict(report.skipped)


def test_a_model_whose_scores_are_wrong_already_is_not_decoded() -> None:
    model = cached_decoders.Tuples("future")
    assert (stepping.STEPPING, "an error above changes the scores") in cached_decoders.examined(model).skipped


@pytest.mark.usefixtures("cache_alone")
def test_a_model_of_transformers_is_decoded_in_every_way() -> None:
    report = examine(peers.make("gpt2"), quick=True)
    ways = {
        stepping.STEPPING, stepping._PIECES, stepping._PADDED, stepping._REORDERED, stepping._AGAIN, stepping._CUT,
        stepping._STATIC, stepping._LONG,
    }  # fmt: skip
    assert ways <= {*report.asked}
    assert report.ok


@pytest.mark.usefixtures("cache_alone")
@pytest.mark.parametrize(
    ("defect", "names"), [("", []), ("forgets", ["cache-differs"]), ("rows-mixed", ["cache-differs"])]
)
def test_a_state_whose_effect_is_below_rounding_is_asked_in_float64(defect: str, names: list[str]) -> None:
    model = cached_decoders.States(defect)
    for block in model.blocks:
        block.out.weight.data.mul_(1e-5)
    before = [weight.clone() for weight in model.parameters()]
    report = cached_decoders.examined(model)
    assert report.names == names
    assert all(map(torch.equal, before, model.parameters()))


@pytest.mark.usefixtures("cache_alone")
def test_a_decoder_beside_an_encoder_is_fed_several_tokens_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepping, "_STEP_WEIGHTS", 0.0)  # nor does the size of the model name another check
    model = peers.make("bart")

    def open_mask(module: nn.Module, args: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if named["past_key_values"] is None or args[0].size(1) == 1:
            return args, named
        return args, {**named, "attention_mask": torch.ones(1, 1, 1, 1, dtype=torch.bool)}

    assert examine(model, quick=True).names == []
    for layer in model.model.decoder.layers:
        layer.self_attn.register_forward_pre_hook(open_mask, with_kwargs=True)
    (finding,) = examine(model, quick=True).findings
    assert (finding.name, finding.check) == ("cache-differs", stepping._PIECES)


class IgnoresCache(nn.Module):
    """Encoder-decoder that takes a cache and ignores it; its scores hardly depend on earlier tokens."""

    def __init__(self, layers: int, *, residual: bool) -> None:
        super().__init__()
        width = cached_decoders.D
        self.residual, self.head = residual, nn.Linear(width, VOCABULARY)
        self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(64, width)
        self.own, self.cross, self.projections = (
            nn.ModuleList(make() for _ in range(layers))
            for make in (lambda: nn.MultiheadAttention(width, 2, batch_first=True),) * 2
            + (lambda: nn.Linear(width, width),)
        )
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02)

    def forward(self, src: Tensor, tgt: Tensor, past: Any = None, use_cache: bool = False) -> Tensor:
        x, y = (self.tokens(ids) + self.places(torch.arange(ids.size(1))) for ids in (src, tgt))
        later = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool).triu(1)
        for own, cross, project in zip(self.own, self.cross, self.projections, strict=True):
            y = own(y, y, y, attn_mask=later)[0] + y * self.residual
            y = project(cross(y, x, x)[0]) + y * self.residual
        return self.head(nn.functional.layer_norm(y, y.shape[-1:]))


@pytest.mark.parametrize(("layers", "residual"), [(1, False), (2, False), (1, True), (2, True)])
def test_an_ignored_cache_is_no_cache(layers: int, residual: bool) -> None:
    report = examine(IgnoresCache(layers, residual=residual), vocab_size=VOCABULARY)
    assert "cache-differs" not in report.names
    assert (stepping.STEPPING, "stepper was not given") in report.skipped
