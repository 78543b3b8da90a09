"""A trained translator in numbers: what it reads, how it decodes, what it writes.

Shapes: B sentences, T target length, V vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.batch import pad_rows
from manyheads.data.corpus import Pair
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.doctor.after.inside import head_findings, vocabulary_findings
from manyheads.doctor.after.output import Output, output_findings
from manyheads.doctor.after.reading import (
    FirstTokens,
    Reading,
    entropy,
    first_findings,
    logged_findings,
    reading_findings,
)
from manyheads.doctor.after.search import Batching, batching_findings, decoding_findings
from manyheads.doctor.before.tokens import side_findings
from manyheads.doctor.examination import examine
from manyheads.doctor.report import Finding, Report, make_report
from manyheads.evaluation import score
from manyheads.interop.opened import OpenedModel
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.runs.examination.at_hand import TextAtHand, best_loss, counts_of, token_entropy
from manyheads.runs.examination.decoding import examine_decoding, greedy, token_losses
from manyheads.runs.examination.exports import compare_exports
from manyheads.runs.examination.heads import heads_of
from manyheads.runs.examination.tokens import side_tokens, vocabulary_of
from manyheads.tasks.translation import Translator
from manyheads.text.tokenizer import BOS, EOS, PAD, Tokenizer, TokenizerPair
from manyheads.training.objective import corpus_nll

__all__ = ["examine_translator"]

READ, HEART, TRANSLATED, LOOKED_AT, DECODED = 300, 32, 100, 12, 16  # pairs for each purpose
FAR = 7  # places apart, in the order of length, that a source is taken from instead
LONGEST = 300
SMALL_BATCH = 60  # tokens


def examine_translator(
    run: RunDirectory, config: Config, tokenizers: TokenizerPair, text: TextAtHand
) -> tuple[Report, dict[str, str], float | None]:
    """Findings, facts, and the loss of somebody who only knows how often each target token comes."""
    model = run.model(config, tokenizers)
    report = examine(
        model,
        vocab_size=(tokenizers.source.size, tokenizers.target.size),
        pad=PAD,
        bos=BOS,
        eos=EOS,
        left_padding=True,
        stepper=lambda source: EncoderDecoderStepper(model, source),
        longest=LONGEST,
    )
    translator = Translator(config, tokenizers, model)
    findings: list[Finding] = []
    facts: dict[str, str] = {}
    asked: list[str] = []
    chance = None
    if text.train:
        findings += train_findings(translator, text.train)
        counts = [counts_of(side, texts) for side, texts in both_sides(tokenizers, text.train)]
        chance = token_entropy(counts[1], len(text.train))
        if config.tokenizer.kind in ("bpe", "unigram"):
            findings += unused_findings(tokenizers, counts)
        asked += ["the first token is learned", "texts come back from their tokens", "the vocabulary is used"]
    if text.valid:
        found, told = valid_findings(translator, text.valid, best_loss(run))
        findings, facts = [*findings, *found], facts | told
        asked += [
            "the loss is that of the log", "the source is read", "the loss does not depend on batches",
            "greedy search, beams and batches agree", "outputs end, do not loop, copy or fall silent",
            "heads look at the text",
        ]  # fmt: skip
    exported, compared = compare_exports(run.path, OpenedModel(config, tokenizers, model))
    if compared or exported:
        asked.append("exports give what the run gives")
    return report + make_report([*findings, *exported], asked), facts | compared, chance


def both_sides(tokenizers: TokenizerPair, pairs: Sequence[Pair]) -> Iterator[tuple[Tokenizer, list[str]]]:
    """The tokenizer and the texts of each side."""
    yield tokenizers.source, [pair.source for pair in pairs]
    yield tokenizers.target, [pair.target for pair in pairs]


def unused_findings(tokenizers: TokenizerPair, counts: Sequence[NDArray[np.int64]]) -> Iterator[Finding]:
    """Vocabularies that the text does not use: counts (V,) of the source's and of the target's."""
    if tokenizers.joint:
        yield from vocabulary_findings(vocabulary_of("vocabulary", tokenizers.source, counts[0] + counts[1]))
        return
    for name, tokenizer, found in zip(
        ("source", "target"), (tokenizers.source, tokenizers.target), counts, strict=True
    ):
        yield from vocabulary_findings(vocabulary_of(f"{name} vocabulary", tokenizer, found))


def train_findings(translator: Translator, train: Sequence[Pair]) -> Iterator[Finding]:
    """F and K, on training pairs."""
    tokenizers, model = translator.tokenizers, translator.model
    short = [pair for pair in train if pair.source.strip()][: 50 * HEART]
    pairs = sorted(short, key=lambda pair: len(pair.target))[len(short) // 4 :][
        :: max(1, len(short) // (2 * HEART))
    ]
    pairs = pairs[:HEART]
    sources = [translator.shortened(row) for row in tokenizers.source.encode([pair.source for pair in pairs])]
    targets = tokenizers.target.encode([pair.target for pair in pairs])
    losses = token_losses(model, sources, targets)
    rest = [value for row in losses for value in row[1:]]
    outputs = greedy(model, sources, translator.config)
    starts = Counter(row[0] for row in tokenizers.target.encode([pair.target for pair in train]) if row)
    first = FirstTokens(
        first=sum(row[0] for row in losses) / len(losses),
        rest=sum(rest) / max(1, len(rest)),
        frequencies=entropy(starts.values()),
        right=sum(list(one.tokens[:1]) == row[:1] for one, row in zip(outputs, targets, strict=True)),
        pairs=len(pairs),
    )
    yield from first_findings(first)
    sample = train[:: max(1, len(train) // 1_000)]
    for place, (side, tokenizer) in enumerate((("source", tokenizers.source), ("target", tokenizers.target))):
        texts = [(pair.source, pair.target)[place] for pair in sample]
        yield from side_findings(side_tokens(f"train, {side}", tokenizer, texts))


def valid_findings(
    translator: Translator, valid: Sequence[Pair], logged: float | None
) -> tuple[list[Finding], dict[str, str]]:
    """N, L, D, E, M, outputs and heads, on validation pairs; and what is to be told."""
    model, tokenizers, config = translator.model, translator.tokenizers, translator.config
    pairs = sorted([pair for pair in valid if pair.source.strip()][:READ], key=lambda pair: len(pair.source))
    sources = [translator.shortened(row) for row in tokenizers.source.encode([pair.source for pair in pairs])]
    targets = tokenizers.target.encode([pair.target for pair in pairs])
    own = mean_loss(model, sources, targets)
    others = sources[FAR:] + sources[:FAR] if len(sources) > FAR else sources[1:] + sources[:1]
    reading = Reading(own, mean_loss(model, others, targets), len(pairs))
    batching = Batching(own, mean_loss(model, sources, targets, SMALL_BATCH))
    findings = [*logged_findings(own, len(pairs), logged), *reading_findings(reading), *batching_findings(batching)]
    spread = pairs[:: max(1, len(pairs) // DECODED)][:DECODED]
    findings += decoding_findings(examine_decoding(translator, [pair.source for pair in spread]))
    chosen = sorted(pairs, key=lambda pair: pair.line)[:TRANSLATED]
    outputs = outputs_of(translator, chosen)
    findings += output_findings(outputs, whole_words=config.tokenizer.kind == "words")
    findings += head_findings(heads_of(model, passes(model, sources, targets)))
    scores = score(
        [one.text for one in outputs], [one.reference for one in outputs],
        protocol=config.evaluation.protocol, language=config.data.target,
    )  # fmt: skip
    facts = {
        "reading": f"{own:.2f} nats a token of the validation set, {reading.shuffled:.2f} with other sources",
        "outputs": f"BLEU {scores.bleu:.1f} on {len(outputs)} validation sentences ({scores.signature['bleu']})",
    }
    return findings, facts


def mean_loss(
    model: EncoderDecoder, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], tokens: int = 4_096
) -> float:
    """Nats a target token, in batches of about so many tokens."""
    nats, count = corpus_nll(model, sources, targets, bos=BOS, eos=EOS, batch_tokens=tokens)
    return nats / count


def outputs_of(translator: Translator, pairs: Sequence[Pair]) -> list[Output]:
    """Translations as the run makes them."""
    found = translator.translate([pair.source for pair in pairs])
    return [
        Output(pair.line, pair.source, pair.target, one.translation, not one.truncated)
        for pair, one in zip(pairs, found, strict=True)
    ]


def passes(
    model: EncoderDecoder, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[Callable[[], object]]:
    """Teacher forcing of some pairs, one by one, evenly spread."""
    places = range(0, len(sources), max(1, len(sources) // LOOKED_AT))

    def go(place: int) -> object:
        return model(pad_rows([sources[place]], PAD, last=EOS), pad_rows([[BOS, *targets[place]]], PAD))

    return [partial(go, place) for place in places]
