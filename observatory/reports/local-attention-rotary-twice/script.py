"""local-attention: with a cache, keys are stored behind their rotation, and rotated again by the next token."""

from importlib.metadata import version

import torch
from local_attention import LocalTransformer

print("local-attention", version("local-attention"))
for rotary in (True, False):
    torch.manual_seed(0)
    model = LocalTransformer(
        num_tokens=23, dim=16, depth=2, max_seq_len=64, causal=True, local_attn_window_size=8, heads=2, dim_head=8
    ).eval()
    if not rotary:
        for module in model.modules():
            if getattr(module, "rel_pos", None) is not None:
                module.rel_pos = None
    ids, cache, steps = torch.randint(3, 23, (2, 13)), None, []
    with torch.no_grad():
        whole = model(ids)
        for end in range(1, 14):
            logits, cache = model(ids[:, :end], cache=cache, return_cache=True)  # as generate() calls it
            steps.append(logits[:, -1])
    difference = (torch.stack(steps, 1) - whole).abs().amax((0, 2)) / (whole.max() - whole.min())
    words = "with" if rotary else "without"
    print(f"{words} rotary positions: tokens 1 and 2 {difference[:2].max():.0e}, later {difference[2:].max():.0e}")
