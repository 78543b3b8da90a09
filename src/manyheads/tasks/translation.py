"""A trained translator: raw text in, raw text out (section 6.1: beam search)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config, SearchConfig
from manyheads.data.batch import pad_rows
from manyheads.data.sampler import fixed_batches
from manyheads.model.decoding import EncoderDecoderStepper
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.beam import beam_search
from manyheads.search.greedy import greedy_search
from manyheads.search.interface import Hypothesis
from manyheads.text.tokenizer import BOS, EOS, PAD, TokenizerPair
from manyheads.training.precision import pick_device

__all__ = ["Candidate", "Translation", "Translator"]


@dataclass(frozen=True)
class Candidate:
    """One output of the search, as text.

    Attributes:
        text: the translation.
        score: log-probability / length ** length_penalty, in nats; what candidates are ranked by.
        tokens: its subword pieces, the end mark last when it ended by itself.
        token_scores: log-probability of each of them, in nats.
    """

    text: str
    score: float
    tokens: list[str]
    token_scores: list[float]


@dataclass(frozen=True)
class Translation:
    """What became of one line.

    Attributes:
        source: the line as it was given.
        hypotheses: the best candidates, best first; none for an empty line.
        truncated: whether the source was cut at the model's limit or the output at its length limit.
    """

    source: str
    hypotheses: list[Candidate]
    truncated: bool

    @property
    def translation(self) -> str:
        """The best candidate's text; empty for an empty line."""
        return self.hypotheses[0].text if self.hypotheses else ""

    @property
    def score(self) -> float:
        """The best candidate's score; 0 for an empty line."""
        return self.hypotheses[0].score if self.hypotheses else 0.0

    def to_json(self) -> dict[str, Any]:
        """The shape that `translate --json` prints."""
        return {
            "source": self.source,
            "translation": self.translation,
            "score": self.score,
            "hypotheses": [vars(candidate) for candidate in self.hypotheses],
            "truncated": self.truncated,
        }


class Translator:
    """A model, its tokenizers and its search settings.

    What comes out for a line does not depend on the lines beside it, their number or their order.
    """

    def __init__(self, config: Config, tokenizers: TokenizerPair, model: EncoderDecoder) -> None:
        """From parts in memory; `load` opens a run directory."""
        self.config = config
        self.tokenizers = tokenizers
        self.model = model

    @classmethod
    def load(cls, run: str | Path, *, device: str = "auto") -> Self:
        """Open a run directory.

        Raises:
            RunError: the directory is missing, none of ours, or damaged.
        """
        directory = RunDirectory.existing(Path(run))
        config = directory.config()
        tokenizers = directory.tokenizers(config)
        return cls(config, tokenizers, directory.model(config, tokenizers).to(pick_device(device)))

    def translate(
        self, texts: Sequence[str], *, beam_size: int | None = None, n_best: int = 1
    ) -> list[Translation]:
        """Translate lines; the result has the same number of lines in the same order.

        Args:
            texts: one sentence each; empty and blank ones stay empty.
            beam_size: overrides `search.beam_size`; 1 is greedy.
            n_best: candidates a line, at most the beam's size.
        """
        search = self.config.search
        if beam_size is not None:
            search = search.model_copy(update={"beam_size": beam_size})
        search = search.model_copy(update={"beam_size": max(search.beam_size, n_best)})
        limit = self.config.model.max_positions - 1  # the end mark takes a place too
        whole = self.tokenizers.source.encode(texts)
        ids = [row[:limit] for row in whole]
        cut = [len(row) > limit for row in whole]
        filled = np.array([place for place, row in enumerate(ids) if row], dtype=np.int64)
        found: list[list[Hypothesis]] = [[] for _ in texts]
        lengths = np.array([len(ids[place]) + 1 for place in filled], dtype=np.int64)
        for batch in fixed_batches(lengths, max(1, search.batch_tokens // search.beam_size)):
            places = filled[batch].tolist()
            rows = self.search([ids[place] for place in places], search, n_best)
            for place, hypotheses in zip(places, rows, strict=True):
                found[place] = hypotheses
        return [
            Translation(text, [self.candidate(one) for one in hypotheses], was_cut or too_long(hypotheses))
            for text, hypotheses, was_cut in zip(texts, found, cut, strict=True)
        ]

    def search(self, rows: list[list[int]], search: SearchConfig, n_best: int) -> list[list[Hypothesis]]:
        """Search for a batch of sources, as ids without marks; the model is left in the mode it was in."""
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                return self.found(rows, search, n_best)
        finally:
            self.model.train(was_training)

    def found(self, rows: list[list[int]], search: SearchConfig, n_best: int) -> list[list[Hypothesis]]:
        """What the model in eval mode finds: greedily, or with a beam."""
        model = self.model
        source = pad_rows(rows, PAD, last=EOS).to(next(model.parameters()).device)
        most = model.config.max_positions - 1
        longest = [min(int(search.max_length_ratio * len(row)) + search.max_length_offset, most) for row in rows]
        max_lengths = torch.tensor(longest, device=source.device)
        stepper = EncoderDecoderStepper(model, source)
        if search.beam_size == 1:
            greedy = greedy_search(
                stepper,
                max_lengths=max_lengths,
                bos=BOS,
                eos=EOS,
                forbidden=(PAD, BOS),
                length_penalty=search.length_penalty,
            )
            return [[one] for one in greedy]
        return beam_search(
            stepper,
            beam_size=search.beam_size,
            n_best=n_best,
            length_penalty=search.length_penalty,
            max_lengths=max_lengths,
            bos=BOS,
            eos=EOS,
            forbidden=(PAD, BOS),
        )

    def candidate(self, hypothesis: Hypothesis) -> Candidate:
        """A hypothesis as text."""
        tokenizer = self.tokenizers.target
        marked = [*hypothesis.tokens, EOS] if hypothesis.ended else list(hypothesis.tokens)
        return Candidate(
            text=tokenizer.decode(hypothesis.tokens),
            score=hypothesis.score,
            tokens=tokenizer.pieces(marked),
            token_scores=list(hypothesis.token_scores),
        )


def too_long(hypotheses: list[Hypothesis]) -> bool:
    """Whether the best hypothesis was cut at the length limit."""
    return bool(hypotheses) and not hypotheses[0].ended
