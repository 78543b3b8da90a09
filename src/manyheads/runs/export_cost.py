"""Measure the cost of a quantized export on this machine: BLEU, loss and outputs against the float32 export."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from manyheads.decoding.engine import TorchEngine
from manyheads.decoding.linear import InferenceLinear, round_weight
from manyheads.errors import ParityError
from manyheads.evaluation import BootstrapResult, paired_bootstrap
from manyheads.evaluation.verdicts import FEWEST_LINES, UNUSABLE
from manyheads.interop.bundle import LoadedModel
from manyheads.interop.ctranslate2.convert import check_ctranslate2, load_ctranslate2, write_ctranslate2
from manyheads.interop.parity import Reference, random_samples
from manyheads.interop.reference import decoder_input, reference, token_scores
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.interface import Hypothesis
from manyheads.search.options import Constraints, SearchOptions
from manyheads.tasks.corpus import available_pairs
from manyheads.tasks.options import plain_search
from manyheads.text.tokenizer import EOS
from manyheads.training.log import NO_LISTENER, Advance, Listener

_SENTENCES = 500
_GROUP = 100  # sentences translated between two reports of progress
# A cost above either limit is refused. A few sentences are enough to measure the loss of a token to a hundredth of
# its limit. BLEU counts only if it is not near 0, with enough sentences, and if the difference is not chance.
_HIGHEST_LOSS_COST = 0.1  # nats a token: a tenth more perplexity
_HIGHEST_BLEU_COST = 1.0
_LIMITS = f"{_HIGHEST_BLEU_COST:g} BLEU or {_HIGHEST_LOSS_COST:g} nats a token"
_LOWEST_BLEU = 5.0
# A cost up to both limits is usual: int8 took less than 0.5 BLEU in Bhandare et al. (2019), and at most 0.7 % of
# BLEU in Wu (2020).
_USUAL_BLEU_COST = 0.5
_USUAL_SHARE = 0.02
_USUAL_LOSS_COST = 0.01  # nats a token: a hundredth more perplexity


@dataclass(frozen=True)
class QuantizationCost:
    """Comparison of a run quantized and in float32, on the same text and device.

    Attributes:
        quantization: number format of the stored matrices.
        compute_type: number format of the computation on this device, which may differ.
        device: "processor" or "GPU".
        sentences: number of sentences scored.
        origin: description of the sentences.
        loss, loss_float32: nats per token of the references, end symbols counted.
        same_outputs: number of outputs equal to those of float32, with the search settings of the run.
        bleu: paired bootstrap of the outputs, with float32 as the baseline; None without references.
    """

    quantization: str
    compute_type: str
    device: str
    sentences: int
    origin: str
    loss: float
    loss_float32: float
    same_outputs: int
    bleu: BootstrapResult | None

    @property
    def bleu_counts(self) -> bool:
        """Whether BLEU is meaningful for this model and number of sentences."""
        return self.bleu is not None and self.bleu.baseline >= _LOWEST_BLEU and self.sentences >= FEWEST_LINES

    @property
    def too_high(self) -> bool:
        """Whether the cost is too high."""
        lost = self.bleu is not None and self.bleu.difference < -_HIGHEST_BLEU_COST and self.bleu.p_value < 0.05
        return self.loss - self.loss_float32 > _HIGHEST_LOSS_COST or (self.bleu_counts and lost)

    @property
    def usual(self) -> float:
        """Return the highest cost in BLEU that is usual for a model of this quality."""
        return min(_USUAL_BLEU_COST, _USUAL_SHARE * self.bleu.baseline) if self.bleu else 0.0

    def verdict(self) -> str:
        """Return whether the cost is more than chance, whether it is usual, and advice."""
        name = self.quantization
        if self.too_high:
            return f"{name} costs more than {_LIMITS}, and was kept by --force: use float32"
        if self.same_outputs == self.sentences:
            return f"{name} changes no output on this text: use it"
        if self.bleu is None or not self.bleu_counts:
            cost = self.loss - self.loss_float32
            if cost <= _USUAL_LOSS_COST:
                return f"{name} costs less than {_USUAL_LOSS_COST:g} nats a token, as usual: use it"
            return (
                f"{name} costs {cost:.3f} nats a token, more than the usual {_USUAL_LOSS_COST:g}: compare it with "
                "float32 on your own text before you use it"
            )
        text = self.judge_bleu(-self.bleu.difference, -self.bleu.interval[0], significant=self.bleu.significant)
        if self.bleu.baseline < UNUSABLE:
            return f"{text}. At BLEU {self.bleu.baseline:.1f}, more training matters more than the number format"
        return text

    def judge_bleu(self, cost: float, highest: float, *, significant: bool) -> str:
        """Judge a cost in BLEU, whose 95 % interval ends at `highest`, and which may be more than chance."""
        name = self.quantization
        if significant and cost <= 0:
            return f"{name} costs nothing on this text: use it"
        if significant and cost <= self.usual:
            return f"{name} costs {cost:.2f} BLEU on this text, which is usual: use it where speed or size counts"
        if significant:
            return (
                f"{name} costs {cost:.2f} BLEU on this text: more than chance, and more than usual for a model "
                f"of this quality (up to {self.usual:.2f}). Keep float32, or try another --quantization"
            )
        chance = f"the difference of {abs(cost):.2f} BLEU is within chance"
        if highest <= self.usual:
            return f"{chance}, and at worst a usual cost: use {name}"
        return (
            f"{chance}, but up to {highest:.2f} BLEU may be lost: {self.sentences:,} sentences are too few to "
            f"tell. Compare {name} with float32 on more text"
        )

    def line(self) -> str:
        """Return the measured cost."""
        name = self.quantization
        if self.compute_type.partition("_")[0] != name.partition("_")[0]:
            name += f", computed in {self.compute_type},"
        text = f"on {self.sentences:,} {self.origin}"
        loss = f"loss {self.loss_float32:.3f} -> {self.loss:.3f} nats a token"
        same = f"{self.same_outputs:,} of {self.sentences:,} outputs are the same"
        if self.bleu is None or not self.bleu_counts:
            cost = _amount(self.loss - self.loss_float32, 3, "nats a token")
            return f"{name} costs {cost} on this {self.device} ({loss} {text}; {same}){self.why_no_bleu()}"
        low, high = (0 - end for end in reversed(self.bleu.interval))
        return (
            f"{name} costs {_amount(-self.bleu.difference, 2, 'BLEU')} on this {self.device} "
            f"({self.bleu.baseline:.2f} -> {self.bleu.score:.2f} {text}, 95 % interval {low:.2f} to {high:.2f}; "
            f"{loss}; {same}; {self.bleu.signature})"
        )

    def why_no_bleu(self) -> str:
        """Return the reason why the line has no BLEU."""
        if self.bleu is None:
            return ". The run's validation text is not on this machine, so its BLEU is not known"
        if self.sentences < FEWEST_LINES:
            return f". BLEU needs at least {FEWEST_LINES} sentences"
        return f". BLEU is {self.bleu.baseline:.2f} in float32, too little to lose any: the model is hardly trained"

    def refusal(self) -> str:
        """Return the error message of a cost that is too high, with what to do."""
        alternative = "int8" if self.compute_type.startswith("int8") and self.quantization == "int16" else "float32"
        advice = f"Use --quantization {alternative}, or keep it with --force."
        return f"{self.line()}. That is more than {_LIMITS}, and was not kept. {advice}"

    def to_json(self) -> dict[str, Any]:
        """Return all fields, the measured cost in a line, and the verdict."""
        return {
            **vars(self),
            "bleu": vars(self.bleu) if self.bleu else None,
            "line": self.line(),
            "verdict": self.verdict(),
        }


def _amount(cost: float, digits: int, unit: str) -> str:
    """Format a cost with its unit; "no BLEU" if it is zero."""
    return f"{cost:.{digits}f} {unit}" if round(cost, digits) > 0 else f"no {unit}"


def measure_cost(
    opened: LoadedModel,
    quantization: str,
    engines: tuple[ScoringEngine, ScoringEngine],
    *,
    force: bool = False,
    listener: Listener = NO_LISTENER,
) -> QuantizationCost:
    """Score a run in float32 and quantized, on the run's validation text.

    If that text is not on this machine, both are scored on random pieces, with the outputs of float32 as
    references.

    Args:
        opened: the run.
        quantization: number format of the matrices.
        engines: the run in float32, and quantized.
        force: whether to accept a high cost.
        listener: receives the progress.

    Raises:
        ParityError: quantization costs too much.
    """
    cost = compare_engines(opened, quantization, *engines, listener)
    if cost.too_high and not force:
        raise ParityError(cost.refusal())
    return cost


class ScoringEngine(Protocol):
    """A model that translates and that scores given outputs."""

    on_gpu: bool

    @property
    def compute_type(self) -> str:
        """Return the number format of the computation."""

    def search(
        self, rows: Sequence[Sequence[int]], options: SearchOptions, constraints: Sequence[Constraints] = ()
    ) -> list[list[Hypothesis]]:
        """Return the outputs of each source."""

    def score(self, rows: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return the log-probability of each token of outputs, the end mark last."""


