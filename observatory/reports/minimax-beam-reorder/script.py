"""MiniMax: reorder_cache, which beam search calls, leaves the rows of linear attention in their old order."""

import torch
import transformers
from transformers import MiniMaxConfig, MiniMaxForCausalLM

torch.manual_seed(0)
config = MiniMaxConfig(
    vocab_size=23, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=2, head_dim=8, num_local_experts=4, max_position_embeddings=64, block_size=8,
    layer_types=["full_attention", "linear_attention"],
)  # fmt: skip
model = MiniMaxForCausalLM(config).eval()
ids, order = torch.randint(3, 23, (3, 6)), torch.tensor([2, 0, 0])
reordered = torch.cat([ids[order, :5], ids[:, 5:]], 1)
print("transformers", transformers.__version__)
for method in ("reorder_cache", "batch_select_indices"):
    with torch.no_grad():
        cache = model(ids[:, :5], use_cache=True).past_key_values
        getattr(cache, method)(order)
        step = model(ids[:, 5:], past_key_values=cache, use_cache=True).logits[:, 0]
        whole = model(reordered, use_cache=False).logits[:, -1]
    print(f"{method}: difference {(step - whole).abs().max() / (whole.max() - whole.min()):.1e} of the spread")
