"""DeepSeek V4: a cropped cache keeps what it compressed of the tokens that were cut off."""

import torch
import transformers
from transformers import DeepseekV4Config, DeepseekV4ForCausalLM

torch.manual_seed(0)
config = DeepseekV4Config(
    vocab_size=23, hidden_size=16, moe_intermediate_size=32, num_hidden_layers=4, num_attention_heads=2, head_dim=8,
    q_lora_rank=8, o_lora_rank=8, num_experts_per_tok=2, n_routed_experts=4, max_position_embeddings=64,
    sliding_window=16, index_n_heads=2, index_head_dim=8, index_topk=2, qk_rope_head_dim=8,
    layer_types=["heavily_compressed_attention"] * 3 + ["compressed_sparse_attention"],
    mlp_layer_types=["hash_moe"] * 3 + ["moe"],
)  # fmt: skip
model = DeepseekV4ForCausalLM(config).eval()
ids, further = torch.randint(3, 23, (1, 13)), torch.randint(3, 23, (1, 4))
print("transformers", transformers.__version__)
with torch.no_grad():
    whole = model(ids, use_cache=False).logits[:, -1]
    for cut in (0, 4):
        cache = model(torch.cat([ids[:, :5], further[:, :cut]], 1), use_cache=True).past_key_values
        print("is_croppable:", cache.is_croppable)
        if cut:
            cache.crop(-cut)
        for position in range(5, 13):
            step = model(ids[:, position : position + 1], past_key_values=cache, use_cache=True).logits[:, -1]
        difference = (step - whole).abs().max() / (whole.max() - whole.min())
        print(f"after {cut} tokens were cut off: difference {difference:.1e} of the spread")
