"""Compare a folder of transformers, computed by transformers, with a manyheads model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manyheads.config.schema.tasks import Architecture
from manyheads.errors import ParityError, require
from manyheads.inference.parity import MAX_SAMPLE_TOKENS, RANDOM_PIECES, Parity, no_progress_bars, random_rows
from manyheads.interop.huggingface.settings import AUTO_CLASSES
from manyheads.interop.weights import read_weights
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_only import MaskedLanguageModel, TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.tensors.pairs import pad_rows
from manyheads.text.huggingface import HuggingFaceTokenizer
from manyheads.text.tokenizer import BOS, EOS, PAD

_OUTPUTS: dict[Architecture, str] = {
    "classifier": "labels",
    "masked-encoder": "most likely tokens",
    "decoder": "most likely next tokens",
}
_MAX_NATS = 1e-3  # nats, in float32
_NUM_ROWS = 8  # rows


def sample_rows(tokenizer: HuggingFaceTokenizer, model: Transformer) -> list[list[int]]:
    """Return rows of random tokens of various lengths, to which a model can add two marks."""
    return random_rows(tokenizer, _NUM_ROWS, 1, max(1, min(MAX_SAMPLE_TOKENS, model.config.max_positions - 2)))


def _with_marks(rows: Sequence[Sequence[int]], architecture: Architecture) -> Tensor:
    """Return rows with the marks that a model reads (B, S)."""
    return pad_rows(rows, PAD) if architecture == "decoder" else pad_rows(rows, PAD, first=BOS, last=EOS)


@torch.inference_mode()
def our_scores(model: Transformer, ids: Tensor) -> Tensor:
    """Compute log-probabilities with a manyheads model in eval mode: of classes (B, C), or of tokens (B, S, V)."""
    assert isinstance(model, DecoderOnly | MaskedLanguageModel | TextClassifier)
    return model(ids).float().log_softmax(-1)


@torch.inference_mode()
def check_pretrained(
    folder: Path,
    tokenizer: HuggingFaceTokenizer,
    architecture: Architecture,
    model: Transformer,
    *,
    trust_pickle: bool = False,
) -> Parity:
    """Compare the folder with a manyheads model, in evaluation mode, on random tokens, with padding."""
    rows = sample_rows(tokenizer, model)
    ids = _with_marks(rows, architecture)
    expected = _their_scores(folder, tokenizer, architecture, ids, trust_pickle)
    actual = our_scores(model, ids)
    if architecture != "classifier":
        numbers = [i for i, number in enumerate(tokenizer.original_ids) if number is not None]
        real = ids != PAD
        actual, expected = actual[real][:, numbers], expected[real][:, [tokenizer.original_ids[i] for i in numbers]]
    return compare_log_probs(actual, expected, rows, _OUTPUTS[architecture])


def compare_back(
    model: Transformer, again: Transformer, tokenizer: HuggingFaceTokenizer, architecture: Architecture
) -> Parity:
    """Compare a manyheads model with its export, read back; raises `ParityError`."""
    rows = sample_rows(tokenizer, model)
    ids = _with_marks(rows, architecture)
    real = ... if architecture == "classifier" else ids != PAD
    return compare_log_probs(
        our_scores(model, ids)[real], our_scores(again, ids)[real], rows, _OUTPUTS[architecture]
    )


def _their_scores(
    folder: Path, tokenizer: HuggingFaceTokenizer, architecture: Architecture, ids: Tensor, trust_pickle: bool
) -> Tensor:
    """Compute log-probabilities with transformers, over its own token ids."""
    library = require("transformers", extra="hf", purpose="the comparison with transformers")
    model: Any = getattr(library, AUTO_CLASSES[architecture])
    with no_progress_bars(library):
        if trust_pickle:  # `read_weights` is stricter with pickles than transformers
            config = library.AutoConfig.from_pretrained(folder)
            weights = read_weights(folder, trust_pickle=True)
            model = type(model.from_config(config)).from_pretrained(None, config=config, state_dict=weights)
        else:
            model = model.from_pretrained(folder, use_safetensors=True)
    return model.eval().float()(**their_inputs(tokenizer, ids)).logits.log_softmax(-1)


def their_inputs(tokenizer: HuggingFaceTokenizer, ids: Tensor) -> dict[str, Tensor]:
    """Return the inputs of a model of transformers for manyheads ids: its token ids and mask, each (B, S)."""
    numbers = torch.tensor([0 if number is None else number for number in tokenizer.original_ids])
    return {"input_ids": numbers[ids], "attention_mask": (ids != PAD).long()}


def compare_log_probs(actual: Tensor, expected: Tensor, rows: Sequence[Sequence[int]], outputs: str) -> Parity:
    """Compare log-probabilities (N, C) of both models; raises `ParityError`."""
    gaps = (actual - expected).abs()
    same = int((actual.argmax(-1) == expected.argmax(-1)).sum())
    parity = Parity(
        sentences=len(rows),
        tokens=sum(map(len, rows)),
        origin=RANDOM_PIECES,
        mean=float(gaps.mean()),
        largest=float(gaps.max()),
        same_outputs=same,
        compared=len(actual),
        outputs=outputs,
    )
    if parity.largest > _MAX_NATS:
        raise ParityError(
            f"transformers does not give what ours gives, and nothing was kept: {parity.line()}. "
            "Please report this with the configuration of the model."
        )
    return parity
