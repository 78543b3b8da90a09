"""A decoder whose padding mask covers rows instead of columns."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from transformer_doctor import examine
from transformer_doctor.museum.base import BOS, PAD, LanguageModel

V, D = 13, 16


class Writer(LanguageModel):
    """Language model with one causal self-attention."""

    def mask_scores(self, scores: Tensor, target: Tensor) -> Tensor:
        """Hide later tokens and padding: (B, T, T), (B, T) -> (B, T, T)."""
        real = (target != PAD)[:, :, None]
        # fix: real = (target != PAD)[:, None, :]
        mask = real & torch.ones(target.size(1), target.size(1), dtype=torch.bool).tril()
        return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)


model = Writer(V, D).eval()


@torch.no_grad()
def show() -> Iterator[str]:
    """Compare the scores of two targets whose first three positions are the same."""
    first, second = torch.tensor([[BOS, 5, PAD, 7, 8]]), torch.tensor([[BOS, 5, PAD, 9, 4]])
    change = (model(first) - model(second)).abs().amax(-1)[0]
    yield f"target one     {first[0].tolist()}"
    yield f"target two     {second[0].tolist()}"
    yield "scores differ  " + "  ".join(f"{value:.3f}" for value in change.tolist())


report = partial(examine, model, vocab_size=V, pad=PAD, bos=BOS, kind="decoder")
