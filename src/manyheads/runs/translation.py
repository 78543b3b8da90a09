"""Score translation models: the validation during training, and the evaluation of a trained translator."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from manyheads.config.schema import Config
from manyheads.data.batch import pad_rows
from manyheads.data.corpus import Pair
from manyheads.evaluation import Scores, exact_match, score
from manyheads.inspection.capture import mean_entropies, watch_pair
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.tasks.options import plain_search
from manyheads.tasks.translation import Translator
from manyheads.text.tokenizer import BOS, EOS, PAD, TokenizerPair
from manyheads.training.distributed import ALONE, World
from manyheads.training.log import Listener, ValidationReport
from manyheads.training.objective import corpus_nll

__all__ = ["ENTROPY_TEXTS", "Evaluation", "Validation", "evaluate_texts", "evenly"]

ENTROPY_TEXTS = 8  # validation texts on which the entropy of the attention is measured
SAMPLES = 3  # translations that are recorded at each validation

Sample = tuple[str, str, str]  # source, reference, output


def evenly(count: int, most: int) -> list[int]:
    """Return at most `most` indices from 0 to count - 1, evenly spaced."""
    return sorted({number * count // most for number in range(most)}) if count else []


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

    def __call__(self, step: int) -> ValidationReport:
        """Validate the weights of a step; outputs are decoded greedily, whatever the search settings."""
        sources, targets = self.world.share(self.sources), self.world.share(self.targets)
        nats, tokens = self.world.total(corpus_nll(self.model, sources, targets, bos=BOS, eos=EOS))
        loss = nats / tokens
        measured: dict[str, float | None] = {"bleu": None, "chrf": None}
        sample: Sample | None = None
        samples: tuple[Sample, ...] = ()
        if self.decoded and math.isfinite(loss):
            references = [pair.target for pair in self.decoded]
            outputs = self.decode([pair.source for pair in self.decoded])
            scores = score(outputs, references, language=self.config.data.target)
            measured = {"bleu": scores.bleu, "chrf": scores.chrf}
            all_samples = [
                (pair.source, pair.target, output) for pair, output in zip(self.decoded, outputs, strict=True)
            ]
            sample = all_samples[step % len(all_samples)]
            samples = tuple(all_samples[index] for index in evenly(len(all_samples), SAMPLES))
        return ValidationReport(step, loss, measured, False, sample, samples, self.entropy())

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
        written = sum(len(hypothesis.tokens) + 1 for (hypothesis,) in outputs)
        return packed - start, seconds * max(1.0, expected / written)

    def entropy(self) -> dict[str, list[list[float]]]:
        """Return the attention entropy of each head, on a few pairs."""
        device = next(self.model.parameters()).device
        return mean_entropies(
            [
                watch_pair(
                    self.model,
                    pad_rows([self.sources[index]], PAD, last=EOS).to(device),
                    pad_rows([self.targets[index]], PAD, first=BOS).to(device),
                )
                for index in evenly(len(self.sources), ENTROPY_TEXTS)
            ]
        )

    def decode(self, sources: list[str]) -> list[str]:
        """Translate the sources; each process translates its share."""
        translations = self.translator.translate(self.world.share(sources), beam_size=1)
        outputs = [""] * len(sources)
        for rank, share in enumerate(self.world.gather([result.translation for result in translations])):
            outputs[rank :: self.world.size] = share
        return outputs


@dataclass(frozen=True)
class Evaluation:
    """Scores of a translator on a text.

    Attributes:
        loss: nats per target token over the whole text, end symbols counted, without label smoothing.
        tokens: number of target tokens.
        scores: BLEU, chrF and TER with their signatures.
        exact: share of outputs equal to their reference, 0 to 1.
        outputs: translations, line by line.
        seconds: time of the search in seconds.
    """

    task: str
    loss: float
    tokens: int
    scores: Scores
    exact: float
    outputs: list[str]
    seconds: float

    @property
    def perplexity(self) -> float:
        """Perplexity, exp(loss)."""
        return math.exp(min(self.loss, 700))

    def to_json(self) -> dict[str, Any]:
        """Return the document of `evaluate --json`."""
        return {
            "task": self.task,
            "loss": self.loss,
            "perplexity": self.perplexity,
            "tokens": self.tokens,
            "bleu": self.scores.bleu,
            "chrf": self.scores.chrf,
            "ter": self.scores.ter,
            "signature": self.scores.signature,
            "exact": self.exact,
            "sentences": len(self.outputs),
            "seconds": self.seconds,
        }

    def lines(self) -> list[str]:
        """Return lines of text."""
        scores, count = self.scores, len(self.outputs)
        speed = count / max(self.seconds, 1e-9)
        return [
            f"BLEU {scores.bleu:.2f}   {scores.signature['bleu']}",
            f"chrF {scores.chrf:.2f}   {scores.signature['chrf']}",
            f"TER  {scores.ter:.2f}   {scores.signature['ter']}",
            f"perplexity {self.perplexity:.3f} over {self.tokens:,} target tokens; "
            f"{100 * self.exact:.1f} % of {count:,} sentences exact; {speed:.1f} sentences/s",
            *(f"warning: {warning}" for warning in scores.warnings),
        ]


def evaluate_texts(
    translator: Translator, sources: list[str], references: list[str], listener: Listener
) -> Evaluation:
    """Translate and score texts in memory."""
    config, tokenizers = translator.config, translator.tokenizers
    listener.message(f"translating {len(sources):,} sentences, beam {config.search.beam_size}")
    start = time.perf_counter()
    outputs = [result.translation for result in translator.translate(sources)]
    seconds = time.perf_counter() - start
    source_ids, target_ids = tokenizers.source.encode(sources), tokenizers.target.encode(references)
    nats, tokens = corpus_nll(translator.model, source_ids, target_ids, bos=BOS, eos=EOS)
    return Evaluation(
        task=config.task,
        loss=nats / tokens,
        tokens=tokens,
        scores=score(outputs, references, protocol=config.evaluation.protocol, language=config.data.target),
        exact=exact_match(outputs, references),
        outputs=outputs,
        seconds=seconds,
    )
