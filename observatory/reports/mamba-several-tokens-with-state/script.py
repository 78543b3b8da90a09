"""Mamba and FalconMamba: several tokens after a state are read as if the state were empty."""

import torch
import transformers
from transformers import FalconMambaConfig, FalconMambaForCausalLM, MambaConfig, MambaForCausalLM

print("transformers", transformers.__version__)
for make_config, make_model in ((MambaConfig, MambaForCausalLM), (FalconMambaConfig, FalconMambaForCausalLM)):
    torch.manual_seed(0)
    config = make_config(vocab_size=23, hidden_size=16, state_size=8, num_hidden_layers=2, time_step_rank=4)
    model = make_model(config).eval().double()
    ids = torch.randint(3, 23, (1, 12))
    for size in (1, 7):
        with torch.no_grad():
            whole = model(ids, use_cache=False).logits[:, -1]
            state = model(ids[:, :5], use_cache=True).cache_params
            for begin in range(5, 12, size):
                output = model(ids[:, begin : begin + size], cache_params=state, use_cache=True)
        difference = (output.logits[:, -1] - whole).abs().max() / (whole.max() - whole.min())
        print(f"{make_model.__name__}, {size} at a time: difference {difference:.1e} of the spread")
