"""FSMT: with use_cache=True, the default, the decoder has no causal mask."""

import torch
import transformers
from transformers import FSMTConfig, FSMTForConditionalGeneration

torch.manual_seed(0)
config = FSMTConfig(
    langs=["en", "de"], src_vocab_size=23, tgt_vocab_size=23, d_model=16, encoder_layers=2, decoder_layers=2,
    encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
    max_position_embeddings=64, init_std=0.3,
)  # fmt: skip
model = FSMTForConditionalGeneration(config).eval()
source, target = torch.randint(3, 23, (1, 7)), torch.randint(3, 23, (1, 5))
other = target.clone()
other[:, -1] = 3 + (target[:, -1] - 2) % 20
print("transformers", transformers.__version__, "use_cache by default:", model.config.use_cache)
for use_cache in (False, True):
    with torch.no_grad():
        first, second = (
            model(source, decoder_input_ids=ids, use_cache=use_cache).logits[:, :-1] for ids in (target, other)
        )
    difference = (first - second).abs().max() / (first.max() - first.min())
    print(f"use_cache={use_cache}: another last token changes earlier logits by {difference:.1e} of their spread")
