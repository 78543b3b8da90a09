"""The outputs of a model in torch on sentences, with which an exported model is compared (`inference.parity`)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from manyheads.decoding.greedy import greedy_search
from manyheads.decoding.rules import RuledStepper
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.inference.batching import SPECIAL_IDS
from manyheads.inference.parity import MAX_SAMPLE_TOKENS, RANDOM_PIECES, Reference, Samples
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.encoder_only import TextClassifier
from manyheads.search.interface import Stepper
from manyheads.search.options import SearchOptions
from manyheads.tensors.pairs import pad_rows
from manyheads.text.tokenizer import BOS, EOS, PAD


@torch.inference_mode()
def reference(model: EncoderDecoder, samples: Samples, prefix: tuple[int, ...] = ()) -> Reference:
    """Decode the samples greedily, all with outputs that begin with `prefix`, and score these.

    The computation is in float32 on the CPU.
    """
    longest = min(MAX_SAMPLE_TOKENS, model.config.max_positions - 1)
    rows = [row[:longest] for row in samples.rows]
    source = pad_rows(rows, PAD, last=EOS)
    limits = [min(len(row) + 10, longest) for row in rows]
    stepper: Stepper = EncoderDecoderStepper(model, source)
    if prefix:
        stepper = RuledStepper(stepper, len(rows), rules=[], prefixes=[prefix] * len(rows))
    found = greedy_search(stepper, SearchOptions(length_penalty=0.0), torch.tensor(limits), SPECIAL_IDS)
    outputs = [list(hypothesis.tokens) for hypothesis in found]
    scores = token_scores(model(source, decoder_input(outputs)), outputs)
    return Reference(Samples(rows, samples.origin), limits, outputs, scores, prefix)


def decoder_input(outputs: Sequence[Sequence[int]]) -> torch.Tensor:
    """Return the decoder input that scores outputs: the begin mark, then the tokens, padded: (B, T)."""
    return pad_rows([[BOS, *row] for row in outputs], PAD)


def token_scores(logits: torch.Tensor, outputs: Sequence[Sequence[int]]) -> list[list[float]]:
    """Return the log-probabilities of the tokens of outputs and of their end marks, from logits (B, T, V)."""
    logits = logits.float().clone()
    logits[..., [PAD, BOS]] = -torch.inf
    chosen = logits.log_softmax(-1).gather(2, pad_rows([[*row, EOS] for row in outputs], EOS)[:, :, None])
    return [row[: len(output) + 1].tolist() for row, output in zip(chosen[:, :, 0], outputs, strict=True)]


@torch.inference_mode()
def reference_of_text_model(model: TextClassifier | DecoderOnly, rows: Sequence[list[int]]) -> Reference:
    """Compute the results of a classifier or a language model for rows of ids with their marks.

    Scores are the log-probabilities of the classes, or of each next token of a row; outputs are the likeliest
    class, or the likeliest token at each position.
    """
    scores, outputs = [], []
    for row in rows:
        ids = torch.tensor([row])
        log_probabilities = model(ids).float().log_softmax(-1)[0]
        if isinstance(model, DecoderOnly):
            scores.append(log_probabilities[:-1].gather(1, ids[0, 1:, None])[:, 0].tolist())
            outputs.append(log_probabilities.argmax(-1).tolist())
        else:
            scores.append(log_probabilities.tolist())
            outputs.append([int(log_probabilities.argmax())])
    return Reference(Samples(list(rows), RANDOM_PIECES), [len(row) for row in rows], outputs, scores)
