"""xLSTM: a text longer than max_inference_chunksize gets other logits than token by token, or in train()."""

import torch
import transformers
from transformers import xLSTMConfig, xLSTMForCausalLM

print("transformers", transformers.__version__)
for chunk in (8, 16):
    torch.manual_seed(0)
    config = xLSTMConfig(
        vocab_size=23, hidden_size=128, num_blocks=2, num_heads=2, qk_dim_factor=0.5, v_dim_factor=1.0,
        chunk_size=8, max_inference_chunksize=chunk,
    )  # fmt: skip
    model = xLSTMForCausalLM(config).eval().double()
    ids = torch.randint(3, 23, (2, 13))
    with torch.no_grad():
        whole = model(ids, use_cache=False).logits
        trained = model.train()(ids, use_cache=False).logits
        model.eval()
        steps, state = [], None
        for position in range(13):
            output = model(ids[:, position : position + 1], cache_params=state, use_cache=True)
            state = output.cache_params
            steps.append(output.logits[:, 0])
    spread = whole.max() - whole.min()
    for name, logits in (("token by token", torch.stack(steps, 1)), ("training mode", trained)):
        difference = (logits - whole).abs().amax((0, 2)) / spread
        first, rest = difference[:8].max(), difference[8:].max()
        print(f"max_inference_chunksize {chunk}, {name}: first 8 {first:.0e}, rest {rest:.0e}")
