"""What is inside a model, read from the attentions it computes.

Shapes: B batch, S source length, T target length, H heads, E head width.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from manyheads.doctor.defects import found
from manyheads.doctor.listening import Listener
from manyheads.doctor.notes import Attention
from manyheads.doctor.patient import Patient
from manyheads.doctor.report import Finding
from manyheads.doctor.samples import Samples

__all__ = ["Anatomy", "dissect", "fill_findings", "structure_findings"]

BATCH, SOURCE, TARGET = 3, 11, 7
CUT = (0, 2, 3)  # how many positions of each row are padding
TOKENS_FOR_SIGNAL, PLACES_FOR_SIGNAL = 64, 31
# Weaker than this share of the positions, and a token's row is lost in them. S0 has 1 / 121; a Marian model at its
# start without scale_embedding, which trains, has 1 / 35.
WEAKEST = 1 / 40
# A fill of at most this hides: exp(-100) is nothing. One below the smallest half is infinite in half precision.
HIDES, SMALLEST_HALF = -100.0, torch.finfo(torch.half).min
LOWEST = {torch.finfo(dtype).min for dtype in (torch.float64, torch.float32, torch.bfloat16)} | {-math.inf}


@dataclass(frozen=True)
class Anatomy:
    """The attentions of one pass over padded rows, and of another over other tokens with the same padding.

    Attributes:
        attentions: of the first pass.
        others: of the second.
        dropped_residuals: how often dropout fell on the residual stream, in train().
        signal: by side, how strong tokens are beside positions, as a ratio of deviations; inf without positions.
        source_padded, target_padded: where the first pass had padding, (B, S) and (B, T).
    """

    attentions: Sequence[Attention]
    others: Sequence[Attention]
    dropped_residuals: int
    signal: Mapping[str, float]
    source_padded: Tensor
    target_padded: Tensor

    def of(self, queries: int, keys: int) -> list[Attention]:
        """The attentions of so many queries on so many keys."""
        return [one for one in self.attentions if (one.queries, one.keys) == (queries, keys)]

    @property
    def decoder_self(self) -> list[Attention]:
        """Targets looking at targets."""
        return self.of(TARGET, TARGET)

    @property
    def encoder_self(self) -> list[Attention]:
        """Sources looking at sources."""
        return self.of(SOURCE, SOURCE)

    @property
    def on_source(self) -> list[Attention]:
        """Whatever looks at the source."""
        return [*self.encoder_self, *self.of(TARGET, SOURCE)]

    @property
    def across_rows(self) -> list[Attention]:
        """Attentions in which the rows of the batch are the queries and the keys."""
        return self.of(BATCH, BATCH)

    @property
    def without_look_ahead_mask(self) -> list[Attention]:
        """Self-attentions of the decoder in which a later key is not hidden."""
        later = torch.ones(TARGET, TARGET, dtype=torch.bool).triu(1)
        return [one for one in self.decoder_self if not hidden_pairs(one)[:, later].all()]

    @property
    def with_visible_padding(self) -> list[Attention]:
        """Attentions on the source in which a real query may see a padded key; those without meaning left out."""
        empty = [id(one) for one in self.without_meaning]
        return [one for one in self.on_source if id(one) not in empty and not self.hides_source_padding(one)]

    @property
    def without_meaning(self) -> list[Attention]:
        """Attentions whose values are the same for other tokens, though the queries are not, and for all keys."""
        both = zip(self.attentions, self.others, strict=False)
        return [
            one for one, other in both if same_value_for_other_tokens(one, other) and one_value_for_all_keys(one)
        ]

    def hides_source_padding(self, attention: Attention) -> bool:
        """Whether no real query sees a padded source key."""
        queries = self.source_padded if attention.queries == SOURCE else self.target_padded
        pairs = ~queries[:, :, None] & self.source_padded[:, None, :]
        return bool(hidden_pairs(attention)[pairs].all())

    def blind(self, attention: Attention) -> bool:
        """Whether a padded query has not a single key left."""
        padded = self.source_padded if attention.queries == SOURCE else self.target_padded
        return bool(hidden_pairs(attention)[padded].all(-1).any())


def hidden_pairs(attention: Attention) -> Tensor:
    """Where a mask was laid in all heads: bool (B, T, S)."""
    shape = (BATCH, attention.heads, attention.queries, attention.keys)
    hidden = attention.hidden
    if hidden is None:
        return torch.zeros(BATCH, attention.queries, attention.keys, dtype=torch.bool)
    hidden = hidden.detach().cpu()
    if hidden.dim() == 2 and len(hidden) % (BATCH * attention.queries) == 0:  # (B * H * T, S)
        hidden = hidden.unflatten(0, (BATCH, -1, attention.queries))
    elif hidden.dim() == 3:
        hidden = hidden.unsqueeze(1) if len(hidden) in (1, BATCH) else hidden.unflatten(0, (BATCH, -1))
    try:
        return torch.broadcast_to(hidden, shape).all(1)
    except RuntimeError:  # a shape of which nothing is known
        return torch.zeros(BATCH, attention.queries, attention.keys, dtype=torch.bool)


def dissect(patient: Patient, samples: Samples) -> Anatomy:
    """Listen to passes in eval(), and to one in train()."""
    first, padded = padded_ids(patient, samples)
    second, _ = padded_ids(patient, samples)
    attentions, others = (listen(patient, ids).attentions for ids in (first, second))
    dropped = 0
    if patient.module is not None:
        patient.module.train()
        dropped = listen(patient, first).dropped_residuals
        patient.module.eval()
    return Anatomy(attentions, others, dropped, signal(patient, samples), padded["source"], padded["target"])


def padded_ids(patient: Patient, samples: Samples) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Rows of different lengths, and where they are padded; nowhere without a padding id."""
    ids = samples.ids(batch=BATCH, source=SOURCE, target=TARGET)
    padded = {}
    for side, length in (("source", SOURCE), ("target", TARGET)):
        cut = torch.tensor(CUT)[:, None] if patient.pad is not None else torch.zeros(BATCH, 1, dtype=torch.int64)
        padded[side] = torch.arange(length)[None] >= length - cut
    if patient.pad is not None:
        ids = {side: rows.masked_fill(padded[side], patient.pad) for side, rows in ids.items()}
    return ids, padded


