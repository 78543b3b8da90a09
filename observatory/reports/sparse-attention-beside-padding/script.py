"""Sparse attention of DeepSeek V3.2: beside a padded row, later tokens change the logits of earlier ones."""

import torch
import transformers
from transformers import DeepseekV32Config, DeepseekV32ForCausalLM

print("transformers", transformers.__version__)
torch.manual_seed(0)
config = DeepseekV32Config(
    vocab_size=23, hidden_size=16, intermediate_size=32, moe_intermediate_size=16, num_hidden_layers=2,
    num_attention_heads=2, num_key_value_heads=2, n_routed_experts=4, num_experts_per_tok=2, n_group=1,
    topk_group=1, q_lora_rank=8, kv_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8,
    index_n_heads=2, index_head_dim=8, index_topk=2, first_k_dense_replace=1,
)  # fmt: skip
model = DeepseekV32ForCausalLM(config).eval()
ids = torch.randint(3, 23, (2, 9))
other = ids.clone()
other[:, 6:] = 3 + (ids[:, 6:] - 2) % 20
for padded in (0, 2):
    mask = torch.ones_like(ids)
    mask[0, :padded] = 0
    with torch.no_grad():
        first, second = (model(input_ids=rows, attention_mask=mask).logits for rows in (ids, other))
    changes = (first - second)[:, :6].abs().amax((1, 2)) / (first.max() - first.min())
    words = ", ".join(f"row {row}: {change:.1%}" for row, change in enumerate(changes.tolist()))
    print(f"{padded} padded tokens in row 0: tokens from position 7 on change the logits before them, {words}")
