"""Classifiers as folders of the sentence-transformers library: an encoder, a pooling and two dense layers.

The classifiers of transformers read the first token alone. This layout also supports the mean of all tokens, and
`SentenceTransformer(DIR).encode` returns the logits of the classes.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.checkpoint import as_json, read_json, read_tensors, write_atomically, write_tensors
from manyheads.config.schema import Config
from manyheads.errors import RunError, require
from manyheads.inference.parity import Parity, no_progress_bars
from manyheads.interop.huggingface.check import compare_log_probs, our_scores, sample_rows, their_inputs
from manyheads.interop.huggingface.reader import read_pretrained
from manyheads.interop.huggingface.writer import longest, write_encoder
from manyheads.model.encoder_only import TextClassifier
from manyheads.tensors.pairs import pad_rows
from manyheads.text.huggingface import HuggingFaceTokenizer
from manyheads.text.tokenizer import BOS, EOS, PAD, Tokenizer

_MODULES = {
    "": "sentence_transformers.models.Transformer",
    "1_Pooling": "sentence_transformers.models.Pooling",
    "2_Dense": "sentence_transformers.models.Dense",
    "3_Dense": "sentence_transformers.models.Dense",
}
_ACTIVATIONS = {"tanh": "torch.nn.modules.activation.Tanh", "relu": "torch.nn.modules.activation.ReLU"}
_NONE = "torch.nn.modules.linear.Identity"
_WEIGHTS = "model.safetensors"


def write_sentence_transformer(
    folder: Path, config: Config, tokenizer: Tokenizer, model: TextClassifier, labels: Sequence[str]
) -> None:
    """Write a classifier into an empty folder; `id2label` of config.json has its labels, in order."""
    write_encoder(folder, config, tokenizer, model, labels)
    shape = config.model
    for name in _MODULES:
        (folder / name).mkdir(exist_ok=True)
    modules = [
        {"idx": number, "name": str(number), "path": name, "type": kind}
        for number, (name, kind) in enumerate(_MODULES.items())
    ]
    write_atomically(folder / "modules.json", json.dumps(modules, indent=2).encode())
    pooling = {
        "word_embedding_dimension": shape.d_model,
        "pooling_mode_cls_token": shape.pooling == "cls",
        "pooling_mode_mean_tokens": shape.pooling == "mean",
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    write_atomically(folder / "1_Pooling" / "config.json", as_json(pooling))
    _write_dense(folder / "2_Dense", model.pooler, _ACTIVATIONS[shape.pooler])
    _write_dense(folder / "3_Dense", model.output, _NONE)
    transformer = {"max_seq_length": longest(shape, config), "do_lower_case": False}
    write_atomically(folder / "sentence_bert_config.json", as_json(transformer))


def _write_dense(folder: Path, layer: nn.Linear, activation: str) -> None:
    settings = {
        "in_features": layer.in_features,
        "out_features": layer.out_features,
        "bias": True,
        "activation_function": activation,
    }
    write_atomically(folder / "config.json", as_json(settings))
    write_tensors(folder / _WEIGHTS, {"linear.weight": layer.weight.float(), "linear.bias": layer.bias.float()})


@torch.inference_mode()
def check_sentence_transformer(
    folder: Path, config: Config, tokenizer: HuggingFaceTokenizer, model: TextClassifier
) -> Parity:
    """Compare a written folder with its model, in evaluation mode, on random tokens, with padding.

    The folder is opened by the library if it is installed, and else read back.
    """
    rows = sample_rows(tokenizer, model)
    ids = pad_rows(rows, PAD, first=BOS, last=EOS)
    if importlib.util.find_spec("sentence_transformers") is not None:
        logits = _their_logits(folder, tokenizer, ids)
    else:
        logits = _read_back(folder, config, tokenizer, model.output.out_features)(ids).float()
    return compare_log_probs(our_scores(model, ids), logits.log_softmax(-1), rows, "labels")


def _their_logits(folder: Path, tokenizer: HuggingFaceTokenizer, ids: Tensor) -> Tensor:
    """Compute logits with the library, for manyheads ids: (B, S) -> (B, C)."""
    library: Any = require("sentence_transformers", extra="hf", purpose="the comparison with sentence-transformers")
    with no_progress_bars(require("transformers", extra="hf", purpose="the comparison with sentence-transformers")):
        model = library.SentenceTransformer(str(folder), device="cpu").eval()
    embedding: Tensor = model(their_inputs(tokenizer, ids))["sentence_embedding"]
    return embedding.float()


def _read_back(folder: Path, config: Config, tokenizer: HuggingFaceTokenizer, classes: int) -> TextClassifier:
    """Read a classifier back, in evaluation mode.

    Raises:
        RunError: the files lack a part of the classifier.
    """
    pooling_settings = read_json(folder / "1_Pooling" / "config.json")
    pooling = "mean" if pooling_settings["pooling_mode_mean_tokens"] else "cls"
    activation = read_json(folder / "2_Dense" / "config.json")["activation_function"]
    pooler = next((name for name, kind in _ACTIVATIONS.items() if kind == activation), None)
    if pooler is None:
        raise RunError(f"{folder / '2_Dense'} names the activation {activation}, which was not asked for.")
    shape = config.model.model_copy(update={"pooling": pooling, "pooler": pooler})
    model = TextClassifier(shape, tokenizer.size, classes, pad=PAD)
    tensors = dict(read_pretrained(folder).body)
    for name, part in (("2_Dense", "pooler"), ("3_Dense", "output")):
        dense = read_tensors(folder / name / _WEIGHTS)
        tensors |= {f"{part}.{kind}": dense[f"linear.{kind}"] for kind in ("weight", "bias")}
    model.load_state_dict(tensors)
    return model.eval()