@torch.no_grad()
def listen(patient: Patient, ids: Mapping[str, Tensor]) -> Listener:
    """One pass."""
    watched = {side: rows.to(patient.device) for side, rows in ids.items()}
    with Listener(watched) as listener:
        patient(watched)
    return listener


def signal(patient: Patient, samples: Samples) -> dict[str, float]:
    """By side, the deviation over tokens of what the first layer reads, over its deviation over positions."""
    places = min(PLACES_FOR_SIGNAL, patient.stated_limit or PLACES_FOR_SIGNAL)
    # no mark at the first place: every place has all kinds of tokens
    ids = {side: samples.content(side, TOKENS_FOR_SIGNAL, places) for side in patient.sides}
    found = {}
    for side, stream in listen(patient, ids).streams.items():
        x = stream.float()
        if x.dim() == 2:  # (B * length, D)
            x = x.unflatten(0, (TOKENS_FOR_SIGNAL, -1)) if len(x) % TOKENS_FOR_SIGNAL == 0 else x[None]
        elif x.size(1) == TOKENS_FOR_SIGNAL:  # time first
            x = x.transpose(0, 1)
        if len(x) != TOKENS_FOR_SIGNAL or x.size(1) < 2:  # of pooled texts no place is left
            continue
        over_tokens = x.var(0).mean()
        over_places = (x.mean(0).var(0).mean() - over_tokens / len(x)).clamp_min(0)
        found[side] = float((over_tokens / over_places).sqrt()) if over_places > 1e-12 else math.inf
    return found


