"""Scores the model of a training on the validation set."""

from __future__ import annotations

import math

from manyheads.config.schema import Config
from manyheads.data.corpus import Pair
from manyheads.evaluation import score
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.tasks.translation import Translator
from manyheads.text.tokenizer import BOS, EOS, TokenizerPair
from manyheads.training.distributed import ALONE, World
from manyheads.training.log import ValidationReport
from manyheads.training.validation import corpus_nll

__all__ = ["Validation"]


class Validation:
    """Scores the model on the validation set: the loss of all of it, and some of it really decoded.

    Several processes take a share each, and all know the result. When the weights are spread over them, they do all
    of it together instead.
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

    def __call__(self, step: int) -> ValidationReport:
        """Score the weights of a step; outputs are searched greedily, whatever the search settings."""
        sources, targets = self.world.share(self.sources), self.world.share(self.targets)
        nats, tokens = self.world.total(corpus_nll(self.model, sources, targets, bos=BOS, eos=EOS))
        loss = nats / tokens
        found: dict[str, float | None] = {"bleu": None, "chrf": None}
        sample = None
        if self.decoded and math.isfinite(loss):
            references = [pair.target for pair in self.decoded]
            outputs = self.decode([pair.source for pair in self.decoded])
            scores = score(outputs, references, language=self.config.data.target)
            found = {"bleu": scores.bleu, "chrf": scores.chrf}
            shown = step % len(self.decoded)
            sample = (self.decoded[shown].source, references[shown], outputs[shown])
        return ValidationReport(step, loss, found, False, sample)

    def decode(self, sources: list[str]) -> list[str]:
        """Translate, each process its share."""
        found = self.translator.translate(self.world.share(sources), beam_size=1)
        outputs = [""] * len(sources)
        for rank, share in enumerate(self.world.gather([one.translation for one in found])):
            outputs[rank :: self.world.size] = share
        return outputs
