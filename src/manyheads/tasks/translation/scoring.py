"""Score translation models: the validation during training, and the evaluation of a trained translator."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from bitext.letters import has_text
from bitext.pairs import Pair
from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.batches import fixed_batches
from manyheads.data.sampler import evenly
from manyheads.data.training_text import describe_long, fitting_pairs
from manyheads.evaluation import Scores, exact_match, score
from manyheads.evaluation.outputs import WORRY, Output, find_defects
from manyheads.evaluation.significance import bleu_interval
from manyheads.evaluation.verdicts import (
    judge_bleu,
    judge_empty,
    judge_outputs,
    judge_overlap,
    judge_untrained,
    shares_nothing,
)
from manyheads.inference.languages import languages_of
from manyheads.inference.translation.grouped import spread_groups, translate_in_groups
from manyheads.inference.translation.options import plain_search
from manyheads.inference.translation.translator import Translator
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.reports import Listener, ValidationReport
from manyheads.tensors.capture import ENTROPY_TEXTS, capture, mean_entropies
from manyheads.tensors.pairs import Ids, pad_rows
from manyheads.text.languages import other_language
from manyheads.text.tokenizer import BOS, EOS, PAD, TokenizerPair
from manyheads.training.distributed import ALONE, World
from manyheads.training.interruption import UNWATCHED, Watch
from manyheads.training.objective import corpus_nll
from manyheads.training.scored_text import TokenScores
from manyheads.views.metrics import read_metrics

_NUM_SAMPLES = 3  # translations that are recorded at each validation
_BATCH_TOKENS = 4_096  # tokens of both sides of a batch of `target_nats`, padding included
_MIN_PAIRS = 16  # pairs that a loss or a BLEU needs, under a time limit

_Sample = tuple[str, str, str]  # source, reference, output


def _fitting(count: int, seconds: float, allowed: float, least: int) -> int:
    """Return how many of `count` items, which take `seconds`, fit into the allowed seconds; at least `least`."""
    return count if seconds <= allowed else min(count, max(least, int(count * allowed / seconds)))


class Validation:
    """Validates on the validation set: the loss of all pairs, and BLEU and chrF of some decoded ones.

    With several processes, each takes a share, and all get the result. With sharded weights, all compute everything
    together. A request to stop ends the validation in all processes by `Interrupted`.
    """

    def __init__(
        self,
        config: Config,
        pairs: list[Pair],
        tokenizers: TokenizerPair,
        model: EncoderDecoder,
        world: World = ALONE,
        watch: Watch = UNWATCHED,
    ) -> None:
        self.model = model
        self.config = config
        self.world = world
        self.watch = watch
        long = describe_long(config, tokenizers, pairs, "data.valid")
        if long:
            watch.listener.message(long)
            pairs, _ = fitting_pairs(config, tokenizers, pairs, "data.valid")
        self.prefix = tokenizers.target.language_prefix(config.data.target)
        self.sources = tokenizers.source.encode([pair.source for pair in pairs])
        self.targets = tokenizers.target.encode([pair.target for pair in pairs])
        every = max(1, len(pairs) // max(1, config.training.valid_sentences))
        self.decoded = pairs[::every][: config.training.valid_sentences]
        self.translator = Translator(config, tokenizers, model)
        self.scoring = self.decoding = 0.0  # estimated seconds of the loss and of the translation
        self.longest = math.inf  # seconds after which no further sentences are translated

    def __call__(self, step: int) -> ValidationReport:
        """Validate the weights of a step; outputs are decoded greedily, whatever the search settings."""
        sources, targets = self.world.share(self.sources), self.world.share(self.targets)
        with self.watch.phase("validating: loss", len(sources), "pairs") as advance:
            own = corpus_nll(self.model, sources, targets, bos=BOS, eos=EOS, prefix=self.prefix, advance=advance)
        nats, tokens = self.world.total(own)
        loss = nats / tokens
        measured: dict[str, float | None] = {"bleu": None, "chrf": None}
        sample: _Sample | None = None
        samples: tuple[_Sample, ...] = ()
        if self.decoded and math.isfinite(loss):
            all_samples = [(pair.source, pair.target, output) for pair, output in self.decode()]
            _, references, outputs = map(list, zip(*all_samples, strict=True))
            scores = score(outputs, references, language=self.config.data.target)
            measured = {"bleu": scores.bleu, "chrf": scores.chrf}
            sample = all_samples[step % len(all_samples)]
            samples = tuple(all_samples[index] for index in evenly(len(all_samples), _NUM_SAMPLES))
        return ValidationReport(step, loss, measured, False, sample, samples, self.entropy(), len(self.decoded))

    def seconds(self, every: int) -> float:
        """Return the seconds of a validation late in training, estimated from one pair in `every`.

        Early in training outputs are far too long or empty. Here their length is limited to the average length
        of the references; for shorter outputs, the missing steps are added in proportion.
        """
        start = time.perf_counter()
        sources, targets = self.world.share(self.sources[::every]), self.world.share(self.targets[::every])
        corpus_nll(self.model, sources, targets, bos=BOS, eos=EOS, prefix=self.prefix)
        references = [pair.target for pair in self.decoded[::every]]
        if references:
            score(references, references, language=self.config.data.target)
        scaled = time.perf_counter() - start
        start = time.perf_counter()
        self.entropy()
        once = time.perf_counter() - start
        packing, decoding = self.decoding_seconds(self.decoded[::every])
        self.scoring, self.decoding = once + packing + every * scaled, every * decoding
        return self.scoring + self.decoding

    @property
    def size(self) -> tuple[int, int]:
        """The number of pairs whose loss is measured, and of sentences that are translated, at each validation."""
        return len(self.sources), len(self.decoded)

    @size.setter
    def size(self, size: Sequence[int]) -> None:
        pairs, sentences = (evenly(*counts) for counts in zip(self.size, size, strict=True))
        self.sources = [self.sources[index] for index in pairs]
        self.targets = [self.targets[index] for index in pairs]
        self.decoded = [self.decoded[index] for index in sentences]

    def shorten(self, seconds: float) -> float:
        """Validate on no more pairs than fit into `seconds`; return the estimated seconds of a validation.

        The loss gets at least half of the time. If too few sentences fit for a meaningful BLEU, none is translated,
        unless `training.metric` is BLEU or chrF.
        """
        scoring, decoding = self.watch.world.gather([self.scoring, self.decoding])[0]
        pairs, sentences = self.size
        least = min(sentences, _MIN_PAIRS if self.config.training.metric in ("bleu", "chrf") else 0)
        scored = _fitting(pairs, scoring, max(seconds / 2, seconds - decoding), _MIN_PAIRS)
        scoring *= scored / pairs
        self.longest = max(0.0, seconds - scoring)
        translated = max(least, _fitting(sentences, decoding, self.longest, 0))
        if translated < _MIN_PAIRS < sentences:
            translated = least
        self.validate_less(scored, translated)
        return scoring + decoding * translated / max(1, sentences)

    def validate_less(self, pairs: int, sentences: int) -> None:
        """Validate on fewer pairs from now on, and report it."""
        before, self.size = self.size, (pairs, sentences)
        if before != self.size:
            bleu = f"BLEU by {sentences:,} of {before[1]:,} sentences" if sentences else "no BLEU"
            loss = f"loss of {pairs:,} of {before[0]:,} pairs"
            shorter = [text for text, old, new in zip((loss, bleu), before, self.size, strict=True) if new < old]
            self.watch.listener.message(
                f"to keep training.max_minutes, validations are shorter from now on: {', '.join(shorter)}"
            )

    def decoding_seconds(self, pairs: Sequence[Pair]) -> tuple[float, float]:
        """Return the seconds to pack weights, and to translate this process's share of the pairs."""
        tokenizers, pairs = self.translator.tokenizers, self.world.share(pairs)
        sources = tokenizers.source.encode([pair.source for pair in pairs])
        rows = [self.translator.shortened(ids) for ids in sources if ids]
        if not rows:
            return 0.0, 0.0
        expected = sum(len(ids) + 1 for ids in tokenizers.target.encode([pair.target for pair in pairs]))
        ratio = expected / sum(map(len, rows))
        search = plain_search(self.config.search)
        options = replace(search, beam_size=1, max_length_ratio=ratio, max_length_offset=0)
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
                capture(
                    self.model,
                    pad_rows([self.sources[index]], PAD, last=EOS).to(device),
                    pad_rows([[*self.prefix, *self.targets[index]]], PAD, first=BOS).to(device),
                )
                for index in evenly(len(self.sources), ENTROPY_TEXTS)
            ]
        )

    def decode(self) -> list[tuple[Pair, str]]:
        """Translate the sentences, each process its share; under a time limit, perhaps only some of them."""
        start, number = time.perf_counter(), -(-len(self.decoded) // self.world.size)
        share, outputs = self.world.share(range(len(self.decoded))), dict[int, str]()
        with self.watch.listener.phase("validating: translating", number, "sentences") as advance:
            for group in spread_groups(number):  # as many in each process, so that all make the same exchanges
                self.watch.check()
                late = bool(outputs) and time.perf_counter() - start > self.longest
                if self.watch.world.total([late])[0]:
                    break
                indices = [index for position in group for index in share[position : position + 1]]
                sources = [self.decoded[index].source for index in indices]
                translations = self.translator.translate(sources, beam_size=1, stop=self.watch.stop)
                outputs |= zip(indices, (result.translation for result in translations), strict=True)
                advance(len(indices))
            self.watch.check()
        gathered = [pair for pairs in self.world.gather(list(outputs.items())) for pair in pairs]
        finished = [(self.decoded[index], output) for index, output in sorted(gathered)]
        if len(finished) < len(self.decoded):
            self.validate_less(len(self.sources), len(finished))
        return finished


@dataclass(frozen=True)
class Evaluation(TokenScores):
    """Scores of a translator on a text.

    Attributes:
        loss: nats per target token over the whole text, end symbols counted, without label smoothing.
        tokens: number of target tokens.
        scores: BLEU, chrF and TER with their signatures.
        bleu_interval: 95 % confidence interval of BLEU.
        exact: share of outputs equal to their reference, 0 to 1.
        compared: sources, references and translations, line by line.
        seconds: time of the search in seconds.
        config: configuration of the translator, its search included.
        text: name of the text, such as "data.test".
        vocabulary: number of target tokens.
        overlap: number of pairs found in the training text, and of training pairs compared; None if not compared.
        trained: whether the translator was trained to translate in this direction.
        updates: number of updates in the log of the training; 0 without a log.
        validation_loss: best validation loss in this log; None without one.
    """

    task: str
    loss: float
    tokens: int
    scores: Scores
    bleu_interval: tuple[float, float]
    exact: float
    compared: list[Output]
    seconds: float
    config: Config
    text: str
    vocabulary: int
    overlap: tuple[int, int] | None = None
    trained: bool = True
    updates: int = 0
    validation_loss: float | None = None

    @property
    def outputs(self) -> list[str]:
        """Translations, line by line."""
        return [output.text for output in self.compared]

    @property
    def sides(self) -> dict[str, list[str]]:
        """Sources and references by name, line by line."""
        return {
            "sources": [output.source for output in self.compared],
            "references": [output.reference for output in self.compared],
        }

    def verdict(self) -> list[str]:
        """Return the verdict on empty lines, the scores, unusual outputs, and the overlap with train.

        Outputs that share next to nothing with their references have one verdict, with its cause.
        """
        count, signature = len(self.compared), self.scores.signature["bleu"]
        overlap = [judge_overlap(self.overlap[0], count, self.overlap[1])] if self.overlap else []
        found = bool(self.overlap and self.overlap[0])  # what makes the scores too high is said before them
        verdict = [*judge_empty(self.sides), *(overlap if found else [])]
        bleu = self.scores.bleu
        if sum(not output.comparable for output in self.compared) <= WORRY * count:
            if shares_nothing(bleu, self.scores.chrf):
                return [judge_untrained(bleu, self.loss, self.validation_loss, self.updates)]
            verdict.append(judge_bleu(bleu, self.bleu_interval, count, signature, self.config.data.target))
        verdict += [*super().verdict(), *judge_outputs(self.compared, self.config, bleu)]
        return [*verdict, *([] if found else overlap)]

    def figures(self) -> dict[str, Any]:
        """Return the scores, and how they were measured."""
        return {
            "task": self.task,
            "loss": self.loss,
            "perplexity": self.perplexity,
            "tokens": self.tokens,
            "bleu": self.scores.bleu,
            "bleu_interval": self.bleu_interval,
            "chrf": self.scores.chrf,
            "ter": self.scores.ter,
            "signature": self.scores.signature,
            "exact": self.exact,
            "direction": "-".join(self.config.languages),
            "trained": self.trained,
            "text": self.text,
            "sentences": len(self.compared),
            "beam_size": self.config.search.beam_size,
            "empty": {
                name: len(texts) - sum(map(has_text, texts))
                for name, texts in (self.sides | {"outputs": self.outputs}).items()
            },
            "seconds": self.seconds,
            "defects": {defect.name: defect.count for defect in find_defects(self.compared)},
        }

    def report(self) -> list[str]:
        """Return the scores with their signatures, and their warnings."""
        scores, count = self.scores, len(self.compared)
        speed = count / max(self.seconds, 1e-9)
        return [
            f"{self.text}: {count:,} sentences, {self.config.search.method}",
            *([] if self.trained else [f"{'-'.join(self.config.languages)} was not trained"]),
            f"BLEU {scores.bleu:.2f}   {scores.signature['bleu']}",
            f"chrF {scores.chrf:.2f}   {scores.signature['chrf']}",
            f"TER  {scores.ter:.2f}   {scores.signature['ter']}",
            f"perplexity {self.perplexity:.3f} over {self.tokens:,} target tokens; "
            f"{100 * self.exact:.1f} % of {count:,} sentences exact; {speed:.1f} sentences/s",
            *(f"warning: {warning}" for warning in scores.warnings),
        ]


@torch.inference_mode()
def target_nats(
    model: EncoderDecoder, sources: Sequence[Ids], targets: Sequence[Ids]
) -> Iterator[tuple[NDArray[np.int64], Tensor, Tensor]]:
    """Yield the negative log-likelihood of each target token and end mark, in batches of pairs of similar length.

    A batch is the indices of its pairs (B,), nats (B, T) that are 0 after the end marks, and the numbers of tokens
    with their end marks (B,), both on the CPU.
    """
    device = next(model.parameters()).device
    model.eval()
    lengths = np.array([len(first) + len(second) + 2 for first, second in zip(sources, targets, strict=True)])
    for batch in fixed_batches(lengths, _BATCH_TOKENS):
        source = pad_rows([sources[pair] for pair in batch], PAD, last=EOS)  # (B, S)
        target_in = pad_rows([targets[pair] for pair in batch], PAD, first=BOS)  # (B, T)
        target_out = pad_rows([targets[pair] for pair in batch], PAD, last=EOS)
        logits = model(source.to(device), target_in.to(device)).float().cpu()  # (B, T, V)
        nats = functional.cross_entropy(logits.transpose(1, 2), target_out, ignore_index=PAD, reduction="none")
        yield np.asarray(batch), nats, (target_out != PAD).sum(1)


def evaluate_texts(
    translator: Translator, sources: list[str], references: list[str], listener: Listener, text: str
) -> Evaluation:
    """Translate and score texts in memory; `text` is their name."""
    config, tokenizers = translator.config, translator.tokenizers
    pairs = [Pair(*texts, line) for line, texts in enumerate(zip(sources, references, strict=True), 1)]
    if long := describe_long(config, tokenizers, pairs, text):
        listener.message(f"warning: {long}")
    listener.message(f"translating {len(sources):,} sentences, {config.search.method}")
    start = time.perf_counter()
    with listener.phase("translating", len(sources), "sentences") as advance:
        results = translate_in_groups(translator, sources, advance)
    seconds = time.perf_counter() - start
    outputs = [result.translation for result in results]
    source_ids, target_ids = tokenizers.source.encode(sources), tokenizers.target.encode(references)
    with listener.phase("scoring the references", len(sources), "sentences") as advance:
        nats, tokens = corpus_nll(
            translator.model,
            source_ids,
            target_ids,
            bos=BOS,
            eos=EOS,
            prefix=translator.prefix,
            advance=advance,
        )
    protocol, language = config.evaluation.protocol, config.data.target
    profiles = languages_of(translator.run) if translator.run else {}
    updates, validation_loss = _training_log(translator.run)
    return Evaluation(
        task=config.task,
        loss=nats / tokens,
        tokens=tokens,
        scores=score(outputs, references, protocol=protocol, language=language),
        bleu_interval=bleu_interval(outputs, references, protocol=protocol, language=language),
        exact=exact_match(outputs, references),
        compared=[
            Output(
                line,
                source,
                reference,
                result.translation,
                not result.truncated,
                other_language(result.translation, language, profiles),
            )
            for line, (source, reference, result) in enumerate(
                zip(sources, references, results, strict=True), start=1
            )
        ],
        seconds=seconds,
        config=config,
        text=text,
        vocabulary=tokenizers.target.size,
        trained=translator.trained,
        updates=updates,
        validation_loss=validation_loss,
    )


def _training_log(run: RunDirectory | None) -> tuple[int, float | None]:
    """Return the updates in the log of a run's training, and the best validation loss; 0 and None without a log."""
    if run is None:
        return 0, None
    curves = read_metrics("", "", run.log())
    losses = curves.of("valid_loss")
    return curves.steps, min(losses.values) if losses else None
