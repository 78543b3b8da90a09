"""BertGeneration, GIT and BigBirdPegasus: masks that releases before 4.57 left out."""

import torch
import transformers
from transformers import (
    BertGenerationConfig,
    BertGenerationDecoder,
    BigBirdPegasusConfig,
    BigBirdPegasusForConditionalGeneration,
    GitConfig,
    GitForCausalLM,
)

SIZES = {
    "vocab_size": 23,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
IDS = torch.randint(3, 23, (1, 9), generator=torch.Generator().manual_seed(0))


def print_change(words, first, second):
    """Print the largest difference of two calls."""
    change = (first - second).abs().max() / (first.max() - first.min())
    print(f"{words}: logits differ by {change:.1e} of their spread")


@torch.no_grad()
def main():
    """Call each model in two ways that should give the same logits."""
    print("transformers", transformers.__version__)
    torch.manual_seed(0)
    model = BertGenerationDecoder(BertGenerationConfig(**SIZES, is_decoder=True)).eval()
    first, second = (model(IDS, use_cache=use_cache).logits for use_cache in (False, True))
    print_change("BertGeneration, with use_cache=True and without", first, second)

    vision = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    model = GitForCausalLM(GitConfig(vision_config={**vision, "image_size": 8, "patch_size": 4}, **SIZES)).eval()
    mask = torch.tensor([[0, 0, 1, 1, 1, 1, 1, 1, 1]])
    whole = model(IDS, attention_mask=mask, use_cache=False).logits[:, -1:]
    cache = model(IDS[:, :-1], attention_mask=mask[:, :-1], use_cache=True).past_key_values
    step = model(IDS[:, -1:], attention_mask=mask, past_key_values=cache, use_cache=True).logits
    print_change("GIT, behind padding on the left, with a cache and without", whole, step)

    config = BigBirdPegasusConfig(
        vocab_size=23, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64, init_std=0.3,
    )  # fmt: skip
    model = BigBirdPegasusForConditionalGeneration(config).eval()
    other = IDS.clone()
    other[:, 6:] = 3 + (IDS[:, 6:] - 2) % 20
    mask = torch.tensor([[1, 1, 1, 1, 1, 1, 0, 0, 0]])
    first, second = (model(ids, attention_mask=mask, decoder_input_ids=IDS[:, :4]).logits for ids in (IDS, other))
    print_change("BigBirdPegasus, with other tokens under the mask", first, second)


if __name__ == "__main__":
    main()
