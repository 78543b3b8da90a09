"""Bamba: without position_ids, the token after a cache gets position 0."""

import torch
import transformers
from transformers import BambaConfig, BambaForCausalLM

torch.manual_seed(0)
config = BambaConfig(
    vocab_size=23, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=1, mamba_n_heads=4, mamba_d_head=8, mamba_d_state=8, mamba_n_groups=1, mamba_chunk_size=8,
    attn_layer_indices=[1], max_position_embeddings=64,
)  # fmt: skip
model = BambaForCausalLM(config).eval().double()
ids = torch.randint(3, 23, (1, 13))
with torch.no_grad():
    whole = model(ids, use_cache=False).logits[:, -1]
    print("transformers", transformers.__version__)
    for name, given in (
        ("without position_ids", {}),
        ("with position_ids", {"position_ids": torch.tensor([[12]])}),
    ):
        cache = model(ids[:, :12], use_cache=True).past_key_values
        step = model(ids[:, 12:], past_key_values=cache, use_cache=True, **given).logits[:, 0]
        print(f"{name}: difference {(step - whole).abs().max() / (whole.max() - whole.min()):.1e} of the spread")