@contextmanager
def ctranslate2_engines(
    opened: LoadedModel, quantization: str, expected: Reference, device: str
) -> Iterator[tuple[ScoringEngine, ScoringEngine]]:
    """Yield the CTranslate2 engines of a run: in float32, and quantized.

    The float32 export is first compared with `expected`, the results of the run.

    Raises:
        ParityError: the float32 export gives other results than the run.
    """
    with TemporaryDirectory() as name:
        engines = []
        for stored in ("float32", quantization):
            folder = Path(name) / stored
            folder.mkdir()
            write_ctranslate2(folder, opened.config, opened.tokenizers, opened.model, stored)
            engines.append(load_ctranslate2(folder, device=device)[1])
        check_ctranslate2(Path(name) / "float32", expected)
        yield engines[0], engines[1]


def rounded_model(model: EncoderDecoder) -> EncoderDecoder:
    """Return a copy of a model that computes linear layers in int8, with token embeddings rounded to int8."""
    copied = copy.deepcopy(model)
    for name, part in copied.named_modules():
        if isinstance(part, nn.Linear):
            bias = None if part.bias is None else part.bias.detach()
            part.forward = InferenceLinear(part.weight.detach(), bias, part.weight.dtype, "int8")  # type: ignore[method-assign, assignment]
        elif isinstance(part, nn.Embedding) and name.endswith("tokens"):
            part.weight = nn.Parameter(round_weight(part.weight.detach(), "int8"), requires_grad=False)
        elif isinstance(part, MultiHeadAttention):
            part.project = partial(_project_rounded, part)  # type: ignore[method-assign]
    return copied