def structure_findings(patient: Patient, anatomy: Anatomy) -> Iterator[Finding]:
    """What is wrong inside whatever the outputs say."""
    yield from scale_findings(anatomy)
    for one in anatomy.attentions:
        made = one.projection
        if made and one.heads > 1 and made.width_in == made.width_out == one.width and len(made.given) == 4:
            evidence = (
                f"a linear layer of {made.width_in} x {made.width_out} makes the queries of all {one.heads} heads "
                f"of width {one.width}; its input has the shape {made.given}"
            )
            yield found("shared-projections", evidence)
    for one in anatomy.without_meaning:
        evidence = (
            f"an attention of {one.queries} queries on {one.keys} keys averages values that stay the same "
            "to the bit when every token is another one"
        )
        yield found("mask-as-value", evidence)
    if anatomy.dropped_residuals:
        evidence = (
            f"in train(), {anatomy.dropped_residuals} additions have the result of a dropout as their residual"
        )
        yield found("dropout-on-residual", evidence)
    yield from embedding_findings(patient, anatomy)


def scale_findings(anatomy: Anatomy) -> Iterator[Finding]:
    """The factor before the softmax, against 1 / sqrt(E)."""
    for one in anatomy.attentions:
        if one.width < 2:
            continue
        if one.heads > 1 and math.isclose(one.factor, (one.heads * one.width) ** -0.5, rel_tol=1e-3):
            evidence = (
                f"{one.heads} heads of width {one.width}: scores are multiplied by {one.factor:.4g} = 1 / "
                f"sqrt({one.heads * one.width}) instead of {one.width**-0.5:.4g} = 1 / sqrt({one.width})"
            )
            yield found("scaled-by-model-width", evidence)
        elif not any(math.isclose(one.factor, usual, rel_tol=1e-3) for usual in (one.width**-0.5, 1.0)):
            evidence = f"heads of width {one.width}: scores are multiplied by {one.factor:.4g}"
            yield found("unusual-scale", evidence, "note")


def same_value_for_other_tokens(one: Attention, other: Attention) -> bool:
    """Whether values are the same to the bit though the queries differ."""
    if one.value is None or other.value is None or one.query.shape != other.query.shape:
        return False
    return torch.equal(one.value, other.value) and not torch.equal(one.query, other.query)


def one_value_for_all_keys(attention: Attention) -> bool:
    """Whether some row's values are the same for all its keys; the first row of a batch has no padding."""
    value, keys = attention.value, attention.keys
    if value is None or keys not in value.shape:
        return False
    by_key = value.movedim(value.shape.index(keys), 0).flatten(1)  # (S, B x H x E in any order)
    return int((by_key == by_key[:1]).all(0).sum()) * BATCH >= by_key.size(1)


def embedding_findings(patient: Patient, anatomy: Anatomy) -> Iterator[Finding]:
    """Tokens beside positions, and the row of padding."""
    weak = {side: ratio for side, ratio in anatomy.signal.items() if ratio < WEAKEST}
    if weak:
        told = " and ".join(f"{1 / ratio:.0f} times on the {side} side" for side, ratio in weak.items())
        yield found("weak-embeddings", f"tokens vary less than positions where the first layer reads them: {told}")
    if patient.module is None:
        return
    named = list(patient.module.named_parameters(remove_duplicate=False))
    for part in patient.module.modules():
        if isinstance(part, nn.Embedding) and part.padding_idx is not None:
            tied = sum(weight is part.weight for _, weight in named) > 1
            strength = float(part.weight[part.padding_idx].detach().abs().max())
            if strength > 0 and not tied:
                evidence = (
                    f"the row {part.padding_idx} of an embedding of {len(part.weight)} rows is up to {strength:.2g}"
                )
                yield found("pad-row-overwritten", evidence)


def fill_findings(anatomy: Anatomy) -> Iterator[Finding]:
    """What hidden scores are filled with."""
    fills = {fill for one in anatomy.attentions for fill in one.fills} - LOWEST
    for fill in sorted(fills):
        if fill > HIDES:
            yield found("mask-fill", f"hidden scores are filled with {fill:g}: they are not hidden at all")
        elif fill < SMALLEST_HALF:
            evidence = (
                f"hidden scores are filled with {fill:g}, which half precision cannot hold (its least: -65504)"
            )
            yield found("mask-fill", evidence, "warning")
        elif fill > SMALLEST_HALF:
            evidence = (
                f"hidden scores are filled with {fill:g}: they are hidden only while all others are far above it"
            )
            yield found("mask-fill", evidence, "note")
