"""How well an encoder guesses tokens that are hidden from it: in training, and of a run on a text."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manyheads.config.load import with_overrides
from manyheads.config.schema import Config
from manyheads.data.batch import Ids
from manyheads.data.locate import Split
from manyheads.data.masked import MaskedText, hide_tokens, make_masked
from manyheads.data.sampler import fixed_batches
from manyheads.errors import DataError
from manyheads.inspection.capture import mean_entropies, watch_text
from manyheads.model.encoder_only import MaskedLanguageModel
from manyheads.runs.scoring.perplexity import cleaned, texts_of
from manyheads.runs.validation import LOOKED_INTO, evenly
from manyheads.tasks.classification import longest_text
from manyheads.tasks.encoding import Encoder
from manyheads.text.tokenizer import BOS, EOS, PAD, SPECIALS, Tokenizer
from manyheads.training.distributed import ALONE, World
from manyheads.training.log import Listener
from manyheads.training.objective import masked_loss

__all__ = ["HiddenTokens", "MaskedEvaluation", "evaluate_masked", "guess_hidden", "hide"]

SEED = 0  # which tokens of a held-out text are hidden: always the same
BATCH_TOKENS = 4_096  # positions computed together


@dataclass(frozen=True)
class MaskedEvaluation:
    """What a masked language model scores on texts.

    Attributes:
        loss: nats a hidden token.
        tokens: how many were hidden.
        texts: in how many texts.
        seconds: time of the scoring.
    """

    task: str
    loss: float
    tokens: int
    texts: int
    seconds: float

    @property
    def perplexity(self) -> float:
        """exp(loss): depends on what a token is."""
        return math.exp(min(self.loss, 700))

    def to_json(self) -> dict[str, Any]:
        """The shape that `evaluate --json` prints."""
        return {**asdict(self), "perplexity": self.perplexity}

    def lines(self) -> list[str]:
        """For people."""
        return [
            f"loss {self.loss:.4f} nats a hidden token, perplexity {self.perplexity:.3f}",
            f"{self.tokens:,} tokens hidden in {self.texts:,} texts; "
            f"{self.texts / max(self.seconds, 1e-9):,.0f} texts/s",
        ]


class HiddenTokens:
    """The beginnings of held-out texts, in which always the same tokens are hidden."""

    def __init__(self, config: Config, texts: Sequence[str], tokenizer: Tokenizer, world: World = ALONE) -> None:
        dice, limit = np.random.default_rng(SEED), longest_text(config)
        rows = [hide(row[:limit], config.training.masked, dice, tokenizer) for row in tokenizer.encode(texts)]
        self.rows = world.share(rows)
        self.looked_into = [rows[place] for place in evenly(len(rows), LOOKED_INTO)]
        self.world = world

    def score(self, model: MaskedLanguageModel) -> tuple[float, int]:
        """Nats of all hidden tokens together, and how many they are; of all processes."""
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
        """How widely each head looks, in a few texts by themselves."""
        device = next(model.parameters()).device
        batches = [make_masked([row], pad=PAD, bos=BOS, eos=EOS).to(device) for row in self.looked_into]
        return mean_entropies([watch_text(model, batch.ids, None) for batch in batches])


def hide(ids: Ids, share: float, dice: np.random.Generator, tokenizer: Tokenizer) -> MaskedText:
    """Hide tokens of a text; <unk> stands for what is hidden, unless a pre-trained vocabulary has a mask."""
    return hide_tokens(ids, share, dice, mask=tokenizer.mask, others=(len(SPECIALS), tokenizer.size))


def evaluate_masked(
    run: Path, *, split: Split, source: Path | None, overrides: Sequence[str], listener: Listener
) -> MaskedEvaluation:
    """Score a split of a run's own data, or a file.

    Args:
        run: a run directory.
        split: train, valid or test.
        source: a file instead.
        overrides: settings such as `training.masked=0.3`.
        listener: who is told.

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
    """Score clean texts that are in memory, with settings that may differ from those of the run."""
    assert isinstance(encoder.model, MaskedLanguageModel)
    hidden = HiddenTokens(config, texts, encoder.tokenizer)
    listener.message(f"guessing {sum(len(row.hidden) for row in hidden.rows):,} hidden tokens")
    start = time.perf_counter()
    nats, tokens = hidden.score(encoder.model)
    return MaskedEvaluation(config.task, nats / tokens, tokens, len(texts), time.perf_counter() - start)
