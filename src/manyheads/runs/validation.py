"""Validate a translation model during training."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

from manyheads.config.schema import Config
from manyheads.data.batch import pad_rows
from manyheads.data.corpus import Pair
from manyheads.evaluation import score
from manyheads.inspection.capture import mean_entropies, watch_pair
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.tasks.options import plain_search
from manyheads.tasks.translation import Translator
from manyheads.text.tokenizer import BOS, EOS, PAD, TokenizerPair
from manyheads.training.distributed import ALONE, World
from manyheads.training.log import ValidationReport
from manyheads.training.validation import corpus_nll

__all__ = ["LOOKED_INTO", "Validation", "evenly"]

LOOKED_INTO = 8  # validation texts whose attention is measured
SAMPLES = 3  # translations that are recorded at each validation

Sample = tuple[str, str, str]  # source, reference, output


def evenly(count: int, most: int) -> list[int]:
    """Return at most `most` indices from 0 to count - 1, evenly spaced."""
    return sorted({place * count // most for place in range(most)}) if count else []


class Validation:
    """Validates on the validation set: the loss of all pairs, and BLEU and chrF of some decoded ones.

    With several processes, each takes a share, and all get the result. With sharded weights, all compute everything
    together.
    """

    def __init__(
        self,
        config: Config,
        pairs: list[Pair],
        tokenizers: TokenizerPair,
        model: EncoderDecoder,
        world: World = ALONE,
    ) -> None:
        self.model = model
        self.config = config
        self.world = world
        self.sources = tokenizers.source.encode([pair.source for pair in pairs])
        self.targets = tokenizers.target.encode([pair.target for pair in pairs])
        every = max(1, len(pairs) // max(1, config.training.valid_sentences))
        self.decoded = pairs[::every][: config.training.valid_sentences]
        self.translator = Translator(config, tokenizers, model)
        self.looked_into = evenly(len(pairs), LOOKED_INTO)

    def __call__(self, step: int) -> ValidationReport:
        """Validate the weights of a step; outputs are decoded greedily, whatever the search settings."""
        sources, targets = self.world.share(self.sources), self.world.share(self.targets)
        nats, tokens = self.world.total(corpus_nll(self.model, sources, targets, bos=BOS, eos=EOS))
        loss = nats / tokens
        found: dict[str, float | None] = {"bleu": None, "chrf": None}
        sample: Sample | None = None
        samples: tuple[Sample, ...] = ()
        if self.decoded and math.isfinite(loss):
            references = [pair.target for pair in self.decoded]
            outputs = self.decode([pair.source for pair in self.decoded])
            scores = score(outputs, references, language=self.config.data.target)
            found = {"bleu": scores.bleu, "chrf": scores.chrf}
            told = [(pair.source, pair.target, output) for pair, output in zip(self.decoded, outputs, strict=True)]
            sample, samples = told[step % len(told)], tuple(told[place] for place in evenly(len(told), SAMPLES))
        return ValidationReport(step, loss, found, False, sample, samples, self.entropy())

    def seconds(self, every: int) -> float:
        """Return the seconds of a validation late in training, estimated from one pair in `every`.

        Early in training outputs are far too long or empty; here they end after as many tokens as the references
        have on average, and where they are shorter all the same, the missing steps are added in proportion.
        """
        start = time.perf_counter()
        sources, targets = self.world.share(self.sources[::every]), self.world.share(self.targets[::every])
        corpus_nll(self.model, sources, targets, bos=BOS, eos=EOS)
        references = [pair.target for pair in self.decoded[::every]]
        if references:
            score(references, references, language=self.config.data.target)
        scaled = time.perf_counter() - start
        start = time.perf_counter()
        self.entropy()
        once = time.perf_counter() - start
        packing, decoding = self.decoding_seconds(self.decoded[::every])
        return once + packing + every * (scaled + decoding)

    def decoding_seconds(self, pairs: Sequence[Pair]) -> tuple[float, float]:
        """Return the seconds to pack weights, and to translate this process's share of the pairs."""
        tokenizers, pairs = self.translator.tokenizers, self.world.share(pairs)
        sources = tokenizers.source.encode([pair.source for pair in pairs])
        rows = [self.translator.shortened(ids) for ids in sources if ids]
        if not rows:
            return 0.0, 0.0
        expected = sum(len(ids) + 1 for ids in tokenizers.target.encode([pair.target for pair in pairs]))
        ratio = expected / sum(map(len, rows))
        usual = plain_search(self.config.search)
        options = replace(usual, beam_size=1, max_length_ratio=ratio, max_length_offset=0)
        engine = Translator(self.config, tokenizers, self.model).engine
        start = time.perf_counter()
        engine.search(rows[:1], options)
        packed = time.perf_counter()
        outputs = engine.search(rows, options)
        seconds = time.perf_counter() - packed
        return packed - start, seconds * max(1.0, expected / sum(len(one.tokens) + 1 for (one,) in outputs))

    def entropy(self) -> dict[str, list[list[float]]]:
        """Return the attention entropy of each head, on a few pairs."""
        device = next(self.model.parameters()).device
        return mean_entropies(
            [
                watch_pair(
                    self.model,
                    pad_rows([self.sources[place]], PAD, last=EOS).to(device),
                    pad_rows([self.targets[place]], PAD, first=BOS).to(device),
                )
                for place in self.looked_into
            ]
        )

    def decode(self, sources: list[str]) -> list[str]:
        """Translate the sources; each process translates its share."""
        found = self.translator.translate(self.world.share(sources), beam_size=1)
        outputs = [""] * len(sources)
        for rank, share in enumerate(self.world.gather([one.translation for one in found])):
            outputs[rank :: self.world.size] = share
        return outputs
