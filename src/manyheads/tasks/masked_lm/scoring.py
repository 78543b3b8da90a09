"""Score masked language models by the hidden tokens that they predict, during training and afterwards."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from manyheads.config.schema import Config
from manyheads.data.batches import fixed_batches
from manyheads.data.sampler import evenly
from manyheads.inference.texts import longest_text
from manyheads.model.encoder_only import MaskedLanguageModel
from manyheads.reports import Listener, ValidationReport
from manyheads.tasks.masked_lm.encoder import Encoder
from manyheads.tensors.capture import ENTROPY_TEXTS, capture, mean_entropies
from manyheads.tensors.masked import HIDDEN_SHARE, make_masked
from manyheads.text.tokenizer import BOS, EOS, PAD, Tokenizer
from manyheads.training.batch_sources import hide
from manyheads.training.distributed import ALONE, World
from manyheads.training.interruption import UNWATCHED, Watch
from manyheads.training.objective import masked_loss
from manyheads.training.scored_text import TokenScores, report_cut

_SEED = 0  # seed of the masked tokens of a held-out text, which are always the same
_BATCH_TOKENS = 4_096  # positions computed together


@dataclass(frozen=True)
class MaskedEvaluation(TokenScores):
    """Scores of a masked language model on texts.

    Attributes:
        loss: nats per masked token.
        tokens: number of masked tokens.
        texts: number of texts.
        seconds: time of the computation in seconds.
        vocabulary: number of tokens of the vocabulary.
    """

    task: str
    loss: float
    tokens: int
    texts: int
    seconds: float
    vocabulary: int

    def figures(self) -> dict[str, Any]:
        """Return the fields, and the perplexity."""
        return {**vars(self), "perplexity": self.perplexity}

    def card_text(self, where: str) -> str:
        """Return the perplexity, for a card."""
        return (
            f"{self.texts:,} texts of {where}: perplexity {self.perplexity:.3f} of "
            f"{self.tokens:,} hidden tokens ({HIDDEN_SHARE:.0%} of all)"
        )

    def report(self) -> list[str]:
        """Return the loss, and the size of the text."""
        return [
            f"loss {self.loss:.4f} nats a hidden token, perplexity {self.perplexity:.3f}",
            f"{self.tokens:,} tokens hidden in {self.texts:,} texts; "
            f"{self.texts / max(self.seconds, 1e-9):,.0f} texts/s",
        ]


class MaskedValidation:
    """Validates on the beginnings of held-out texts, always with the same masked tokens.

    Attributes:
        hidden: number of masked tokens of this process's share of the texts.
        lengths: number of tokens of each text, before it is cut.
    """

    def __init__(
        self,
        config: Config,
        texts: Sequence[str],
        tokenizer: Tokenizer,
        model: MaskedLanguageModel,
        world: World = ALONE,
        watch: Watch = UNWATCHED,
    ) -> None:
        rng, limit = np.random.default_rng(_SEED), longest_text(config)
        encoded = tokenizer.encode(texts)
        self.lengths = [len(row) for row in encoded]
        report_cut(self.lengths, limit, "data.valid", watch.listener)
        rows = [hide(row[:limit], HIDDEN_SHARE, rng, tokenizer) for row in encoded]
        self.rows = world.share(rows)
        self.hidden = sum(len(row.positions) for row in self.rows)
        self.entropy_rows = [rows[index] for index in evenly(len(rows), ENTROPY_TEXTS)]
        self.model = model
        self.world = world
        self.watch = watch

    def __call__(self, step: int) -> ValidationReport:
        """Validate the weights of a step."""
        nats, tokens = self.score()
        return ValidationReport(step, nats / tokens, {}, False, None, attention_entropy=self.entropy())

    def score(self) -> tuple[float, int]:
        """Return the total loss of all masked tokens in nats, and their number, over all processes."""
        device = next(self.model.parameters()).device
        nats, tokens = 0.0, 0
        lengths = np.array([len(row.ids) + 2 for row in self.rows], np.int64)
        with torch.inference_mode(), self.watch.phase("validating", len(self.rows), "texts") as advance:
            for numbers in fixed_batches(lengths, _BATCH_TOKENS):
                batch = make_masked([self.rows[number] for number in numbers], pad=PAD, bos=BOS, eos=EOS)
                nats += float(masked_loss(self.model, batch.to(device), 0.0)[1])
                tokens += batch.target_tokens
                advance(len(numbers))
        total_nats, total_tokens = self.world.total([nats, tokens])
        return total_nats, int(total_tokens)

    def entropy(self) -> dict[str, list[list[float]]]:
        """Return the attention entropy of each head, on a few texts."""
        device = next(self.model.parameters()).device
        batches = [make_masked([row], pad=PAD, bos=BOS, eos=EOS).to(device) for row in self.entropy_rows]
        return mean_entropies([capture(self.model, batch.ids) for batch in batches])


def score_hidden(encoder: Encoder, config: Config, texts: Sequence[str], listener: Listener) -> MaskedEvaluation:
    """Score normalised texts in memory; settings may differ from those of the run."""
    assert isinstance(encoder.model, MaskedLanguageModel)
    validation = MaskedValidation(config, texts, encoder.tokenizer, encoder.model)
    report_cut(validation.lengths, longest_text(config), "the text", listener)
    listener.message(f"predicting {validation.hidden:,} masked tokens")
    start = time.perf_counter()
    with listener.phase("scoring"):
        nats, tokens = validation.score()
    seconds = time.perf_counter() - start
    return MaskedEvaluation(config.task, nats / tokens, tokens, len(texts), seconds, encoder.tokenizer.size)
