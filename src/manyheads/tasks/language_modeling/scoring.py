"""Score language models by perplexity: validation during training, and evaluation of a trained model."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from manyheads.config.schema import Config
from manyheads.data.sampler import evenly
from manyheads.evaluation.verdicts import judge_bits
from manyheads.inference.generator import Generator, first_token
from manyheads.inference.loading import evaluating
from manyheads.inference.window import window_step
from manyheads.model.decoder_only import DecoderOnly
from manyheads.reports import Listener, ValidationReport
from manyheads.tensors.capture import ENTROPY_TEXTS, capture, mean_entropies
from manyheads.text.tokenizer import EOS, Tokenizer
from manyheads.training.distributed import ALONE, World
from manyheads.training.interruption import UNWATCHED, Watch
from manyheads.training.objective import Windows, window_nll
from manyheads.training.scored_text import TokenScores

_TEXTS_PER_CALL = 16_384  # texts tokenised in one call
_LONGEST_PASSAGE = 64  # tokens of a passage whose attention is measured


@dataclass(frozen=True)
class TextEvaluation(TokenScores):
    """Scores of a language model on a text.

    Attributes:
        loss: nats per token; if each line is a text, end symbols count as tokens.
        tokens: number of tokens.
        bytes: number of bytes of the text in UTF-8, line ends counted.
        window: length of the sliding window in tokens; stride: step of the window in tokens.
        seconds: time of the computation in seconds.
        vocabulary: number of tokens of the vocabulary.
    """

    task: str
    loss: float
    tokens: int
    bytes: int
    window: int
    stride: int
    seconds: float
    vocabulary: int

    @property
    def bits_per_byte(self) -> float:
        """Bits per byte, nats of the whole text / ln 2 / bytes; comparable between tokenizers."""
        return self.loss * self.tokens / math.log(2) / self.bytes

    def figures(self) -> dict[str, Any]:
        """Return the fields, the perplexity, and the bits per byte."""
        return {**vars(self), "perplexity": self.perplexity, "bits_per_byte": self.bits_per_byte}

    def verdict(self) -> list[str]:
        """Return the verdict on the scores."""
        return [*super().verdict(), *judge_bits(self.bits_per_byte)]

    def card_text(self, where: str) -> str:
        """Return the bits per byte and the perplexity, for a card."""
        return (
            f"{self.bytes:,} bytes of {where}: {self.bits_per_byte:.4f} bits a byte, perplexity "
            f"{self.perplexity:.3f} a token (window {self.window} tokens, stride {self.stride})"
        )

    def report(self) -> list[str]:
        """Return the loss, and the size of the text."""
        return [
            f"loss {self.loss:.4f} nats a token, perplexity {self.perplexity:.3f}, "
            f"{self.bits_per_byte:.4f} bits a byte",
            f"{self.tokens:,} tokens, {self.bytes:,} bytes; window {self.window} tokens, stride {self.stride}; "
            f"{self.tokens / max(self.seconds, 1e-9):,.0f} tokens/s",
        ]


class TextValidation:
    """Validates a language model on the whole validation text; with several processes, each takes a share."""

    def __init__(
        self,
        config: Config,
        texts: Sequence[str],
        tokenizer: Tokenizer,
        model: DecoderOnly,
        world: World = ALONE,
        watch: Watch = UNWATCHED,
    ) -> None:
        self.model = model
        self.world = world
        self.watch = watch
        self.tokens = stream_of(config, texts, tokenizer)
        self.windows = _windows_over(config, len(self.tokens))
        self.passage = min(len(self.tokens), config.data.max_length, _LONGEST_PASSAGE)

    def __call__(self, step: int) -> ValidationReport:
        """Score the weights of a step."""
        which = self.world.share(list(self.windows))
        with self.watch.phase("validating", len(which), "windows") as advance:
            own = window_nll(self.model, self.tokens, self.windows, which, advance=advance)
        nats, tokens = self.world.total(own)
        return ValidationReport(step, nats / tokens, {}, False, None, attention_entropy=self.entropy())

    def entropy(self) -> dict[str, list[list[float]]]:
        """Return the attention entropy of each head, on a few passages."""
        device = self.model.output.weight.device
        passages = [
            torch.from_numpy(self.tokens[first : first + self.passage].astype(np.int64))[None]
            for first in evenly(len(self.tokens) - self.passage + 1, ENTROPY_TEXTS)
        ]
        return mean_entropies([capture(self.model, passage.to(device)) for passage in passages])


def _windows_over(config: Config, length: int) -> Windows:
    width = config.data.max_length
    return Windows(length, width=width, step=window_step(width))


def stream_of(config: Config, texts: Sequence[str], tokenizer: Tokenizer) -> NDArray[np.int32]:
    """Return the tokens of texts after a begin symbol; if each line is a text, with an end symbol after each."""
    parts = [np.asarray([first_token(config, tokenizer)], np.int32)]
    for start in range(0, len(texts), _TEXTS_PER_CALL):
        for ids in tokenizer.encode(texts[start : start + _TEXTS_PER_CALL]):
            parts.append(np.asarray(ids if config.whole_files else [*ids, EOS], np.int32))
    return np.concatenate(parts)


def score_text(generator: Generator, config: Config, texts: Sequence[str], listener: Listener) -> TextEvaluation:
    """Score normalised texts in memory, not all of them empty; settings may differ from those of the run."""
    if config.data.max_length > generator.config.data.max_length:
        listener.message(
            f"warning: the model has learnt to look at {generator.config.data.max_length} tokens, not at "
            f"data.max_length = {config.data.max_length}"
        )
    tokens = stream_of(config, texts, generator.tokenizer)
    windows = _windows_over(config, len(tokens))
    listener.message(f"scoring {windows.predicted:,} tokens")
    start = time.perf_counter()
    with listener.phase("scoring", len(windows), "windows") as advance, evaluating(generator.model):
        nats, count = window_nll(generator.model, tokens, windows, advance=advance)
    return TextEvaluation(
        task=config.task,
        loss=nats / count,
        tokens=count,
        bytes=sum(len(text.encode()) + (not config.whole_files) for text in texts),
        window=windows.width,
        stride=windows.step,
        seconds=time.perf_counter() - start,
        vocabulary=generator.tokenizer.size,
    )
