"""Score a language model by its perplexity, and an encoder by the hidden tokens it predicts."""

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
from manyheads.data.batch import Ids
from manyheads.data.documents import read_text
from manyheads.data.locate import Split
from manyheads.data.masked import MaskedText, hide_tokens, make_masked
from manyheads.data.sampler import fixed_batches
from manyheads.decoding.language_model import window_step
from manyheads.errors import DataError, UsageError
from manyheads.inspection.capture import mean_entropies, watch_continuation, watch_text
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_only import MaskedLanguageModel
from manyheads.runs.corpus import cleaning, read_split
from manyheads.runs.validation import LOOKED_INTO, evenly
from manyheads.tasks.classification import longest_text
from manyheads.tasks.encoding import Encoder
from manyheads.tasks.language_modeling import Generator, first_token
from manyheads.text.tokenizer import BOS, EOS, PAD, SPECIALS, Tokenizer
from manyheads.training.distributed import ALONE, World
from manyheads.training.language_modeling import Windows, window_nll
from manyheads.training.log import Listener, ValidationReport
from manyheads.training.objective import masked_loss

__all__ = [
    "HiddenTokens",
    "MaskedEvaluation",
    "TextEvaluation",
    "TextValidation",
    "evaluate_masked",
    "evaluate_text",
    "guess_hidden",
    "hide",
    "score_text",
    "stream_of",
]

CHUNK = 16_384  # texts tokenised in one call
LONGEST_PASSAGE = 64  # tokens of a passage whose attention is measured


