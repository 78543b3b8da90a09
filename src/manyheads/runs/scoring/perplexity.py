"""How well a language model foresees a text: loss, perplexity, bits a byte, over a sliding window."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from manyheads.config.load import with_overrides
from manyheads.config.schema import Config
from manyheads.data.documents import read_text
from manyheads.data.locate import Split
from manyheads.errors import DataError, UsageError
from manyheads.inspection.capture import mean_entropies, watch_continuation
from manyheads.model.continuation import window_step
from manyheads.model.decoder_only import DecoderOnly
from manyheads.runs.corpus import cleaning, read_split
from manyheads.runs.validation import LOOKED_INTO, evenly
from manyheads.tasks.language_modeling import Generator, first_token
from manyheads.text.tokenizer import EOS, Tokenizer
from manyheads.training.distributed import ALONE, World
from manyheads.training.language_modeling import Windows, window_nll
from manyheads.training.log import Listener, ValidationReport

__all__ = ["TextEvaluation", "TextValidation", "evaluate_text", "score_text", "stream_of"]

CHUNK = 16_384  # texts tokenised in one call
LONGEST_PASSAGE = 64  # tokens of a passage whose attention is measured


@dataclass(frozen=True)
class TextEvaluation:
    """What a language model scores on a text.

    Attributes:
        loss: nats a token; of lines that are texts of their own, their end marks count as tokens.
        tokens: how many that is the mean of.
        bytes: of the text in UTF-8, line ends counted.
        window: tokens that the model looks at; stride: tokens that this window moves on by.
        seconds: time of the scoring.
    """

    task: str
    loss: float
    tokens: int
    bytes: int
    window: int
    stride: int
    seconds: float

    @property
    def perplexity(self) -> float:
        """exp(loss): depends on what a token is."""
        return math.exp(min(self.loss, 700))

    @property
    def bits_per_byte(self) -> float:
        """The same of models with other tokens too: nats of the whole text / ln 2 / its bytes."""
        return self.loss * self.tokens / math.log(2) / self.bytes

    def to_json(self) -> dict[str, Any]:
        """The shape that `evaluate --json` prints."""
        return {**asdict(self), "perplexity": self.perplexity, "bits_per_byte": self.bits_per_byte}

    def lines(self) -> list[str]:
        """For people."""
        return [
            f"loss {self.loss:.4f} nats a token, perplexity {self.perplexity:.3f}, "
            f"{self.bits_per_byte:.4f} bits a byte",
            f"{self.tokens:,} tokens, {self.bytes:,} bytes; window {self.window} tokens, stride {self.stride}; "
            f"{self.tokens / max(self.seconds, 1e-9):,.0f} tokens/s",
        ]


class TextValidation:
    """Scores the model of a training on all of the validation text; several processes take a share each."""

    def __init__(
        self, config: Config, texts: Sequence[str], tokenizer: Tokenizer, model: DecoderOnly, world: World = ALONE
    ) -> None:
        self.model = model
        self.world = world
        self.tokens = stream_of(config, texts, tokenizer)
        self.windows = windows_over(config, len(self.tokens))
        self.passage = min(len(self.tokens), config.data.max_length, LONGEST_PASSAGE)

    def __call__(self, step: int) -> ValidationReport:
        """Score the weights of a step."""
        which = self.world.share(list(self.windows))
        nats, tokens = self.world.total(window_nll(self.model, self.tokens, self.windows, which))
        return ValidationReport(step, nats / tokens, {}, False, None, attention_entropy=self.entropy())

    def entropy(self) -> dict[str, list[list[float]]]:
        """How widely each head looks, in a few passages of the text."""
        device = self.model.output.weight.device
        passages = [
            torch.from_numpy(self.tokens[first : first + self.passage].astype(np.int64))[None]
            for first in evenly(len(self.tokens) - self.passage + 1, LOOKED_INTO)
        ]
        return mean_entropies([watch_continuation(self.model, passage.to(device)) for passage in passages])


def windows_over(config: Config, length: int) -> Windows:
    """The sliding window over a text of so many tokens."""
    width = config.data.max_length
    return Windows(length, width=width, step=config.evaluation.stride or window_step(width))


def stream_of(config: Config, texts: Sequence[str], tokenizer: Tokenizer) -> NDArray[np.int32]:
    """The tokens of texts, with the one before that is only read; lines that are texts each have their end mark."""
    parts = [np.asarray([first_token(config, tokenizer)], np.int32)]
    for start in range(0, len(texts), CHUNK):
        for ids in tokenizer.encode(texts[start : start + CHUNK]):
            parts.append(np.asarray(ids if config.whole_files else [*ids, EOS], np.int32))
    return np.concatenate(parts)


def evaluate_text(
    run: Path, *, split: Split, source: Path | None, overrides: Sequence[str], listener: Listener
) -> TextEvaluation:
    """Score a split of a run's own data, or a file.

    Args:
        run: a run directory.
        split: train, valid or test.
        source: a file instead.
        overrides: settings such as `evaluation.stride=1`.
        listener: who is told.

    Raises:
        RunError, DataError, ConfigError: see the message.
    """
    generator = Generator.load(run)
    config = with_overrides(generator.config, overrides)
    if config.data.max_length > generator.config.data.max_length:
        listener.message(
            f"warning: the model has learnt to look at {generator.config.data.max_length} tokens, not at "
            f"data.max_length = {config.data.max_length}"
        )
    texts = cleaned(config, texts_of(config, split, source))
    if not any(texts):
        raise DataError(f"{source or f'data.{split}'} holds no text. There is nothing to score.")
    return score_text(generator, config, texts, listener)


def score_text(generator: Generator, config: Config, texts: Sequence[str], listener: Listener) -> TextEvaluation:
    """Score clean texts that are in memory, and not empty, with settings that may differ from those of the run."""
    tokens = stream_of(config, texts, generator.tokenizer)
    windows = windows_over(config, len(tokens))
    listener.message(f"scoring {windows.predicted:,} tokens")
    start = time.perf_counter()
    with generator.evaluating():
        nats, count = window_nll(generator.model, tokens, windows)
    return TextEvaluation(
        task=config.task,
        loss=nats / count,
        tokens=count,
        bytes=sum(len(text.encode()) + (not config.whole_files) for text in texts),
        window=windows.width,
        stride=windows.step,
        seconds=time.perf_counter() - start,
    )


def texts_of(config: Config, split: Split, source: Path | None) -> Iterable[str]:
    """The raw lines of a split or of a file."""
    if source is not None:
        one = config.data.model_copy(update={"root": str(source.parent), "test": source.name})
        return (pair.target for pair in read_text(one, "test"))
    if split == "test" and config.data.test is None:
        raise UsageError("this run names no test set. Give --split valid, --set data.test=..., or --source FILE.")
    return (pair.target for pair in read_split(config.data, split, config.task))


def cleaned(config: Config, texts: Iterable[str]) -> list[str]:
    """As the text of training; lines without text are no texts."""
    normal = map(cleaning(config), texts)
    return [text for text in normal if config.whole_files or text.strip()]
