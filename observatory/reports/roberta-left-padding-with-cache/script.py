"""RoBERTa as a decoder: behind a prompt that is padded on the left, a cache shifts the positions."""

import torch
import transformers
from transformers import RobertaConfig, RobertaForCausalLM

torch.manual_seed(0)
config = RobertaConfig(
    vocab_size=23, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=29,
    max_position_embeddings=64, is_decoder=True, pad_token_id=1, bos_token_id=0,
)  # fmt: skip
model = RobertaForCausalLM(config).eval()
print("transformers", transformers.__version__)
for padding in (0, 2):
    ids = torch.cat([torch.full((1, padding), 1), torch.tensor([[5, 6, 7, 8]])], 1)
    mask = (ids != 1).long()
    with torch.no_grad():
        whole = model(ids, attention_mask=mask, use_cache=False).logits[:, -1]
        cache = model(ids[:, :-1], attention_mask=mask[:, :-1], use_cache=True).past_key_values
        step = model(ids[:, -1:], attention_mask=mask, past_key_values=cache, use_cache=True).logits[:, 0]
    difference = (step - whole).abs().max() / (whole.max() - whole.min())
    print(f"{padding} padded positions: difference {difference:.1e} of the spread")
