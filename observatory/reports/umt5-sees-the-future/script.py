"""UMT5: in some releases a later target token changes the logits of earlier ones."""

import torch
import transformers
from transformers import UMT5Config, UMT5ForConditionalGeneration

print("transformers", transformers.__version__)
for attention in ("sdpa", "eager"):
    torch.manual_seed(0)
    config = UMT5Config(
        vocab_size=23, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0,
        attn_implementation=attention,
    )  # fmt: skip
    model = UMT5ForConditionalGeneration(config).eval().double()
    source, target = torch.randint(3, 23, (2, 6)), torch.randint(3, 23, (2, 6))
    other = target.clone()
    other[:, 4:] = 3 + (target[:, 4:] - 2) % 20
    with torch.no_grad():
        first, second = (model(input_ids=source, decoder_input_ids=ids).logits for ids in (target, other))
    change = (first - second)[:, :4].abs().max() / (first.max() - first.min())
    print(f"{attention}: tokens from position 5 on change the logits before them by {change:.1%} of their spread")
