"""Show why some sparse attentions score a text otherwise when more tokens follow: equal keys are chosen by chance.

    python observatory/ties.py

Each of these models keeps the k keys of the highest index score. With new weights many scores are equal (a ReLU
makes them 0; Doge's factor `A` begins at 0), and which of the equal keys torch.topk takes depends on the number of
columns. So the scores of a prefix differ from those of the same tokens in a longer text, cached or not, and the
doctor does not judge their caches. If equal keys are taken in their order, the difference is gone.
"""

from __future__ import annotations

import warnings
from unittest import mock

import torch
import transformers

from transformer_doctor.small_models import VOCABULARY, small_model

FAMILIES = ("axk2", "deepseek_v32", "doge", "dots3_note_text", "glm_moe_dsa", "hy_v4")
LENGTH = 13


def topk_in_order(values, k, dim=-1, largest=True, sorted=True, **_):
    """Return what torch.topk does, and of equal values the first ones."""
    found, places = values.sort(dim=dim, descending=largest, stable=True)
    return torch.return_types.topk((found.narrow(dim, 0, k), places.narrow(dim, 0, k)))


def difference(model, ids):
    """Return the largest difference between the scores of a prefix and of the whole text, by the spread of all."""
    whole = model(ids, use_cache=False).logits
    parts = (model(ids[:, :end], use_cache=False).logits - whole[:, :end] for end in range(1, LENGTH))
    return max(part.abs().max().item() for part in parts) / (whole.max() - whole.min()).item()


@torch.no_grad()
def main():
    """Print the differences of each family, with torch.topk and with equal keys in their order."""
    warnings.simplefilter("ignore")
    print("transformers", transformers.__version__)
    for family in FAMILIES:
        model = small_model(f"ForCausalLM {family}").eval()
        model.set_experts_implementation("eager")
        model.double()
        torch.manual_seed(2)
        ids = torch.randint(3, VOCABULARY, (2, LENGTH))
        changes = [difference(model, ids)]
        with (
            mock.patch.object(torch, "topk", topk_in_order),
            mock.patch.object(torch.Tensor, "topk", topk_in_order),
        ):
            changes.append(difference(model, ids))
        print(f"{family:<16} torch.topk: {changes[0]:.0e} of the spread; equal keys in order: {changes[1]:.0e}")


if __name__ == "__main__":
    main()