def _project_rounded(attention: MultiHeadAttention, x: Tensor, first: int, last: int) -> Tensor:
    """Apply a part of a rounded input projection; see `MultiHeadAttention.project`."""
    projected: Tensor = attention.project_in(x)
    return projected[..., first * x.size(-1) : last * x.size(-1)]


class PageEngine(TorchEngine):
    """An engine that computes with the weights of an HTML page or a JavaScript module."""

    on_gpu = False

    def __init__(self, model: EncoderDecoder, compute_type: str) -> None:
        super().__init__([model], precision="int8" if compute_type == "int8" else "fp32")
        self.compute_type = compute_type

    @torch.inference_mode()
    def score(self, rows: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]) -> list[list[float]]:
        """See `ScoringEngine.score`."""
        scores = []
        for row, output in zip(rows, outputs, strict=True):
            logits = self.models[0](torch.tensor([[*row, EOS]]), decoder_input([output]))
            scores += token_scores(logits, [output])
        return scores


def compare_engines(
    opened: LoadedModel, quantization: str, plain: ScoringEngine, quantized: ScoringEngine, listener: Listener
) -> QuantizationCost:
    """Score both engines on the same text."""
    config, tokenizers = opened.config, opened.tokenizers
    most = config.model.max_positions - 1
    pairs = [pair for pair in available_pairs(config, "valid", _SENTENCES) if pair.source and pair.target]
    if pairs:
        rows = [row[:most] for row in tokenizers.source.encode([pair.source for pair in pairs])]
        targets = [row[:most] for row in tokenizers.target.encode([pair.target for pair in pairs])]
        targets = [[*opened.prefix, *row] for row in targets]
        of_direction = f" of {'-'.join(config.languages)}" if opened.prefix else ""
        origin = f"validation sentences{of_direction}, {config.search.method}"
    else:
        greedy = reference(opened.model, random_samples(tokenizers.source))
        rows, targets, origin = greedy.samples.rows, greedy.outputs, "rows of random pieces"
    with listener.phase("translating with both", 2 * len(rows), "sentences") as advance:
        outputs = [search(opened, engine, rows, advance) for engine in (plain, quantized)]
    losses = [_loss(engine, rows, targets) for engine in (plain, quantized)]
    bleu = None
    if pairs:
        texts = [tokenizers.target.decode(row) for rows_of_engine in outputs for row in rows_of_engine]
        references = [pair.target for pair in pairs]
        bleu = paired_bootstrap(texts[len(rows) :], texts[: len(rows)], references, language=config.data.target)
    return QuantizationCost(
        quantization=quantization,
        compute_type=quantized.compute_type,
        device="GPU" if quantized.on_gpu else "processor",
        sentences=len(rows),
        origin=origin,
        loss=losses[1],
        loss_float32=losses[0],
        same_outputs=sum(plain == quantized for plain, quantized in zip(*outputs, strict=True)),
        bleu=bleu,
    )


def search(
    opened: LoadedModel, engine: ScoringEngine, rows: list[list[int]], advance: Advance
) -> list[tuple[int, ...]]:
    """Return the best output of each row, with the search settings of the run."""
    options = replace(plain_search(opened.config.search), token_scores=False)
    outputs: list[tuple[int, ...]] = []
    for first in range(0, len(rows), _GROUP):
        group = rows[first : first + _GROUP]
        forced = [Constraints(opened.prefix)] * len(group) if opened.prefix else []
        outputs += [hypotheses[0].tokens for hypotheses in engine.search(group, options, forced)]
        advance(len(group))
    return outputs


def _loss(engine: ScoringEngine, rows: list[list[int]], targets: list[list[int]]) -> float:
    """Return the loss of given outputs in nats per token, end symbols counted."""
    scores = [score for row in engine.score(rows, targets) for score in row]
    return -sum(scores) / len(scores)
