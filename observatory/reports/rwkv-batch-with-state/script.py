"""RWKV: a batch of several rows decodes otherwise with its state than without."""

import torch
import transformers
from transformers import RwkvConfig, RwkvForCausalLM

torch.manual_seed(0)
config = RwkvConfig(vocab_size=23, hidden_size=16, num_hidden_layers=2, context_length=64)
model = RwkvForCausalLM(config).eval()
print("transformers", transformers.__version__)
for rows in (1, 3):
    ids = torch.randint(3, 23, (rows, 6))
    with torch.no_grad():
        whole = model(ids, use_cache=False).logits[:, -1]
        state = model(ids[:, :5], use_cache=True).state
        step = model(ids[:, 5:], state=state, use_cache=True).logits
    difference = (step[:, -1] - whole).abs().max() / (whole.max() - whole.min())
    print(f"{rows} rows: logits of one token {tuple(step.shape)}, difference {difference:.1e} of the spread")