@dataclass(frozen=True)
class TextEvaluation:
    """Scores of a language model on a text.

    Attributes:
        loss: nats per token; if each line is a text, end symbols count as tokens.
        tokens: number of tokens.
        bytes: number of bytes of the text in UTF-8, line ends counted.
        window: length of the sliding window in tokens; stride: step of the window in tokens.
        seconds: time of the computation in seconds.
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
        """Perplexity, exp(loss); it depends on the tokenizer."""
        return math.exp(min(self.loss, 700))

    @property
    def bits_per_byte(self) -> float:
        """Bits per byte, nats of the whole text / ln 2 / bytes; comparable between tokenizers."""
        return self.loss * self.tokens / math.log(2) / self.bytes

    def to_json(self) -> dict[str, Any]:
        """Return the document of `evaluate --json`."""
        return {**asdict(self), "perplexity": self.perplexity, "bits_per_byte": self.bits_per_byte}

    def lines(self) -> list[str]:
        """Return lines of text."""
        return [
            f"loss {self.loss:.4f} nats a token, perplexity {self.perplexity:.3f}, "
            f"{self.bits_per_byte:.4f} bits a byte",
            f"{self.tokens:,} tokens, {self.bytes:,} bytes; window {self.window} tokens, stride {self.stride}; "
            f"{self.tokens / max(self.seconds, 1e-9):,.0f} tokens/s",
        ]


class TextValidation:
    """Validates a language model on the whole validation text; with several processes, each takes a share."""

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
        """Return the attention entropy of each head, on a few passages."""
        device = self.model.output.weight.device
        passages = [
            torch.from_numpy(self.tokens[first : first + self.passage].astype(np.int64))[None]
            for first in evenly(len(self.tokens) - self.passage + 1, LOOKED_INTO)
        ]
        return mean_entropies([watch_continuation(self.model, passage.to(device)) for passage in passages])


def windows_over(config: Config, length: int) -> Windows:
    """Return the sliding windows over a text of `length` tokens."""
    width = config.data.max_length
    return Windows(length, width=width, step=config.evaluation.stride or window_step(width))


def stream_of(config: Config, texts: Sequence[str], tokenizer: Tokenizer) -> NDArray[np.int32]:
    """Return the tokens of texts after a begin symbol; if each line is a text, with an end symbol after each."""
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
        run: run directory.
        split: train, valid or test.
        source: file to use in place of a split.
        overrides: settings such as `evaluation.stride=1`.
        listener: receives messages.

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
    """Score normalised texts in memory, none of them empty; settings may differ from those of the run."""
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
    """Read the raw lines of a split or of a file."""
    if source is not None:
        one = config.data.model_copy(update={"root": str(source.parent), "test": source.name})
        return (pair.target for pair in read_text(one, "test"))
    if split == "test" and config.data.test is None:
        raise UsageError("this run names no test set. Give --split valid, --set data.test=..., or --source FILE.")
    return (pair.target for pair in read_split(config.data, split, config.task))


def cleaned(config: Config, texts: Iterable[str]) -> list[str]:
    """Normalise texts as in training; empty lines are left out."""
    normal = map(cleaning(config), texts)
    return [text for text in normal if config.whole_files or text.strip()]


SEED = 0  # which tokens of a held-out text are hidden: always the same
BATCH_TOKENS = 4_096  # positions computed together


@dataclass(frozen=True)
class MaskedEvaluation:
    """Scores of a masked language model on texts.

    Attributes:
        loss: nats per masked token.
        tokens: number of masked tokens.
        texts: number of texts.
        seconds: time of the computation in seconds.
    """

    task: str
    loss: float
    tokens: int
    texts: int
    seconds: float

    @property
    def perplexity(self) -> float:
        """Perplexity, exp(loss); it depends on the tokenizer."""
        return math.exp(min(self.loss, 700))

    def to_json(self) -> dict[str, Any]:
        """Return the document of `evaluate --json`."""
        return {**asdict(self), "perplexity": self.perplexity}

    def lines(self) -> list[str]:
        """Return lines of text."""
        return [
            f"loss {self.loss:.4f} nats a hidden token, perplexity {self.perplexity:.3f}",
            f"{self.tokens:,} tokens hidden in {self.texts:,} texts; "
            f"{self.texts / max(self.seconds, 1e-9):,.0f} texts/s",
        ]


class HiddenTokens:
    """The beginnings of held-out texts, always with the same masked tokens."""

    def __init__(self, config: Config, texts: Sequence[str], tokenizer: Tokenizer, world: World = ALONE) -> None:
        rng, limit = np.random.default_rng(SEED), longest_text(config)
        rows = [hide(row[:limit], config.training.masked, rng, tokenizer) for row in tokenizer.encode(texts)]
        self.rows = world.share(rows)
        self.looked_into = [rows[place] for place in evenly(len(rows), LOOKED_INTO)]
        self.world = world

    def score(self, model: MaskedLanguageModel) -> tuple[float, int]:
        """Return the total loss of all masked tokens in nats, and their number, over all processes."""
        device = next(model.parameters()).device
        nats, tokens = 0.0, 0
        lengths = np.array([len(row.ids) + 2 for row in self.rows], np.int64)
        with torch.inference_mode():
            for places in fixed_batches(lengths, BATCH_TOKENS):
                batch = make_masked([self.rows[place] for place in places], pad=PAD, bos=BOS, eos=EOS)
                nats += float(masked_loss(model, batch.to(device), 0.0)[1])
                tokens += batch.target_tokens
        total_nats, total_tokens = self.world.total([nats, tokens])
        return total_nats, int(total_tokens)

    def entropy(self, model: MaskedLanguageModel) -> dict[str, list[list[float]]]:
        """Return the attention entropy of each head, on a few texts."""
        device = next(model.parameters()).device
        batches = [make_masked([row], pad=PAD, bos=BOS, eos=EOS).to(device) for row in self.looked_into]
        return mean_entropies([watch_text(model, batch.ids, None) for batch in batches])


def hide(ids: Ids, share: float, rng: np.random.Generator, tokenizer: Tokenizer) -> MaskedText:
    """Mask tokens of a text; the mask is <unk>, unless a pre-trained vocabulary has a mask symbol."""
    return hide_tokens(ids, share, rng, mask=tokenizer.mask, others=(len(SPECIALS), tokenizer.size))


def evaluate_masked(
    run: Path, *, split: Split, source: Path | None, overrides: Sequence[str], listener: Listener
) -> MaskedEvaluation:
    """Score a split of a run's own data, or a file.

    Args:
        run: run directory.
        split: train, valid or test.
        source: file to use in place of a split.
        overrides: settings such as `training.masked=0.3`.
        listener: receives messages.

    Raises:
        RunError, DataError, ConfigError: see the message.
    """
    encoder = Encoder.load(run)
    config = with_overrides(encoder.config, overrides)
    texts = [text for text in cleaned(config, texts_of(config, split, source)) if text.strip()]
    if not texts:
        raise DataError(f"{source or f'data.{split}'} holds no text. There is nothing to score.")
    return guess_hidden(encoder, config, texts, listener)


def guess_hidden(encoder: Encoder, config: Config, texts: Sequence[str], listener: Listener) -> MaskedEvaluation:
    """Score normalised texts in memory; settings may differ from those of the run."""
    assert isinstance(encoder.model, MaskedLanguageModel)
    hidden = HiddenTokens(config, texts, encoder.tokenizer)
    listener.message(f"guessing {sum(len(row.hidden) for row in hidden.rows):,} hidden tokens")
    start = time.perf_counter()
    nats, tokens = hidden.score(encoder.model)
    return MaskedEvaluation(config.task, nats / tokens, tokens, len(texts), time.perf_counter() - start)
