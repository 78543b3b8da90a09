"""Random MarianMT models of transformers as folders like those of opus-mt, with small SentencePiece models."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from tests.interop.parts import sentences
from tests.model.samples import scramble

TEXTS = sentences(200)
TARGETS = [text.upper() for text in TEXTS]


def train_pieces(texts: list[str], size: int) -> bytes:
    """Train a SentencePiece model with the library's default settings, normalisation included."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, vocab_size=size, model_type="unigram",
        hard_vocab_limit=False, minloglevel=2, num_threads=1,
    )  # fmt: skip
    return model.getvalue()


def vocabulary_matrices(model: Any) -> list[torch.Tensor]:
    return [model.get_encoder().embed_tokens.weight, model.get_decoder().embed_tokens.weight, model.lm_head.weight]


def write_marian_folder(
    folder: Path, *, shared: bool = True, separate: bool = False, seed: int = 2, **changes: Any
) -> Any:
    """Write the folder and return the model of transformers in float64: D = 30, F = 37, 2 + 3 layers, 3 heads.

    With separate vocabularies, that of the target is larger.
    """
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    own: list[list[str]] = []
    for side, texts in (("source", TEXTS), ("target", TARGETS)):
        model = train_pieces(texts, 40)
        (folder / f"{side}.spm").write_bytes(model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        own.append([processor.id_to_piece(i) for i in range(3, len(processor))])
    names = own[0] if separate else [*own[0], *own[1]]
    pieces = list(dict.fromkeys([*names[::2], *names[1::2], ">>fra<<"]))[:-7]  # some pieces are not in the list
    listed = ["</s>", "<unk>", *pieces, ">>fra<<", "<pad>"]
    size = target_size = len(listed)
    vocabularies = {"vocab.json": listed}
    if separate:
        shared, targets = False, ["</s>", "<unk>", *own[1][::-1]]
        targets.insert(size - 1, "<pad>")  # transformers has one id of padding for both
        vocabularies["target_vocab.json"], target_size = targets, len(targets)
        assert target_size > size
    settings: dict[str, Any] = {
        "vocab_size": size,
        "decoder_vocab_size": target_size,
        "share_encoder_decoder_embeddings": shared,
        "d_model": 30,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 3,
        "encoder_ffn_dim": 37,
        "decoder_ffn_dim": 37,
        "activation_function": "swish",
        "max_position_embeddings": 64,
        "scale_embedding": True,
        "pad_token_id": size - 1,
        "eos_token_id": 0,
        "decoder_start_token_id": size - 1,
        "forced_eos_token_id": None,
    }
    torch.manual_seed(seed)
    model = transformers.MarianMTModel(transformers.MarianConfig(**settings | changes)).eval()
    scramble(model)
    with torch.no_grad():
        for matrix in {id(each): each for each in vocabulary_matrices(model)}.values():
            matrix.mul_(0.3 / matrix.std())
        model.final_logits_bias.copy_(0.3 * torch.randn_like(model.final_logits_bias))
        model.final_logits_bias[0, 0] += 1.0
        for embedding in (model.get_encoder().embed_tokens, model.get_decoder().embed_tokens):
            embedding.weight[size - 1] = 0.0
    model.generation_config.num_beams = 4
    model.save_pretrained(folder)
    tokenizer = {"source_lang": "de", "target_lang": "en", "tokenizer_class": "MarianTokenizer"}
    contents: dict[str, Any] = {
        file: {name: i for i, name in enumerate(vocabularies[file])} for file in vocabularies
    }
    contents["tokenizer_config.json"] = tokenizer | {"separate_vocabs": separate}
    for file, content in contents.items():
        (folder / file).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return model.double()
