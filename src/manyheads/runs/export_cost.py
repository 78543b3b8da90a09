"""Measure the cost of a quantized export on this machine: BLEU, loss and outputs against the float32 export."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from manyheads.errors import ParityError
from manyheads.evaluation import BootstrapResult, paired_bootstrap
from manyheads.interop.bundle import LoadedModel
from manyheads.interop.ctranslate2.convert import check_ctranslate2, load_ctranslate2, write_ctranslate2
from manyheads.interop.ctranslate2.engine import CTranslate2Engine
from manyheads.interop.parity import Reference, random_samples, reference
from manyheads.runs.corpus import available_pairs
from manyheads.tasks.options import plain_search

__all__ = ["HIGHEST_BLEU_COST", "HIGHEST_LOSS_COST", "QuantizationCost", "measure_cost"]

SENTENCES = 500
# A cost above either of these is refused. The loss of a token is known to a hundredth of that on a few sentences;
# BLEU counts where there is some to lose, enough text to see it, and the difference is not chance.
HIGHEST_LOSS_COST = 0.1  # nats a token: a tenth more perplexity
HIGHEST_BLEU_COST = 1.0
LOWEST_BLEU = 5.0
FEWEST_SENTENCES = 100


@dataclass(frozen=True)
class QuantizationCost:
    """Comparison of the quantized and the float32 export of a run, on the same text and device.

    Attributes:
        quantization: number format of the stored matrices.
        compute_type: number format in which CTranslate2 computes here, which may differ.
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
        return self.bleu is not None and self.bleu.baseline >= LOWEST_BLEU and self.sentences >= FEWEST_SENTENCES

    @property
    def too_high(self) -> bool:
        """Whether the cost is too high."""
        lost = self.bleu is not None and self.bleu.difference < -HIGHEST_BLEU_COST and self.bleu.p_value < 0.05
        return self.loss - self.loss_float32 > HIGHEST_LOSS_COST or (self.bleu_counts and lost)

    def line(self) -> str:
        """Return the verdict."""
        name = self.quantization
        if self.compute_type.partition("_")[0] != name.partition("_")[0]:
            name += f", computed in {self.compute_type},"
        text = f"on {self.sentences:,} {self.origin}"
        loss = f"loss {self.loss_float32:.3f} -> {self.loss:.3f} nats a token"
        same = f"{self.same_outputs:,} of {self.sentences:,} outputs are the same"
        if self.bleu is None or not self.bleu_counts:
            cost = amount(self.loss - self.loss_float32, 3, "nats a token")
            return f"{name} costs {cost} on this {self.device} ({loss} {text}; {same}){self.why_no_bleu()}"
        low, high = (0 - end for end in reversed(self.bleu.interval))
        return (
            f"{name} costs {amount(-self.bleu.difference, 2, 'BLEU')} on this {self.device} "
            f"({self.bleu.baseline:.2f} -> {self.bleu.score:.2f} {text}, 95 % interval {low:.2f} to {high:.2f}; "
            f"{loss}; {same}; {self.bleu.signature})"
        )

    def why_no_bleu(self) -> str:
        """Return the reason why the verdict has no BLEU."""
        if self.bleu is None:
            return ". The run's validation text is not on this machine, so its BLEU is not known"
        if self.sentences < FEWEST_SENTENCES:
            return f". BLEU needs at least {FEWEST_SENTENCES} sentences"
        return f". BLEU is {self.bleu.baseline:.2f} in float32, too little to lose any: the model is hardly trained"

    def refusal(self) -> str:
        """Return the error message of a cost that is too high, with what to do."""
        other = "int8" if self.compute_type.startswith("int8") and self.quantization == "int16" else "float32"
        return (
            f"{self.line()}. That is more than {HIGHEST_BLEU_COST:g} BLEU or {HIGHEST_LOSS_COST:g} nats a token, "
            f"and was not kept. Use --quantization {other}, or keep it with --force."
        )

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {**vars(self), "bleu": vars(self.bleu) if self.bleu else None, "verdict": self.line()}


def amount(cost: float, digits: int, unit: str) -> str:
    """Format a cost with its unit; "no BLEU" if it is zero."""
    return f"{cost:.{digits}f} {unit}" if round(cost, digits) > 0 else f"no {unit}"


def measure_cost(
    opened: LoadedModel, quantization: str, expected: Reference, *, force: bool = False, device: str = "auto"
) -> QuantizationCost:
    """Export a run in float32 and quantized, and score both on the run's validation text.

    If that text is not on this machine, both are scored on random pieces, with the outputs of float32 as
    references.

    The float32 export is first compared with `expected`, the results of the run. `force` accepts a high cost. Both
    exports are computed on `device`.

    Raises:
        ParityError: the float32 export gives other results than the run, or quantization costs too much.
    """
    with TemporaryDirectory() as name:
        engines = []
        for stored in ("float32", quantization):
            folder = Path(name) / stored
            folder.mkdir()
            write_ctranslate2(folder, opened.config, opened.tokenizers, opened.model, stored)
            engines.append(load_ctranslate2(folder, device=device)[1])
        check_ctranslate2(Path(name) / "float32", expected)
        cost = compare_engines(opened, quantization, engines[0], engines[1])
    if cost.too_high and not force:
        raise ParityError(cost.refusal())
    return cost


def compare_engines(
    opened: LoadedModel, quantization: str, plain: CTranslate2Engine, quantized: CTranslate2Engine
) -> QuantizationCost:
    """Score both engines on the same text."""
    config, tokenizers = opened.config, opened.tokenizers
    most = config.model.max_positions - 1
    pairs = [pair for pair in available_pairs(config, "valid", SENTENCES) if pair.source and pair.target]
    if pairs:
        rows = [row[:most] for row in tokenizers.source.encode([pair.source for pair in pairs])]
        targets = [row[:most] for row in tokenizers.target.encode([pair.target for pair in pairs])]
        origin = "validation sentences"
    else:
        greedy = reference(opened.model, random_samples(tokenizers.source))
        rows, targets, origin = greedy.samples.rows, greedy.outputs, "rows of random pieces"
    outputs = [search(opened, engine, rows) for engine in (plain, quantized)]
    losses = [loss(engine, rows, targets) for engine in (plain, quantized)]
    bleu = None
    if pairs:
        texts = [tokenizers.target.decode(row) for rows_of_engine in outputs for row in rows_of_engine]
        references = [pair.target for pair in pairs]
        bleu = paired_bootstrap(texts[len(rows) :], texts[: len(rows)], references, language=config.data.target)
    return QuantizationCost(
        quantization=quantization,
        compute_type=quantized.compute_type,
        device="GPU" if quantized.device["device"] == "cuda" else "processor",
        sentences=len(rows),
        origin=origin,
        loss=losses[1],
        loss_float32=losses[0],
        same_outputs=sum(plain == quantized for plain, quantized in zip(*outputs, strict=True)),
        bleu=bleu,
    )


def search(opened: LoadedModel, engine: CTranslate2Engine, rows: list[list[int]]) -> list[tuple[int, ...]]:
    """Return the best output of each row, with the search settings of the run."""
    options = replace(plain_search(opened.config.search), token_scores=False)
    return [hypotheses[0].tokens for hypotheses in engine.search(rows, options)]


def loss(engine: CTranslate2Engine, rows: list[list[int]], targets: list[list[int]]) -> float:
    """Return the loss of given outputs in nats per token, end symbols counted."""
    scores = [score for row in engine.score(rows, targets) for score in row]
    return -sum(scores) / len(scores)
