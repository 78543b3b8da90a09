"""A trained language model in numbers: whether it uses its context, and what it writes.

Shapes: R rows, T length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.decoding.language_model import DecoderOnlyStepper
from manyheads.doctor.after.inside import head_findings, vocabulary_findings
from manyheads.doctor.after.output import repeats
from manyheads.doctor.after.reading import context_findings, logged_findings
from manyheads.doctor.after.search import Batching, Decoding, batching_findings, decoding_findings
from manyheads.doctor.before.text import of
from manyheads.doctor.before.tokens import side_findings
from manyheads.doctor.catalogue import run_finding
from manyheads.doctor.evidence import Example, shown
from manyheads.doctor.examination import examine
from manyheads.doctor.report import Finding, Report, make_report
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_only import MaskedLanguageModel
from manyheads.runs.examination.at_hand import TextAtHand, best_loss, counts_of, token_entropy
from manyheads.runs.examination.heads import heads_of
from manyheads.runs.examination.start import LONGEST, Reader
from manyheads.runs.examination.tokens import side_tokens, vocabulary_of
from manyheads.runs.language_modeling import stream_of
from manyheads.tasks.language_modeling import GenerateOptions, Generator
from manyheads.text.tokenizer import BOS, EOS, PAD, TokenizerPair
from manyheads.training.objective import Windows, window_nll

__all__ = ["examine_language_model", "examine_masked"]

READ = 8_192  # tokens of the validation text
CONTEXTS, READ_TOGETHER = 128, 16  # windows whose context is replaced; how many of them at a time
SHORTEST = 16  # tokens of a text in which contexts can be replaced
TEXTS, WRITTEN = 6, 96  # texts that are written, and their tokens
LOOPING = 1 / 3  # of the drawn texts
LOOKED_AT = 8


def examine_language_model(
    run: RunDirectory, config: Config, tokenizers: TokenizerPair, text: TextAtHand
) -> tuple[Report, dict[str, str], float | None]:
    """Findings, facts, and the loss of somebody who only knows how often each token comes."""
    tokenizer = tokenizers.target
    model = run.fill(DecoderOnly(config.model, tokenizer.size))
    generator = Generator(config, tokenizer, model)
    report = examine(model, vocab_size=tokenizer.size, pad=PAD, eos=EOS, kind="decoder", longest=LONGEST)
    findings: list[Finding] = []
    facts: dict[str, str] = {}
    asked = ["texts that are written do not loop"]
    chance = None
    if text.train:
        texts = [pair.target for pair in text.train]
        counts = counts_of(tokenizer, texts)
        chance = token_entropy(counts, 0 if config.whole_files else len(texts))
        if config.tokenizer.kind in ("bpe", "unigram"):
            findings += vocabulary_findings(vocabulary_of("vocabulary", tokenizer, counts))
        findings += side_findings(side_tokens("train", tokenizer, texts[:1_000]))
        asked += ["the vocabulary is used", "texts come back from their tokens"]
    if text.valid:
        tokens = stream_of(config, [pair.target for pair in text.valid], tokenizer)[:READ]
        width = config.data.max_length
        own = loss(model, tokens, width)
        facts["loss"] = f"{own:.3f} nats a token of the validation text"
        if len(tokens) >= SHORTEST:
            windows, change = context_change(model, tokens, width)
            facts["context"] = f"another one changes the loss of a token by {change:.3f} nats in the mean"
            findings += context_findings(change, windows)
            asked.append("the context is used")
        batching = Batching(own, loss(model, tokens, width, batch_tokens=width))
        findings += [*logged_findings(own, len(tokens) - 1, best_loss(run)), *batching_findings(batching)]
        findings += decoding_findings(examine_steps(generator, tokens))
        starts = range(0, max(1, len(tokens) - width), max(1, (len(tokens) - width) // LOOKED_AT))
        rows = [tokens[start : start + width] for start in starts][:LOOKED_AT]
        findings += head_findings(heads_of(model, passes(model, rows)))
        asked += [
            "the loss is that of the log",
            "the loss does not depend on batches",
            "step by step gives the same",
        ]
    findings += writing_findings(generator)
    return report + make_report(findings, asked), facts, chance


def examine_masked(
    run: RunDirectory, config: Config, tokenizers: TokenizerPair, text: TextAtHand
) -> tuple[Report, dict[str, str], float | None]:
    """Of an encoder that guesses hidden tokens: its invariants and its vocabulary."""
    tokenizer = tokenizers.source
    model = run.fill(MaskedLanguageModel(config.model, tokenizer.size, pad=PAD))
    report = examine(
        Reader(model), vocab_size=tokenizer.size, pad=PAD, bos=BOS, eos=EOS, kind="encoder", longest=LONGEST
    )
    if not text.train:
        return report, {}, None
    texts = [pair.target for pair in text.train]
    counts = counts_of(tokenizer, texts)
    findings = [*side_findings(side_tokens("train", tokenizer, texts[:1_000]))]
    if config.tokenizer.kind in ("bpe", "unigram"):
        findings += vocabulary_findings(vocabulary_of("vocabulary", tokenizer, counts))
    return report + make_report(findings, ["the vocabulary is used"]), {}, token_entropy(counts, 0)


def loss(model: DecoderOnly, tokens: NDArray[np.int32], width: int, batch_tokens: int = 4_096) -> float:
    """Nats a token with so much context at the most."""
    windows = Windows(len(tokens), width=width, step=max(1, width // 2))
    nats, count = window_nll(model, tokens, windows, batch_tokens=batch_tokens)
    return nats / max(1, count)


@torch.no_grad()
def context_change(model: DecoderOnly, tokens: NDArray[np.int32], width: int) -> tuple[int, float]:
    """Replace the context of the last token of some windows, all but the token before it, by that of other windows.

    Tokens stay at their positions, so that a model which knows nothing but the token before and its position is
    not taken for one that reads.

    Returns:
        The number of windows N, and the mean change of the loss of their last tokens, either way, in nats.
    """
    width = min(width, len(tokens) // 2)
    starts = np.unique(np.linspace(0, len(tokens) - width - 1, CONTEXTS).astype(np.int64))
    windows = torch.from_numpy(tokens[starts[:, None] + np.arange(width + 1)]).long()  # (N, T + 1)
    own, labels = windows[:, :-1], windows[:, -1:]
    other = own.roll(1, 0)
    other[:, -1] = own[:, -1]
    losses = [
        -torch.cat([model(rows)[:, -1].float().log_softmax(-1) for rows in context.split(READ_TOGETHER)]).gather(
            1, labels
        )
        for context in (own, other)
    ]
    return len(windows), float((losses[0] - losses[1]).abs().mean())


@torch.no_grad()
def examine_steps(generator: Generator, tokens: NDArray[np.int32]) -> Decoding:
    """Step by step beside all at once, and together beside alone."""
    model, half = generator.model, max(1, generator.window // 2)
    rows = [tokens[start : start + half].tolist() for start in range(0, half * TEXTS, half)]
    rows = [row[: len(row) - place] for place, row in enumerate(rows) if len(row) > place + 1]
    largest, other = 0.0, 0
    stepper = DecoderOnlyStepper(model, rows, generator.window)
    step = stepper.step(torch.tensor([row[-1] for row in rows]))
    for _ in range(min(4, half)):
        for place, row in enumerate(rows):
            right = model(torch.tensor([row]))[0, -1].float().log_softmax(-1)
            likely = right.topk(min(20, len(right)))
            gap = float((step[place][likely.indices] - likely.values).abs().max())
            largest = max(largest, gap)
            alone = DecoderOnlyStepper(model, [row], generator.window).step(torch.tensor([row[-1]]))
            other += int(int(alone[0].argmax()) != int(step[place].argmax()) and gap > 1e-4)
        best = step.argmax(-1)
        rows = [[*row, int(token)] for row, token in zip(rows, best, strict=True)]
        step = stepper.step(best)
    return Decoding(sentences=len(rows), others_beside=other, cache=largest, beam_one=0, score=0.0)


def writing_findings(generator: Generator) -> list[Finding]:
    """What it writes by itself, drawn at its own probabilities."""
    (written,) = generator.generate([""], GenerateOptions(samples=TEXTS, max_tokens=WRITTEN))
    looping = [one.text for one in written.samples if repeats(" ".join(one.text.split()))]
    if len(looping) <= LOOPING * TEXTS:
        return []
    quoted = shown([Example(1, looping[0])])
    return [run_finding("repeats-itself", f"{of(len(looping), TEXTS)} of the texts it writes by itself{quoted}")]


def passes(model: DecoderOnly, rows: Sequence[NDArray[np.int32]]) -> list[Callable[[], object]]:
    """Reading some texts, one by one."""

    def go(row: NDArray[np.int32]) -> object:
        return model(torch.from_numpy(row.astype(np.int64))[None])

    return [partial(go, row) for row in rows]
