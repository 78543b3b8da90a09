"""ProphetNet: the decoder takes relative positions of other tokens, so that earlier logits depend on later ones."""

import torch
import transformers
from transformers import ProphetNetConfig, ProphetNetForCausalLM

torch.manual_seed(0)
config = ProphetNetConfig(
    vocab_size=23, hidden_size=16, decoder_ffn_dim=32, num_decoder_layers=2, num_decoder_attention_heads=2,
    max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2, init_std=0.3, is_decoder=True,
)  # fmt: skip
model = ProphetNetForCausalLM(config).eval()
text = torch.randint(3, 23, (1, 9))
other = text.clone()
other[:, 2:] = 3 + (text[:, 2:] - 2) % 20
print("transformers", transformers.__version__)
with torch.no_grad():
    logits = model(text, use_cache=False).logits
    spread = logits.max() - logits.min()
    changes = {
        "other tokens from position 3 on": model(other, use_cache=False).logits[:, :2] - logits[:, :2],
        "without the tokens from position 7 on": model(text[:, :6], use_cache=False).logits - logits[:, :6],
    }
for words, change in changes.items():
    print(f"{words}: the logits before them change by {change.abs().max() / spread:.2%} of their spread")
